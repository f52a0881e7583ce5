"""RankMM on OHSUMED (LETOR 3.0): gaps, time, and what the paper says came out."""

import csv
import time

import numpy as np
import pytest

from ranktron.kernels.dense import score
from ranktron.learners.batch.rank_mm import make_dual, solve_rank_mm
from ranktron.learners.batch.rank_mm_losses import LOSSES
from ranktron.learners.batch.rank_mm_problem import RankMMProblem
from ranktron.learners.schedule import Schedule
from ranktron.metrics import evaluate
from ranktron.training.cross_validation import read_folds
from reproduction.theory.rank_mm import solve_path

pytestmark = pytest.mark.data
claim = pytest.mark.claim
CS, ETAS, TS = (0.1, 1.0, 10.0, 100.0, 1000.0), (1e-2, 1e-3, 1e-4, 1e-5, 1e-6), (100, 250, 500, 750, 1000)
MAP, DEPTHS = "map:letor", range(1, 11)
NDCG, PREC = [f"ndcg@{k}:letor" for k in DEPTHS], [f"p@{k}:letor" for k in DEPTHS]
SEEDS = 1  # ten seeds, both readings of T and every depth: the rows of `python -m reproduction rankmm`


@pytest.fixture(scope="module")
def folds(data_dir):
    return list(read_folds(data_dir / "ohsumed-letor3"))


@pytest.fixture(scope="module")
def published(data_dir):
    """{algorithm: {metric: mean over the folds' test parts}}."""
    values = {}
    with (data_dir / "ohsumed-letor3" / "baselines.csv").open() as file:
        for row in csv.DictReader(file):
            if row["part"] == "test" and row["fold"].startswith("fold"):
                values.setdefault(row["algorithm"], {}).setdefault(f"{row['metric']}:letor", []).append(
                    float(row["value"])
                )
    return {name: {m: float(np.mean(v)) for m, v in row.items()} for name, row in values.items()}


def chosen(fold, candidates):
    """The weights with the highest MAP on the validation part."""
    return max(candidates, key=lambda w: evaluate(fold.valid, score(fold.valid.X, w), [MAP]).means[MAP])


def solutions(fold, loss, seed):
    return [found.w for found in solve_path(fold.train, CS, loss, schedule=Schedule(1, seed))]


def iterates(fold, loss, seed):
    """The paper's grid: C, η_0 and T steps, each on a list drawn at random."""
    for C in CS:
        problem = RankMMProblem(fold.train, loss, C)
        for eta in ETAS:
            dual, rng, done = make_dual(problem, "paper", eta), np.random.default_rng((seed, 7)), 0
            for T in TS:
                dual.visit(rng.integers(len(fold.train), size=T - done))
                done = T
                yield dual.w.copy()


def on_test_parts(folds, loss, candidates):
    """Means over seeds and folds of the test parts."""
    metrics = [MAP, *NDCG, *PREC]
    rows = [
        evaluate(fold.test, score(fold.test.X, w), metrics).means
        for seed in range(SEEDS)
        for fold in folds
        for w in [chosen(fold, list(candidates(fold, loss, seed)))]
    ]
    return {m: float(np.mean([row[m] for row in rows])) for m in metrics}


@pytest.fixture(scope="module")
def results(folds):
    """RankMM-1 solved, and all three with the paper's own steps and grid."""
    stepped = {loss: on_test_parts(folds, loss, iterates) for loss in LOSSES}
    return {"solved": on_test_parts(folds, "average", solutions), **stepped}


@claim("RANKMM", "31 s4")
def test_the_data_are_those_of_the_paper(folds):
    queries = {qid: round for fold in folds for round in fold.test for qid in [round.qid]}
    labels = np.concatenate([round.labels for round in queries.values()])
    assert len(queries) == 106
    assert len(labels) == 16140
    assert round(len(labels) / len(queries)) == 152
    assert set(labels) == {0.0, 1.0, 2.0}
    for fold in folds:
        assert fold.train.n_features == 45
        shares = [len(part) / 106 for part in (fold.train, fold.valid, fold.test)]
        assert shares == pytest.approx([0.6, 0.2, 0.2], abs=0.02)


@pytest.mark.parametrize("loss", LOSSES)
def test_gaps_below_a_thousandth_for_every_c(folds, loss):
    for found in (found for fold in folds for found in solve_path(fold.train, CS, loss, tol=1e-3, max_iter=3000)):
        assert found.converged
        assert found.gap <= 1e-3 * found.primal
        w, _ = found.dual.recovered()
        assert found.dual.w == pytest.approx(w, abs=1e-6)


@pytest.mark.timed
def test_a_path_is_quick(folds):
    solve_path(folds[0].train[:2], CS[:1])
    began = time.perf_counter()
    path = solve_path(folds[0].train, CS)
    assert time.perf_counter() - began < 10.0
    assert all(found.gap <= 1e-4 * found.primal for found in path)


@pytest.mark.parametrize("loss", ["max", "max-average"])
def test_the_best_weights_of_the_two_maxima_are_none_at_all(folds, loss):
    """Whatever the direction, in every list some pair of the widest lead stands the wrong way round."""
    for fold in folds:  # what any w can gain, relative to C, only falls with C
        found = solve_rank_mm(fold.train, 1000.0, loss, tol=0.0, max_iter=150)
        nothing = RankMMProblem(fold.train, loss, 1000.0).primal(np.zeros(45))
        assert nothing - found.dual.value <= 1e-3 * nothing


@pytest.mark.slow
def test_rank_mm_1_and_3_are_above_the_pairwise_and_pointwise_baselines(results, published):
    for name in ("Regression", "RankSVM", "RankBoost"):
        for ours in ("average", "max-average"):
            assert results[ours][MAP] > published[name][MAP]
            assert np.mean([results[ours][m] for m in NDCG]) > np.mean([published[name][m] for m in NDCG])
            assert np.mean([results[ours][m] for m in PREC]) > np.mean([published[name][m] for m in PREC])
    for m in (MAP, *NDCG):
        assert results["solved"][m] > max(published[name][m] for name in ("Regression", "RankSVM", "RankBoost"))


@pytest.mark.slow
def test_rank_mm_2_is_behind_and_1_is_best(results, published):
    for m in (MAP, "ndcg@5:letor", "ndcg@10:letor"):
        assert results["max"][m] < results["max-average"][m] < results["average"][m]
    assert results["max"][MAP] < published["RankBoost"][MAP] < results["max-average"][MAP]
    # comparable with what optimises MAP or NDCG directly
    assert results["average"][MAP] > min(published[name][MAP] for name in ("SVMMAP", "AdaRank-MAP")) - 0.005
    assert results["solved"][MAP] == pytest.approx(0.4453, abs=0.003)
    assert results["solved"]["ndcg@10:letor"] == pytest.approx(0.447, abs=0.004)


@pytest.mark.slow
def test_the_retrained_rank_svm_is_matched_not_beaten(results, published):
    """Footnote 2 claims an improvement. MAP and NDCG@1 are a little above, NDCG@10 a little below."""
    retrained = published["RankSVM-Primal"]
    assert results["solved"][MAP] > retrained[MAP]
    assert results["solved"]["ndcg@1:letor"] > retrained["ndcg@1:letor"] - 0.01
    assert abs(results["solved"]["ndcg@10:letor"] - retrained["ndcg@10:letor"]) < 0.01
    assert results["solved"]["ndcg@10:letor"] < retrained["ndcg@10:letor"]
