import numpy as np
import pytest

from ranktron import DataError, Impressions, Rounds
from ranktron.data.impressions import make_impressions

LOG = {"clicks": [0, 1, 0, 1], "qid": ["a", "b", "a", "b"], "position": [1, 2, 2, 1]}


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"position": None}, "there are no positions: pass position="),
        ({"qid": None}, "there are no impressions"),
        ({"position": [1, 2, 1, 1]}, "impression a: two documents stand at position 1"),
        ({"position": [0, 2, 2, 1]}, "from 1 on; row 0 has 0"),
        ({"position": [1, 2.5, 2, 1]}, "row 1 has 2.5"),
        ({"position": [1, np.nan, 2, 1]}, "row 1 has nan"),
        ({"position": [1, 2, 2]}, "one number per row: 4 rows"),
        ({"clicks": [0, -1, 0, 1]}, "row 1 has -1"),
        ({"clicks": [0, "x", 0, 1]}, "clicks must hold numbers"),
        ({"propensity": [1, 0, 1, 1]}, "propensity is the probability .* seen .* above 0 and at most 1; row 1 has 0"),
        ({"exploration": [1, 1, 1, 1.5]}, "exploration is the probability .* shown .* row 3 has 1.5"),
        ({"item": [5, 6, 5, 7]}, "impression a: two rows are of item 5"),
        ({"query": ["q", "q", "r", "q"]}, "impression a has more than one query"),
        ({"ranker": [1, 1, 1, 2]}, "impression b has more than one ranker"),
    ],
)
def test_a_log_that_cannot_be_is_refused_in_a_sentence(changed, complaint):
    with pytest.raises(DataError, match=complaint):
        Impressions.from_arrays(**{**LOG, **changed})


def test_rows_stand_as_those_of_rounds_with_the_same_ids():
    rng = np.random.default_rng(0)
    qid, position = rng.permutation(np.repeat(np.arange(20), 5)), np.empty(100, int)
    for q in range(20):
        position[qid == q] = rng.permutation(5) + 1
    X, clicks = np.arange(100.0)[:, None], rng.integers(2, size=100)
    item = rng.permutation(100)
    rounds = Rounds.from_arrays(X, clicks, qid)
    log = make_impressions(rounds, position, item=item)
    rows = rounds.X[:, 0].astype(int)
    assert np.array_equal(log.position, position[rows])
    assert np.array_equal(log.item, item[rows])
    assert np.array_equal(log.gains, clicks[rows])
    assert np.array_equal(log.ids, rounds.qids)
    assert np.array_equal(log.offsets, rounds.offsets)


def test_each_impression_stands_from_the_top():
    log = Impressions.from_arrays(**LOG, exploration=[0.1, 0.2, 0.3, 0.4])
    one, other = log
    assert one.items.tolist() == [0, 1]
    assert other.items.tolist() == [1, 0]
    assert other.gains.tolist() == [1.0, 1.0]
    assert other.propensities.tolist() == [0.4, 0.2]
    assert log.click_through().tolist() == [0.5, 0.5]


def test_a_document_is_known_again_by_query_and_item():
    log = Impressions.from_arrays(**LOG, query=["q", "q", "q", "q"], item=["x", "y", "y", "x"])
    x, y = log.documents()[:2]
    assert log.documents().tolist() == [x, y, y, x]
    assert x != y
    with pytest.raises(DataError, match="takes item="):
        Impressions.from_arrays(**LOG, query=0).documents()
