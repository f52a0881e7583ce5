from typing import NamedTuple

import pytest

from ranktron import DataError
from ranktron.dask.tasks import common_features
from ranktron.data.io.parts import FeatureNumbers


class Summary(NamedTuple):
    """As much of a part's summary as counts here."""

    features: FeatureNumbers


def summary(*names, width=3, first_index=1):
    return Summary(FeatureNumbers(width, first_index, names or None, False))


def test_named_features_are_those_of_every_part_in_the_order_of_the_first():
    found = common_features([summary("a", "b", width=2), summary("b", "a", width=2)], ["x.csv", "y.csv"])
    assert found == FeatureNumbers(2, 1, ("a", "b"), False)
    with pytest.raises(DataError, match=r"y\.csv: it has other features than x\.csv: b, c$"):
        common_features([summary("a", "b"), summary("a", "c")], ["x.csv", "y.csv"])
    with pytest.raises(DataError, match=r"y\.csv: it has other features than x\.csv: a"):
        common_features([summary("a"), summary()], ["x.csv", "y.csv"])


def test_numbered_features_reach_from_the_lowest_to_the_highest_of_all_parts():
    found = common_features([summary(width=3, first_index=1), summary(width=5, first_index=0)], ["x.txt", "y.txt"])
    assert found == FeatureNumbers(5, 0, None, False)
    found = common_features([summary(width=5, first_index=1), summary(width=2, first_index=0)], ["x.txt", "y.txt"])
    assert found == FeatureNumbers(6, 0, None, False)
