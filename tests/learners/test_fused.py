"""The compiled loops against the loop of `play`."""

import numpy as np
import pytest

from ranktron import DataError, Round, Rounds, metric, play, play_many
from ranktron.data.synthetic import Separable, WebSearch
from ranktron.kernels.csr_rows import Sparse
from ranktron.learners import (
    Linear,
    classification_perceptron,
    feedback,
    hinge_perceptron,
    minimax_perceptron,
    online_listnet,
    slam_perceptron,
)
from ranktron.learners.checks import same
from ranktron.learners.fused import can_fuse, play_pass
from ranktron.learners.mistakes import Misordered, MisorderedBinary
from ranktron.learners.schedule import Fit, Schedule
from ranktron.learners.steps import Constant
from ranktron.surrogates import SLAM, PairwiseHinge, WorstPair
from ranktron.training.algorithms import ALGORITHMS
from ranktron.training.fit import TrainingPlan, play_schedule, train

RANK = Linear.rank
NOISY = WebSearch(features=7, documents=40).rounds(150)
EASY = Separable(features=7, margin=0.1).rounds(150)
METRICS = (metric("ndcg@10"), metric("map"))
MAKERS = {
    "ndcg@10": lambda: slam_perceptron(7),
    "ndcg": lambda: slam_perceptron(7, metric="ndcg", eta=1.0, margin=0.5),
    "ap": lambda: slam_perceptron(7, metric="ap", step="sqrt", average=True),
    "fraction": lambda: slam_perceptron(7, fraction=0.3),
    "minimax": lambda: minimax_perceptron(7),
    "hinge": lambda: hinge_perceptron(7, margin=0.5, average=True),
    "listnet": lambda: online_listnet(7, average=True),
}


@pytest.mark.parametrize("lists", [NOISY, EASY], ids=["noisy", "separable"])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_fused_pass_equals_play_to_the_bit(make, lists):
    plain, fused = make(), make()
    for _ in range(2):
        turns = list(play(plain, lists, feedback.full, METRICS))
        losses, values = play_pass(fused, lists, np.arange(len(lists)), METRICS)
        assert losses.tolist() == [turn.loss for turn in turns]
        assert values.tolist() == [list(turn.values) for turn in turns]
    assert same(plain.state(), fused.state())


@pytest.mark.parametrize(
    "names", [(), ("ndcg@1",), ("ndcg@3", "ndcg@20", "ndcg@5:letor"), ("ndcg@32", "ndcg"), ("mrr", "ndcg@2")]
)
def test_each_metric_of_a_pass_is_that_of_the_ranking_shown(names):
    metrics = tuple(map(metric, names))
    pair = [slam_perceptron(7), slam_perceptron(7)]
    _, values = play_pass(pair[0], NOISY, np.arange(len(NOISY)), metrics)
    together = [found for _, found in play_many(pair[1:], NOISY, metrics)]
    for round, turn, fused, many in zip(
        NOISY, play(slam_perceptron(7), NOISY, feedback.full, metrics), values, together, strict=True
    ):
        shown = round.labels[turn.ranking.order]
        assert list(turn.values) == fused.tolist() == many[0].tolist() == [each(shown) for each in metrics]


@pytest.mark.parametrize("lists", [NOISY, EASY], ids=["noisy", "separable"])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_learning_fused_equals_learning_step_by_step_to_the_bit(make, lists):
    fused, step_by_step = make(), make()
    assert fused.fused is not None
    step_by_step.fused = None
    for turn, other in zip(play(fused, lists, feedback.full), play(step_by_step, lists, feedback.full), strict=True):
        assert turn.loss == other.loss
    assert same(fused.state(), step_by_step.state())


def test_feedback_on_part_of_a_list_is_learnt_step_by_step():
    for make in MAKERS.values():
        fused, step_by_step = make(), make()
        step_by_step.fused = None
        for learner in (fused, step_by_step):
            for _ in play(learner, NOISY, feedback.top(3)):
                pass
        assert fused.w.any()
        assert same(fused.state(), step_by_step.state())


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_round_in_one_call_is_rank_metric_and_learn_to_the_bit(make, kind):
    lists = NOISY if kind == "dense" else sparse_of(NOISY)
    at_once, in_steps = make(), make()
    turns = list(play(at_once, lists, feedback.full, METRICS))
    others = list(play(in_steps, lists, lambda round, ranking: feedback.full(round, ranking), METRICS))
    for turn, other in zip(turns, others, strict=True):
        assert turn.ranking.order.tolist() == other.ranking.order.tolist()
        assert turn.ranking.scores.tolist() == other.ranking.scores.tolist()
        assert turn.ranking[2:] == other.ranking[2:]
        assert turn.feedback.items.tolist() == other.feedback.items.tolist()
        assert turn.feedback.labels.tolist() == other.feedback.labels.tolist()
        assert (turn.number, turn.loss, turn.values) == (other.number, other.loss, other.values)
        assert [type(part) for part in turn] == [type(part) for part in other]
    assert at_once.w.any()
    assert same(at_once.state(), in_steps.state())


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_stream_is_played_as_the_same_lists_in_one_array(make, kind):
    lists = NOISY if kind == "dense" else sparse_of(NOISY)
    at_once, one_by_one = make(), make()
    turns = play(at_once, lists, feedback.full, METRICS)
    for turn, other in zip(turns, play(one_by_one, iter(lists), feedback.full, METRICS), strict=True):
        assert (turn.number, turn.loss, turn.values) == (other.number, other.loss, other.values)
        assert turn.feedback.labels.tolist() == other.feedback.labels.tolist()
    assert same(at_once.state(), one_by_one.state())


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_weights_that_are_replaced_between_two_rounds_are_taken(make):
    states = []
    for answer in (feedback.full, lambda round, ranking: feedback.full(round, ranking)):
        learner, kept = make(), None
        for turn in play(learner, NOISY[:40], answer, METRICS):
            if turn.number == 5:
                kept = learner.state()
            elif turn.number == 10:
                learner.restore(kept)
            elif turn.number == 20:
                learner.w = np.repeat(learner.w, 2)[::2]  # with gaps
            elif turn.number == 30:
                learner.w, learner.lagged_sum, learner.sums = (
                    learner.w * 0.5,
                    learner.lagged_sum + 1.0,
                    learner.sums * 2.0,
                )
        states.append(learner.state())
    assert same(*states)


def test_a_round_of_more_labels_or_fewer_than_documents_is_refused():
    for labels in ([1.0], [1.0, 0.0, 2.0]):
        learner = hinge_perceptron(2)
        with pytest.raises(DataError, match=f"'q' has 2 rows of features, but {len(labels)} labels"):
            next(play(learner, [Round._make((np.eye(2, dtype=np.float32), np.array(labels), "q"))], feedback.full))
        assert learner.rounds == 0


def test_which_rounds_are_played_in_one_call(monkeypatch):
    asked = []
    monkeypatch.setattr(Linear, "rank", lambda self, X, number: asked.append(number) or RANK(self, X, number))
    for given in (METRICS, "ndcg@10", ()):
        next(play(hinge_perceptron(7), NOISY, feedback.full, given))
    trained = hinge_perceptron(7)
    next(play(trained, NOISY, trained.simulated_feedback))
    assert asked == []
    observed, asking = hinge_perceptron(7), hinge_perceptron(7)
    observed.rank = observed.rank
    asking.simulated_feedback = feedback.top(2)
    next(play(asking, NOISY, asking.simulated_feedback))
    assert asked == [0]
    for learner, metrics, delay in (
        (observed, (), 0),
        (hinge_perceptron(7), lambda labels: 0.0, 0),
        (hinge_perceptron(7), (), 1),
        (Linear(7, PairwiseHinge(), Constant(1.0)), (), 0),
    ):
        asked.clear()
        next(play(learner, NOISY, feedback.full, metrics, delay))
        assert asked


@pytest.mark.parametrize(
    ("X", "labels", "metrics", "complaint"),
    [
        ([[1, 0], [0, 1]], [np.nan, 0], [], "labels must be finite"),
        ([[1, 0], [0, 1]], [9, 1], ["err"], "err is defined for labels from 0 to 4"),
        ([[1, 0, 5], [0, 1, 5]], [1, 0], [], "has 2 features, the query has 3"),
        (Sparse.from_matrix(np.eye(2, 3, dtype=np.float32)), [1, 0], [], "has 2 features, the query has 3"),
        ([[3e38, 0], [-3e38, 0]], [1, 0], [], "overflow in round 0"),
    ],
)
def test_a_round_in_one_call_is_refused_as_in_steps(X, labels, metrics, complaint):
    learner = Linear(2, WorstPair(), Constant(1e300))
    with pytest.raises(DataError, match=complaint):
        next(play(learner, [Round(X, labels, "q")], feedback.full, metrics))
    assert (learner.rounds, learner.w.tolist()) == (0, [0.0, 0.0])


WRONG_LABELS = [-1.0, np.nan, np.inf]


def _with_label(wrong):
    labels = NOISY.labels.copy()
    labels[NOISY.offsets[3] + 2] = wrong
    return Rounds(NOISY.X, labels, NOISY.offsets, NOISY.qids)


@pytest.mark.parametrize("metrics", [(), METRICS], ids=["bare", "measured"])
@pytest.mark.parametrize("wrong", WRONG_LABELS)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_pass_stops_at_invalid_labels_as_play_does(make, wrong, metrics):
    plain, fused = make(), make()
    for _ in play(plain, NOISY[:3], feedback.full):
        pass
    with pytest.raises(DataError, match="query '3' needs a finite label of 0 or more"):
        play_pass(fused, _with_label(wrong), np.arange(10), metrics)
    assert same(plain.state(), fused.state())


def test_a_pass_stops_at_labels_that_a_metric_does_not_know():
    plain, fused = slam_perceptron(7), slam_perceptron(7)
    for _ in play(plain, NOISY[:3], feedback.full):
        pass
    with pytest.raises(DataError, match="err is defined for labels from 0 to 4"):
        play_pass(fused, _with_label(5.0), np.arange(10), (metric("err"),))
    assert same(plain.state(), fused.state())


def test_a_pass_over_features_of_another_number_is_refused():
    with pytest.raises(DataError, match="7"):
        play_pass(slam_perceptron(8), NOISY, np.arange(3), ())


@pytest.mark.parametrize("wrong", WRONG_LABELS)
@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if name not in ("predtron", "kernel")])
def test_training_refuses_invalid_labels(algorithm, wrong):
    for data in ({"rounds": _with_label(wrong)}, {"rounds": NOISY[:5], "valid": _with_label(wrong)}):
        with pytest.raises(DataError, match=f"labels must be finite and >= 0; row {NOISY.offsets[3] + 2} has"):
            train(TrainingPlan(algorithm), **data)


def test_training_in_compiled_passes_is_training_round_by_round(monkeypatch):
    for make in MAKERS.values():
        histories = []
        learners = []
        for fused in (can_fuse, lambda learner: False):
            monkeypatch.setattr("ranktron.training.fit.can_fuse", fused)
            learner, told = make(), []
            fit = Fit(NOISY, Schedule(3, 5), progress=told.append)
            play_schedule(learner, fit, METRICS)
            assert sum(told) == 3 * len(NOISY)
            fit.history.seconds = 0.0
            histories.append(fit.history)
            learners.append(learner)
        assert histories[0] == histories[1]
        assert same(learners[0].state(), learners[1].state())


def test_which_learners_are_known():
    known = {name for name, a in ALGORITHMS.items() if can_fuse(a.learner(3, {}))}
    assert known == {"slam", "minimax", "hinge", "listnet"}
    assert not can_fuse(classification_perceptron(3))
    assert not can_fuse(slam_perceptron(3, metric="ap", binarise=False))


def test_a_subclass_that_computes_something_else_is_not_fused():
    class Doubled(SLAM):
        def __call__(self, scores, labels):
            loss, gradient = super().__call__(scores, labels)
            return 2.0 * loss, 2.0 * gradient

    class Renamed(SLAM):
        pass

    class Never(Misordered):
        def __call__(self, scores, labels):
            return False

    for surrogate, mistake, fused in (
        (SLAM(), Misordered(10), True),
        (Renamed(), Misordered(10), True),
        (SLAM(), None, True),
        (Doubled(), Misordered(10), False),
        (SLAM(), Never(10), False),
        (SLAM(), MisorderedBinary(), False),
        (SLAM("ap"), MisorderedBinary(), True),
        (PairwiseHinge(), Misordered(), False),
    ):
        assert can_fuse(Linear(3, surrogate, Constant(1.0), mistake)) is fused


def test_many_learners_make_the_mistakes_that_each_makes_alone():
    makers = [make for make in MAKERS.values() for _ in range(2)]
    together, alone = [make() for make in makers], [make() for make in makers]
    rounds = list(play_many(together, EASY, METRICS))
    for j, learner in enumerate(alone):
        turns = list(play(learner, EASY, feedback.full, METRICS))
        assert [losses[j] > 0.0 for losses, _ in rounds] == [turn.loss > 0.0 for turn in turns]
        assert [tuple(values[j]) for _, values in rounds] == [turn.values for turn in turns]
        assert (together[j].rounds, together[j].mistakes) == (learner.rounds, learner.mistakes)
        assert together[j].coef == pytest.approx(learner.coef, rel=1e-9, abs=1e-12)


def test_a_round_that_overflows_is_refused_and_changes_nothing():
    X = np.ones((4, 1), np.float32)
    X[2:] = [[3e38], [-3e38]]
    lists = Rounds.from_arrays(X, [1, 0, 1, 0], group=[2, 2])
    learner = Linear(1, WorstPair(), Constant(1e300))
    with pytest.raises(DataError, match="overflow in round 1"):
        play_pass(learner, lists, np.arange(2), ())
    assert (learner.rounds, learner.w.tolist()) == (1, [0.0])
    for data in (lists, sparse_of(lists, 1.0)):
        others = [Linear(1, WorstPair(), Constant(eta)) for eta in (1.0, 1e300)]
        with pytest.raises(DataError, match=r"learner 1: .*overflow"):
            list(play_many(others, data))
        assert (others[1].rounds, others[1].w.tolist()) == (1, [0.0])


@pytest.mark.parametrize("lists", [NOISY, EASY], ids=["noisy", "separable"])
def test_many_learners_of_sparse_lists_are_those_played_alone_to_the_bit(lists):
    sparse = sparse_of(lists)
    makers = [make for make in MAKERS.values() for _ in range(2)]
    together, alone = [make() for make in makers], [make() for make in makers]
    rounds = list(play_many(together, sparse, METRICS))
    for j, learner in enumerate(alone):
        turns = list(play(learner, sparse, feedback.full, METRICS))
        assert [losses[j] for losses, _ in rounds] == [turn.loss for turn in turns]
        assert [tuple(values[j]) for _, values in rounds] == [turn.values for turn in turns]
        assert same(together[j].state(), learner.state())


@pytest.mark.parametrize(
    ("X", "labels", "metrics", "complaint"),
    [
        ([[1, 0], [0, 1]], [np.nan, 0], [], "finite label"),
        ([[1, 0], [0, 1]], [-3, -1], [], "finite label"),
        ([[1, 0], [0, 1]], [9, 1], ["err"], "err is defined for labels from 0 to 4"),
        ([[1, 0, 5], [0, 1, 5]], [1, 0], [], "has 2 features, the query has 3"),
        (Sparse.from_matrix(np.eye(2, 100_000, dtype=np.float32)), [1, 0], [], "has 2 features"),
        ([[1, 0], [0, 1]], [1, 0], ["ndgc"], "no metric 'ndgc'"),
    ],
)
def test_many_learners_refuse_what_one_refuses(X, labels, metrics, complaint):
    learners = [slam_perceptron(2), minimax_perceptron(2)]
    with pytest.raises(DataError, match=complaint):
        list(play_many(learners, [Round(X, labels, "q")], metrics))
    assert [(learner.rounds, learner.w.tolist()) for learner in learners] == [(0, [0.0, 0.0])] * 2
    with pytest.raises(DataError, match="the same learner twice"):
        list(play_many(learners[:1] * 2, EASY))


def test_a_stream_may_mix_both_kinds():
    learners = [[slam_perceptron(7, eta=eta) for eta in (0.1, 1.0)] for _ in range(2)]
    mixed = [one if q % 2 else two for q, (one, two) in enumerate(zip(NOISY, sparse_of(NOISY, 1.0), strict=True))]
    for own, lists in zip(learners, (NOISY, mixed), strict=True):
        for _ in play_many(own, lists):
            pass
    for one, two in zip(*learners, strict=True):
        assert two.w == pytest.approx(one.w, rel=1e-9)


def sparse_of(lists, density=0.6):
    X = lists.X * (np.random.default_rng(0).random(lists.X.shape) < density)
    return Rounds.from_arrays(Sparse.from_matrix(X), lists.labels, group=np.diff(lists.offsets))


def test_what_cannot_be_played_together():
    for learners in ([], [slam_perceptron(7), slam_perceptron(8)], [classification_perceptron(7)]):
        with pytest.raises(DataError, match="play_many"):
            next(play_many(learners, NOISY))


def test_labels_that_a_metric_does_not_know_are_named():
    lists = Rounds.from_arrays(np.ones((2, 7)), [5, 0])
    learner = slam_perceptron(7)
    with pytest.raises(DataError, match="err@2 is defined for labels from 0 to 4"):
        play_pass(learner, lists, np.arange(1), (metric("err@2"),))
