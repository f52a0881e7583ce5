"""Theorem 5.2 speaks of every calibrated surrogate: three of them, and one that is not, for comparison."""

import re
from pathlib import Path

import numpy as np
import pytest

from ranktron import DataError
from ranktron.surrogates import CalibratedSquared, Squared
from reproduction.theory.calibrated_games import (
    LINKS,
    CalibratedDivergence,
    expected_loss,
    least_expected_loss,
    unavoidable_regret,
)
from reproduction.theory.top_k_games import Indistinguishable, rtop_1f

claim = pytest.mark.claim
RATES = {"identity": 0.5, "exponential": 4.0, "logistic": 6.0}  # one over the curvature at the minimum, about
PAGE = Path(__file__).parents[3] / "docs" / "theory.md"
GAMES = Indistinguishable(), Indistinguishable(other=True)


@claim("TOPK", "25 Thm5.1")
@pytest.mark.parametrize("link", LINKS)
def test_the_minimiser_orders_documents_by_their_expected_share(link):
    inverse = {"identity": lambda t: t, "exponential": np.log, "logistic": lambda t: np.log(t / (1.0 - t))}[link]
    for game in GAMES:
        _, scores = least_expected_loss(CalibratedDivergence(link), game)
        assert scores == pytest.approx(inverse(game.target), abs=1e-6)
        assert np.argmax(scores) == np.argmax(game.target)


@pytest.mark.parametrize("link", LINKS)
def test_gradients_are_those_of_the_losses(link):
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores, labels = rng.normal(size=3), rng.integers(3, size=3).astype(float)
        loss, gradient = CalibratedDivergence(link)(scores, labels)
        steps = [CalibratedDivergence(link)(scores + 1e-6 * e, labels)[0] - loss for e in np.eye(3)]
        assert gradient == pytest.approx(np.array(steps) / 1e-6, abs=1e-4)
    assert CalibratedDivergence("identity")(scores, labels)[0] == pytest.approx(CalibratedSquared()(scores, labels)[0])
    with pytest.raises(DataError, match="no link"):
        CalibratedDivergence("cosine")


@claim("TOPK", "27 Thm5.2")
@pytest.mark.parametrize("link", LINKS)
def test_whatever_the_scores_one_of_the_games_costs_the_gap(link):
    surrogate = CalibratedDivergence(link)
    gap, least = unavoidable_regret(surrogate), [least_expected_loss(surrogate, game)[0] for game in GAMES]
    assert gap > 0.004

    def worse(scores):
        return max(expected_loss(surrogate, game, scores)[0] - low for game, low in zip(GAMES, least, strict=True))

    for scores in np.random.default_rng(0).normal(scale=2.0, size=(500, 3)):
        assert worse(scores) >= gap - 1e-9
    assert worse(least_expected_loss(surrogate, *GAMES)[1]) == pytest.approx(gap, abs=1e-7)  # and no more than that


@pytest.fixture(scope="module")
def regrets():
    """For each link the gap, and the regret a round on the worse game of RTop-1F and of descent with all labels."""
    T, found = 2000, {}
    for link in LINKS:
        surrogate, blind, told = CalibratedDivergence(link), [], []
        for game in GAMES:
            least = least_expected_loss(surrogate, game)[0]
            played = rtop_1f(T, 0)(game.stream(T, 0))
            blind.append(np.mean([expected_loss(surrogate, game, s)[0] - least for s in list(played)[T // 2 :]]))
            scores, late = np.zeros(3), []
            for t, round in enumerate(game.stream(T, 0), start=1):
                late.append(expected_loss(surrogate, game, scores)[0] - least)
                scores = scores - RATES[link] / (t + 5.0) * surrogate(scores, round.labels)[1]
            told.append(np.mean(late[T // 2 :]))
        found[link] = unavoidable_regret(surrogate), max(blind), max(told)
    return found


@claim("TOPK", "27 Thm5.2")
def test_a_learner_that_sees_one_label_pays_the_gap_and_one_that_sees_all_does_not(regrets):
    for gap, blind, told in regrets.values():
        assert blind >= gap
        assert told < gap / 2.0


def test_the_page_has_what_comes_out(regrets, request):
    head = ["| link | gap | RTop-1F | all labels |", "|---|---|---|---|"]
    lines = [f"| {link} | {gap:.4f} | {blind:.4f} | {told:.4f} |" for link, (gap, blind, told) in regrets.items()]
    wanted = "\n".join(["<!-- calibrated -->", *head, *lines, "<!-- /calibrated -->"])
    text = PAGE.read_text(encoding="utf-8")
    made = re.sub(r"<!-- calibrated -->.*?<!-- /calibrated -->", lambda _: wanted, text, flags=re.DOTALL)
    if request.config.getoption("--write-docs"):
        PAGE.write_text(made, encoding="utf-8")
    assert made == PAGE.read_text(encoding="utf-8"), "run: python -m pytest tests/reproduction/theory --write-docs"


@claim("TOPK", "27 Thm5.2")
def test_where_both_games_have_the_same_minimiser_there_is_no_gap():
    """The squared loss on the labels themselves decomposes, and can be learnt: it knows the marginals alone."""
    assert unavoidable_regret(Squared()) == pytest.approx(0.0, abs=1e-9)
