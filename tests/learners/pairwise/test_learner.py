import json
import os
import signal
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ranktron
from ranktron import DataError, Feedback, Model, Rounds, metric, play
from ranktron.data.synthetic import Separable, WebSearch
from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.dispatch import as_arrays
from ranktron.learners import feedback, pairwise_perceptron
from ranktron.learners.checks import check_learner, same
from ranktron.learners.pairwise import hypothesis_history, passes
from ranktron.learners.pairwise.hypothesis_history import blank_history, visit
from ranktron.learners.pairwise.learner import OUTPUTS, Pairwise
from ranktron.learners.pairwise.outputs import Average, Committee, Last
from ranktron.learners.pairwise.pairs import Pairs
from ranktron.learners.pairwise.passes import ONE_GRADE, REMOVED, Passes, train_outputs
from ranktron.learners.schedule import History, Schedule
from ranktron.training.fit import TrainingPlan, train

NOISY = WebSearch(features=6, documents=10).rounds(30)
HELD_OUT = WebSearch(features=6, documents=10).rounds(60)[30:]
NDCG = metric("ndcg@10")


def exact_lists(seed=0):
    """Whole-number features and 16 pairs in every list: every sum below is exact, whatever its order."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-4, 5, (24, 3))
    return Rounds.from_arrays(X, np.tile([0, 1, 0, 1, 0, 1, 0, 1], 3), group=[8, 8, 8])


def reference(lists, schedule, bound=1.0):
    """Table 1, line by line: the hypotheses with their counters, and how often each pair was misranked."""
    pairs = Pairs.of(lists.labels, lists.offsets)
    upper, lower = pairs.decode(pairs.all())
    query = np.searchsorted(lists.offsets, upper, side="right") - 1
    X = lists.X.astype(float)
    hypotheses, misranked = [[np.zeros(lists.n_features), 0]], np.zeros(len(upper), int)
    for t in range(schedule.epochs):
        rng = np.random.default_rng((schedule.seed, t))
        for p in rng.permutation(len(upper)) if schedule.shuffle else range(len(upper)):
            if bound < 1.0 and misranked[p] > bound * schedule.epochs:
                continue
            w = hypotheses[-1][0]
            r, n = X[upper[p]], X[lower[p]]
            if n @ w >= r @ w:
                misranked[p] += 1
                hypotheses.append([w + (r - n) / pairs.counts[query[p]], 0])
            else:
                hypotheses[-1][1] += 1
    return hypotheses, misranked


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=4))
def test_pairs_are_all_pairs_of_different_grade(grades):
    labels = np.array([g for one in grades for g in one], float)
    offsets = np.concatenate(([0], np.cumsum([len(one) for one in grades])))
    pairs = Pairs.of(labels, offsets)
    expected = {(i, j) for a, b in pairwise(offsets) for i in range(a, b) for j in range(a, b) if labels[i] > labels[j]}
    found = list(zip(*pairs.decode(pairs.all()), strict=True))
    assert len(found) == len(expected) == len(pairs)
    assert set(found) == expected
    backwards = list(zip(*pairs.decode(pairs.all()[::-1].copy()), strict=True))
    assert backwards == found[::-1]


def test_sampled_pairs_are_pairs_of_their_list_and_few_are_taken_whole():
    pairs = Pairs.of(np.array([0.0, 1.0] * 50 + [0.0, 1.0, 1.0, 1.0]), np.array([0, 100, 103, 104]))
    numbers = pairs.sample(40, np.random.default_rng(0))
    assert len(numbers) == 42
    assert (numbers[:40] < 2500).all()
    assert len(set(numbers[:40])) > 30
    assert numbers[40:].tolist() == [2500, 2501]
    assert pairs.steps(40).tolist() == [1 / 40, 1 / 2, 1.0]


def test_too_many_pairs_to_hold_is_an_error_that_says_what_to_do():
    pairs = Pairs(np.array([2**40]), np.zeros(1, np.int64), np.array([0, 2**40]), np.zeros(1, np.int64))
    with pytest.raises(DataError, match="pairs_per_query"):
        pairs.all()


@pytest.mark.claim("COMMITTEE", "11 T1")
@pytest.mark.parametrize("shuffle", [True, False])
def test_last_pocket_and_average_are_those_of_the_table(shuffle):
    lists, schedule = exact_lists(), Schedule(5, 3, shuffle)
    hypotheses, misranked = reference(lists, schedule)
    assert len(hypotheses) > 20
    longest = max(range(len(hypotheses)), key=lambda i: hypotheses[i][1])  # the first of equals
    successes = sum(c for _, c in hypotheses)
    expected = {
        "last": hypotheses[-1][0],
        "pocket": hypotheses[longest][0],
        "average": sum(c * w for w, c in hypotheses) / successes,
    }
    outputs = train_outputs(lists, {name: OUTPUTS[name] for name in expected}, schedule)
    for name, w in expected.items():
        assert outputs[name].learner.coef.tolist() == w.tolist(), name
    assert outputs["last"].learner.mistakes == misranked.sum() == len(hypotheses) - 1


def counted(lists, schedule, bound):
    passes, history = Passes(lists, schedule, bound), History()
    hypotheses = blank_history(lists.n_features)
    for _ in range(schedule.epochs):
        hypotheses = passes.go(hypotheses, 1, 0, history)
    return passes, hypotheses


@pytest.mark.claim("COMMITTEE", "12 Eq.2")
@pytest.mark.claim("COMMITTEE", "13 s4")
def test_the_dual_coefficients_count_misrankings_and_give_the_weights():
    lists, schedule = exact_lists(1), Schedule(4, 1)
    passes, hypotheses = counted(lists, schedule, 0.999)
    _, misranked = reference(lists, schedule)
    assert passes.misranked.tolist() == misranked.tolist()
    upper, lower = passes.pairs.decode(passes.pairs.all())
    alpha = np.bincount(upper, misranked, len(lists.X)) - np.bincount(lower, misranked, len(lists.X))
    assert (alpha[lists.labels == 1] >= 0).all()
    assert (alpha[lists.labels == 0] <= 0).all()
    assert np.abs(alpha).sum() == 2 * misranked.sum()
    X = lists.X.astype(float)
    assert hypotheses.w.tolist() == ((alpha / 16.0) @ X).tolist()
    dual_scores = (X @ X.T) @ (alpha / 16.0)
    assert dual_scores.tolist() == (X @ hypotheses.w).tolist()


@pytest.mark.claim("COMMITTEE", "14 s4")
def test_the_alpha_bound_removes_pairs_and_bounds_the_dual_coefficients():
    lists, schedule = exact_lists(2), Schedule(8, 5)
    passes, followed = counted(lists, schedule, 0.4)
    hypotheses, misranked = reference(lists, schedule, 0.4)
    assert followed.w.tolist() == hypotheses[-1][0].tolist()
    assert passes.misranked.tolist() == misranked.tolist()
    assert passes.misranked.max() == 4  # the fourth misranking of 8 passes is the first beyond 40 %
    assert passes.removed == np.count_nonzero(misranked == 4) > 0
    unbounded, _ = counted(lists, schedule, 0.999)
    assert unbounded.misranked.max() > 4


def test_removals_and_idle_queries_are_reported():
    lists = Rounds.concat([NOISY, Rounds.from_arrays(np.ones((2, 6)), [1, 1], qid=["idle", "idle"])])
    idle = sum(len(set(round.labels)) == 1 for round in lists)
    trained = train(TrainingPlan("pairwise", {"alpha_bound": 0.3}, Schedule(6)), lists)
    assert trained.history.remarks[ONE_GRADE] == idle >= 1
    assert trained.history.remarks[REMOVED] > 0
    assert train(TrainingPlan("pairwise", schedule=Schedule(2)), lists).history.remarks == {ONE_GRADE: idle}
    without = train(TrainingPlan("pairwise", {"alpha_bound": 0.3}, Schedule(6)), NOISY).model
    assert trained.model.coef == pytest.approx(without.coef)


def test_an_alpha_bound_that_removes_every_pair_is_an_error():
    alike = Rounds.from_arrays(np.ones((2, 3)), [0, 1])
    with pytest.raises(DataError, match="after pass 2 the alpha-bound has removed every pair"):
        train(TrainingPlan("pairwise", {"alpha_bound": 0.1}, Schedule(10)), alike)


@pytest.mark.claim("COMMITTEE", "15 s4")
def test_on_separable_lists_it_stops_making_mistakes():
    lists = Separable(documents=8, features=6, margin=0.3).rounds(20)
    short, long = (train_outputs(lists, {"last": Last()}, Schedule(epochs, 1))["last"].learner for epochs in (40, 80))
    assert short.mistakes == long.mistakes
    assert ranktron.evaluate(lists, long.predict(lists.X), "ndcg").means["ndcg"] == 1.0


def test_outputs_trained_together_are_those_trained_alone():
    readouts = {
        **OUTPUTS,
        "committee": Committee(7),
        "borda": Committee(5, "borda"),
        "sub": Committee(9, subcommittee=2),
    }
    together = train_outputs(NOISY, readouts, Schedule(6, 2), valid=HELD_OUT, alpha_bound=0.8)
    for name, output in readouts.items():
        alone = train_outputs(NOISY, {name: output}, Schedule(6, 2), valid=HELD_OUT, alpha_bound=0.8)[name]
        assert alone.epoch == together[name].epoch
        assert alone.valid == together[name].valid
        for one, two in zip(alone.learner.ensemble.members, together[name].learner.ensemble.members, strict=True):
            assert one.tolist() == two.tolist()
        assert alone.learner.ensemble.weights.tolist() == together[name].learner.ensemble.weights.tolist()


def test_voted_lets_every_hypothesis_vote_as_often_as_it_was_right():
    lists, schedule = exact_lists(), Schedule(2, 0)
    hypotheses, _ = reference(lists, schedule)
    learner = train_outputs(lists, {"voted": OUTPUTS["voted"]}, schedule)["voted"].learner
    X = lists[0].X
    expected = np.zeros(len(X))
    for w, c in hypotheses:
        s = X.astype(float) @ w
        expected += c * ((s[:, None] > s).sum(axis=1) + 0.5 * ((s[:, None] == s).sum(axis=1) - 1))
    assert learner.predict(X) == pytest.approx(expected)
    assert learner.coef is None
    assert learner.votes


def test_more_hypotheses_than_memory_is_an_error_that_says_what_to_do(monkeypatch):
    monkeypatch.setattr(hypothesis_history, "MOST_NUMBERS", 6 * 500)
    with pytest.raises(DataError, match="raise selective"):
        train(TrainingPlan("pairwise", {"output": "voted"}, Schedule(2)), NOISY)
    learner, one = pairwise_perceptron(6, "voted"), NOISY[0]
    monkeypatch.setattr(hypothesis_history, "MOST_NUMBERS", 6)
    with pytest.raises(DataError, match="too many to keep"):
        learner.learn(one.X, learner.rank(one.X, 0), feedback.full(one, None))
    assert same(learner.state(), pairwise_perceptron(6, "voted").state())


@pytest.mark.parametrize("output", ["average", "voted"])
def test_selective_voting_ignores_small_counters(output):
    lists, schedule = exact_lists(), Schedule(3, 0)
    hypotheses, _ = reference(lists, schedule)
    kept = [(w, c) for w, c in hypotheses if c >= 3]
    assert 1 < len(kept) < len(hypotheses) / 2
    ensemble = train_outputs(lists, {output: OUTPUTS[output]}, schedule, selective=3)[output].learner.ensemble
    if output == "average":
        mean = sum(c * w for w, c in kept) / sum(c for _, c in kept)
        assert ensemble.members[0].tolist() == mean.tolist()
    else:
        assert ensemble.members.tolist() == [w.tolist() for w, _ in kept]
        assert ensemble.weights.tolist() == [float(c) for _, c in kept]


def test_online_it_visits_all_pairs_of_a_round_and_then_the_next():
    lists = exact_lists()
    learner = pairwise_perceptron(3, "last")
    losses = [turn.loss for turn in play(learner, lists, feedback.full)]
    w = np.zeros(3)
    for number, one in enumerate(lists):
        pairs = Pairs.of(one.labels, np.array([0, 8]))
        upper, lower = pairs.decode(pairs.all())
        mistakes = 0
        for p in np.random.default_rng(number).permutation(16):
            d = one.X[upper[p]].astype(float) - one.X[lower[p]]
            if d @ w <= 0.0:
                w, mistakes = w + d / 16.0, mistakes + 1
        assert losses[number] == mistakes / 16.0
    assert learner.coef.tolist() == w.tolist()
    assert learner.rounds == 3


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("pairs_per_query", [0, 5])
def test_every_output_passes_the_checks_of_a_learner(output, pairs_per_query):
    lists = Separable(documents=8, features=6, margin=0.1).rounds(40)
    check_learner(lambda: pairwise_perceptron(6, output, selective=2, pairs_per_query=pairs_per_query), lists)


def test_partial_feedback_is_learnt_as_the_list_of_what_was_observed():
    whole, items = NOISY[0], np.array([5, 1, 3, 8])
    part, alone = pairwise_perceptron(6), pairwise_perceptron(6)
    part.learn(whole.X, part.rank(whole.X, 0), Feedback(items, whole.labels[items]))
    X = whole.X[items]
    alone.learn(X, alone.rank(X, 0), Feedback(np.arange(4), whole.labels[items]))
    assert part.coef.tolist() == alone.coef.tolist()


def test_sampled_passes_cost_what_was_asked_and_still_learn():
    lists = Separable(documents=30, features=6, margin=0.1).rounds(20)
    learner = Pairwise(6, Average(), pairs_per_query=50)
    passes, history = Passes(lists, Schedule(5), pairs_per_query=50), History()
    assert len(passes.pairs) > 20 * 300
    for epoch in range(5):
        upper, lower, order = passes._order(epoch)
        assert len(upper) == len(lower) == len(order) == 20 * 50
        assert (lists.labels[upper] > lists.labels[lower]).all()
        learner.follow(passes.go(learner.hypotheses, 1, 0, history))
    assert ranktron.evaluate(lists, learner.predict(lists.X), NDCG).means["ndcg@10"] > 0.9
    assert passes._documents is None  # nothing was ever held for all pairs


def test_going_on_equals_never_having_stopped():
    def trained(epochs, start=None):
        return train(TrainingPlan("committee", {"size": 5}, Schedule(epochs, 3)), NOISY, start=start).model

    whole = trained(5)
    halves = trained(2, start=Model.from_bytes(trained(3).to_bytes()))
    assert whole.to_bytes() == halves.to_bytes()
    assert whole.learner().rounds == 5 * len(NOISY)


def test_an_interrupted_pass_is_finished_first(monkeypatch):
    monkeypatch.setattr(passes, "CHUNK", 100)
    calls = 0

    def interrupted(*arguments):
        nonlocal calls
        calls += 1
        if calls == 14:
            os.kill(os.getpid(), signal.SIGINT)
        return visit(*arguments)

    monkeypatch.setattr(passes, "visit", interrupted)
    stopped = train(TrainingPlan("pairwise", schedule=Schedule(4, 1)), NOISY, valid=HELD_OUT)
    monkeypatch.setattr(passes, "visit", visit)
    per_pass = -(-len(Pairs.of(NOISY.labels, NOISY.offsets)) // 100)
    assert stopped.history.interrupted
    assert stopped.history.position == 100 * (14 % per_pass)
    resumed = train(
        TrainingPlan("pairwise", schedule=Schedule(1, 1)), NOISY, start=Model.from_bytes(stopped.model.to_bytes())
    )
    epochs = stopped.history.epoch + 2
    assert same(resumed.model.state, train(TrainingPlan("pairwise", schedule=Schedule(epochs, 1)), NOISY).model.state)


def test_the_compiled_pass_equals_its_python():
    pairs = Pairs.of(NOISY.labels, NOISY.offsets)
    upper, lower = pairs.decode(pairs.all())
    order = np.random.default_rng(0).permutation(len(upper))
    steps = np.repeat(pairs.steps(), np.diff(NOISY.offsets))
    found = []
    dense, sparse = NOISY.X, as_arrays(Sparse.from_matrix(NOISY.X))
    for function, features in ((visit, dense), (visit.py_func, dense), (visit, sparse), (visit.py_func, sparse)):
        hypotheses, misranked = blank_history(6, 4), np.zeros(len(upper), np.int32)
        for _ in range(3):
            function(features, upper, lower, order, steps, misranked, 1.0, 2, hypotheses)
        found.append((hypotheses, misranked))
    for other in found[1:]:
        for one, two in zip(found[0][0], other[0], strict=True):
            assert one == pytest.approx(two, nan_ok=True)
        assert found[0][1].tolist() == other[1].tolist()


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"output": "first"}, "output must be last or pocket or average or voted"),
        ({"alpha_bound": 0.0}, "alpha_bound"),
        ({"alpha_bound": 1.5}, "alpha_bound"),
        ({"alpha_bound": 0.5, "pairs_per_query": 3}, "needs all pairs"),
        ({"selective": -1}, "selective"),
        ({"pairs_per_query": -2}, "pairs_per_query"),
    ],
)
def test_bad_parameters_are_named(parameters, words):
    with pytest.raises(DataError, match=words):
        train(TrainingPlan("pairwise", parameters), NOISY)


def test_a_state_that_does_not_fit_is_refused():
    learner = train_outputs(NOISY, {"pocket": OUTPUTS["pocket"]}, Schedule(1))["pocket"].learner
    state = dict(learner.state())
    for name, value in {"tally": np.zeros(2), "members": np.zeros((3, 6)), "w": np.full(6, np.nan)}.items():
        with pytest.raises(DataError, match="state does not hold"):
            learner.restore({**state, name: value})
    assert same(state, learner.state())


def test_voted_rankers_want_query_ids_and_have_no_weights():
    qid = np.repeat(NOISY.qids, np.diff(NOISY.offsets))
    ranker = ranktron.PairwisePerceptron(output="voted", n_epochs=1, random_state=0, scale=None)
    ranker.fit(NOISY.X, NOISY.labels, qid=qid)
    with pytest.raises(DataError, match="query ids"):
        ranker.predict(NOISY.X)
    with pytest.raises(DataError, match="no weights"):
        ranker.coef_
    scores = ranker.predict(NOISY.X, qid=qid)
    assert scores[: NOISY.offsets[1]].tolist() == ranker.learner_.predict(NOISY[0].X).tolist()


@pytest.mark.filterwarnings("ignore:all queries of the validation set:ranktron.RankingWarning")
@pytest.mark.slow
def test_a_second_process_compiles_nothing(tmp_path):
    code = """
import json
from numba.core.dispatcher import Dispatcher
import gc
from ranktron.learners.schedule import Schedule
from ranktron.data.synthetic import WebSearch
from ranktron.training.fit import TrainingPlan, train
lists = WebSearch(features=6, documents=10).rounds(10)
for name in ("committee", "ranksvm", "rankboost"):
    train(TrainingPlan(name, schedule=Schedule(2)), lists, valid=lists)
print(json.dumps(sum(sum(d.stats.cache_misses.values()) for d in gc.get_objects() if isinstance(d, Dispatcher))))
"""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    misses = [
        json.loads(
            subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True).stdout
        )
        for _ in range(2)
    ]
    assert misses[0] > 0
    assert misses[1] == 0


@pytest.mark.parametrize("pairs_per_query", [0, 3])
def test_a_list_of_one_grade_is_a_round_as_well(pairs_per_query):
    learner = pairwise_perceptron(2, pairs_per_query=pairs_per_query)
    X = np.eye(2, dtype=np.float32)
    for number, labels in enumerate(([1.0, 1.0], [1.0, 0.0], [0.0, 0.0])):
        learner.learn(X, learner.rank(X, number), Feedback(np.arange(2), np.array(labels)))
        assert learner.rounds == number + 1
    assert learner.hypotheses.w.tolist() == [1.0, -1.0]
