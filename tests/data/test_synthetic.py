from itertools import islice

import numpy as np
import pytest

from ranktron import DataError
from ranktron.data.synthetic import Adversary, Separable, WebSearch


@pytest.mark.parametrize("margin", [0.01, 0.3, 2.0])
def test_separable_lists_have_the_margin(margin):
    data = Separable(margin=margin, seed=4)
    assert np.linalg.norm(data.ranker) == pytest.approx(1.0)
    margins = [data.margin_of(round) for round in islice(data, 200)]
    assert min(margins) >= margin
    assert min(margins) < 1.5 * margin  # and not much more than that


def test_grades_are_uniform_and_gaussian():
    lists = Separable().rounds(500)
    shares = np.bincount(lists.labels.astype(int)) / len(lists.labels)
    assert shares == pytest.approx(np.full(5, 0.2), abs=0.02)


def test_streams_are_seeded_and_prefixes_agree():
    for data in (Separable(seed=1), WebSearch(seed=1, features=10)):
        short, long = data.rounds(3), data.rounds(5)
        assert (short.X == long[:3].X).all()
        assert (short.labels == long[:3].labels).all()
        assert (data.rounds(2, skip=3).X == long[3:].X).all()
    assert (Separable(seed=1).rounds(1).X != Separable(seed=2).rounds(1).X).any()


def test_web_search_has_its_shape():
    lists = WebSearch().rounds(300)
    shares = np.bincount(lists.labels.astype(int), minlength=5) / len(lists.labels)
    assert lists.n_features == 136
    assert np.diff(lists.offsets).mean() == pytest.approx(120, abs=3)
    assert shares == pytest.approx([0.52, 0.32, 0.13, 0.02, 0.01], abs=0.04)


@pytest.mark.parametrize(
    "call",
    [
        lambda: Separable(documents=2.5),
        lambda: Separable(features=1),
        lambda: Separable(seed=-1),
        lambda: Separable(margin=1e300),
        lambda: Separable(margin=np.nan),
        lambda: Separable(margin=0.0),
        lambda: Separable(grades=1),
        lambda: Separable(margin=1e-7).rounds(20),
        lambda: Separable().rounds(-1),
        lambda: Separable().rounds(0),
        lambda: Separable().rounds(1, skip=-1),
        lambda: WebSearch(features=-1),
        lambda: WebSearch(features=0),
        lambda: WebSearch(documents=1.5),
        lambda: WebSearch(seed=-1),
        lambda: WebSearch().rounds(2.5),
        lambda: Adversary(radius=1e200, margin=1e199),
        lambda: Adversary(radius=1.0, margin=1e-200),
        lambda: Adversary(documents=1),
    ],
)
def test_what_cannot_be_simulated_is_refused(call):
    with pytest.raises(DataError, match=r"must be|needs|rounded"):
        call()


def test_a_margin_as_long_as_32_bits_hold_is_verified():
    data = Separable(margin=1e37, documents=4, features=3)
    lists = data.rounds(3)
    assert np.isfinite(lists.X).all()
    assert min(map(data.margin_of, lists)) >= 1e37
    assert Adversary(radius=1e-20, margin=1e-21).rounds_to_come == 99
