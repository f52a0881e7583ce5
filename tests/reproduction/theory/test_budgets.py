"""Which rules of a budget keep a mistake bound, and which do not."""

from math import inf, sqrt

import numpy as np
import pytest

from ranktron import DataError
from ranktron.data.rounds import Rounds
from ranktron.learners import feedback, kernel_perceptron
from ranktron.learners.kernelized import (
    Descent,
    Gaussian,
    KernelLearner,
    LinearKernel,
    Oldest,
    Projection,
    Random,
    Smallest,
)
from ranktron.learners.loop import play
from ranktron.learners.mistakes import Misordered
from ranktron.learners.steps import Constant
from ranktron.surrogates import WorstPair
from ranktron.theory.bounds import bound_for_any_eta, margin, random_removal_bound
from ranktron.types import Round
from reproduction.theory.tight_streams import forgotten_lists

SEEDS = range(20)


def perceptron(features, budget, removal, kernel=None, eta=1.0):
    update = Descent(WorstPair(), Constant(eta), Misordered())
    return KernelLearner(features, update, kernel or LinearKernel(), budget, removal)


def mistakes(learner, stream):
    """For each round whether it was a mistake."""
    found, before = [], 0
    for _ in play(learner, stream, feedback.full):
        found.append(learner.mistakes - before)
        before = learner.mistakes
    return np.array(found)


def fresh_lists(axes, count, turned):
    """Two documents at the ends of an axis drawn at random, never the same twice; every so many upside down."""
    rng, lists = np.random.default_rng(2), []
    for t in range(count):
        X = np.zeros((2, axes), np.float32)
        X[:, rng.integers(axes)] = rng.uniform(0.95, 1.0, 2) * [-1.0, 1.0]
        lists.append(Round(X, np.array([1.0, 0.0] if turned and t % turned == 2 else [0.0, 1.0]), str(t)))
    return lists


@pytest.mark.parametrize(("budget", "turned"), [(24, 0), (40, 0), (40, 20), (24, 5)])
def test_random_removal_keeps_its_bound_at_every_prefix(budget, turned):
    """The comparator pays for the lists that are upside down, in the rounds that were mistakes."""
    axes, norm = 13, sqrt(13) / 1.9
    lists = fresh_lists(axes, 200, turned)
    own = np.array([WorstPair()(r.X.astype(float) @ np.full(axes, 1.0 / 1.9), r.labels)[0] for r in lists])
    runs = np.array([mistakes(perceptron(axes, budget, Random(seed)), lists) for seed in SEEDS])
    sums = np.cumsum(runs, axis=1).mean(axis=0)
    paid = np.cumsum(runs * own, axis=1).mean(axis=0)
    bounds = np.array([random_removal_bound(1.0, norm, L, budget) for L in paid])
    assert (sums <= bounds).all()
    assert bounds[-1] < inf
    assert (own > 1e-5).any() == bool(turned)
    assert (budget == 40 and not turned) == (runs.sum(axis=1).max() <= budget / 2)  # else documents had to go


def test_only_random_removal_has_a_bound_where_others_err_for_ever():
    """Seven lists and room for six: whatever goes by a fixed rule, the adversary asks for it."""
    lists, budget, rounds = 7, 12, 120
    for rule in (Oldest(), Smallest(), Projection()):
        learner = perceptron(lists, budget, rule)
        assert mistakes(learner, forgotten_lists(learner, lists, rounds)).all()
    learners = [perceptron(lists, budget, Random(seed)) for seed in SEEDS]
    found = np.mean([mistakes(one, forgotten_lists(one, lists, rounds)).sum() for one in learners])
    assert lists < found < 10 < random_removal_bound(1.0, sqrt(lists) / 2.0, 0.0, budget) < 100


def test_with_room_enough_the_bound_is_reached_within_a_factor_of_two():
    learner = perceptron(20, 400, Random())
    found = mistakes(learner, forgotten_lists(learner, 20, 60)).sum()
    assert found == 20
    assert 0.5 < found / random_removal_bound(1.0, sqrt(20) / 2.0, 0.0, 400) < 1.0


def test_beyond_its_condition_there_is_no_bound():
    """Budget + 1 orthogonal lists: one has no document in memory, whichever went."""
    budget = 6
    learner = perceptron(budget + 1, budget, Random(3))
    assert mistakes(learner, forgotten_lists(learner, budget + 1, 60)).all()
    assert random_removal_bound(1.0, sqrt(budget + 1) / 2.0, 0.0, budget) == inf
    with pytest.raises(DataError, match="even budget"):
        random_removal_bound(1.0, 1.0, 0.0, 7)


def test_one_step_is_what_the_proof_says():
    """E |w − s + d − u|² by enumeration of all pairs of documents that may go, against the proof's right side."""
    rng, B = np.random.default_rng(5), 6
    c, kappa = 4.0 + 2.0 * (B - 2) / (B - 1), 2.0 * (B - 1) / (B * (2 * B - 3))
    for _ in range(200):
        X = rng.normal(size=(B, 4))
        X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
        signs, u = rng.choice([-1.0, 1.0], B), 3.0 * rng.normal(size=4)
        w = signs @ X
        d = rng.normal(size=4)
        d *= 2.0 / max(2.0, np.linalg.norm(d))
        d = -d if w @ d > 0.0 else d
        after = [np.sum((w - signs[a] * X[a] - signs[b] * X[b] + d - u) ** 2) for a in range(B) for b in range(a)]
        assert np.mean(after) <= np.sum((w - u) ** 2) - 2.0 * u @ d + c + kappa * u @ u + 1e-9


def test_the_space_is_that_of_the_kernel():
    """With a Gaussian kernel R is 1; points of two colours that no line divides."""
    rng = np.random.default_rng(1)
    lists = [Round((rng.normal(size=(2, 1)) * 0.1 + [[0.0], [3.0 * s]]).astype(np.float32), np.array([1.0, 0.0]), t)
             for t, s in enumerate(rng.choice([-1.0, 1.0], 150))]  # fmt: skip
    runs = [mistakes(perceptron(1, 40, Random(seed), Gaussian(0.5)), lists) for seed in SEEDS]
    centre = Gaussian(0.5)(np.zeros((1, 1), np.float32), np.concatenate([r.X for r in lists]))[0]
    gaps = centre[0::2] - centre[1::2]  # u along the image of 0, of length 1
    assert np.cumsum(runs, axis=1).mean(axis=0)[-1] <= random_removal_bound(1.0, 1.0 / gaps.min(), 0.0, 40)


@pytest.mark.parametrize("removal", ["oldest", "random", "smallest", "projection"])
@pytest.mark.parametrize("budget", [1, 6])
def test_a_budget_of_documents_has_no_mistake_bound(removal, budget):
    """Every round is a mistake, under every rule, although margin and radius do not change."""
    learner = kernel_perceptron(budget + 1, kernel="linear", budget=budget, removal=removal, metric="ndcg", eta=1.0)
    seen = []
    for _ in range(60):
        (round,) = forgotten_lists(learner, budget + 1, 1)
        assert not learner.scores(round.X).any()
        (turn,) = play(learner, [round], feedback.full)
        assert turn.loss > 0.0
        seen.append(round)
    data = Rounds.from_arrays(
        np.concatenate([r.X for r in seen]), np.concatenate([r.labels for r in seen]), group=[2] * 60
    )
    gamma = margin(np.ones(budget + 1), data)
    assert gamma == pytest.approx(2.0 / sqrt(budget + 1.0))
    assert len(seen) > bound_for_any_eta(1.0, 0.0, 1.0 / gamma, 1.0)  # what Algorithm 2 keeps without a budget
