import os
import signal

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.svm import LinearSVC

import ranktron
from ranktron import DataError, Rounds, evaluate, metric
from ranktron.data.synthetic import Separable, WebSearch
from ranktron.learners.batch import rank_svm
from ranktron.learners.batch.rank_svm import SMOOTHINGS, Objective, fit_rank_svm, minimise
from ranktron.learners.pairwise.pairs import Pairs
from ranktron.learners.schedule import Fit, Schedule
from ranktron.training.fit import TrainingPlan, train

LISTS = WebSearch(features=5, documents=9).rounds(15)
NDCG = metric("ndcg@10")


def differences(lists):
    """The pairs as a classification problem: differences of features, and the list of each."""
    pairs = Pairs.of(lists.labels, lists.offsets)
    upper, lower = pairs.decode(pairs.all())
    X = lists.X.astype(float)
    return X[upper] - X[lower], np.searchsorted(lists.offsets, upper, side="right") - 1, pairs.counts


def reference(lists, w, C, loss, balance):
    D, query, counts = differences(lists)
    hinge = np.maximum(0.0, 1.0 - D @ w)
    paid = hinge**2 if loss == "squared" else hinge
    weights = 1.0 / (np.count_nonzero(counts) * counts[query]) if balance == "query" else np.full(len(D), 1.0 / len(D))
    return 0.5 * w @ w + C * float(weights @ paid)


@pytest.mark.parametrize("balance", ["query", "pair"])
@pytest.mark.parametrize("grades", [2, 5, None])
def test_value_gradient_and_curvature_are_those_of_all_pairs(balance, grades):
    rng = np.random.default_rng(0)
    labels = rng.random(len(LISTS.labels)) if grades is None else rng.integers(grades, size=len(LISTS.labels))
    lists = Rounds.from_arrays(LISTS.X, labels, group=np.diff(LISTS.offsets))
    for rounded in (0.0, 0.3):
        objective = Objective(lists, 3.0, balance, rounded)
        for scale in (0.0, 0.3, 3.0):
            w, v = scale * rng.normal(size=5), rng.normal(size=5)
            if rounded == 0.0:
                assert objective.value(w) == pytest.approx(reference(lists, w, 3.0, "squared", balance))
            h = 1e-5
            slope = (objective.value(w + h * v) - objective.value(w - h * v)) / (2 * h)
            assert objective.gradient(w) @ v == pytest.approx(slope, rel=1e-4, abs=1e-5)
            if scale:  # at w = 0 a rounded corner may lie exactly under a pair
                bend = (objective.gradient(w + h * v) - objective.gradient(w - h * v)) / (2 * h)
                assert objective.curvature(w, v) == pytest.approx(bend, rel=0.05, abs=0.05)


def test_the_rounded_hinge_is_within_half_its_width():
    w = np.random.default_rng(1).normal(size=5)
    plain = reference(LISTS, w, 2.0, "hinge", "query")
    for width in (1.0, 0.1, 0.01):
        rounded = Objective(LISTS, 2.0, "query", width).value(w)
        assert plain - 2.0 * width / 2.0 <= rounded <= plain


def test_the_compiled_loss_equals_its_python():
    scores = np.random.default_rng(0).normal(size=len(LISTS.labels))
    parts = np.linspace(0.5, 2.0, len(scores))
    weights, found = Objective(LISTS, document_weights=parts).weights, []
    for function in (rank_svm._squared_hinge, rank_svm._squared_hinge.py_func):
        gradient = np.empty(len(scores))
        found.append((function(scores, LISTS.labels, LISTS.offsets, weights, parts, 1.0, gradient), gradient))
    assert found[0][0] == pytest.approx(found[1][0])
    assert found[0][1] == pytest.approx(found[1][1])


@pytest.mark.parametrize("C", [0.1, 10.0, 1000.0])
@pytest.mark.parametrize("balance", ["query", "pair"])
def test_it_is_the_optimum_by_its_own_gradient_and_by_scikit_learn(C, balance):
    found = minimise(LISTS, C, "squared", balance)
    assert found.converged
    start = np.linalg.norm(Objective(LISTS, C, balance).gradient(np.zeros(5)))
    assert found.gradient <= 1e-6 * start
    assert np.linalg.norm(Objective(LISTS, C, balance).gradient(found.w)) == pytest.approx(found.gradient)
    D, query, counts = differences(LISTS)
    weights = 1.0 / (np.count_nonzero(counts) * counts[query]) if balance == "query" else np.full(len(D), 1.0 / len(D))
    sign = np.where(np.arange(len(D)) % 2, 1.0, -1.0)
    peer = LinearSVC(C=C, fit_intercept=False, dual=False, tol=1e-10, max_iter=10_000)
    peer.fit(D * sign[:, None], sign, sample_weight=weights)
    assert found.w == pytest.approx(peer.coef_[0], rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("C", [0.5, 20.0])
def test_the_plain_hinge_is_within_its_gap_of_the_optimum(C):
    found = minimise(LISTS, C, "hinge")
    value = reference(LISTS, found.w, C, "hinge", "query")
    assert found.converged
    # any other point, and any bound from below, says where the minimum lies
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1e-2, 0.1):
        others = [reference(LISTS, found.w + scale * rng.normal(size=5), C, "hinge", "query") for _ in range(50)]
        assert min(others) >= value - found.gap
    assert value - _dual_bound(found.w, C) <= found.gap + 1e-6 * value


def test_the_gap_of_the_plain_hinge_counts_the_rounded_corner():
    """f_δ lies at most C δ/2 below f, and half a squared gradient above its minimum; on this list nearly all of it."""
    found = minimise(LISTS, 20.0, "hinge")
    last = Objective(LISTS, 20.0, rounded=SMOOTHINGS[-1])
    assert found.gap == pytest.approx(0.5 * np.sum(last.gradient(found.w) ** 2) + 0.5 * 20.0 * SMOOTHINGS[-1])
    two = Rounds.from_arrays([[1.0], [0.0]], [1, 0])
    sharp = minimise(two, 1.0, "hinge")  # the minimum lies in the corner, w = 1
    apart = reference(two, sharp.w, 1.0, "hinge", "query") - 0.5
    assert 0.0 < apart <= sharp.gap < 2.0 * 0.5 * SMOOTHINGS[-1]


def _dual_bound(w, C):
    """A lower bound from duality: ½|v|² is subtracted from the sum of α for the best α that represents v ≈ w."""
    D, query, counts = differences(LISTS)
    box = C / (np.count_nonzero(counts) * counts[query])
    # the α closest to the optimum: maximise Σα − ⟨w, Σ α D⟩, which is exact where v = w
    slack = 1.0 - D @ w
    alpha = np.where(slack > 1e-4, box, 0.0)
    free = np.abs(slack) <= 1e-3
    goal = w - alpha[~free] @ D[~free]
    fit = linprog(
        np.concatenate([np.zeros(free.sum()), np.ones(10)]),
        A_eq=np.hstack([D[free].T, np.eye(5), -np.eye(5)]),
        b_eq=goal,
        bounds=[(0.0, b) for b in box[free]] + [(0.0, None)] * 10,
    )
    alpha[free] = fit.x[: free.sum()]
    v = alpha @ D
    return alpha.sum() - 0.5 * v @ v


def test_separable_lists_are_ranked_perfectly():
    lists = Separable(documents=8, features=6, margin=0.3).rounds(30)
    for loss in ("squared", "hinge"):
        w = minimise(lists, 1000.0, loss).w
        assert evaluate(lists, lists.X @ w, "ndcg").means["ndcg"] == 1.0


@pytest.mark.filterwarnings("ignore:nothing can be learnt:ranktron.RankingWarning")
def test_lists_of_one_grade_teach_nothing_and_are_counted():
    idle = Rounds.from_arrays(np.ones((3, 5)), [1, 1, 1], qid=["idle"] * 3)
    trained = train(TrainingPlan("ranksvm", {"C": 5.0}), Rounds.concat([LISTS, idle]))
    assert trained.model.coef == pytest.approx(train(TrainingPlan("ranksvm", {"C": 5.0}), LISTS).model.coef)
    counted = sum(len(set(round.labels)) == 1 for round in LISTS) + 1
    assert trained.history.remarks["queries of one grade"] == counted
    nothing = train(TrainingPlan("ranksvm"), idle).model
    assert nothing.coef.tolist() == [0.0] * 5


def test_training_measures_held_out_lists_and_starts_again_from_a_solution():
    held_out = WebSearch(features=5, documents=9).rounds(30)[15:]
    trained = train(TrainingPlan("ranksvm", {"loss": "hinge"}, scaling="standard"), LISTS, valid=held_out)
    kept = evaluate(held_out, trained.model.score_rounds(held_out), NDCG).means["ndcg@10"]
    assert trained.history.best_values["ndcg@10"] == kept
    again = train(TrainingPlan("ranksvm"), LISTS, start=trained.model)
    assert again.model.coef == pytest.approx(trained.model.coef, rel=1e-3, abs=1e-4)
    learner, one = trained.model.learner(), LISTS[0]
    with pytest.raises(DataError, match="cannot learn online"):
        learner.learn(one.X, learner.rank(one.X, 0), learner.simulated_feedback(one, None))


def test_stopping_too_early_is_remarked():
    assert train(TrainingPlan("ranksvm", {"max_iter": 1, "C": 100.0}), LISTS).history.remarks[rank_svm.UNFINISHED] == 1
    assert rank_svm.UNFINISHED not in train(TrainingPlan("ranksvm", {"C": 100.0}), LISTS).history.remarks


def test_an_interrupted_solution_says_so(monkeypatch):
    gradient, asked, whole = rank_svm.Objective.gradient, [], rank_svm.minimise(LISTS).iterations

    def interrupted(self, w):
        if w.any() and not asked:
            asked.append(os.kill(os.getpid(), signal.SIGINT))
        return gradient(self, w)

    monkeypatch.setattr(rank_svm.Objective, "gradient", interrupted)
    fit = Fit(LISTS, Schedule())
    state = fit_rank_svm(fit, {})
    assert fit.history.interrupted
    assert fit.history.remarks[rank_svm.UNFINISHED] < whole
    assert state["coef"].any()


def test_bad_parameters_are_named():
    for name, value in {"C": 0.0, "loss": "log", "balance": "none", "tol": -1.0}.items():
        with pytest.raises(DataError, match=name):
            ranktron.RankSVM(**{name: value}).fit(LISTS.X, LISTS.labels, group=np.diff(LISTS.offsets))
    with pytest.raises(DataError, match="loss"):
        minimise(LISTS, loss="log")


@pytest.mark.parametrize("loss", ["squared", "hinge"])
def test_numbers_that_overflow_are_no_solution(loss):
    assert minimise(LISTS, C=1e50, loss=loss).w.any()
    for C in (1e160, 1e300):
        with pytest.raises(DataError, match="smaller C"):
            minimise(LISTS, C=C, loss=loss)
