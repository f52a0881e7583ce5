"""Feature ranges of a ranker in use: how far the features of recent lists are from those that it was trained on.

`rank` only appends a reference to the list's features. Once a second the last few of them are counted, by bins between
the quantiles of the training data. Nothing of it is stored: the counts begin again at a start.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from ranktron.data.feature_ranges import BINS, DOCUMENTS, MISSING, SHOWN, FeatureRanges, Means, bin_shares, thin
from ranktron.data.rounds import Rounds
from ranktron.store.messages import FeatureDistance
from ranktron.types import Floats, Matrix

_logger = logging.getLogger("ranktron.store")

WAITING = 16  # lists that wait to be counted; older ones are dropped
LARGEST = 8_192  # values of a list that are kept, 32 kB
HALF = 500  # lists of a half window: distances are those of the last 500 to 1,000 lists that were counted
NEEDED = 100  # lists before distances are shown
OWN = 200  # lists from which a ranker that was not trained takes the ranges
OWN_VALUES = 1 << 18  # values of these lists, 1 MB


class ShareSums(NamedTuple):
    """Sums over lists of the shares of documents in each bin, and of their squares."""

    lists: int
    total: Floats
    squares: Floats

    @classmethod
    def zero(cls, features: int) -> ShareSums:
        return cls(0, np.zeros((features, BINS)), np.zeros((features, BINS)))

    def __add__(self, other: ShareSums) -> ShareSums:  # type: ignore[override]
        return ShareSums(self.lists + other.lists, self.total + other.total, self.squares + other.squares)

    def means(self) -> Means:
        """The means over lists."""
        return Means.of_sums(self.total, self.squares, np.full(self.total.shape, self.lists))


class FeatureWindow:
    """Compares the features of the last lists with those of the training data.

    Without a model's ranges, the first 200 lists that are counted stand for the training data.

    Parameters
    ----------
    ranges : FeatureRanges, optional
        The ranges of the model.
    names : sequence of str
        The names of the features.

    Examples
    --------
    >>> window = FeatureWindow(None, ["price"])
    >>> rng = np.random.default_rng(0)
    >>> for number in range(400):
    ...     window.note(rng.normal(size=(10, 1)).astype(np.float32) + 5.0 * (number >= 200))
    ...     window.count()
    >>> window.reference, window.lists, window.distances()[0].distance > 1.0
    ('first lists', 200, True)
    """

    def __init__(self, ranges: FeatureRanges | None, names: Sequence[str]) -> None:
        self._names = names  # fixed
        self._trained = ranges is not None  # whether the ranges are those of the model; fixed
        self._ranges = ranges  # what lists are compared with; count, once, if the model has none
        self._waiting: deque[Matrix] = deque(maxlen=WAITING)  # features of the last lists, not counted yet; note, count
        self._own: list[Matrix] = []  # first lists of a ranker without ranges, until these are known; count
        self._before = self._now = ShareSums.zero(0 if ranges is None else len(ranges.columns))  # halves; count
        self.counted_at = 0.0  # when lists were counted last; count
        self._pages: set[int] = set()  # hashes of the lists of the present half, so that each counts once; count
        self._reported: frozenset[int] = frozenset()  # features that had left at the last report; report

    def note(self, X: Matrix) -> None:
        """Remembers the features of a list, neither imputed nor scaled, until they are counted."""
        if X.size > LARGEST:
            rows = max(1, LARGEST // X.shape[1])
            X = X[:: -(-len(X) // rows)].copy()
        self._waiting.append(X)

    @property
    def waiting(self) -> int:
        """The number of lists that wait to be counted."""
        return len(self._waiting)

    @property
    def reference(self) -> Literal["training data", "first lists"] | None:
        """What lists are compared with; None as long as a ranker without ranges has seen fewer than 200."""
        return None if self._ranges is None else "training data" if self._trained else "first lists"

    @property
    def lists(self) -> int:
        """The number of lists in the window."""
        return self._before.lists + self._now.lists

    def count(self, now: float = 0.0) -> None:
        """Counts the lists that wait at the monotonic time `now`; a page that is shown again counts once."""
        self.counted_at = now
        lists = []
        while self._waiting:
            X = self._waiting.popleft()
            page = hash(X.tobytes())
            if page not in self._pages:
                self._pages.add(page)
                lists.append(X)
        if not lists:
            return
        if self._ranges is None:
            self._collect(lists)
            return
        ranges, sample = self._ranges, _stack(lists)
        shares = bin_shares(sample.X[:, ranges.columns], sample.offsets, ranges.quantiles).astype(np.float64)
        self._now += ShareSums(len(lists), shares.sum(axis=0), (shares**2).sum(axis=0))
        if self._now.lists >= HALF:
            self._before, self._now, self._pages = self._now, ShareSums.zero(len(ranges.columns)), set()

    def _collect(self, lists: Sequence[Matrix]) -> None:
        """Collects the first lists of a ranker without ranges, until there are enough of them."""
        rows = max(1, min(DOCUMENTS, OWN_VALUES // (OWN * len(self._names))))
        self._own += [X[:: -(-len(X) // rows)].copy() for X in lists]
        if len(self._own) >= OWN:
            self._ranges = FeatureRanges.from_sample(_stack(self._own), labelled=False)
            self._own, self._pages, self._now = [], set(), ShareSums.zero(len(self._ranges.columns))
            self._before = self._now

    def means(self) -> Means | None:
        """The mean shares of each bin; None as long as fewer than 100 lists have been counted."""
        return None if self._ranges is None or self.lists < NEEDED else (self._before + self._now).means()

    def distances(self) -> list[FeatureDistance]:
        """The distance of each feature; none as long as fewer than 100 lists have been counted."""
        means, ranges = self.means(), self._ranges
        if means is None or ranges is None:
            return []
        names = [self._names[j] for j in ranges.columns.tolist()]
        left = {j: ranges.drift(means, j, names[j]).detail for j in ranges.left(means).tolist()}
        rows = zip(names, ranges.distances(means.mean).tolist(), means.mean[:, MISSING].tolist(), strict=True)
        return [FeatureDistance(*row, left.get(j, "")) for j, row in enumerate(rows)]

    def report(self, ranker: str) -> None:
        """Logs features that have left the training data since the last report."""
        means, ranges = self.means(), self._ranges
        if means is None or ranges is None:
            return
        left = ranges.left(means).tolist()
        new = [j for j in left if j not in self._reported]
        if new:
            shown = [str(ranges.drift(means, j, self._names[ranges.columns[j]])) for j in new[:SHOWN]]
            text = "; ".join(shown) + (f"; {len(new) - SHOWN} more" if len(new) > SHOWN else "")
            subject = "1 feature has" if len(left) == 1 else f"{len(left)} features have"
            message = "ranker %s: %s left its %s, by the last %d lists: %s"
            _logger.warning(message, ranker, subject, self.reference, self.lists, text)
        self._reported = frozenset(left)


def _stack(lists: Sequence[Matrix]) -> Rounds:
    """Lists as a sample of queries without labels."""
    offsets = np.concatenate(([0], np.cumsum([len(X) for X in lists]))).astype(np.int64)
    stacked = np.concatenate(lists)
    rounds = Rounds(stacked, np.zeros(len(stacked)), offsets, np.arange(len(lists)))
    return thin(rounds, np.arange(len(lists)))
