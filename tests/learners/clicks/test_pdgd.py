"""PDGD against a slow twin that follows the paper, by enumeration of all rankings, and against finite differences."""

from itertools import permutations, product
from math import exp

import numpy as np
import pytest

from ranktron import DataError, Feedback, Ranking, Round, play
from ranktron.data.synthetic import Separable
from ranktron.kernels.csr_rows import Sparse
from ranktron.learners import PDGD, feedback, pdgd_ranker
from ranktron.learners.checks import same
from ranktron.learners.clicks.pdgd import pdgd_gradient
from ranktron.learners.clicks.plackett_luce import draw_ranking, log_sum_below, swap_weight
from ranktron.learners.steps import Constant, ExponentialDecay

LISTS = Separable(documents=14, features=6, margin=0.1).rounds(40)


def probability(order, scores, k):
    """P(the first k places of a ranking), an explicit product of the Plackett-Luce model."""
    p, left = 1.0, list(range(len(scores)))
    for item in order[:k]:
        p *= exp(scores[item]) / sum(exp(scores[other]) for other in left)
        left.remove(item)
    return p


def preferred(clicked, k):
    """The paper's pairs, in words: a clicked document before every unclicked one that precedes a click, or is the
    first one after the last click."""
    last = max(clicked)
    unclicked = [j for j in range(k) if j not in clicked and (any(i > j for i in clicked) or j == last + 1)]
    return {(i, j) for i in clicked for j in unclicked}


def twin(order, scores, k, clicked):
    """What each document's row is weighted by in the step of the paper, slowly."""
    weights = np.zeros(len(scores))
    for i, j in preferred(clicked, min(k, len(order))) if clicked else ():
        swapped = list(order)
        swapped[i], swapped[j] = order[j], order[i]
        p, q = probability(order, scores, k), probability(swapped, scores, k)
        a, b = exp(scores[order[i]]), exp(scores[order[j]])
        weight = q / (p + q) * a * b / (a + b) ** 2
        weights[order[i]] += weight
        weights[order[j]] -= weight
    return weights


def gradient_of(order, scores, k, gains):
    order = np.array(order)
    below = log_sum_below(scores, order, k)
    loss, gradient = pdgd_gradient(scores[order[:k]], below, np.array(gains, float)[: min(k, len(order))])
    whole = np.zeros(len(scores))
    whole[order[:k]] = gradient
    return loss, whole


def test_the_pairs_are_those_of_the_paper():
    """Clicks at 1 and 4 of 6 shown: {1, 4} before {2, 3, 5}, and the sixth says nothing."""
    assert preferred([0, 3], 6) == set(product([0, 3], [1, 2, 4]))
    gains = [1, 0, 0, 1, 0, 0]
    _, gradient = pdgd_gradient(np.zeros(6), -np.inf, np.array(gains, float))
    assert gradient == pytest.approx([-3 / 8, 1 / 4, 1 / 4, -3 / 8, 1 / 4, 0.0])  # equal scores: rho 1/2, slope 1/4


@pytest.mark.parametrize("clicked", [[], [0], [5], [0, 1, 2, 3, 4, 5], [0, 1], [4, 5], [2]])
def test_every_pattern_has_its_pairs(clicked):
    gains = np.zeros(6)
    gains[clicked] = 1.0
    loss, gradient = pdgd_gradient(np.zeros(6), -np.inf, gains)
    pairs = preferred(clicked, 6) if clicked else set()
    assert loss == pytest.approx(0.25 * len(pairs))
    for place in range(6):
        sign = sum((j == place) - (i == place) for i, j in pairs)
        assert gradient[place] == pytest.approx(sign / 8)


@pytest.mark.parametrize("m", [2, 3, 5, 9])
@pytest.mark.parametrize("k", [2, 4, 9])
def test_the_gradient_is_that_of_the_slow_twin(m, k):
    rng = np.random.default_rng((m, k))
    for _ in range(60):
        scores, order = rng.normal(size=m) * 2, rng.permutation(m)
        clicked = sorted(np.flatnonzero(rng.random(min(k, m)) < 0.4).tolist())
        gains = np.zeros(m)
        gains[clicked] = rng.integers(1, 4, size=len(clicked))
        _, gradient = gradient_of(order, scores, k, gains)
        assert -gradient == pytest.approx(twin(order, scores, k, clicked), rel=1e-9, abs=1e-12)


def test_the_swap_weight_is_a_quotient_of_explicit_products():
    rng = np.random.default_rng(0)
    for m in (2, 3, 5, 8):
        for _ in range(40):
            scores, order, k = rng.normal(size=m) * 3, rng.permutation(m), int(rng.integers(2, m + 1))
            i, j = rng.permutation(k)[:2]
            swapped = order.copy()
            swapped[[i, j]] = order[[j, i]]
            p, q = probability(order, scores, k), probability(swapped, scores, k)
            rho = swap_weight(scores[order[:k]], log_sum_below(scores, order, k), i, j)
            assert rho == pytest.approx(q / (p + q), rel=1e-10)


def test_finite_differences_with_the_weights_frozen():
    """Up the sum of rho · sigma(s_i − s_j) is the way the step goes."""
    rng, h = np.random.default_rng(1), 1e-6
    for _ in range(30):
        m, k = 7, 5
        scores, order = rng.normal(size=m), rng.permutation(m)
        clicked = sorted(np.flatnonzero(rng.random(k) < 0.5).tolist()) or [1]
        gains = np.isin(np.arange(m), clicked).astype(float)
        below = log_sum_below(scores, order, k)
        rho = {pair: swap_weight(scores[order[:k]], below, *pair) for pair in preferred(clicked, k)}

        def objective(s, rho=rho, order=order):
            return sum(weight / (1 + np.exp(s[order[j]] - s[order[i]])) for (i, j), weight in rho.items())

        loss, gradient = gradient_of(order, scores, k, gains)
        assert loss == pytest.approx(sum(rho.values()) - objective(scores), rel=1e-9, abs=1e-12)
        slopes = [(objective(scores + h * e) - objective(scores - h * e)) / (2 * h) for e in np.eye(m)]
        assert -gradient == pytest.approx(slopes, abs=1e-8)


def pair_step(scores, labels, k, user, weigh):
    """The expected weight of each difference x_i − x_j, over all rankings and all clicks, exactly."""
    m = len(scores)
    expected = np.zeros((m, m))
    for order in permutations(range(m)):
        p_order = probability(order, scores, m)
        click, after_click, after_skip = user.probabilities(labels[list(order[:k])])
        for pattern in product((0, 1), repeat=min(k, m)):
            reading, gone = 1.0, 0.0
            for place, clicked in enumerate(pattern):
                gone *= 1 - clicked
                reading *= click[place] if clicked else 1 - click[place]
                stays = (after_click if clicked else after_skip)[place]
                reading, gone = reading * stays, gone + reading * (1 - stays)
            chance = p_order * (reading + gone)
            clicks = [place for place, clicked in enumerate(pattern) if clicked]
            if chance == 0.0 or not clicks:
                continue
            below = log_sum_below(scores, np.array(order), k)
            for i, j in preferred(clicks, min(k, m)):
                rho = swap_weight(scores[list(order[:k])], below, i, j) if weigh else 1.0
                a, b = order[i], order[j]
                slope = exp(scores[a] - scores[b]) / (1 + exp(scores[a] - scores[b])) ** 2
                expected[a, b] += chance * rho * slope
                expected[b, a] -= chance * rho * slope
    return expected


USERS = {
    "informational": feedback.cascade("informational", 3),
    "position-based": feedback.position_based(2.0, 0.4, grades=3),
}


def wrong_signs(weigh, user):
    """How often the expected step orders two documents of different grades against the user's preference."""
    wrong = total = 0
    rng = np.random.default_rng(3)
    for m, k in ((3, 3), (4, 4), (4, 2), (5, 3)):
        for right in (-3.0, 1.0):  # a ranker that is wrong, whose mistakes are seen first, and one that is right
            labels = rng.permutation([2.0, 1.0, 0.0, 0.0, 1.0][:m])
            scores = right * labels + 0.3 * rng.normal(size=m)
            expected = pair_step(scores, labels, k, user, weigh)
            for a, b in permutations(range(m), 2):
                if labels[a] > labels[b]:
                    total += 1
                    wrong += expected[a, b] <= 0.0
    return wrong, total


@pytest.mark.parametrize("name", USERS)
def test_the_expected_step_has_the_signs_of_the_preferences(name):
    """By enumeration of all rankings and all clicks; without rho the signs are wrong in some cases."""
    wrong, total = wrong_signs(True, USERS[name])
    assert (wrong, total > 20) == (0, True)
    assert wrong_signs(False, USERS[name])[0] > 0


def test_rankings_are_drawn_from_the_model():
    X, w = np.array([[1.0], [0.2], [-0.5], [0.0]], np.float32), np.array([1.3])
    scores, n = X[:, 0].astype(float) * 1.3, 30_000
    counts = dict.fromkeys(permutations(range(4)), 0)
    for number in range(n):
        counts[tuple(draw_ranking(X, w, 5, number, 1.0)[0].tolist())] += 1
    assert sum(probability(order, scores, 4) for order in counts) == pytest.approx(1.0)
    for order, count in counts.items():
        p = probability(order, scores, 4)
        assert abs(count / n - p) < 5 * np.sqrt(p * (1 - p) / n)
    large = X.astype(np.float64) * 1.3 + 1e6  # the same differences beside a large number: noise must not be lost
    first = [draw_ranking(large.astype(np.float32), np.ones(1), 5, number, 1.0)[0][0] for number in range(2_000)]
    assert len(set(first)) == 4


@pytest.mark.parametrize("scale", [1e2, 1e4, 1e8, 1e300])
def test_no_score_is_too_large(scale):
    rng = np.random.default_rng(4)
    for _ in range(50):
        shown = rng.permutation([1.0, 0.5, 0.0, -0.3, -1.0]) * scale
        for below in (-np.inf, -scale, 0.0, scale):
            loss, gradient = pdgd_gradient(shown, below, (rng.random(5) < 0.5).astype(float))
            assert np.isfinite(loss)
            assert np.isfinite(gradient).all()
            for i, j in permutations(range(5), 2):
                rho = swap_weight(shown, below, i, j)
                assert 0.0 <= rho <= 1.0
                assert rho == pytest.approx(swap_weight(shown, below, j, i))
    assert swap_weight(np.array([1000.0, 0.0, 0.0]), 0.0, 1, 2) == pytest.approx(0.5)  # all but the first underflow
    assert swap_weight(np.array([-1000.0, 900.0, 0.0]), -np.inf, 0, 2) == pytest.approx(1.0)


def test_a_shown_document_that_is_not_in_the_feedback_takes_part_in_no_pair():
    X = np.eye(4, dtype=np.float32)
    ranking = Ranking(np.array([2, 0, 1, 3]), np.zeros(4), 0, True)
    learner = PDGD(4, 4, Constant(1.0))
    learner.learn(X, ranking, Feedback([1, 2], [1, 0]))  # places 3 and 1; of 2 and 4 nothing is known
    assert learner.w == pytest.approx([0.0, 1 / 8, -1 / 8, 0.0])


def test_the_step_is_the_gradient_pulled_back_and_shrinks():
    learner = pdgd_ranker(6, eta=0.3, decay=0.5, k=5, seed=2)
    w = np.zeros(6)
    total = np.zeros(6)
    for number, round in enumerate(LISTS[:6]):
        total += w
        ranking = learner.rank(round.X, number)
        assert ranking.scores == pytest.approx(round.X.astype(float) @ w, rel=1e-6, abs=1e-9)
        heard = learner.simulated_feedback(round, ranking)
        clicked = np.flatnonzero(heard.labels).tolist()
        w = w + 0.3 * 0.5**number * round.X.T.astype(float) @ twin(ranking.order, ranking.scores, 5, clicked)
        learner.learn(round.X, ranking, heard)
        assert learner.w == pytest.approx(w, rel=1e-6, abs=1e-9)
    averaged = pdgd_ranker(6, eta=0.3, decay=0.5, k=5, seed=2, average=True)
    averaged.restore(learner.state())
    assert averaged.coef == pytest.approx(total / 6, rel=1e-6, abs=1e-9)


def test_sparse_rows_teach_the_same():
    dense, sparse = pdgd_ranker(6), pdgd_ranker(6)
    for number, round in enumerate(LISTS):
        X = np.where(np.abs(round.X) > 0.4, round.X, 0).astype(np.float32)
        rows, ranking = Sparse.from_matrix(X), dense.rank(X, number)
        assert (sparse.rank(rows, number).order == ranking.order).all()
        heard = dense.simulated_feedback(round, ranking)
        dense.learn(X, ranking, heard)
        sparse.learn(rows, ranking, heard)
        assert sparse.w == pytest.approx(dense.w, rel=1e-9, abs=1e-12)


def test_a_pending_round_is_the_page_and_one_number():
    learner, rng = pdgd_ranker(6, k=3), np.random.default_rng(2)
    for m in (2, 3, 10, 1000):
        X = rng.normal(size=(m, 6)).astype(np.float32)
        ranking = learner.rank(X, 0)
        kept = learner.pending(X, ranking, 7)
        assert kept.rows.shape == (min(m, 3), 6)
        assert kept.drift.size == 0
        below = ranking.scores[ranking.order[3:]]
        assert kept.constant == (pytest.approx(np.log(np.exp(below).sum())) if m > 3 else -np.inf)
        other = pdgd_ranker(6, k=3)
        gains = np.array([0.0, 1.0, 0.0])[:m]
        loss = learner.learn(X, ranking, Feedback(ranking.order[:3], gains))
        assert other.learn_pending(kept, Feedback(np.arange(min(m, 3)), gains)) == loss
        assert same(other.state(), learner.state())
        learner = pdgd_ranker(6, k=3)


def test_it_learns_from_every_user():
    lists = Separable(documents=20, features=8, grades=3, margin=0.3).rounds(400)
    for user in ("perfect", "navigational", "informational"):
        learner = pdgd_ranker(8, eta=0.5)
        turns = list(play(learner, lists, feedback.cascade(user, 3, seed=1), "ndcg@10"))
        shown = [turn.values[0] for turn in turns]
        assert np.mean(shown[-100:]) > np.mean(shown[:50]) + 0.1


@pytest.mark.parametrize(
    ("act", "complaint"),
    [
        (lambda learner, X, r: learner.learn(X[:2], r, Feedback([0], [1])), "not made for these 2 documents"),
        (lambda learner, X, r: learner.learn(X, r._replace(order=r.order + 9), Feedback([0], [1])), "does not have"),
        (lambda learner, X, r: learner.learn(X, r, Feedback(r.order[2:3], [1])), "not among the first 2 shown"),
        (lambda learner, X, r: learner.learn(X, r, Feedback(r.order[[0, 0]], [1, 0])), "twice"),
        (lambda learner, X, r: learner.learn(X, r, Feedback(r.order[:1], [-1])), "finite and >= 0"),
        (lambda learner, X, r: learner.learn(X, r._replace(scores=r.scores + np.inf), Feedback([0], [1])), "overflow"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(act, complaint):
    learner, X = pdgd_ranker(6, k=2), LISTS[0].X
    learner.learn(X, learner.rank(X, 0), Feedback([], []))
    before = learner.state()
    with pytest.raises(DataError, match=complaint):
        act(learner, X, learner.rank(X, 1))
    assert same(before, learner.state())


@pytest.mark.parametrize("decay", [0.0, 1.5, np.nan])
def test_a_decay_shrinks(decay):
    with pytest.raises(DataError, match="decay"):
        ExponentialDecay(0.1, decay)


def test_no_click_teaches_nothing_and_counts():
    learner = pdgd_ranker(6)
    round = Round(LISTS[0].X, np.zeros(14), "q")
    (turn,) = play(learner, [round], feedback.cascade("perfect"))
    assert (turn.loss, learner.rounds, learner.w.any()) == (0.0, 1, False)
