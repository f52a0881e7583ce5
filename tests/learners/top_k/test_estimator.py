"""Estimates have no bias: sums over all rankings, not samples."""

from dataclasses import dataclass
from itertools import permutations, product
from math import factorial
from typing import ClassVar

import numpy as np
import pytest

from ranktron import DataError, Feedback
from ranktron.learners.clicks.examination import Examination
from ranktron.learners.steps import Constant
from ranktron.learners.top_k import exploration as exploration
from ranktron.learners.top_k.estimator import check_decomposed, estimate, inverse_propensities
from ranktron.learners.top_k.learner import TopK
from ranktron.surrogates import KL, CalibratedSquared, ListNet, MeanPairwiseHinge, PairwiseHinge, SmoothDCG, Squared
from ranktron.types import Ranking
from reproduction.theory.top_k_bounds import Limits, largest_loss, second_moment

claim = pytest.mark.claim
SURROGATES = [
    Squared(),
    Squared(residual=True),
    PairwiseHinge(),
    KL(),
    KL(printed=True),
    SmoothDCG(0.3),
    SmoothDCG(0.3, printed=True),
]


@dataclass(frozen=True)
class Triples:
    """A surrogate that takes three labels at a time, and has no quick estimate of its own."""

    coordinates: ClassVar[int] = 3

    def __call__(self, scores, labels):
        gradient = self.known(scores)
        for items in permutations(range(len(scores)), 3):
            gradient = gradient + self.term(scores, items, tuple(labels[list(items)]))
        return float("nan"), gradient

    def known(self, scores):
        return scores**3

    def term(self, scores, items, labels):
        part = np.zeros(len(scores))
        part[items[0]] = labels[0] * labels[1] * labels[2] ** 2 * np.exp(scores[items[2]])
        return part


def learner_of(surrogate, k, gamma=0.3, **more):
    return TopK(1, surrogate, k, explore=Constant(gamma), step=Constant(0.1), **more)


def propensities(coordinates, order, best, gamma, k, n):
    if coordinates == 1:
        return exploration.document_propensities(order, best, gamma, k, n)
    if coordinates == 2:
        return exploration.pair_propensities(order, best, gamma, k, n)
    return exploration.group_propensities(order, best, gamma, k, n, coordinates)


def estimated(learner, scores, order, best, labels, gamma, answered=None):
    """The estimate of the gradient from one ranking, by document."""
    m = len(scores)
    k, n = learner._sizes(m)
    shown = Ranking(order, scores, 0, True, propensities(learner.surrogate.coordinates, order, best, gamma, k, n))
    items = order[:k] if answered is None else order[:k][list(answered)]
    part = learner.estimate(np.zeros((m, 1), np.float32), shown, Feedback(items, labels[items]))[1]
    gradient = np.zeros(m)
    gradient[order[: len(part)]] = part
    return gradient


def expectation(learner, scores, labels, gamma=0.3):
    """The sum over all m! rankings of probability times estimate."""
    best = np.argsort(-scores, kind="stable")
    total = np.zeros(len(scores))
    for order in map(np.array, permutations(range(len(scores)))):
        P = (1.0 - gamma) * (order == best).all() + gamma / factorial(len(scores))
        total += P * estimated(learner, scores, order, best, labels, gamma)
    return total


@claim("TOPK", "3 Lem1 Eq.3")
@claim("TOPK", "5 s4.1")
@claim("TOPK", "6 s4.1")
@claim("TOPK", "7 s4.1")
@claim("TOPK", "8 s4.1.1")
@pytest.mark.parametrize("surrogate", SURROGATES, ids=repr)
@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_the_sum_over_all_rankings_is_the_gradient(surrogate, m):
    scores = np.random.default_rng(m).normal(size=m)
    for k in {surrogate.coordinates, 2, 3}:
        learner = learner_of(surrogate, k)
        for pattern in product(range(3), repeat=m):
            labels = np.array(pattern, float)
            assert expectation(learner, scores, labels) == pytest.approx(surrogate(scores, labels)[1], abs=1e-10)


@pytest.mark.parametrize("surrogate", SURROGATES, ids=repr)
@pytest.mark.parametrize("m", [5, 6])
def test_longer_lists_too(surrogate, m):
    """The same sum over all m! rankings, those with the same first k taken together: their estimates are equal."""
    gamma, k = 0.3, surrogate.coordinates
    scores = np.random.default_rng(m).normal(size=m)
    best = np.argsort(-scores, kind="stable")
    learner = learner_of(surrogate, k, gamma)
    P, tails = {}, {}
    for order in permutations(range(m)):
        P[order[:k]] = P.get(order[:k], 0.0) + (1.0 - gamma) * (order == tuple(best)) + gamma / factorial(m)
        tails[order[:k]] = np.array(order)
    for pattern in product(range(3), repeat=m):
        labels = np.array(pattern, float)
        total = sum(P[head] * estimated(learner, scores, tails[head], best, labels, gamma) for head in P)
        assert total == pytest.approx(surrogate(scores, labels)[1], abs=1e-10)


@pytest.mark.parametrize("surrogate", SURROGATES, ids=repr)
def test_what_is_below_the_first_k_does_not_matter(surrogate):
    scores, labels = np.array([0.3, -1.0, 0.7, 0.1]), np.array([2.0, 0.0, 1.0, 0.0])
    best = np.argsort(-scores)
    learner = learner_of(surrogate, 2)
    one, two = (estimated(learner, scores, np.array(o), best, labels, 0.3) for o in ([3, 0, 1, 2], [3, 0, 2, 1]))
    assert one == pytest.approx(two)


@claim("TOPK", "2 Lem1")
@pytest.mark.parametrize("surrogate", [*SURROGATES, Triples()], ids=repr)
def test_the_decomposition_adds_up_to_the_gradient(surrogate):
    """Eq. (2); and mixed differences of a higher order vanish, which Lemma 1 makes a necessary condition."""
    m, size = 4, surrogate.coordinates
    scores = np.array([0.0, 1.5, 0.5, -1.0])  # some pairs more than the margin apart, which pay one way only
    for pattern in product(range(2), repeat=m):
        labels = np.array(pattern, float)
        parts = surrogate.known(scores)
        for items in permutations(range(m), size):
            parts = parts + surrogate.term(scores, items, tuple(labels[list(items)]))
        assert parts == pytest.approx(surrogate(scores, labels)[1], abs=1e-12)
    assert abs(mixed_difference(surrogate, scores, size + 1)).max() < 1e-12
    assert abs(mixed_difference(surrogate, scores, size)).max() > 1e-3


def mixed_difference(surrogate, scores, size):
    """Σ ± ∇φ(s, R) over the corners R of a box: 0 where the gradient takes fewer than `size` labels at a time."""
    total = np.zeros(len(scores))
    for corner in product(range(2), repeat=size):
        labels = np.zeros(len(scores))
        labels[:size] = np.array(corner) * (1 + np.arange(size) % 3)
        total += (-1.0) ** (size - sum(corner)) * surrogate(scores, labels)[1]
    return total


@claim("TOPK", "9 Lem2")
def test_ranksvm_cannot_be_learnt_from_one_label():
    assert abs(mixed_difference(PairwiseHinge(), np.array([0.0, 2.0, 1.0]), 2)).max() >= 1.0
    with pytest.raises(DataError, match=r"PairwiseHinge needs k of at least 2, not 1.*Lemmas 1, 2"):
        learner_of(PairwiseHinge(), 1)


@claim("TOPK", "10 Lem3")
@claim("TOPK", "11 remark")
@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_listnet_cannot_be_learnt_from_any_k_short_of_the_list(k):
    scores = np.random.default_rng(k).normal(size=6)
    assert abs(mixed_difference(ListNet(), scores, k + 1)).max() > 1e-6
    for surrogate in (ListNet(), CalibratedSquared(), MeanPairwiseHinge()):
        with pytest.raises(DataError, match=r"cannot be learnt from the labels of the first k documents.*Lemmas 1, 3"):
            check_decomposed(surrogate, k)


@claim("TOPK", "4 s3")
def test_the_papers_two_examples():
    @dataclass(frozen=True)
    class Linear:
        """F(x) = A x, seen as the gradient of something."""

        A: tuple
        coordinates: ClassVar[int] = 1

        def __call__(self, scores, labels):
            return float("nan"), np.array(self.A) @ labels

        def known(self, scores):
            return np.zeros(len(self.A))

        def term(self, scores, items, labels):
            return np.array(self.A)[:, items[0]] * labels[0]

    x, best, gamma = np.array([3.0, -1.0, 2.0]), np.array([2, 0, 1]), 0.3
    for A in (((1, 0, 0), (0, 1, 0), (0, 0, 1)), ((1, 1, 0), (0, 1, 1))):
        F, total = Linear(A), np.zeros(len(A))
        for order in map(np.array, permutations(range(3))):
            P = (1.0 - gamma) * (order == best).all() + gamma / 6
            p = exploration.document_propensities(order, best, gamma, 1, 3)
            total += P * estimate(F, x, order[:1], x[order[:1]], {(order[0],): 1.0 / p[0]})[1]
        assert total == pytest.approx(np.array(A) @ x, abs=1e-12)


@pytest.mark.parametrize("k", [3, 4])
def test_a_surrogate_of_your_own_needs_its_decomposition_only(k):
    scores = np.random.default_rng(0).normal(size=5)
    labels = np.array([2.0, 0.0, 1.0, 1.0, 0.0])
    assert expectation(learner_of(Triples(), k), scores, labels) == pytest.approx(
        Triples()(scores, labels)[1], abs=1e-10
    )
    with pytest.raises(DataError, match="needs k of at least 3, not 2"):
        learner_of(Triples(), 2)
    learner = learner_of(Triples(), k)
    X = np.arange(5, dtype=np.float32)[:, None]
    ranking = learner.rank(X, 0)
    assert ranking.propensities.shape == (k,) * 3
    learner.learn(X, ranking, Feedback(ranking.order[:k], labels[ranking.order[:k]]))
    assert learner.w.any()


@pytest.mark.parametrize("surrogate", SURROGATES, ids=repr)
@pytest.mark.parametrize("k", [2, 4])
def test_quick_estimates_equal_the_general_one(surrogate, k):
    rng = np.random.default_rng(k)
    for seen in range(k + 1):
        scores, labels = rng.normal(size=7), rng.integers(3, size=seen).astype(float)
        places = rng.permutation(k)[:seen]
        weights = 1.0 / rng.uniform(0.01, 1.0, size=(k,) * surrogate.coordinates)
        weights = weights if surrogate.coordinates == 1 else (weights + weights.T) / 2
        loss, quick = surrogate.estimate(scores, places, labels, weights)
        general = estimate(surrogate, scores, places, labels, weights)[1]
        assert np.append(quick, np.zeros(7 - len(quick))) == pytest.approx(general)
        h, d = 1e-6, rng.normal(size=7)
        slope = (
            surrogate.estimate(scores + h * d, places, labels, weights)[0]
            - surrogate.estimate(scores - h * d, places, labels, weights)[0]
        ) / (2 * h)
        assert slope == pytest.approx(general @ d, rel=1e-5, abs=1e-5)
        assert np.isfinite(loss)


@pytest.mark.parametrize("surrogate", SURROGATES, ids=repr)
@pytest.mark.parametrize("k", [2, 3])
def test_a_shortlist_is_estimated_without_bias_and_nothing_else_is(surrogate, k):
    gamma, n = 0.3, 4
    scores, labels = np.random.default_rng(5).normal(size=6), np.array([2.0, 0.0, 1.0, 1.0, 0.0, 2.0])
    learner = learner_of(surrogate, k, gamma, shortlist=n)
    best = np.argsort(-scores, kind="stable")
    total = np.zeros(6)
    for p in permutations(range(n)):
        order = np.append(best[list(p)], best[n:])
        P = (1.0 - gamma) * (order == best).all() + gamma / factorial(n)
        total += P * estimated(learner, scores, order, best, labels, gamma)
    wanted = np.zeros(6)
    wanted[best[:n]] = surrogate(scores[best[:n]], labels[best[:n]])[1]
    assert total == pytest.approx(wanted, abs=1e-10)


@pytest.mark.parametrize("surrogate", SURROGATES, ids=repr)
def test_missing_answers_are_made_up_for(surrogate):
    """Every document answers with the same chance: the sum over rankings and over who answers is the gradient."""
    gamma, k, q = 0.3, 3, 0.6
    scores, labels = np.random.default_rng(6).normal(size=4), np.array([2.0, 0.0, 1.0, 1.0])
    learner = learner_of(surrogate, k, gamma, response_rate=q)
    best = np.argsort(-scores, kind="stable")
    total = np.zeros(4)
    for order in map(np.array, permutations(range(4))):
        P = (1.0 - gamma) * (order == best).all() + gamma / factorial(4)
        for answers in product([False, True], repeat=k):
            Q = np.prod([q if answer else 1.0 - q for answer in answers])
            seen = np.flatnonzero(answers)
            total += P * Q * estimated(learner, scores, order, best, labels, gamma, seen)
    assert total == pytest.approx(surrogate(scores, labels)[1], abs=1e-10)


@pytest.mark.parametrize("surrogate", [Squared(), PairwiseHinge()], ids=repr)
def test_the_bias_of_a_floor_is_the_reported_one(surrogate):
    gamma, floor = 0.2, 0.1
    learner = learner_of(surrogate, surrogate.coordinates, gamma, floor=floor)
    scores = np.array([0.3, 0.2, 0.1, 0.0, -0.1])
    labels = np.array([0.0, 0.0, 0.0, 2.0, 1.0])  # the documents that count are hidden, unless the round explores
    X = np.zeros((5, 1), np.float32)
    ranking = learner.rank(X, 0)
    items = ranking.order[: surrogate.coordinates]
    learner.learn(X, ranking, Feedback(items, labels[items]))
    exact = surrogate(scores, labels)[1]
    label_free = surrogate.known(scores)
    biased = expectation(learner, scores, labels, gamma)
    assert 0.0 < learner.propensity_floor_bias < 1.0
    if isinstance(surrogate, Squared):
        assert biased - label_free == pytest.approx((1.0 - learner.propensity_floor_bias) * (exact - label_free))
    else:
        assert biased == pytest.approx((1.0 - learner.propensity_floor_bias) * exact)
    assert learner_of(surrogate, 2).propensity_floor_bias == 0.0


@pytest.mark.parametrize(("surrogate", "k"), [(Squared(), 2), (PairwiseHinge(), 3)], ids=["documents", "pairs"])
def test_the_bias_of_a_floor_counts_labels_that_do_not_come(surrogate, k):
    """A hidden document is seen with γ k/m, a pair with γ k(k − 1)/(m(m − 1)), and each label comes with its share."""
    gamma, floor, answered, m = 0.2, 0.1, 0.6, 5
    learner = learner_of(surrogate, k, gamma, floor=floor, response_rate=answered)
    X = np.zeros((m, 1), np.float32)
    ranking = learner.rank(X, 0)
    learner.learn(X, ranking, Feedback(ranking.order[:k], np.ones(k)))
    seen = answered * k / m if surrogate.coordinates == 1 else answered**2 * k * (k - 1) / (m * (m - 1))
    assert gamma * seen < floor
    assert learner.propensity_floor_bias == pytest.approx(1.0 - gamma * seen / floor)


def test_weights_are_one_over_propensities_and_know_the_floor():
    table = np.array([[0.5, 0.01], [0.01, 0.2]])
    assert inverse_propensities(table, 0.5, 0.02) == pytest.approx(1.0 / np.maximum(table * 0.5, 0.02))
    assert inverse_propensities.py_func(table, 0.5, 0.02) == pytest.approx(inverse_propensities(table, 0.5, 0.02))


@claim("TOPK", "23 Lem5")
@pytest.mark.parametrize(
    "surrogate", [Squared(), Squared(residual=True), PairwiseHinge(), KL(), KL(printed=True)], ids=repr
)
@pytest.mark.parametrize("gamma", [0.01, 0.1, 0.5])
def test_the_second_moment_is_at_most_its_constant_over_gamma(surrogate, gamma):
    """With explicit constants; the paper's are polynomials of degree four at most, and KL's is an exponential."""
    rng = np.random.default_rng(0)
    for m in (2, 3, 4):
        for U, R_max in product((0.5, 2.0), (1, 2, 4)):
            X = rng.normal(size=(m, 3))
            X *= (1.5 / np.linalg.norm(X, axis=1))[:, None]
            w = rng.normal(size=3)
            scores = X @ (U * w / np.linalg.norm(w))
            labels = np.where(rng.random(m) < 0.5, R_max, rng.integers(R_max + 1, size=m)).astype(float)
            learner = learner_of(surrogate, surrogate.coordinates, gamma)
            best = np.argsort(-scores, kind="stable")
            moment = 0.0
            for order in map(np.array, permutations(range(m))):
                P = (1.0 - gamma) * (order == best).all() + gamma / factorial(m)
                z = X.T @ estimated(learner, scores, order, best, labels, gamma)
                moment += P * (z @ z)
            C = second_moment(surrogate, Limits(m, 1.5, U, R_max), gamma)
            assert moment <= C / gamma * (1.0 + 1e-12)


def worst_case(name):
    """Lists on which an estimate is nearly as long as Lemma 5 allows: (surrogate, X, w, labels)."""
    if name == "squared":  # all rows alike, and a w that points away from where the labels are
        return Squared(), np.ones((6, 1)), -np.sqrt(2.0) * np.ones(1), np.ones(6)
    if name == "squared, residual":
        return Squared(residual=True), np.ones((4, 1)), -np.ones(1), np.full(4, 4.0)
    if name == "ranksvm":  # two relevant and two irrelevant documents at the two ends, all leads below the margin
        return (
            PairwiseHinge(),
            np.array([[1.0], [1.0], [-1.0], [-1.0]]),
            0.1 * np.ones(1),
            np.array([1.0, 1.0, 0.0, 0.0]),
        )
    return KL(printed=name == "kl, printed"), np.ones((4, 1)), -np.ones(1), np.full(4, 4.0)


@claim("TOPK", "23 Lem5")
@pytest.mark.parametrize(
    ("name", "gamma", "share"),
    [
        ("squared", 0.5, 0.8),
        ("squared", 0.01, 0.4),
        ("squared, residual", 0.01, 0.74),
        ("ranksvm", 0.01, 0.66),
        ("kl", 0.01, 0.74),
        ("kl, printed", 0.01, 0.74),
    ],
)
def test_lemma_5_is_nearly_reached(name, gamma, share):
    """A constant half as large would be broken by some list, or nearly so."""
    surrogate, X, w, labels = worst_case(name)
    m, scores = len(X), X @ w
    learner, best = learner_of(surrogate, surrogate.coordinates, gamma), np.argsort(-scores, kind="stable")
    moment = 0.0
    for order in map(np.array, permutations(range(m))):
        P = (1.0 - gamma) * (order == best).all() + gamma / factorial(m)
        z = X.T @ estimated(learner, scores, order, best, labels, gamma)
        moment += P * (z @ z)
    C = second_moment(surrogate, Limits(m, 1.0, abs(w[0]), labels.max()), gamma)
    assert share <= moment / (C / gamma) <= 1.0


@claim("TOPK", "23 Lem5")
def test_kls_constant_is_no_polynomial_of_degree_four():
    """Seen at scores of 0 and growing labels: the moment grows faster than their fourth power."""

    def moment(R):
        gradient = [
            estimated(learner_of(KL(), 1), np.zeros(2), np.array(o), np.array([0, 1]), np.array([R, 0.0]), 0.3)
            for o in ([0, 1], [1, 0])
        ]
        return sum(g @ g for g in gradient)

    assert moment(40.0) / moment(20.0) > 2.0**4 * 1e6


@pytest.mark.parametrize("surrogate", [Squared(), PairwiseHinge(), PairwiseHinge(0.5), KL()], ids=repr)
def test_no_exploring_round_loses_more_than_the_largest_loss(surrogate):
    rng = np.random.default_rng(1)
    for _ in range(500):
        m, R_max = int(rng.integers(1, 6)), int(rng.integers(1, 5))
        labels = rng.integers(R_max + 1, size=m).astype(float)
        scores = rng.integers(2, size=m).astype(float) if rng.random() < 0.5 else rng.random(m)
        assert surrogate(scores, labels)[0] <= largest_loss(surrogate, Limits(m, R_max=R_max)) + 1e-9


def test_the_theorem_says_nothing_of_smooth_dcg():
    for bound in (second_moment, largest_loss):
        with pytest.raises(DataError, match="convex"):
            bound(SmoothDCG(), Limits(3))


CURVE = Examination([1.0, 0.5, 0.2], offsets=[0.05, 0.1, 0.02])


def expected_from_clicks(learner, scores, relevance, gamma=0.3):
    """The estimate summed over all rankings and all clicks of users who see position k by chance."""
    m, best = len(scores), np.argsort(-scores, kind="stable")
    total = np.zeros(m)
    for order in map(np.array, permutations(range(m))):
        likely = gamma / factorial(m) + (1.0 - gamma) * np.array_equal(order, best)
        shown = order[: learner.k]
        chance = CURVE.values[: learner.k] * relevance[shown] + CURVE.offsets[: learner.k]
        for clicks in product([0.0, 1.0], repeat=learner.k):
            clicked = np.zeros(m)
            clicked[shown] = clicks
            also = np.prod(np.where(np.array(clicks) > 0, chance, 1.0 - chance))
            total += likely * also * estimated(learner, scores, order, best, clicked, gamma)
    return total


@pytest.mark.parametrize("surrogate", [Squared(), Squared(residual=True)], ids=repr)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_clicks_of_users_with_known_examination_give_the_gradient_without_bias(surrogate, k):
    """Squared is linear in the label: (c − β) / α instead of it, and all else as with labels."""
    scores, relevance = np.array([0.4, -0.3, 1.1, 0.0]), np.array([0.9, 0.1, 0.4, 0.6])
    _, gradient = surrogate(scores, relevance)
    corrected = expected_from_clicks(learner_of(surrogate, k, examination=CURVE), scores, relevance)
    assert corrected == pytest.approx(gradient, abs=1e-12)
    as_labels = expected_from_clicks(learner_of(surrogate, k), scores, relevance)
    assert np.abs(as_labels - gradient).max() > 0.05


@pytest.mark.parametrize("surrogate", [PairwiseHinge(), KL(), SmoothDCG(0.3)])
def test_losses_that_are_not_linear_in_the_label_refuse_clicks(surrogate):
    with pytest.raises(DataError, match="not linear in the label"):
        learner_of(surrogate, 2, examination=CURVE)
