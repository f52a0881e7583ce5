"""What the theorems promise, on games that are played."""

import numpy as np
import pytest

from ranktron import DataError
from ranktron.learners import feedback
from ranktron.learners.steps import Constant
from ranktron.learners.top_k.learner import TopK
from ranktron.surrogates import KL, CalibratedSquared, PairwiseHinge, Squared
from reproduction.theory.top_k_bounds import Limits, largest_loss, regret_bound, second_moment, theorem_settings
from reproduction.theory.top_k_games import (
    Indistinguishable,
    Pool,
    best_fixed,
    exponent,
    full_feedback,
    impossibility,
    losses,
    midpoint,
    regret,
    rtop_1f,
)

claim = pytest.mark.claim
CONVEX = [Squared(), Squared(residual=True), PairwiseHinge(), KL(), KL(printed=True)]


@claim("TOPK", "22 Lem4")
@pytest.mark.parametrize(("p", "q"), [(1.0, np.inf), (1.5, 3.0), (2.0, 2.0), (4.0, 4 / 3), (np.inf, 1.0)])
def test_the_operator_norm_is_that_of_the_longest_row(p, q):
    """‖Xᵀ‖_{1→p} = ‖X‖_{q→∞} = max_j ‖X_j‖_p: attained at a unit vector, and at the dual of the longest row."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5, 4))
    longest = max(np.linalg.norm(row, p) for row in X)
    corner = max(np.linalg.norm(X.T @ e, p) for e in np.eye(5))
    assert corner == pytest.approx(longest)
    j = np.argmax([np.linalg.norm(row, p) for row in X])
    if p == np.inf:
        dual = np.where(abs(X[j]) == abs(X[j]).max(), np.sign(X[j]), 0.0)
    else:
        dual = np.sign(X[j]) * abs(X[j]) ** (p - 1.0)
    assert np.linalg.norm(X @ dual, np.inf) / np.linalg.norm(dual, q) == pytest.approx(longest)
    for _ in range(200):
        v, u = rng.normal(size=5), rng.normal(size=4)
        assert np.linalg.norm(X.T @ v, p) <= longest * np.linalg.norm(v, 1) + 1e-9
        assert np.linalg.norm(X @ u, np.inf) <= longest * np.linalg.norm(u, q) + 1e-9


@claim("TOPK", "20 Eq.4")
@pytest.mark.parametrize("surrogate", CONVEX, ids=repr)
def test_gradient_descent_has_the_regret_of_its_estimates(surrogate):
    """On every run, Σ ⟨z_t, w_t − w⟩ ≤ |w|²/(2η) + (η/2) Σ |z_t|² for all w in the ball: Eq. (4) is its expectation."""
    pool, T, eta = Pool(), 3000, 0.002
    learner = TopK(3, surrogate, surrogate.coordinates, Constant(0.2), Constant(eta), radius=1.0)
    inner, squares, direction = 0.0, 0.0, np.zeros(3)
    for number, round in enumerate(pool.stream(T, seed=0)):
        ranking = learner.rank(round.X, number)
        heard = learner.simulated_feedback(round, ranking)
        part = learner.estimate(round.X, ranking, heard)[1]
        z = round.X[ranking.order[: len(part)]].astype(float).T @ part
        inner, squares, direction = inner + z @ learner.w, squares + z @ z, direction + z
        learner.learn(round.X, ranking, heard)
    for w in [np.zeros(3), -direction / np.linalg.norm(direction), *np.eye(3)]:
        assert inner - direction @ w <= w @ w / (2 * eta) + eta / 2 * squares + 1e-6


@claim("TOPK", "21 Eq.5")
@pytest.mark.parametrize("surrogate", CONVEX, ids=repr)
def test_exploration_costs_at_most_its_share_of_the_largest_loss(surrogate):
    pool, T, gamma = Pool(), 4000, 0.25
    B = largest_loss(surrogate, pool.limits)
    learner = TopK(3, surrogate, surrogate.coordinates, Constant(gamma), Constant(1e-3), radius=1.0, seed=2)
    extra, explored = 0.0, 0
    for number, round in enumerate(pool.stream(T, seed=1)):
        ranking = learner.rank(round.X, number)
        played, own = (surrogate(s, round.labels)[0] for s in (learner.played(ranking), ranking.scores))
        assert ranking.explored or played == own
        assert played - own <= B * ranking.explored
        extra, explored = extra + played - own, explored + ranking.explored
        learner.learn(round.X, ranking, learner.simulated_feedback(round, ranking))
    assert extra <= B * explored
    assert abs(explored / T - gamma) < 5 * np.sqrt(gamma / T)


def test_the_settings_of_the_theorem_minimise_its_bound():
    for surrogate in CONVEX:
        game, T = Limits(4, 1.0, 2.0, 2.0), 100_000
        gamma, eta = theorem_settings(surrogate, game, T)
        least = regret_bound(surrogate, game, T, gamma, eta)
        for f, g in [(0.8, 1.0), (1.25, 1.0), (1.0, 0.8), (1.0, 1.25)]:
            assert regret_bound(surrogate, game, T, gamma * f, eta * g) > least
        longer = regret_bound(surrogate, game, 8 * T, *theorem_settings(surrogate, game, 8 * T))
        assert longer / least == pytest.approx(8 ** (2 / 3))
        assert second_moment(surrogate, game) > 0.0


@claim("TOPK", "23 Lem5")
def test_the_constants_are_those_of_the_formulas():
    game = Limits(m=3, R_D=2.0, U=0.5, R_max=5.0)
    assert second_moment(Squared(), game, 0.25) == pytest.approx(8 * 2.0**2 * 3**2 * (0.25 * 2.0**2 * 0.5**2 + 5.0**2))
    assert second_moment(PairwiseHinge(), game) == 2.0**2 * 3**2 * 2**2
    assert second_moment(KL(), game) == pytest.approx(2.0**2 * 3**2 * np.exp(2.0 * 5.0))
    steep = Limits(m=3, R_D=2.0, U=5.0, R_max=1.0)
    assert second_moment(KL(), steep) == pytest.approx(2.0**2 * 3**2 * np.exp(2.0 * 10.0))
    assert largest_loss(Squared(), Limits(3, R_max=0.5)) == 3.0
    assert largest_loss(PairwiseHinge(0.5), Limits(4)) == 6 * 1.5
    assert largest_loss(KL(), Limits(2, R_max=3.0)) == pytest.approx(2 * (np.exp(3.0) * 2.0 + 1.0))
    assert regret_bound(PairwiseHinge(), game, 10, 0.5, 0.1) == pytest.approx(0.25 / 0.2 + 0.1 * 10 * 144 / 1.0 + 30.0)


def test_the_best_fixed_weights_are_found():
    pool = Pool(lists=10)
    rounds, counts = pool.rounds(), np.ones(10)
    rng = np.random.default_rng(0)
    for surrogate in CONVEX:
        found = best_fixed(surrogate, rounds, counts, 1.0)
        for _ in range(300):
            w = rng.normal(size=3)
            w *= rng.random() / np.linalg.norm(w)
            assert found <= sum(surrogate(r.X @ w, r.labels)[0] for r in rounds) + 1e-6


def test_losses_are_those_of_the_scores_played():
    pool = Pool()
    learner = TopK(3, Squared(), 1, Constant(0.5), Constant(0.01), seed=1)
    suffered = list(losses(learner, pool.stream(50, 0), Squared()))
    again = TopK(3, Squared(), 1, Constant(0.5), Constant(0.01), seed=1)
    for number, (round, loss) in enumerate(zip(pool.stream(50, 0), suffered, strict=True)):
        ranking = again.rank(round.X, number)
        assert loss == Squared()(again.played(ranking), round.labels)[0]
        again.learn(round.X, ranking, feedback.top(1)(round, ranking))


@claim("TOPK", "24 Thm4.1")
@pytest.mark.slow
@pytest.mark.parametrize("surrogate", CONVEX[:3], ids=repr)
def test_regret_grows_like_the_rounds_to_two_thirds_and_stays_below_the_bound(surrogate):
    pool, horizons = Pool(), (5_000, 20_000, 80_000)
    regrets = np.array([[regret(surrogate, pool, T, seed) for T in horizons] for seed in range(3)])
    for T, column in zip(horizons, regrets.T, strict=True):
        bound = regret_bound(surrogate, pool.limits, T, *theorem_settings(surrogate, pool.limits, T))
        assert (column <= bound).all()
    found = exponent(horizons, regrets)
    assert found.low <= 2 / 3 <= found.high
    assert abs(found.slope - 2 / 3) < 0.1  # √T would be 0.17 away, T a third


def test_an_exponent_needs_regret():
    assert exponent([10, 100], np.array([[1.0, 10 ** (2 / 3)]] * 3)).slope == pytest.approx(2 / 3)
    with pytest.raises(DataError, match="too short"):
        exponent([10, 100], np.array([[1.0, -1.0]]))


@claim("TOPK", "27 Thm5.2")
def test_nobody_learns_the_calibrated_loss_from_the_first_label():
    T = 3_000
    line = Indistinguishable().unavoidable * np.arange(1, T + 1)
    best = impossibility(lambda seed: midpoint, T, [0])
    assert best == pytest.approx(line)  # whoever knows both distributions loses exactly this
    learner = impossibility(lambda seed: rtop_1f(T, seed), T, range(3))
    assert learner[-1] > line[-1]
    half = T // 2 - 1
    assert learner[-1] - learner[half] > line[-1] - line[half]  # and it does not get better
    told = impossibility(lambda seed: full_feedback, T, range(5))
    assert told[-1] < 0.2 * line[-1]  # not the loss is hard, but to be told so little
    assert told[-1] < 1.2 * told[half]


@claim("TOPK", "27 Thm5.2")
def test_who_knows_one_game_is_judged_by_the_other():
    """Always right about one game: no regret there, and |a − b|² a round on the other, whichever of the two it is."""
    T = 50
    for known in (Indistinguishable(), Indistinguishable(other=True)):
        answer = known.target
        found = impossibility(lambda seed, answer=answer: lambda rounds: (answer for _ in rounds), T, [0, 1])
        assert found == pytest.approx(4.0 * known.unavoidable * np.arange(1, T + 1))


@claim("TOPK", "27 Thm5.2")
def test_whatever_the_learner_the_first_label_tells_the_two_apart_from_nothing():
    """The law of what is heard is the same under both, whichever document is shown first."""
    for first in range(3):
        heard = [sorted(game.patterns[:, first]) for game in (Indistinguishable(), Indistinguishable(other=True))]
        assert heard[0] == heard[1]
    a, b = Indistinguishable().target, Indistinguishable(other=True).target
    rng = np.random.default_rng(0)
    for scores in rng.random((500, 3)):
        worse = max(np.sum((scores - a) ** 2), np.sum((scores - b) ** 2))
        assert worse >= Indistinguishable().unavoidable - 1e-12
        mean = np.mean(
            [CalibratedSquared()(scores, R)[0] - CalibratedSquared()(a, R)[0] for R in Indistinguishable().patterns]
        )
        assert mean == pytest.approx(np.sum((scores - a) ** 2))
