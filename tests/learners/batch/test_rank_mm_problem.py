"""RankMM on sparse rows: the duals of the written-out rows, as closely as their scores agree."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktron import DataError, Rounds
from ranktron.kernels.csr import ONES
from ranktron.kernels.csr_rows import Sparse
from ranktron.learners.batch.rank_mm import make_dual, solve_rank_mm
from ranktron.learners.batch.rank_mm_losses import LOSSES
from ranktron.learners.batch.rank_mm_problem import RankMMProblem, carry
from ranktron.learners.schedule import Schedule
from ranktron.training.fit import TrainingPlan, train
from reproduction.theory.pegasos import Pegasos
from reproduction.theory.rank_mm import solve_path


def lists_of(seed, d=6, ones=False):
    """The same queries twice, some documents without a feature."""
    rng = np.random.default_rng(seed)
    group = rng.integers(1, 7, size=5)
    X = (rng.random((group.sum(), d)) < rng.choice([0.1, 0.5])).astype(np.float32)
    X = X if ones else X * rng.normal(size=X.shape).astype(np.float32)
    rows = Sparse.from_matrix(X)
    rows = Sparse(rows.starts, rows.columns, ONES, d) if ones else rows
    labels = rng.integers(0, 3, len(X))
    return [Rounds.from_arrays(features, labels, group=group) for features in (X, rows)]


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), ones=st.booleans())
@pytest.mark.parametrize(("step", "visits"), [("exact", 1), ("paper", 12)])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_step_is_that_of_the_written_rows(loss, step, visits, seed, ones):
    """An exact step makes corners equally good, and the last bit of a score chooses one: only the first is held."""
    duals = [make_dual(RankMMProblem(lists, loss, 2.0), step, eta=0.3) for lists in lists_of(seed, ones=ones)]
    order = np.random.default_rng(seed).integers(5, size=visits)
    for q in range(visits):
        for dual in duals:
            dual.visit(order[q : q + 1])
        assert duals[1].w == pytest.approx(duals[0].w, rel=1e-6, abs=1e-6)  # pairs are kept in 32 bits
        assert duals[1].value == pytest.approx(duals[0].value, rel=1e-6, abs=1e-6)
    w, margin = duals[1].recovered()
    assert w == pytest.approx(duals[1].w, rel=1e-6, abs=1e-6)
    assert margin == pytest.approx(duals[1].margin, rel=1e-6, abs=1e-6)
    w = np.random.default_rng(seed).normal(size=6)
    assert duals[1].problem.primal(w) == pytest.approx(duals[0].problem.primal(w), rel=1e-12)


@given(seed=st.integers(0, 10**6), ones=st.booleans())
def test_carrying_back_is_to_the_bit(seed, ones):
    dense, sparse = (RankMMProblem(lists) for lists in lists_of(seed, ones=ones))
    g = np.random.default_rng(seed).normal(size=len(dense.rounds.labels))
    directions = np.zeros((2, 6))
    margins = [
        carry(problem.arrays[0], problem.rounds.labels, g, 0.7, direction)
        for problem, direction in zip((dense, sparse), directions, strict=True)
    ]
    assert margins[0] == margins[1]
    assert (directions[0] == directions[1]).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum_is_the_same_and_paths_go_on(loss):
    dense, sparse = lists_of(3)
    found = [solve_rank_mm(lists, 1.0, loss, tol=1e-6) for lists in (dense, sparse)]
    assert found[1].primal == pytest.approx(found[0].primal, rel=1e-5)
    assert found[1].w == pytest.approx(found[0].w, abs=2e-2)
    assert all(each.converged for each in solve_path(sparse, [0.1, 1.0], loss))
    with pytest.raises(DataError, match="same queries"):
        solve_rank_mm(lists_of(4)[1], 1.0, loss, start=found[1])


def test_lists_are_known_again_by_what_they_hold():
    dense, sparse = lists_of(5)
    more = replace(lists_of(6)[1], qids=np.arange(5) + 10)
    both = Rounds.concat([more, sparse])
    assert RankMMProblem(both[5:]).fingerprint() == RankMMProblem(sparse).fingerprint()
    moved = Sparse(sparse.X.starts, (sparse.X.columns + 1) % 6, sparse.X.values, 6)
    other = Rounds(moved, sparse.labels, sparse.offsets, sparse.qids)
    assert RankMMProblem(other).fingerprint() != RankMMProblem(sparse).fingerprint()
    assert RankMMProblem(dense).fingerprint() == RankMMProblem(lists_of(5)[0]).fingerprint()


@pytest.mark.filterwarnings("ignore:all queries of the validation set:ranktron.RankingWarning")
def test_training_goes_on_from_its_dual_variables():
    _, sparse = lists_of(7)
    options = {"step": "paper", "loss": "max", "eta": 0.1}
    whole = train(TrainingPlan("rankmm", options, Schedule(4), scaling="none"), sparse).model
    half = train(TrainingPlan("rankmm", options, Schedule(2), scaling="none"), sparse).model
    onward = train(TrainingPlan("", schedule=Schedule(2)), sparse, start=half).model
    assert onward.state["coef"] == pytest.approx(whole.state["coef"], rel=1e-9, abs=1e-12)
    assert half.state["coef"] != pytest.approx(whole.state["coef"], rel=1e-3)
    chosen = train(TrainingPlan("rankmm", options, Schedule(3), scaling="none"), sparse, valid=sparse)
    assert len(chosen.history.valid) == 3


def test_pegasos_takes_them_too():
    ends = []
    for lists in lists_of(8):
        pegasos = Pegasos(RankMMProblem(lists, "average", 1.0))
        pegasos.visit(np.arange(500) % 5)
        ends.append(pegasos.mean)
    assert ends[1] == pytest.approx(ends[0], rel=1e-9, abs=1e-12)
