import sys
from pathlib import Path

import numpy as np
import pytest

from ranktron import DataError
from ranktron.metrics.interleaving import Balanced, PairwisePreference, SampleScored, TeamDraft

sys.path.insert(0, str(Path(__file__).parent))
from enumeration import pages

ABCD, BCDA = (0, 1, 2, 3), (1, 2, 3, 0)


def one_random_click(method, rankings):
    """The expected credits for one click on a document drawn uniformly from the page."""
    total = np.zeros(len(rankings))
    for shown, p in pages(method, rankings):
        for click in np.eye(len(shown.items)):
            total += p * method.credit(shown, click) / len(shown.items)
    return total


def test_balanced_makes_two_pages():
    found = {tuple(shown.items.tolist()): p for shown, p in pages(Balanced(4), (ABCD, BCDA))}
    assert found == {(0, 1, 2, 3): 0.5, (1, 0, 2, 3): 0.5}


def test_balanced_is_unfair_to_abcd_against_bcda():
    first, second = one_random_click(Balanced(4), (ABCD, BCDA))
    assert first - second == pytest.approx(-0.5)


def test_balanced_counts_clicks_down_to_the_lowest():
    shown = Balanced(4).combine([ABCD, (3, 2, 1, 0)], np.random.default_rng(0))
    lowest = shown.items.tolist().index(1)  # 1 stands second with the first ranker and third with the other
    clicks = np.zeros(4)
    clicks[lowest] = 1.0
    clicks[shown.items.tolist().index(0)] += 1.0
    if lowest == 3:
        assert Balanced(4).credit(shown, clicks).tolist() == [2.0, 0.0]
    assert Balanced(4).credit(shown, np.zeros(4)).tolist() == [0.0, 0.0]


def test_a_team_draft_lets_every_ranker_choose_once_in_each_round():
    rankings = ABCD, (3, 2, 1, 0), (2, 3, 0, 1)
    for shown, _ in pages(TeamDraft(3), rankings):
        assert sorted(shown.teams.tolist()) == [0, 1, 2]
        for place, (item, team) in enumerate(zip(shown.items.tolist(), shown.teams.tolist(), strict=True)):
            left = [d for d in rankings[team] if d not in shown.items[:place]]
            assert item == left[0]


def test_abcd_and_cabd_tie_in_a_team_draft_when_only_b_is_relevant():
    total = np.zeros(2)
    for shown, p in pages(TeamDraft(4), (ABCD, (2, 0, 1, 3))):
        total += p * TeamDraft(4).credit(shown, shown.items == 1)
    assert total[0] == pytest.approx(total[1])


def test_team_draft_is_fair_to_abcd_against_bcda():
    np.testing.assert_allclose(one_random_click(TeamDraft(4), (ABCD, BCDA)), 0.5)


def test_rankers_without_documents_are_passed_over():
    shown = TeamDraft(5).combine([[0], [5, 6, 7, 8]], np.random.default_rng(0))
    assert sorted(shown.items.tolist()) == [0, 5, 6, 7, 8]
    assert np.bincount(shown.teams).tolist() == [1, 4]
    shown = Balanced(5).combine([[0], [5, 6, 7, 8]], np.random.default_rng(0))
    assert sorted(shown.items.tolist()) == [0, 5, 6, 7, 8]


def test_sample_scored_ranks_what_is_shown_alone():
    method = SampleScored(k=2, tau=1)
    shown = method.combine([[0, 1, 2, 3], [3, 2, 1, 0]], np.random.default_rng(0))
    assert sorted(shown.items.tolist()) == [0, 3]
    last = shown.items == 3
    assert method.credit(shown, last).tolist() == [0.5, 1.0]


def test_documents_that_a_ranker_lacks_share_the_credit_that_is_left():
    method = SampleScored(k=3, tau=1)
    shown = method.combine([[0], [0, 1, 2]], np.random.default_rng(0))
    total = sum(method.credit(shown, click) for click in np.eye(3))
    np.testing.assert_allclose(total, [1 + 1 / 2 + 1 / 3] * 2)
    assert method.credit(shown, shown.items == 2)[0] == pytest.approx((1 / 2 + 1 / 3) / 2)


def test_bad_input_is_one_sentence():
    rng = np.random.default_rng(0)
    with pytest.raises(DataError, match="exactly two rankings, not 3; TeamDraft"):
        Balanced().combine([[0], [1], [2]], rng)
    with pytest.raises(DataError, match="at least two rankings, not 1"):
        TeamDraft().combine([[0]], rng)
    with pytest.raises(DataError, match="each once; that of ranker 1 is"):
        TeamDraft().combine([[0, 1], [1, 1]], rng)
    shown = TeamDraft().combine([[0, 1], [1, 0]], rng)
    with pytest.raises(DataError, match="1 clicks for 2 documents"):
        TeamDraft().credit(shown, [1])
    with pytest.raises(DataError, match="finite and at least 0"):
        TeamDraft().credit(shown, [1, -1])
    other = PairwisePreference().combine([[0, 1], [1, 0]], rng)
    with pytest.raises(DataError, match="combined by another method"):
        TeamDraft().credit(other, [1, 0])
