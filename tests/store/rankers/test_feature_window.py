"""How far the features that a ranker is given are from those that it was trained on."""

import logging
from dataclasses import replace

import numpy as np
import pytest

import ranktron
from ranktron.data.feature_ranges import FeatureRanges, Means, bin_shares
from ranktron.data.synthetic import WebSearch
from ranktron.store.config import StoreConfig
from ranktron.store.rankers.feature_window import HALF, LARGEST, NEEDED, OWN, WAITING, FeatureWindow

LISTS = WebSearch(features=5, documents=12).rounds(900)
RANGES = FeatureRanges.from_rounds(LISTS[:300])
NAMES = LISTS.feature_names or ("1", "2", "3", "4", "5")


def fill(window, first, last, change=lambda X: X):
    for round in LISTS[first:last]:
        window.note(change(round.X.copy()))
        window.count()


def times_1000(X):
    X[:, 1] *= 1000.0
    return X


def test_clean_lists_are_near_and_others_are_not():
    window = FeatureWindow(RANGES, NAMES)
    fill(window, 300, 300 + NEEDED - 1)
    assert window.distances() == []
    fill(window, 300 + NEEDED, 700)
    near = window.distances()
    assert [each.feature for each in near] == list(NAMES)
    assert max(each.distance for each in near) < 0.1
    assert {each.left for each in near} == {""}
    fill(window, 300, 700, times_1000)
    far = window.distances()
    assert [each.left != "" for each in far] == [False, True, False, False, False]
    assert far[1].distance > 1.0


def test_distance_is_that_of_the_mean_shares():
    window = FeatureWindow(RANGES, NAMES)
    fill(window, 300, 500)
    lists = LISTS[300:500]
    means = Means.over(bin_shares(lists.X, lists.offsets, RANGES.quantiles))
    expected = RANGES.distances(means.mean)
    assert [each.distance for each in window.distances()] == pytest.approx(expected.tolist(), rel=1e-4)


def test_the_window_forgets():
    window = FeatureWindow(RANGES, NAMES)
    for turn in range(2 * HALF + NEEDED):
        window.note(times_1000(LISTS[turn % 900].X + np.float32(1e-3 * (turn // 900))))
        window.count()
    assert window.distances()[1].left
    assert HALF <= window.lists <= 2 * HALF
    for turn in range(2 * HALF):
        window.note(LISTS[turn % 900].X + np.float32(1e-3 * (turn // 900)))
        window.count()
    assert not window.distances()[1].left


def test_one_page_never_suffices_however_often_it_is_shown():
    window = FeatureWindow(RANGES, NAMES)
    for _ in range(5 * NEEDED):
        window.note(times_1000(LISTS[0].X.copy()))
        window.count()
    assert window.lists == 1
    assert window.distances() == []


def test_without_a_model_the_first_lists_are_compared_with():
    window = FeatureWindow(None, NAMES)
    fill(window, 0, OWN - 1)
    assert (window.reference, window.lists) == (None, 0)
    fill(window, OWN, 500)
    assert window.reference == "first lists"
    assert {each.left for each in window.distances()} == {""}
    fill(window, 500, 800, times_1000)
    assert [bool(each.left) for each in window.distances()] == [False, True, False, False, False]


def test_missing_values_are_a_bin_of_their_own():
    window = FeatureWindow(RANGES, NAMES)

    def lose(X):
        X[::2, 3] = np.nan
        return X

    fill(window, 300, 600, lose)
    found = window.distances()[3]
    assert found.missing == pytest.approx(0.5, abs=0.05)
    assert "is missing in 5" in found.left


def test_memory_is_bounded_and_nothing_is_counted_while_lists_are_ranked():
    window = FeatureWindow(None, [str(j) for j in range(1000)])
    for _ in range(100):
        window.note(np.zeros((1000, 1000), np.float32))
    assert window.waiting == WAITING
    assert all(X.size <= LARGEST and X.base is None for X in window._waiting)
    assert window.lists == 0
    rng = np.random.default_rng(0)
    for _ in range(OWN - 1):
        window.note(rng.normal(size=(1000, 1000)).astype(np.float32)[:9])
        window.count()
    assert sum(X.nbytes for X in window._own) <= 1 << 20


def test_a_feature_that_leaves_is_logged_once(caplog):
    window = FeatureWindow(RANGES, NAMES)
    with caplog.at_level(logging.WARNING, "ranktron.store"):
        fill(window, 300, 500)
        window.report("shop")
        assert caplog.messages == []
        fill(window, 500, 900, times_1000)
        window.report("shop")
        window.report("shop")
    (message,) = caplog.messages
    assert message.startswith("ranker shop: 1 feature has left its training data, by the last ")
    assert " lists: '2' is" in message


def trained_model():
    lists = LISTS[:300]
    return ranktron.HingePerceptron().fit(lists.X, lists.labels, group=np.diff(lists.offsets)).model_


def test_a_store_compares_what_it_ranks_with_the_training_data(monkeypatch):
    monkeypatch.setattr("ranktron.store.engine.CLOSE_INTERVAL", 0.0)
    with ranktron.open(":memory:") as store:
        shop = store.ranker("shop", model=trained_model())
        for round in LISTS[300:500]:
            shop.rank({str(i): row.tolist() for i, row in enumerate(times_1000(round.X.copy()))})
            with store._lock:
                store._engine.close_rounds()
        found = shop.distances
        assert (found.reference, found.lists) == ("training data", 200)
        assert [each.feature for each in found.features if each.left] == ["2"]
        assert shop.model.ranges.queries == 300


def test_ranges_survive_a_start_and_the_counts_begin_again(tmp_path):
    with ranktron.open(tmp_path) as store:
        shop = store.ranker("shop", model=trained_model())
        answer = shop.rank({"a": [0.0] * 5, "b": [1.0] * 5})
        shop.feedback(answer.id, labels={"a": 1.0, "b": 0.0})
        before = shop.model.to_bytes()
    with ranktron.open(tmp_path) as store:
        shop = store.ranker("shop")
        assert shop.model.to_bytes() == before
        assert (shop.distances.reference, shop.distances.lists) == ("training data", 0)


def test_a_model_with_other_ranges_answers_open_rounds():
    model = trained_model()
    other = replace(model, ranges=FeatureRanges.from_rounds(LISTS[300:600]))
    with ranktron.open(":memory:", config=StoreConfig()) as store:
        shop = store.ranker("shop", model=model)
        shown = shop.rank({"a": [0.0] * 5, "b": [1.0] * 5})
        shop.set_model(other)
        assert shop.feedback(shown.id, labels={"a": 1.0, "b": 0.0}).learned
        assert (shop.model.ranges.quantiles == other.ranges.quantiles).all()
