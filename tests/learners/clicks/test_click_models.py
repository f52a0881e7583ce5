"""Simulated users: what they click is what their probabilities say, and the same in every replay."""

from itertools import product

import numpy as np
import pytest

import ranktron
from ranktron import DataError, Ranking, Round
from ranktron.kernels.random_numbers import CLICKS, PLACKETT_LUCE, stream_origin, uniform
from ranktron.learners import feedback, hinge_perceptron
from ranktron.learners.checks import same
from ranktron.learners.clicks.click_models import USERS

LABELS = np.array([0.0, 2.0, 1.0, 2.0, 0.0, 1.0])
MODELS = {
    "perfect": feedback.cascade("perfect", 3),
    "navigational": feedback.cascade("navigational", 3),
    "navigational, after a click": feedback.cascade("navigational", 3, stop="click"),
    "informational": feedback.cascade("informational", 3),
    "informational of 4 shown": feedback.cascade("informational", 3, k=4),
    "position-based": feedback.position_based(eta=0.7, noise=0.1, trust=0.3, grades=3),
    "dependent": feedback.dependent_click((0.9, 0.5, 0.2), noise=0.1, grades=3),
    "dynamic Bayesian": feedback.dynamic_bayesian(0.8, 0.7, 0.1, grades=3),
}


def clicks_of(model, number, labels=LABELS):
    round = Round(np.ones((len(labels), 1), np.float32), labels, "q")
    return model(round, Ranking(np.arange(len(labels)), np.zeros(len(labels)), number)).labels


def enumerated(model, labels):
    """P(click pattern), by walking down the list once for every pattern: the user goes on, or has left."""
    click, after_click, after_skip = model.probabilities(labels[: model.k])
    chance = {}
    for pattern in product((0, 1), repeat=len(click)):
        reading, gone = 1.0, 0.0  # the probability of this pattern so far, by whether the user still reads
        for place, clicked in enumerate(pattern):
            gone *= 1 - clicked
            reading *= click[place] if clicked else 1 - click[place]
            leaves = 1 - (after_click if clicked else after_skip)[place]
            reading, gone = reading * (1 - leaves), gone + reading * leaves
        chance[pattern] = reading + gone
    return chance


@pytest.mark.parametrize("name", MODELS)
def test_users_click_as_often_as_enumeration_says(name):
    model, n = MODELS[name], 20_000
    drawn = np.array([clicks_of(model, number) for number in range(n)])
    chance = enumerated(model, LABELS)
    assert sum(chance.values()) == pytest.approx(1.0)
    found = dict.fromkeys(chance, 0)
    for pattern in drawn.astype(int):
        found[tuple(pattern)] += 1
    for pattern, p in chance.items():
        assert abs(found[pattern] / n - p) < 6 * np.sqrt(p * (1 - p) / n) + 1e-9
    marginal = sum(p * np.array(pattern) for pattern, p in chance.items())
    assert model.click_probabilities(LABELS) == pytest.approx(marginal, abs=1e-12)


def test_the_probabilities_are_those_of_the_formulas():
    ranks, relevance = np.arange(1.0, 7.0), LABELS / 2
    extra = 0.1 + 0.3 / ranks
    expected = ranks**-0.7 * (extra + (1 - extra) * relevance)
    assert MODELS["position-based"].click_probabilities(LABELS) == pytest.approx(expected)
    for stop, after_skip in (("examined", [0.8, 0.1, 0.5]), ("click", [1.0, 1.0, 1.0])):
        given = feedback.cascade("navigational", 3, stop=stop).probabilities([0, 2, 1])
        for row, wanted in zip(given, ([0.05, 0.95, 0.5], [0.8, 0.1, 0.5], after_skip), strict=True):
            assert row == pytest.approx(wanted)
    click, after_click, after_skip = MODELS["dynamic Bayesian"].probabilities([2, 1])
    assert click == pytest.approx([1.0, 0.55])
    assert after_click == pytest.approx([0.8 * 0.3, 0.8 * 0.65])
    assert after_skip == pytest.approx([0.8, 0.8])
    assert MODELS["dependent"].probabilities([2, 2, 2, 2])[1] == pytest.approx([0.9, 0.5, 0.2, 0.2])


@pytest.mark.parametrize("name", MODELS)
def test_a_replay_repeats_the_clicks_and_other_seeds_do_not(name):
    model = MODELS[name]
    again = type(model)(**{f: getattr(model, f) for f in model.__dataclass_fields__ if f[0] != "_"})
    assert model == again
    first = [clicks_of(model, number).tolist() for number in range(50)]
    assert [clicks_of(again, number).tolist() for number in reversed(range(50))] == first[::-1]
    other = type(model)(**{f: getattr(model, f) for f in model.__dataclass_fields__ if f[0] != "_"} | {"seed": 1})
    assert [clicks_of(other, number).tolist() for number in range(50)] != first


def test_users_and_rankers_of_one_seed_draw_apart():
    """Equal numbers would make clicks depend on what was drawn to be shown."""
    a, b = (
        np.array(
            [[uniform(np.uint64(stream_origin(3, number, stream)), i) for i in range(4)] for number in range(5_000)]
        )
        for stream in (CLICKS, PLACKETT_LUCE)
    )
    assert abs(np.corrcoef(a.T, b.T)[:4, 4:]).max() < 6 / np.sqrt(len(a))


def test_what_was_shown_is_in_the_feedback_in_its_order():
    round = Round(np.ones((4, 1), np.float32), [1, 0, 0, 1], "q")
    items, clicks = feedback.cascade("perfect", k=3)(round, Ranking(np.array([3, 2, 0, 1]), np.zeros(4), 0))
    assert (items.tolist(), clicks.tolist()) == ([3, 2, 0], [1.0, 0.0, 1.0])


@pytest.mark.parametrize("grades", [2, 3, 4, 5, 7])
def test_any_number_of_grades_is_known_between_the_published_ends(grades):
    for user, (low, high) in {"perfect": (0, 1), "navigational": (0.05, 0.95), "informational": (0.4, 0.9)}.items():
        model = feedback.cascade(user, grades)
        assert (len(model.click), model.click[0], model.click[-1]) == (grades, low, high)
        assert list(model.click) == sorted(model.click)
    assert feedback.cascade("perfect", 4).click == pytest.approx((0.0, 0.2 + 0.2 / 3, 0.4 + 0.4 * 2 / 3, 1.0))
    between = feedback.cascade("perfect", 3)
    assert between.click_probabilities([0.5]).tolist() == [0.25]


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: feedback.cascade("curious"), "no cascade user 'curious'; choose from perfect, nav"),
        (lambda: feedback.cascade("perfect", grades=1), "grades must be a whole number of at least 2"),
        (lambda: feedback.cascade("perfect", stop="never"), "after a click"),
        (lambda: feedback.cascade("perfect", k=0), "at least 1"),
        (lambda: feedback.cascade("perfect", seed=-1), "the seed"),
        (lambda: feedback.position_based(eta=-1.0), "at least 0"),
        (lambda: feedback.position_based(noise=0.7, trust=0.4), "at most 1"),
        (lambda: feedback.dependent_click(1.5), "between 0 and 1"),
        (lambda: feedback.dynamic_bayesian(gamma=2.0), "between 0 and 1"),
        (lambda: feedback.click_model("bot", 2), "no simulated user 'bot'; choose from perfect"),
        (lambda: clicks_of(feedback.cascade("perfect"), 0), "a label of 2 is not among the 2 grades 0 to 1"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(make, complaint):
    with pytest.raises(DataError, match=complaint):
        make()


def test_play_takes_any_of_them_and_repeats_itself():
    lists = ranktron.synthetic.Separable(grades=3).rounds(30)
    for name in USERS:
        one, two = (hinge_perceptron(lists.n_features) for _ in range(2))
        for learner in (one, two):
            turns = list(ranktron.play(learner, lists, feedback.click_model(name, 3)))
        assert same(one.state(), two.state())
        assert all(len(turn.feedback.items) == 10 for turn in turns)
