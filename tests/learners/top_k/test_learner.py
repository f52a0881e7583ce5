"""RTop-kF as a learner: the algorithm as printed, late and missing feedback, hidden labels, refusals."""

import time

import numpy as np
import pytest

import ranktron
from ranktron import DataError, Feedback, play
from ranktron.data.synthetic import Separable, WebSearch
from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.dispatch import as_arrays
from ranktron.learners import TopK, feedback, top_k_ranker
from ranktron.learners.checks import check_learner, same
from ranktron.learners.steps import Constant, InversePower
from ranktron.learners.top_k.exploration import explores, uniform_scores
from ranktron.learners.top_k.kernels import TOP_K, _gather_dense, _gathered_rows, locate, take_step, take_step_rows
from ranktron.surrogates import KL, ListNet, PairwiseHinge, SmoothDCG, Squared
from ranktron.types import Ranking, Round

claim = pytest.mark.claim
LISTS = Separable(documents=8, features=6, margin=0.1).rounds(60)
SURROGATES = [Squared(), Squared(residual=True), PairwiseHinge(), KL(), KL(printed=True), SmoothDCG(0.3)]


def learner_of(surrogate=None, k=2, gamma=0.3, eta=0.001, **more):
    return TopK(6, surrogate or PairwiseHinge(), k, explore=Constant(gamma), step=Constant(eta), **more)


def played(learner, rounds=LISTS, hear=None, delay=0):
    for _ in play(learner, rounds, hear or learner.simulated_feedback, delay=delay):
        pass
    return learner


def as_printed(rounds, surrogate, gamma, eta, U, seed):
    """Algorithm 1, line by line, with the paper's closed forms for top-1 and top-2 feedback."""
    w, total = np.zeros(6), np.zeros(6)
    for t, (X, R, _) in enumerate(rounds):
        X, m = X.astype(float), len(R)
        s = X @ w
        sigma = np.argsort(-s.astype(np.float32), kind="stable")
        shown = np.argsort(-uniform_scores(seed, t, m)) if explores(seed, t, gamma(t)) else sigma
        a, b = shown[:2]
        if isinstance(surrogate, PairwiseHinge):
            p = lambda i, j: (1 - gamma(t)) * (i == sigma[0] and j == sigma[1]) + gamma(t) / (m * (m - 1))  # noqa: E731, B023
            g = np.zeros(m)
            for i, j in ((a, b), (b, a)):
                if R[i] > R[j] and 1 + s[j] > s[i]:
                    g[j] += 1 / (p(a, b) + p(b, a))
                    g[i] -= 1 / (p(a, b) + p(b, a))
        else:
            p = (1 - gamma(t)) * (a == sigma[0]) + gamma(t) / m
            g = 2 * s if isinstance(surrogate, Squared) else np.zeros(m)
            g[a] += -2 * R[a] / p if isinstance(surrogate, Squared) else (np.exp(s[a]) - np.exp(R[a])) / p
        total += w
        w = w - eta(t) * X.T @ g
        w *= min(1.0, U / max(np.linalg.norm(w), 1e-300))
    return w, total / len(rounds)


@claim("TOPK", "19 step 11")
@pytest.mark.parametrize("surrogate", [Squared(), PairwiseHinge(), KL(printed=True)], ids=repr)
@pytest.mark.parametrize("U", [0.05, 5.0])
def test_algorithm_1_as_printed(surrogate, U):
    gamma, eta = InversePower(0.4, 1 / 3), InversePower(0.01, 2 / 3)
    w, mean = as_printed(LISTS, surrogate, gamma, eta, U, seed=4)
    learner = played(TopK(6, surrogate, surrogate.coordinates, gamma, eta, radius=U, seed=4))
    assert learner.w == pytest.approx(w, rel=1e-9, abs=1e-12)
    assert learner.coef == pytest.approx(mean, rel=1e-9, abs=1e-12)
    assert np.linalg.norm(learner.w) <= U * (1 + 1e-12)


@claim("TOPK", "19 step 11")
def test_projection_is_the_nearest_point_of_the_ball():
    learner = learner_of(Squared(), 1, eta=100.0, radius=0.5)
    free = learner_of(Squared(), 1, eta=100.0)
    for one in (learner, free):
        played(one, LISTS[:3])
        one.restore({**one.state(), "w": np.zeros(6)})
        ranking = one.rank(LISTS[4].X, 4)
        one.learn(LISTS[4].X, ranking, Feedback(ranking.order[:1], np.array([1.0])))
    assert np.linalg.norm(free.w) > 0.5
    assert learner.w == pytest.approx(0.5 * free.w / np.linalg.norm(free.w))


def test_adaptive_steps_divide_by_the_root_of_the_squares():
    learner = learner_of(Squared(), 1, eta=0.2, adaptive=True)
    w, squares = np.zeros(6), np.zeros(6)
    for number, round in enumerate(LISTS[:20]):
        ranking = learner.rank(round.X, number)
        heard = learner.simulated_feedback(round, ranking)
        gradient = learner.estimate(round.X, ranking, heard)[1]
        z = round.X[ranking.order].astype(float).T @ gradient
        squares += z**2
        w = w - 0.2 * z / np.sqrt(np.maximum(squares, 1e-300))
        learner.learn(round.X, ranking, heard)
        assert learner.w == pytest.approx(w)


@pytest.mark.parametrize("late", [False, True])
def test_averages_are_means_of_the_weights_that_ranked(late):
    learner, kept = learner_of(weighted_average=late), []
    for number, round in enumerate(LISTS):
        kept.append(learner.w.copy())
        ranking = learner.rank(round.X, number)
        learner.learn(round.X, ranking, learner.simulated_feedback(round, ranking))
    weights = np.arange(1, 61) if late else np.ones(60)
    assert learner.coef == pytest.approx(np.average(kept, axis=0, weights=weights))


def test_the_python_twins_agree():
    rng = np.random.default_rng(0)
    order = rng.permutation(6)
    for items, labels in ([2, 0], [1.0, 2.0]), ([0, 0], [1.0, 1.0]), ([5], [9.0]), ([1], [np.nan]):
        asked = (order, 3, order[np.array(items)], np.array(labels), 4.0)
        fast, slow = locate(*asked), locate.py_func(*asked)
        assert fast[1:] == slow[1:]
        assert fast[1] or (fast[0] == slow[0]).all()
    X, gradient, drift = rng.normal(size=(5, 4)).astype(np.float32), rng.normal(size=3), rng.normal(size=4)
    for fast, slow in zip(
        _gather_dense(X, np.arange(5), 3, gradient), _gather_dense.py_func(X, np.arange(5), 3, gradient), strict=True
    ):
        assert fast == pytest.approx(slow)
    rows = as_arrays(Sparse.from_matrix(X * (X > 0)))
    for call in (_gathered_rows, _gathered_rows.py_func):
        first, kept, columns = call(*rows, np.arange(5), 2, gradient, np.zeros(4))
        assert len(first[0]) == 3
        assert np.bincount(columns, kept, 4) == pytest.approx(gradient @ (X * (X > 0))[:3].astype(float))
    for adaptive in (False, True):
        learner = np.zeros(1, TOP_K)
        learner["radius"], learner["adaptive"], learner["weighted_average"], learner["rounds"] = 1.5, adaptive, True, 1
        states = [np.array([np.ones(4), np.zeros(4), np.full(4, 0.5), np.zeros(4), np.eye(4)[0]]) for _ in range(4)]
        for call, state in zip((take_step, take_step.py_func), states[:2], strict=True):
            assert call(learner, state, X, np.array([0, 1, 2]), gradient, drift, 0.5, 0.1)
        for call, state in zip((take_step_rows, take_step_rows.py_func), states[2:], strict=True):
            assert call(learner, state, rows, gradient, drift[:2], np.array([3, 0], np.int32), 0.5, 0.1)
        assert states[0] == pytest.approx(states[1])
        assert states[2] == pytest.approx(states[3])
        assert not states[3][3].any()


@pytest.mark.parametrize("surrogate", SURROGATES, ids=repr)
@pytest.mark.parametrize("more", [{}, {"adaptive": True, "shortlist": 4, "floor": 0.05, "response_rate": 0.5}])
def test_all_checks_of_a_learner(surrogate, more):
    def make():
        return learner_of(surrogate, 3, radius=2.0, **more)

    check_learner(make, LISTS, feedback.top(3))


@pytest.mark.parametrize("surrogate", SURROGATES, ids=repr)
def test_hidden_labels_cannot_leak(surrogate):
    def poisoned(round, ranking):
        labels = np.full(len(round.labels), 1e6)
        labels[ranking.order[:2]] = round.labels[ranking.order[:2]]
        return feedback.top(2)(Round(round.X, labels, round.qid), ranking)

    clean, fed = learner_of(surrogate, radius=1.0), learner_of(surrogate, radius=1.0)
    played(clean)
    played(fed, hear=poisoned)
    assert same(clean.state(), fed.state())
    assert clean.w.any()


def test_feedback_holds_nothing_but_what_was_shown():
    learner = learner_of()
    for number, round in enumerate(LISTS):
        ranking = learner.rank(round.X, number)
        heard = learner.simulated_feedback(round, ranking)
        assert heard._fields == ("items", "labels")
        assert len(heard.items) == len(heard.labels) == 2
        assert heard.labels.base is None  # a copy: there is no way back to the labels of the list


def test_late_feedback_counts_at_the_scores_and_propensities_of_its_ranking():
    first, second = LISTS[0], LISTS[1]
    learner = learner_of(Squared(), 1)
    rankings = [learner.rank(first.X, 0), learner.rank(second.X, 1)]
    wanted = -sum(
        learner.step(r.number)
        * x.X[r.order].astype(float).T
        @ learner.estimate(x.X, r, learner.simulated_feedback(x, r))[1]
        for x, r in zip((first, second), rankings, strict=True)
    )
    for list_, ranking in ((second, rankings[1]), (first, rankings[0])):  # out of order
        learner.learn(list_.X, ranking, learner.simulated_feedback(list_, ranking))
    assert learner.w == pytest.approx(wanted)
    delayed = played(learner_of(), delay=7)
    assert delayed.rounds == len(LISTS)


def test_feedback_that_never_comes_costs_nothing():
    learner = learner_of()
    for number, round in enumerate(LISTS):
        ranking = learner.rank(round.X, number)
        if number % 3 == 0:
            learner.learn(round.X, ranking, learner.simulated_feedback(round, ranking))
    assert learner.rounds == 20
    assert learner.w.any()


def test_some_of_the_k_may_be_missing():
    learner = learner_of(Squared(), 3)
    ranking = learner.rank(LISTS[0].X, 0)
    learner.learn(LISTS[0].X, ranking, Feedback(ranking.order[[2, 0]], np.array([1.0, 2.0])))
    silent = learner_of(PairwiseHinge(), 3)
    ranking = silent.rank(LISTS[0].X, 0)
    assert silent.learn(LISTS[0].X, ranking, Feedback(np.array([], np.int64), np.array([]))) == 0.0
    assert not silent.w.any()


BAD = {
    "was not among the first 2 shown": lambda o: ([o[5]], [1.0]),
    "not among the first 2 shown": lambda o: ([99], [1.0]),
    "twice": lambda o: ([o[0], o[0]], [1.0, 1.0]),
    "labels must be finite and >= 0": lambda o: ([o[1]], [-1.0]),
    "has label 5.0, above the declared highest, 4": lambda o: ([o[0]], [5.0]),
}


@pytest.mark.parametrize("words", BAD)
def test_feedback_that_cannot_be_is_refused(words):
    learner = played(learner_of(max_label=4.0))
    before = learner.state()
    ranking = learner.rank(LISTS[0].X, 60)
    items, labels = BAD[words](ranking.order)
    with pytest.raises(DataError, match=words):
        learner.learn(LISTS[0].X, ranking, Feedback(np.array(items), np.array(labels)))
    assert same(before, learner.state())


def test_a_round_never_ranked_is_refused():
    learner = played(learner_of())
    before = learner.state()
    X = LISTS[0].X
    ranking = learner.rank(X, 60)
    heard = learner.simulated_feedback(LISTS[0], ranking)
    for words, never in {
        "never ranked": Ranking(ranking.order, ranking.scores, 60),
        "round that this learner never ranked": ranking._replace(number=-1),
        "another k or surrogate": ranking._replace(propensities=np.ones(2)),
        "for 7 documents, this query has 8": ranking._replace(scores=ranking.scores[:7]),
    }.items():
        with pytest.raises(DataError, match=words):
            learner.learn(X, never, heard)
        assert same(before, learner.state())


def test_short_lists_are_heard_in_full_or_refused():
    for m in (1, 2):
        X = LISTS[0].X[:m]
        learner = learner_of(Squared(), 3)
        ranking = learner.rank(X, 0)
        assert ranking.propensities == pytest.approx(np.ones(m))
        learner.learn(X, ranking, Feedback(ranking.order, np.ones(m)))
        strict = learner_of(Squared(), 3, require_full_lists=True)
        with pytest.raises(DataError, match=f"a query of {m} document.* is too short: the labels of the first 3"):
            strict.rank(X, 0)
    for strict in (learner_of(Squared(), 1, require_full_lists=True), top_k_ranker(6, "squared", 1, "paper")):
        with pytest.raises(DataError, match="at least 2 documents to choose from"):
            strict.rank(LISTS[0].X[:1], 0)


@pytest.mark.parametrize("gamma", [0.5, 0.9])
def test_gamma_is_below_one_half_where_the_theory_needs_it(gamma):
    learner_of(gamma=gamma)
    with pytest.raises(DataError, match="below 1/2, as the theory needs it"):
        learner_of(gamma=gamma, require_full_lists=True)
    with pytest.raises(DataError, match="below 1/2"):
        top_k_ranker(6, preset="recommended", explore=gamma, strict=True)
    with pytest.raises(DataError, match="below 1/2"):
        top_k_ranker(6, explore=gamma)


def test_the_smallest_settings_are_accepted():
    learner = learner_of(radius=1e-3, max_label=0.5, response_rate=1e-3, floor=1e-3, shortlist=2)
    assert (learner.radius, learner.max_label, learner.response_rate) == (1e-3, 0.5, 1e-3)


@pytest.mark.parametrize(
    ("words", "make"),
    {
        "at most 1; in the first round it is 1.5": lambda: learner_of(gamma=1.5),
        "radius must be above 0": lambda: learner_of(radius=0.0),
        "shortlist needs at least k = 2": lambda: learner_of(shortlist=1),
        "floor of propensities": lambda: learner_of(floor=1.0),
        "answered share": lambda: learner_of(response_rate=0.0),
        "highest label": lambda: learner_of(max_label=0.0),
        "seed must be 0 or more": lambda: learner_of(seed=-1),
        "k must be a whole number of at least 1": lambda: feedback.top(0),
        "explore must be above 0 and at most 1": lambda: top_k_ranker(6, explore=2.0),
        "no surrogate 'listnet'": lambda: top_k_ranker(6, surrogate="listnet"),
        "the labels of the first k documents": lambda: learner_of(ListNet()),
        "epsilon must be a positive number": lambda: SmoothDCG(0.0),
    }.items(),
)
def test_settings_that_cannot_be_are_refused(words, make):
    with pytest.raises(DataError, match=words):
        make()


def test_an_overflow_is_refused_and_changes_nothing():
    learner = learner_of(KL(), 1, eta=1e8)
    with pytest.raises(DataError, match="overflow in round"):
        played(learner, hear=lambda round, ranking: Feedback(ranking.order[:1], np.array([5.0])))
    assert np.isfinite(learner.w).all()
    before = learner.state()
    ranking = learner.rank(LISTS[0].X, 0)._replace(scores=np.full(8, 1e3))
    with pytest.raises(DataError, match="choose a smaller step"):
        learner.learn(LISTS[0].X, ranking, Feedback(ranking.order[:1], np.array([0.0])))
    assert same(before, learner.state())


def test_gradients_too_small_to_be_squared_do_not_overflow():
    learner = learner_of(Squared(), 1, adaptive=True)
    ranking = learner.rank(LISTS[0].X, 2)
    learner.learn(LISTS[0].X, ranking, Feedback(ranking.order[:1], np.array([1e-200])))
    assert np.isfinite(learner.w).all()


def test_settings_by_one_word():
    paper, ours = top_k_ranker(6), top_k_ranker(6, preset="recommended")
    assert paper.explore == InversePower(0.1, 1 / 3)
    assert paper.step == InversePower(0.01, 2 / 3)
    assert (paper.adaptive, paper.shortlist) == (False, 0)
    assert ours.adaptive
    assert top_k_ranker(6, "kl", 1, "paper").surrogate == KL(printed=True)
    assert top_k_ranker(6, "kl", 1, "recommended").surrogate == KL()
    assert top_k_ranker(6, k=50, preset="recommended").shortlist in (0, 50)
    assert top_k_ranker(6, shortlist=7, preset="recommended").shortlist == 7


def test_the_estimator_hears_the_first_k_only_and_goes_on_with_real_feedback():
    lists = WebSearch(features=6, documents=8).rounds(40)
    ranker = ranktron.TopKRanker(surrogate="squared", k=1, n_epochs=2, random_state=0)
    poison = lists.labels.copy()
    ranker.fit(lists.X, poison, group=np.diff(lists.offsets))
    learner = ranker.learner_
    ranking = learner.rank(lists[0].X, learner.rounds)
    before = ranker.coef_.copy()
    learner.learn(lists[0].X, ranking, Feedback(ranking.order[:1], np.array([2.0])))
    assert learner.rounds == 81
    assert (ranker.coef_ != before).any()
    with pytest.raises(DataError, match="PairwiseHinge needs k of at least 2"):
        ranktron.TopKRanker(k=1).fit(lists.X, lists.labels, group=np.diff(lists.offsets))


def test_the_command_line(tmp_path, monkeypatch):
    from ranktron.cli import main

    monkeypatch.chdir(tmp_path)
    for command in (
        "simulate separable d.txt --queries 30",
        "train d.txt --algo topk --set surrogate=ranksvm --set k=2 --epochs 3 --model m",
        "train d.txt --algo topk --set surrogate=squared --set k=1 --set preset=paper --model p",
        "evaluate m d.txt",
    ):
        with pytest.raises(SystemExit) as exit:
            main(command.split())
        assert exit.value.code == 0
    model = ranktron.load("m")
    assert model.learner().k == 2
    assert model.learner().rounds == 90


@pytest.mark.parametrize("surrogate", ["ranksvm", "squared", "kl"])
def test_it_learns_from_two_labels_a_round(surrogate):
    lists = Separable(documents=10, features=5, margin=0.3).rounds(300)
    sizes = np.diff(lists.offsets)
    qid = np.repeat(lists.qids, sizes)
    ranker = ranktron.TopKRanker(surrogate=surrogate, random_state=0, n_epochs=20, scale="standard")
    assert ranker.fit(lists.X, lists.labels, qid=qid).score(lists.X, lists.labels, qid=qid) > 0.9


@claim("TOPK", "17 s4.2")
@pytest.mark.slow
@pytest.mark.timed
def test_a_round_takes_time_in_proportion_to_its_list():
    """O(m log m): far from the square, whatever else the machine does."""

    def seconds(m):
        X = np.random.default_rng(0).normal(size=(m, 6)).astype(np.float32)
        learner, taken = learner_of(gamma=1.0), []
        for number in range(12):
            start = time.perf_counter()
            ranking = learner.rank(X, number)
            learner.learn(X, ranking, Feedback(ranking.order[:2], np.array([1.0, 0.0])))
            taken.append(time.perf_counter() - start)
        return min(taken[2:])

    m, factor = 4_000, 16
    assert seconds(factor * m) < 4 * factor * np.log(factor * m) / np.log(m) * seconds(m)


def test_the_settings_are_those_that_the_pages_name():
    """Models and pages refer to these by name: a change of one is a change of all."""
    settings = {
        setting: {
            name: (
                *(made.radius, made.step, made.explore.eta, made.adaptive, made.shortlist),
                *(made.weighted_average, made.require_full_lists),
            )
            for name in ("ranksvm", "squared", "kl", "smooth-dcg")
            for made in [top_k_ranker(3, name, preset=setting)]
        }
        for setting in ("paper", "recommended")
    }
    paper = InversePower(0.01, 2.0 / 3.0)
    assert settings["paper"] == {
        name: (radius, paper, 0.1, False, 0, False, True)
        for name, radius in {"ranksvm": 1.0, "squared": 0.1, "kl": 0.1, "smooth-dcg": 0.3}.items()
    }
    assert settings["recommended"] == {
        name: (np.inf, Constant(eta), 1.0, True, 30, True, False)
        for name, eta in {"ranksvm": 0.1, "squared": 0.03, "kl": 0.03, "smooth-dcg": 0.01}.items()
    }
