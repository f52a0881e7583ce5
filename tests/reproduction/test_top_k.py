"""What section 6 observed, on OHSUMED: shorter runs than those of the documentation, and few seeds."""

from functools import cache

import numpy as np
import pytest

from ranktron import read
from ranktron.learners import TopK, online_listnet, top_k_ranker
from ranktron.learners.steps import InversePower
from ranktron.surrogates import SmoothDCG
from reproduction.theory.top_k_games import Outcome, random_ndcg, trial

claim = pytest.mark.claim
pytestmark = pytest.mark.data
ROUNDS = 30_000


@cache
def fold(folder, number):
    return tuple(read(folder / "ohsumed-letor3" / f"Fold{number}" / f"{part}.txt.gz") for part in ("train", "test"))


@cache
def outcome(folder, name):
    """Mean outcome over three folds."""
    runs = [trial(LEARNERS[name](45, i), *fold(folder, i), ROUNDS, i) for i in (1, 2, 3)]
    return Outcome(*np.mean(runs, axis=0))


def reached(folder, name):
    """Mean test NDCG@10 of the served weights."""
    return outcome(folder, name).served


@cache
def chance(folder):
    return np.mean([random_ndcg(fold(folder, i)[1]) for i in (1, 2, 3)])


def gain(folder, name):
    """The share of full feedback's gain over random rankings that a learner keeps."""
    full = reached(folder, "listnet")
    return (reached(folder, name) - chance(folder)) / (full - chance(folder))


LEARNERS = {
    "listnet": lambda d, seed: online_listnet(d, 0.1),
    "recommended": lambda d, seed: top_k_ranker(d, preset="recommended", explore=1.0, floor=0.0, seed=seed),
    "ranksvm": lambda d, seed: top_k_ranker(d, seed=seed),
    "squared": lambda d, seed: top_k_ranker(d, "squared", 1, "paper", seed=seed),
    "kl": lambda d, seed: top_k_ranker(d, "kl", 1, "paper", seed=seed),
    "smooth-dcg": lambda d, seed: top_k_ranker(d, "smooth-dcg", 1, "paper", seed=seed),
    "smooth-dcg as printed": lambda d, seed: TopK(
        d, SmoothDCG(printed=True), 1, InversePower(0.1, 1 / 3), InversePower(0.01, 2 / 3), radius=0.3, seed=seed
    ),
    "squared, small steps": lambda d, seed: top_k_ranker(d, "squared", 1, "paper", eta=1e-4, seed=seed),
    "squared, large steps": lambda d, seed: top_k_ranker(d, "squared", 1, "paper", eta=1.0, seed=seed),
}


def test_a_few_thousand_rounds_are_far_better_than_chance(data_dir):
    train, test = fold(data_dir, 1)
    assert (
        trial(top_k_ranker(45, preset="recommended", explore=1.0, floor=0.0), train, test, 5_000, 0).served
        > random_ndcg(test) + 0.05
    )


@claim("TOPK", "32 s6")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["ranksvm", "squared", "kl"])
def test_what_the_convex_surrogates_show_is_far_above_random(data_dir, name):
    """Far: in every fold by more than a twentieth, what is shown while learning, not only what is served at the end."""
    for i in (1, 2, 3):
        shown = trial(LEARNERS[name](45, i), *fold(data_dir, i), ROUNDS, i).shown
        assert shown > random_ndcg(fold(data_dir, i)[0]) + 0.05


@pytest.mark.slow
def test_what_the_convex_surrogates_serve_cannot_be_told_apart(data_dir):
    """The paper has RankSVM above KL above squared; here they differ by less than one seed differs from another."""
    gains = [gain(data_dir, name) for name in ("ranksvm", "kl", "squared")]
    assert max(gains) - min(gains) < 0.3
    assert min(gains) > 0.4


@claim("TOPK", "30 s6")
@pytest.mark.slow
def test_what_full_feedback_shows_is_best(data_dir):
    for name in ("recommended", "ranksvm", "squared", "kl", "smooth-dcg"):
        assert outcome(data_dir, name).shown < outcome(data_dir, "listnet").shown
        assert outcome(data_dir, name).served < outcome(data_dir, "listnet").served + 0.01


@pytest.mark.slow
def test_the_recommended_setting_keeps_most_of_the_gain(data_dir):
    assert gain(data_dir, "recommended") > 0.85


@pytest.mark.slow
def test_smooth_dcg_is_poor_and_worse_than_chance_with_the_sign_as_printed(data_dir):
    """Poor beside our recommended setting; beside the paper's convex losses see the report's rows."""
    assert gain(data_dir, "smooth-dcg") < gain(data_dir, "recommended") - 0.1
    assert gain(data_dir, "smooth-dcg as printed") < 0.0
    printed, chance_shown = (outcome(data_dir, "smooth-dcg as printed").shown, chance(data_dir))
    assert printed < chance_shown


@claim("TOPK", "34 s6")
@pytest.mark.slow
def test_steps_much_smaller_than_the_exploration_help(data_dir):
    small, large = (outcome(data_dir, f"squared, {size} steps").shown for size in ("small", "large"))
    assert small > large + 0.05
