"""Ranges of features: their distribution in the training data, kept in the model, and how far other data leave it.

Documents of a query are alike, so the query is the unit: each share and each correlation is computed within a query,
and its mean and standard deviation over queries are kept. A change counts as drift if it is large and significant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError, warn
from ranktron.kernels.csr_rows import Sparse
from ranktron.types import Features, Floats, Integers, Matrix

QUERIES, DOCUMENTS = 500, 32  # the sample: evenly spaced queries, and evenly spaced documents of each
VALUES = 1 << 22  # values of the sample, so that there are fewer queries of more than 262 features
MAX_FEATURES = 1_000  # features of which ranges are kept; of more, those that most documents have
ENOUGH = 20  # queries on both sides, fewer than which are never compared
LARGE = 0.25  # population stability index from which a change is large
MOVED_LABELS, MOVED_PARTNER = 0.2, 0.1  # changes of a mean correlation from which they are large
FALSE_ALARMS = 0.01  # probability of a warning about data of the same distribution, by design
QUANTILES = 11  # minimum, deciles, maximum
BELOW, ABOVE, MISSING = 0, QUANTILES, QUANTILES + 1  # bins; those between them lie between two quantiles
BINS = QUANTILES + 2
_PARTNERS = 2  # features with which a feature correlates most
SHOWN = 5  # features that a warning names
_BLOCK = 64  # features whose bins are counted at once
_PRODUCTS = 1_000_000_000  # multiplications to find partners
_RARE = 1e-3  # shares below this count as this one in the population stability index

Table = npt.NDArray[Any]


class Drift(NamedTuple):
    """A feature whose values have left the training data: what changed, and the numbers before and now.

    `kind` is missing, constant, below, above, distribution, labels (the correlation with the labels) or partner (the
    correlation with another feature). `psi` is the population stability index.
    """

    feature: str
    kind: str
    training: float
    data: float
    detail: str
    psi: float = 0.0

    def __str__(self) -> str:
        return f"{self.feature!r} {self.detail}"


class Means(NamedTuple):
    """Means of values over queries, with their standard deviations, and the number of queries."""

    mean: Table
    spread: Table
    queries: Table

    @classmethod
    def over(cls, values: Table) -> Means:
        """The means over the first axis; NaN is no value."""
        known = ~np.isnan(values)
        filled = np.where(known, values, 0.0)
        return cls.of_sums(filled.sum(axis=0), (filled**2).sum(axis=0), known.sum(axis=0))

    @classmethod
    def of_sums(cls, total: Table, squares: Table, queries: Table) -> Means:
        """The means of values between -1 and 1 from their sum and their sum of squares."""
        n = np.maximum(queries, 1)
        mean = total / n
        variance = np.maximum(squares / n - mean**2, 0.0) * (n / np.maximum(n - 1, 1))
        return cls(mean, np.sqrt(variance), queries)

    def distances(self, other: Means) -> Floats:
        """The difference of the means in standard errors, as a normal deviate; 0 where there are too few queries.

        The larger standard deviation counts for both: one side may not vary at all.
        """
        n, m = (np.maximum(each.queries, 1) for each in (self, other))
        error = np.maximum(self.spread, other.spread) * np.sqrt(1.0 / n + 1.0 / m) + 1e-9
        t, df = (other.mean - self.mean) / error, np.maximum(np.minimum(n, m) - 1.0, 1.0)
        # Wallace, Bounds on normal approximations to Student's and the chi-square distributions, 1959
        z = (8.0 * df + 1.0) / (8.0 * df + 3.0) * np.sqrt(df * np.log1p(t * t / df))
        enough = (self.queries >= ENOUGH) & (other.queries >= ENOUGH)
        return np.where(enough, np.copysign(z, t), 0.0)


@dataclass(frozen=True, eq=False)
class FeatureRanges:
    """The distribution of each feature over the documents of the training data.

    Parameters
    ----------
    columns : int64, (features,)
        The features of which ranges are kept: all of them up to 1,000, otherwise those that most documents have.
    queries, documents : int
        The sample from which they were computed.
    quantiles : float32, (features, 11)
        Minimum, deciles and maximum of the known values; NaN without any.
    shares : float32, (features, 13)
        The mean over queries of the share of documents below the minimum, between each two quantiles, above the
        maximum, and without a value.
    spread : float32, (features, 13)
        The standard deviation of these shares over queries.
    partners : int32, (features, 2)
        The places in `columns` of the two features with which a feature correlates most within queries.
    correlations : float32, (features, 3, 3)
        The correlation within a query with the labels and with both partners: its mean over queries, its standard
        deviation, and the number of queries in which it is defined.

    Examples
    --------
    >>> from ranktron.data.synthetic import Separable
    >>> lists = Separable(features=3).rounds(200)
    >>> ranges = FeatureRanges.from_rounds(lists[:100])
    >>> ranges.drifts(lists[100:])
    []
    >>> lists.X[1000:, 1] *= 1000.0
    >>> [(drift.feature, drift.kind) for drift in ranges.drifts(lists[100:])]
    [('2', 'below')]
    """

    columns: Integers
    queries: int
    documents: int
    quantiles: Matrix
    shares: Matrix
    spread: Matrix
    partners: npt.NDArray[np.int32]
    correlations: Matrix

    @classmethod
    def from_rounds(cls, rounds: Rounds, *, labelled: bool = True) -> FeatureRanges:
        """Computes the ranges from a sample: at most 500 queries, and 32 documents of each.

        Parameters
        ----------
        rounds : Rounds
            The training data, neither imputed nor scaled.
        labelled : bool
            Whether the labels are what other data are labelled with, unlike the clicks of a weighted log.
        """
        return cls.from_sample(thin(rounds, sampled_queries(len(rounds), rounds.n_features)), labelled=labelled)

    @classmethod
    def from_sample(cls, sample: Rounds, *, labelled: bool = True) -> FeatureRanges:
        """Computes the ranges from a sample as `thin` takes it.

        Parameters
        ----------
        sample : Rounds
            The sample.
        labelled : bool
            As in `from_rounds`.
        """
        columns = _choose_columns(sample.X)
        sample = _take_columns(sample, columns)
        quantiles = _quantiles(sample.X)
        shares = Means.over(bin_shares(sample.X, sample.offsets, quantiles))
        scores = _standardise(sample.X, sample.offsets)
        partners = _find_partners(scores)
        by_label = _label_correlations(scores, sample.labels if labelled else np.zeros(len(sample.labels)))
        found = [by_label, *_partner_correlations(scores, partners)]
        correlations = np.array([[each.mean, each.spread, each.queries] for each in found], np.float32)
        return cls(
            columns,
            len(sample),
            len(sample.X),
            quantiles,
            shares.mean.astype(np.float32),
            shares.spread.astype(np.float32),
            partners,
            np.ascontiguousarray(correlations.transpose(2, 0, 1)),
        )

    @property
    def constant(self) -> npt.NDArray[np.bool_]:
        """Which of the features have a single value and no missing one."""
        return _constant(self.quantiles, self.shares)

    @property
    def missing(self) -> Matrix:
        """The share of documents without a value of each feature."""
        return self.shares[:, MISSING]

    def drifts(self, rounds: Rounds, names: Sequence[str] | None = None) -> list[Drift]:
        """The features whose values have left the training data, the largest change first.

        There is none if the data or the training data have fewer than 20 queries.

        Parameters
        ----------
        rounds : Rounds
            Queries with the features of the training data, neither imputed nor scaled.
        names : sequence of str, optional
            The names of all features.
        """
        if min(self.queries, len(rounds)) < ENOUGH:
            return []
        sample = _take_columns(thin(rounds, sampled_queries(len(rounds), rounds.n_features)), self.columns)
        quantiles, shares = _quantiles(sample.X), Means.over(bin_shares(sample.X, sample.offsets, self.quantiles))
        if names is None:
            names = rounds.feature_names or [str(j + rounds.first_index) for j in range(rounds.n_features)]
        names = [names[j] for j in self.columns.tolist()]
        constant = _constant(quantiles, shares.mean) & ~self.constant
        places = np.union1d(self.left(shares), np.flatnonzero(constant & self._significant(shares)))
        found = {j: self.drift(shares, j, names[j], quantiles, bool(constant[j])) for j in places.tolist()}
        scores = _standardise(sample.X, sample.offsets)
        by_label, others = _label_correlations(scores, sample.labels), _partner_correlations(scores, self.partners)
        found |= {j: drift for j, drift in self._turned(by_label, names).items() if j not in found}
        found |= {j: drift for j, drift in self._parted(others, names, found).items() if j not in found}
        psi = self.distances(shares.mean).tolist()
        drifts = [drift._replace(psi=psi[j]) for j, drift in sorted(found.items())]
        return sorted(drifts, key=lambda drift: -drift.psi)

    def distances(self, shares: Table) -> Floats:
        """The population stability index of each feature, Σ (p − q) ln(p / q) over its bins.

        Parameters
        ----------
        shares : array of shape (features, 13)
            The shares of other data, by the quantiles of the training data.
        """
        return _stability(self.shares, shares)

    @property
    def _threshold(self) -> float:
        """The normal deviate beyond which a change is significant, among all that are looked at."""
        return _deviate(FALSE_ALARMS / (2.0 * max(len(self.columns), 1) * (BINS + 1 + _PARTNERS)))

    def left(self, shares: Means) -> Integers:
        """The places in `columns` of features whose distribution has changed much and significantly.

        Parameters
        ----------
        shares : Means
            The shares of other data, by the quantiles of the training data.
        """
        return np.flatnonzero(self._significant(shares) & (self.distances(shares.mean) >= LARGE))

    def drift(self, shares: Means, j: int, name: str, quantiles: Table | None = None, constant: bool = False) -> Drift:
        """What has changed in the distribution of a feature.

        Parameters
        ----------
        shares : Means
            The shares of other data, by the quantiles of the training data.
        j : int
            The place of the feature in `columns`.
        name : str
            Its name.
        quantiles : float32, (features, 11), optional
            Minimum, deciles and maximum of the other data.
        constant : bool
            Whether the feature is constant in the other data only.
        """
        own = None if quantiles is None else quantiles[j]
        kind, training, data, detail = _describe(self.shares[j], self.quantiles[j], shares.mean[j], own, constant)
        return Drift(name, kind, training, data, detail, float(_stability(self.shares[j], shares.mean[j])))

    def _significant(self, shares: Means) -> npt.NDArray[np.bool_]:
        before = Means(self.shares, self.spread, np.full(self.shares.shape, self.queries))
        return np.asarray((np.abs(before.distances(shares)) > self._threshold).any(axis=1))

    def _turned(self, by_label: Means, names: Sequence[str]) -> dict[int, Drift]:
        """The features whose correlation with the labels is another one."""
        before = Means(*self.correlations[:, 0].T)
        drifts = {}
        for j in np.flatnonzero(self._moved(before, by_label, MOVED_LABELS)).tolist():
            training, data = float(before.mean[j]), float(by_label.mean[j])
            detail = f"correlates {data:+.2f} with the labels within queries (training: {training:+.2f})"
            drifts[j] = Drift(names[j], "labels", training, data, detail)
        return drifts

    def _parted(self, others: Sequence[Means], names: Sequence[str], found: Mapping[int, Drift]) -> dict[int, Drift]:
        """The features whose correlation with a partner is another one, unless the partner has changed itself.

        Of the features of several such pairs the one that is in most of them is named.
        """
        pairs = {}
        for k, after in enumerate(others):
            before = Means(*self.correlations[:, 1 + k].T)
            for j in np.flatnonzero(self._moved(before, after, MOVED_PARTNER)).tolist():
                partner = int(self.partners[j, k])
                if not {j, partner} & set(found):
                    pairs[j, partner] = float(before.mean[j]), float(after.mean[j])
        drifts: dict[int, Drift] = {}
        while pairs:
            members = [each for pair in pairs for each in pair]
            j = max(sorted(set(members)), key=members.count)
            own = {pair: values for pair, values in pairs.items() if j in pair}
            pair, (training, data) = max(own.items(), key=lambda each: abs(each[1][0] - each[1][1]))
            other = names[pair[0] + pair[1] - j]
            detail = f"correlates {data:+.2f} with {other!r} within queries (training: {training:+.2f})"
            drifts[j] = Drift(names[j], "partner", training, data, detail)
            pairs = {pair: values for pair, values in pairs.items() if j not in pair}
        return drifts

    def _moved(self, before: Means, after: Means, least: float) -> npt.NDArray[np.bool_]:
        """Which mean correlations have changed much and significantly."""
        large = np.abs(after.mean - before.mean) >= least
        moved: npt.NDArray[np.bool_] = large & (np.abs(before.distances(after)) > self._threshold)
        return moved

    def to_dict(self) -> dict[str, Any]:
        """The ranges as a model file stores them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any], n_features: int) -> FeatureRanges:
        """The ranges that `to_dict` stored; refuses others.

        Parameters
        ----------
        stored : mapping
            What the model file holds.
        n_features : int
            The number of features of the model.
        """
        ranges = cls(**stored)
        n = len(ranges.columns)
        shapes = {
            "columns": ("int64", (n,)),
            "quantiles": ("float32", (n, QUANTILES)),
            "shares": ("float32", (n, BINS)),
            "spread": ("float32", (n, BINS)),
            "partners": ("int32", (n, _PARTNERS)),
            "correlations": ("float32", (n, 1 + _PARTNERS, 3)),
        }
        arrays = {name: getattr(ranges, name) for name in shapes}
        fits = (
            all((arrays[name].dtype.name, arrays[name].shape) == shape for name, shape in shapes.items())
            and all(type(each) is int and each >= 0 for each in (ranges.queries, ranges.documents))
            and n <= MAX_FEATURES
            and bool(
                ((ranges.columns >= 0) & (ranges.columns < n_features)).all() and (np.diff(ranges.columns) > 0).all()
            )
            and bool(((ranges.partners >= -1) & (ranges.partners < n)).all())
            and all(np.isfinite(arrays[name]).all() for name in ("shares", "spread", "correlations"))
        )
        if not fits:
            raise DataError(f"the model does not hold the ranges of {n_features} features")
        return ranges


def _stability(before: Table, after: Table) -> Floats:
    """The population stability index over the last axis."""
    p, q = np.maximum(before, _RARE).astype(float), np.maximum(after, _RARE)
    index: Floats = ((p - q) * np.log(p / q)).sum(axis=-1)
    return index


def warn_of_drift(drifts: Sequence[Drift], ranges: FeatureRanges, name: str) -> None:
    """One warning that names the features, the kinds of change and the numbers; none without drift."""
    if not drifts:
        return
    shown = "; ".join(map(str, drifts[:SHOWN])) + (f"; {len(drifts) - SHOWN} more" if len(drifts) > SHOWN else "")
    advice = "check how these features are computed, their units and their columns"
    if len(drifts) > max(2, len(ranges.columns) // 4):
        advice = "so many have changed that columns may be shifted or named wrongly: check their order"
    have = "has" if len(drifts) == 1 else "have"
    warn(
        f"{len(drifts)} of {len(ranges.columns)} features {have} left the training data of {name} "
        f"({ranges.documents:,} documents of {ranges.queries:,} queries): {shown}; {advice}, "
        "or train a new model on such data"
    )


def _describe(
    before: Table, trained: Table, after: Table, quantiles: Table | None, constant: bool
) -> tuple[str, float, float, str]:
    """The kind of a change of distribution, its numbers in training and now, and both in words."""
    low, middle, high = (float(trained[k]) for k in (0, QUANTILES // 2, -1))
    now = middle if quantiles is None else float(quantiles[QUANTILES // 2])
    changes = {"missing": MISSING, "below": BELOW, "above": ABOVE}
    shares = {kind: (float(before[k]), float(after[k])) for kind, k in changes.items()}
    if abs(shares["missing"][1] - shares["missing"][0]) >= 0.1:
        training, data = shares["missing"]
        return "missing", training, data, f"is missing in {data:.0%} of the documents (training: {training:.0%})"
    if constant:
        return "constant", middle, now, f"is always {now:.4g} (training: {low:.4g} to {high:.4g})"
    medians = f"median in training: {middle:.4g}" if quantiles is None else f"median {now:.4g}, training: {middle:.4g}"
    for kind, limit in (("below", low), ("above", high)):
        training, data = shares[kind]
        if data >= 0.1:
            least = "smallest" if kind == "below" else "largest"
            detail = f"is {kind} the {least} training value {limit:.4g} in {data:.0%} of the documents ({medians})"
            return kind, training, data, detail
    if abs(now - middle) > 0.05 * (high - low):
        return "distribution", middle, now, f"has another distribution ({medians})"
    k = int(np.argmax(np.abs(after - before)))
    detail = f"has another distribution ({_interval(trained, k)} in {after[k]:.0%}, training: {before[k]:.0%})"
    return "distribution", float(before[k]), float(after[k]), detail


def _interval(trained: Table, k: int) -> str:
    """The values of a bin between two quantiles."""
    low, high = float(trained[k - 1]), float(trained[k])
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


@lru_cache(16)
def _deviate(probability: float) -> float:
    """The normal deviate that is exceeded with this probability."""
    from statistics import NormalDist

    return -NormalDist().inv_cdf(probability)


def sampled_queries(count: int, n_features: int) -> Integers:
    """The queries of the sample, evenly spaced over all.

    >>> len(sampled_queries(20, 50)), sampled_queries(2000, 50)[:3], len(sampled_queries(2000, 100_000))
    (20, array([0, 4, 8]), 131)
    """
    kept = min(count, QUERIES, VALUES // (DOCUMENTS * max(min(n_features, MAX_FEATURES), 1)))
    return np.arange(kept) * count // max(kept, 1)


def thin(rounds: Rounds, queries: Integers) -> Rounds:
    """Some of the queries, with at most 32 of their documents, evenly spaced.

    >>> rounds = Rounds.from_arrays(np.zeros((50, 1)), np.arange(50.0), group=[40, 10])
    >>> thin(rounds, np.array([0])).labels[:5]
    array([0., 1., 2., 3., 5.])
    """
    sizes = np.diff(rounds.offsets)[queries]
    kept = np.minimum(sizes, DOCUMENTS)
    offsets = np.concatenate(([0], np.cumsum(kept))).astype(np.int64)
    place = np.arange(offsets[-1]) - np.repeat(offsets[:-1], kept)
    rows = np.repeat(rounds.offsets[queries], kept) + place * np.repeat(sizes, kept) // np.repeat(kept, kept)
    return replace(
        rounds, X=rounds.X[rows], labels=rounds.labels[rows], offsets=offsets, qids=rounds.qids[queries], docids=None,
        rows=None,
    )  # fmt: skip


def _choose_columns(X: Features) -> Integers:
    """All columns up to the limit, otherwise those in which most rows are not 0."""
    width = X.shape[1]
    if width <= MAX_FEATURES:
        return np.arange(width)
    filled = np.bincount(X.trimmed().columns, minlength=width) if isinstance(X, Sparse) else (X != 0).sum(axis=0)
    return np.sort(np.argsort(-filled, kind="stable")[:MAX_FEATURES])


def _take_columns(sample: Rounds, columns: Integers) -> Rounds:
    """Some of the features of a sample, as a dense matrix."""
    X = sample.X
    if not isinstance(X, Sparse):
        dense = X if len(columns) == X.shape[1] else np.ascontiguousarray(X[:, columns])
    else:
        own, place = X.trimmed(), np.full(X.width, -1)
        place[columns] = np.arange(len(columns))
        chosen = place[own.columns]
        kept, rows = chosen >= 0, np.repeat(np.arange(len(own)), np.diff(own.starts))
        dense = np.zeros((len(own), len(columns)), np.float32)
        dense[rows[kept], chosen[kept]] = own.written_values()[kept]
    return replace(sample, X=dense, feature_names=None)


def _quantiles(X: Matrix) -> Matrix:
    """Minimum, deciles and maximum of the known values of each column, each of them a value that occurs."""
    ordered = np.sort(X, axis=0)  # NaN last
    known = len(X) - np.isnan(X).sum(axis=0)
    places = np.arange(QUANTILES)[:, None] * np.maximum(known - 1, 0) // (QUANTILES - 1)
    quantiles = np.take_along_axis(ordered, places, axis=0).T
    return np.ascontiguousarray(quantiles, np.float32)


def _constant(quantiles: Table, shares: Table) -> npt.NDArray[np.bool_]:
    constant: npt.NDArray[np.bool_] = (quantiles[:, 0] == quantiles[:, -1]) & (shares[:, MISSING] == 0.0)
    return constant


def bin_numbers(X: Matrix, quantiles: Matrix) -> npt.NDArray[np.uint8]:
    """The bin of each value: between which quantiles of its feature it lies.

    >>> quantiles = np.linspace(0.0, 1.0, QUANTILES, dtype=np.float32)[None]
    >>> bin_numbers(np.array([[-1.0], [0.0], [0.05], [1.0], [2.0], [np.nan]], np.float32), quantiles).ravel().tolist()
    [0, 1, 1, 10, 11, 12]
    """
    bins = (quantiles[:, 0] <= X).astype(np.uint8)
    for k in range(1, QUANTILES):
        bins += quantiles[:, k] < X
    bins[np.isnan(X)] = MISSING
    return bins


def bin_shares(X: Matrix, offsets: Integers, quantiles: Matrix) -> npt.NDArray[np.float32]:
    """The share of documents in each bin of each feature, by query; NaN of a query without documents."""
    bins, sizes = bin_numbers(X, quantiles), np.diff(offsets)
    shares = np.empty((len(sizes), X.shape[1], BINS), np.float32)
    query = np.repeat(np.arange(len(sizes)), sizes)[:, None]
    for first in range(0, X.shape[1], _BLOCK):
        block = bins[:, first : first + _BLOCK]
        width = block.shape[1]
        cells = (query * width + np.arange(width)) * BINS + block
        counts = np.bincount(cells.reshape(-1), minlength=len(sizes) * width * BINS)
        shares[:, first : first + width] = counts.reshape(len(sizes), width, BINS)
    with np.errstate(invalid="ignore"):
        return np.divide(shares, sizes[:, None, None].astype(np.float32), out=shares)


def _sum_queries(values: Table, offsets: Integers) -> Table:
    """Sums over the rows of each query; 0 of an empty one."""
    sums = np.zeros((len(offsets) - 1, *values.shape[1:]), values.dtype)
    filled = np.diff(offsets) > 0
    if filled.any():
        sums[filled] = np.add.reduceat(values, offsets[:-1][filled], axis=0)
    return sums


class _Standardised(NamedTuple):
    """Columns whose sum is 0 and whose sum of squares is 1 in each query, and in which queries they vary."""

    values: npt.NDArray[np.float32]
    varies: npt.NDArray[np.bool_]
    offsets: Integers


def _standardise(X: Matrix, offsets: Integers) -> _Standardised:
    """Missing values count as the mean of the query."""
    sizes, known = np.diff(offsets), ~np.isnan(X)
    values = np.where(known, X, 0.0).astype(np.float64)
    largest = np.abs(values).max(axis=0, initial=0.0)
    values /= np.where(largest > 0.0, largest, 1.0)  # so that no square overflows
    mean = _sum_queries(values, offsets) / np.maximum(_sum_queries(known.astype(np.float64), offsets), 1.0)
    values = np.where(known, values - np.repeat(mean, sizes, axis=0), 0.0)
    length = np.sqrt(_sum_queries(values**2, offsets))
    varies = length > 1e-6 * (np.abs(mean) + 1e-12)
    values /= np.repeat(np.where(varies, length, np.inf), sizes, axis=0)
    return _Standardised(values.astype(np.float32), varies, offsets)


def _label_correlations(scores: _Standardised, labels: Floats) -> Means:
    """The correlation of each feature with the labels, in queries where neither is constant."""
    others = _standardise(labels[:, None].astype(np.float32), scores.offsets)
    products = _sum_queries(scores.values * others.values, scores.offsets)
    return Means.over(np.where(scores.varies & others.varies, products, np.nan))


def _partner_correlations(scores: _Standardised, partners: npt.NDArray[np.int32]) -> list[Means]:
    """The correlation of each feature with each of its partners."""
    found = []
    for others in partners.T:
        products = _sum_queries(scores.values * scores.values[:, others], scores.offsets)
        defined = scores.varies & scores.varies[:, others] & (others >= 0)
        found.append(Means.over(np.where(defined, products, np.nan)))
    return found


def _find_partners(scores: _Standardised) -> npt.NDArray[np.int32]:
    """The features with which each feature correlates most on average over queries; -1 where there is none."""
    from threadpoolctl import threadpool_limits

    d = scores.values.shape[1]
    queries = max(1, len(scores.varies) * _PRODUCTS // max(len(scores.values) * d * d, 1))
    values, varies = scores.values[: scores.offsets[: queries + 1][-1]], scores.varies[:queries].astype(np.float32)
    with threadpool_limits(1, user_api="blas"):  # a second thread costs more than it gains
        together = varies.T @ varies
        strength = np.abs(values.T @ values) / np.maximum(together, 1.0)
    strength[together < 0.5 * np.maximum(together.diagonal(), 1.0)] = 0.0
    np.fill_diagonal(strength, -1.0)
    partners = np.full((d, _PARTNERS), -1, np.int32)
    best = np.argsort(-strength, axis=1, kind="stable")[:, : min(_PARTNERS, d - 1)]
    partners[:, : best.shape[1]] = best
    return partners
