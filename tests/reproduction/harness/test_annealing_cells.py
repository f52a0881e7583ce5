"""A smoothing that falls, against learners whose smoothing stays."""

import numpy as np
import pytest

from ranktron.data.synthetic import Separable
from ranktron.learners import top_k_ranker
from ranktron.learners.loop import play
from ranktron.surrogates import SmoothDCG
from reproduction.harness.annealing_cells import SCHEDULES, annealed_ranker

LISTS = Separable(documents=6, features=4, margin=0.3, seed=1).rounds(60)


def played(learner, rounds=LISTS):
    for _ in play(learner, rounds, learner.simulated_feedback):
        pass
    return learner


@pytest.mark.parametrize("scaled", [False, True])
def test_the_printed_smoothing_is_the_papers_setting(scaled):
    paper = played(top_k_ranker(4, "smooth-dcg", 1, "paper", seed=3))
    assert (played(annealed_ranker(4, "ε = 0.01", scaled, seed=3)).w == paper.w).all()


@pytest.mark.parametrize("scaled", [False, True])
def test_every_round_is_a_step_on_its_own_surrogate(scaled):
    learner, w, sizes = annealed_ranker(4, "ε falls from 1", scaled, seed=3), np.zeros(4), set()
    for number, round in enumerate(LISTS):
        epsilon = max(0.01, (number + 1.0) ** -0.4)
        ranking = learner.rank(round.X, number)
        first = ranking.order[:1]
        weights = np.zeros(len(round.X))
        weights[first] = 1.0 / ranking.propensities
        labels = round.labels[first]
        gradient = SmoothDCG(epsilon).estimate(ranking.scores, first, labels, weights)[1]
        learner.learn(round.X, ranking, learner.simulated_feedback(round, ranking))
        eta = 0.01 * (number + 1.0) ** (-2.0 / 3.0) * (epsilon / 0.01 if scaled else 1.0)
        w = w - eta * round.X.T @ gradient
        w *= min(1.0, 0.3 / max(np.linalg.norm(w), 1e-300))
        assert learner.w == pytest.approx(w, abs=1e-6)
        w = learner.w.copy()
        sizes.add(learner.surrogate.epsilon)
    assert len(sizes) == len(LISTS)


def test_the_smoothing_ends_where_the_paper_has_it():
    falling = annealed_ranker(2, "ε falls from 1", False, 0)
    assert [falling.smoothed(t).epsilon for t in (0, 99_999, 10**7)] == pytest.approx([1.0, 0.01, 0.01])
    assert falling.smoothed(50_000).epsilon > 0.013
    assert [SCHEDULES["ε = 1"](t) for t in (0, 10**6)] == [1.0, 1.0]
