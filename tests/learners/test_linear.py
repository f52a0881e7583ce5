import numpy as np
import pytest

from ranktron import DataError, Feedback, Round, play
from ranktron.data.synthetic import Separable
from ranktron.kernels.csr_rows import Sparse
from ranktron.learners import Linear, feedback, hinge_perceptron
from ranktron.learners.checks import check_learner, same
from ranktron.learners.mistakes import Misordered
from ranktron.learners.steps import Constant, InversePower
from ranktron.surrogates import PairwiseHinge
from ranktron.training.algorithms import ALGORITHMS

LISTS = Separable(documents=8, features=6, margin=0.1).rounds(60)


def variants():
    """Every algorithm that can learn from a stream, with its weights averaged and not where it has the choice."""
    for name, algorithm in ALGORITHMS.items():
        if not algorithm.solution.startswith("ranktron.learners.batch"):
            averages = any(p.name == "average" for p in algorithm.parameters)
            yield from [(name, {"average": False}), (name, {"average": True})] if averages else [(name, {})]


@pytest.mark.parametrize(("name", "parameters"), list(variants()))
def test_every_learner_passes_the_checks(name, parameters):
    def make():
        return ALGORITHMS[name].learner(LISTS.n_features, parameters)

    check_learner(make, LISTS, make().simulated_feedback)


@pytest.mark.parametrize("name", [name for name, _ in variants()])
@pytest.mark.parametrize("kind", [np.float32, np.int32, list, lambda labels: np.repeat(labels, 2)[::2]])
def test_feedback_may_be_of_any_kind_of_number(name, kind):
    learner, twin = (ALGORITHMS[name].learner(LISTS.n_features, {}) for _ in range(2))
    for number, round in enumerate(LISTS[:3]):
        ranking = learner.rank(round.X, number)
        items, labels = learner.simulated_feedback(round, ranking)
        twin.learn(round.X, twin.rank(round.X, number), Feedback(items.tolist(), kind(labels)))
        learner.learn(round.X, ranking, Feedback(items, labels))
    assert same(learner.state(), twin.state())


@pytest.mark.parametrize(
    ("items", "labels", "complaint"),
    [
        ([0.5], [1], "places in the list"),
        ([True], [1], "places in the list"),
        ([[0]], [1], "places in the list"),
        ([0], ["1"], "one number for each"),
        ([0], [None], "one number for each"),
        ([0, 1], [[1], [1, 2]], "one number for each"),
    ],
)
def test_feedback_that_is_not_made_of_numbers_is_refused(items, labels, complaint):
    with pytest.raises(DataError, match=complaint):
        Feedback(items, labels)


@pytest.mark.parametrize("name", [name for name, _ in variants()])
@pytest.mark.parametrize("kind", [np.float64, np.int32, np.asfortranarray, np.ndarray.tolist])
def test_a_list_may_be_of_any_kind_of_number(name, kind):
    learner, twin = (ALGORITHMS[name].learner(LISTS.n_features, {}) for _ in range(2))
    lists = [Round(round.X.astype(np.int32), round.labels, round.qid) for round in LISTS[:3]]
    others = [Round(kind(X), kind(labels), qid) for X, labels, qid in lists]
    turns, also = (
        list(play(each, its, each.simulated_feedback, ["ndcg"])) for each, its in ((learner, lists), (twin, others))
    )
    assert [turn.values for turn in turns] == [turn.values for turn in also]
    assert same(learner.state(), twin.state())


@pytest.mark.parametrize(
    ("X", "labels", "complaint"),
    [
        ([1.0], [1], "a row for each document"),
        ([["a"]], [1], "a row for each document"),
        ([[1.0], [1.0, 2.0]], [1, 0], "a row for each document"),
        ([[1.0]], [None], "one number for each document"),
        ([[1.0], [2.0]], [1], "2 rows of features, but 1 labels"),
    ],
)
def test_a_list_that_is_not_made_of_numbers_is_refused(X, labels, complaint):
    with pytest.raises(DataError, match=complaint):
        Round(X, labels, "q")


@pytest.mark.parametrize("name", [name for name, _ in variants()])
@pytest.mark.parametrize("X", [[[1.0] * 6], np.ones(6, np.float32), None])
def test_what_is_not_a_matrix_is_not_ranked(name, X):
    with pytest.raises(DataError, match="a row per document, not a"):
        ALGORITHMS[name].learner(6, {}).rank(X, 0)


@pytest.mark.parametrize("name", [name for name, _ in variants()])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_features_that_are_no_numbers_are_never_learnt(name, bad):
    learner = ALGORITHMS[name].learner(LISTS.n_features, {})
    X = LISTS[0].X.copy()
    X[:, 2] = bad
    before = learner.state()
    with pytest.raises(DataError, match=r"NaN or infinity|overflow"):
        learner.learn(X, ranking := learner.rank(X, 0), learner.simulated_feedback(LISTS[0], ranking))
    assert same(learner.state(), before)


@pytest.mark.parametrize("name", [name for name, _ in variants()])
@pytest.mark.parametrize("width", [4, 9])
@pytest.mark.parametrize("kind", [np.asarray, Sparse.from_matrix])
def test_lists_of_another_width_are_neither_learnt_nor_scored(name, width, kind):
    learner = ALGORITHMS[name].learner(LISTS.n_features, {})
    ranking = learner.rank(LISTS[0].X, 0)
    before, other = learner.state(), kind(np.ones((8, width), np.float32))
    for call in (
        lambda: learner.learn(other, ranking, learner.simulated_feedback(LISTS[0], ranking)),
        lambda: learner.rank(other, 1),
        lambda: learner.scores(other),
        lambda: learner.predict(other),
    ):
        with pytest.raises(DataError, match=r"6 features"):
            call()
    assert same(learner.state(), before)


@pytest.mark.parametrize("name", [name for name, _ in variants()])
@pytest.mark.parametrize("count", [1, 7])
def test_feedback_has_a_label_for_each_document(name, count):
    with pytest.raises(DataError, match="feedback on 8 documents with"):
        Feedback(range(8), [1.0] * count)
    learner = ALGORITHMS[name].learner(LISTS.n_features, {})
    before, ranking = learner.state(), learner.rank(LISTS[0].X, 0)
    heard = learner.simulated_feedback(LISTS[0], ranking)
    with pytest.raises(DataError, match="feedback on"):
        learner.learn(LISTS[0].X, ranking, heard._replace(labels=heard.labels[: count % len(heard.items)]))
    assert same(learner.state(), before)


def test_top_k_learns_from_no_document_that_is_not_in_the_list():
    learner = ALGORITHMS["topk"].learner(LISTS.n_features, {})
    ranking = learner.rank(LISTS[0].X, 0)
    for order in (ranking.order + 4_000_000, ranking.order - 9, ranking.order[:3]):
        with pytest.raises(DataError):
            learner.learn(LISTS[0].X, ranking._replace(order=order), Feedback(order[:1], [1.0]))


def test_the_checks_can_fail():
    class Restless(Linear):
        def rank(self, X, number):
            self.rounds += 1
            return super().rank(X, number)

    with pytest.raises(AssertionError, match="rank changed the learner"):
        check_learner(lambda: Restless(6, PairwiseHinge(), Constant(1.0)), LISTS)


@pytest.mark.parametrize("mistake", [None, Misordered()])
@pytest.mark.parametrize("step", [Constant(0.3), InversePower(0.3, 0.5)])
def test_linear_is_gradient_descent_and_averages_the_weights_that_ranked(mistake, step):
    learner = Linear(6, PairwiseHinge(), step, mistake, average=True)
    w, total = np.zeros(6), np.zeros(6)
    for t, round in enumerate(LISTS):
        total += w
        scores = round.X.astype(float) @ w
        if mistake is None or mistake(scores, round.labels):
            w = w - step(t) * round.X.astype(float).T @ PairwiseHinge()(scores, round.labels)[1]
    for _ in play(learner, LISTS, feedback.full):
        pass
    assert learner.w == pytest.approx(w, rel=1e-9)
    assert learner.coef == pytest.approx(total / len(LISTS), rel=1e-9)


def test_late_feedback_is_learnt_at_the_scores_that_ranked():
    learner = hinge_perceptron(6)
    first, second = LISTS[0], LISTS[1]
    ranking = learner.rank(first.X, 0)
    learner.learn(second.X, learner.rank(second.X, 1), feedback.full(second, ranking))
    moved = learner.w.copy()
    learner.learn(first.X, ranking, feedback.full(first, ranking))
    fresh = hinge_perceptron(6)
    fresh.learn(first.X, fresh.rank(first.X, 0), feedback.full(first, ranking))
    assert learner.w - moved == pytest.approx(fresh.w)


def test_partial_feedback_is_learnt_as_the_list_of_what_was_observed():
    whole = LISTS[0]
    items = np.array([5, 1, 3])
    part, alone = hinge_perceptron(6), hinge_perceptron(6)
    part.learn(whole.X, part.rank(whole.X, 0), Feedback(items, whole.labels[items]))
    X = whole.X[items]
    alone.learn(X, alone.rank(X, 0), Feedback(np.arange(3), whole.labels[items]))
    assert part.w == pytest.approx(alone.w)


def test_an_overflow_is_refused_and_changes_nothing():
    learner = Linear(1, PairwiseHinge(), Constant(1e300))
    X = np.array([[3e38], [-3e38]], np.float32)
    before = learner.state()
    with pytest.raises(DataError, match="overflow in round 0"):
        learner.learn(X, learner.rank(X, 0), Feedback(np.array([0, 1]), np.array([1.0, 0.0])))
    assert same(before, learner.state())


def test_on_separable_data_the_hinge_perceptron_stops_making_mistakes():
    learner = hinge_perceptron(6)
    for _ in range(50):
        before = learner.mistakes
        for _ in play(learner, LISTS, feedback.full):
            pass
        if learner.mistakes == before:
            return
    pytest.fail("still making mistakes on separable data after 50 passes")


@pytest.mark.parametrize("eta", [0.0, -1.0, np.nan, np.inf])
def test_a_step_is_positive(eta):
    for step in (Constant, InversePower):
        with pytest.raises(DataError, match="eta"):
            step(eta)
