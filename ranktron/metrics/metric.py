"""Metrics as values: `ndcg@10:letor` parses, prints, compares and hashes, and evaluates the labels of a ranking."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError
from ranktron.metrics.conventions import (
    ALIASES,
    CONVENTIONS,
    DEFAULT,
    DISCOUNTS,
    EXPONENTIAL,
    GAINS,
    HIGHEST_ERR_GRADE,
    HIGHEST_EXPONENT,
    SHORT,
    Convention,
)
from ranktron.types import Floats, Integers, validation


class Measure(NamedTuple):
    """Properties of a metric that do not depend on the convention."""

    summary: str
    cut: str = "none"
    """Whether it takes a cut-off k: "none", "optional" or "required"."""
    higher_is_better: bool = True


MEASURES: Mapping[str, Measure] = MappingProxyType(
    {
        "ndcg": Measure("normalised discounted cumulative gain", "optional"),
        "dcg": Measure("discounted cumulative gain", "optional"),
        "map": Measure("average precision"),
        "mrr": Measure("one over the rank of the first relevant document"),
        "err": Measure("expected reciprocal rank, grades 0 to 4", "optional"),
        "p": Measure("share of relevant documents among the first k", "required"),
        "recall": Measure("share of the relevant documents found among the first k", "required"),
        "rprec": Measure("precision at the number of relevant documents"),
        "bpref": Measure("relevant documents, each charged for the first R others above it"),
        "rankeff": Measure("share of (relevant, other) pairs in the right order"),
        "inversions": Measure("Q: pairs with different labels in the wrong order", higher_is_better=False),
        "tau": Measure("right minus wrong pairs, over all pairs with different labels"),
        "auc": Measure("area under the ROC curve of the list: rankeff under its other name"),
    }
)

NAMES: Mapping[str, str] = MappingProxyType({"ap": "map", "rr": "mrr", "precision": "p", "q": "inversions"})
"""Other names that parse."""

_FLOAT64, _INT64 = np.dtype(np.float64), np.dtype(np.int64)


@dataclass(frozen=True)
class Metric:
    """A ranking metric: called with the labels of documents in ranked order, best first, it returns a number.

    Parameters
    ----------
    name : str
        One of `MEASURES`: ndcg, dcg, map, mrr, err, p, recall, rprec, bpref, rankeff, inversions, tau, auc.
    k : int >= 1, optional
        How many positions count; all of them by default.
    convention : str
        One of `CONVENTIONS`: paper, letor, trec, sklearn, lightgbm, ranklib.

    Examples
    --------
    >>> m = Metric.parse("ndcg@2:letor")
    >>> m == Metric("ndcg", 2, "letor"), str(m), m.higher_is_better
    (True, 'ndcg@2:letor', True)
    >>> m(np.array([1.0, 0.0, 2.0]))
    0.25
    """

    name: str
    k: int | None = None
    convention: str = DEFAULT

    def __post_init__(self) -> None:
        name = _resolve_name("metric", self.name, MEASURES, NAMES)
        convention = _resolve_name("convention", self.convention, CONVENTIONS, ALIASES)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "convention", convention)
        self._check_cut()
        choices = CONVENTIONS[convention]
        if choices.only and name not in choices.measured:
            others = ", ".join(c for c in CONVENTIONS if not CONVENTIONS[c].only)
            raise DataError(
                f"{choices.tool} has no {name} to agree with, and its averaged ties are not defined for it; "
                f"conventions for {name}: {others}"
            )

    def _check_cut(self) -> None:
        takes = MEASURES[self.name].cut
        if self.k is None:
            if takes == "required":
                raise DataError(f"{self.name} needs to know how many positions count: {self.name}@10")
            return
        if isinstance(self.k, bool) or not isinstance(self.k, int | np.integer) or self.k < 1:
            raise DataError(f"{self.name}@{self.k}: the cut-off must be a whole number from 1 on")
        if takes == "none":
            others = ", ".join(f"{name}@{self.k}" for name, measure in MEASURES.items() if measure.cut != "none")
            raise DataError(f"{self.name} takes no cut-off (it was given @{self.k}); these do: {others}")
        object.__setattr__(self, "k", int(self.k))

    @classmethod
    def parse(cls, text: str) -> Metric:
        """Reads `name`, `name@k`, `name:convention` or `name@k:convention`.

        Parameters
        ----------
        text : str
            Such as `ndcg@10:letor`.

        Examples
        --------
        >>> str(Metric.parse("ap:xgboost"))
        'map:lightgbm'
        """
        head, colon, convention = text.strip().lower().partition(":")
        name, at, depth = head.partition("@")
        if at and not (depth.isascii() and depth.isdigit() and len(depth) < 10):
            raise DataError(f"{text!r}: the cut-off after @ must be a whole number from 1 on, as in {name}@10")
        return cls(name, int(depth) if at else None, convention if colon else DEFAULT)

    def __str__(self) -> str:
        depth = "" if self.k is None else f"@{self.k}"
        return f"{self.name}{depth}" + ("" if self.convention == DEFAULT else f":{self.convention}")

    def __reduce__(self) -> tuple[Any, ...]:
        return Metric, (self.name, self.k, self.convention)

    @property
    def higher_is_better(self) -> bool:
        return MEASURES[self.name].higher_is_better

    @property
    def choices(self) -> Convention:
        """The convention: gain, discount, ties and so on."""
        return CONVENTIONS[self.convention]

    @property
    def highest_label(self) -> float:
        """The highest label for which the metric is defined."""
        if self.name == "err":
            return HIGHEST_ERR_GRADE
        return HIGHEST_EXPONENT if self.gains_grow else float(np.finfo(np.float64).max / 2**40)

    @property
    def gains_grow(self) -> bool:
        """Whether the gain is 2^label − 1."""
        return self.name in ("ndcg", "dcg") and self.choices.gain == EXPONENTIAL

    @cached_property
    def record(self) -> npt.NDArray[Any]:
        """The metric for kernels: one record of `compiled.METRIC`."""
        from ranktron.metrics.compiled import METRIC, MetricCode

        c = self.choices
        gain, discount, short = GAINS.index(c.gain), DISCOUNTS.index(c.discount), SHORT.index(c.short)
        empty, highest = c.empty_of(self.name), self.highest_label
        return np.array([(MetricCode[self.name], self.k or 0, gain, discount, short, empty, highest, 0.0, 0.0)], METRIC)

    @cached_property
    def _kernels(self) -> tuple[Any, Any]:
        from ranktron.metrics.compiled import checked_value, shown_value

        return checked_value, shown_value

    def __call__(self, labels: Floats) -> float:
        """The value of a ranking, from the labels in the order shown."""
        if not (type(labels) is np.ndarray and labels.dtype is _FLOAT64 and labels.flags.carray and labels.ndim == 1):
            labels = _as_labels(labels)
        value: float = self._kernels[0](labels, self.record)
        if value != value:
            raise DataError(out_of_range(self, labels))
        return value

    def shown(self, labels: Floats, order: Integers) -> float:
        """The value of documents shown in this order: `self(labels[order])` in a single compiled call.

        Parameters
        ----------
        labels : array of float
            The label of each document.
        order : array of int
            The documents in the order shown.

        Examples
        --------
        >>> Metric("ndcg", 1).shown(np.array([0.0, 2.0]), np.array([1, 0]))
        1.0
        """
        if type(labels) is not np.ndarray or type(order) is not np.ndarray or order.dtype != _INT64 or order.ndim != 1:
            labels = _as_labels(labels)
            order = validation.integers(order, "an order is the places of documents in the list, from 0")
        value: float = self._kernels[1](labels, order, self.record)
        if value != value:
            if ((order < 0) | (order >= len(labels))).any():
                raise DataError(f"an order of {len(labels)} documents names them from 0 to {len(labels) - 1}")
            return self(labels[order])
        return value


def out_of_range(metric: Metric, labels: Floats) -> str:
    """The error message for a label that the metric is not defined for."""
    with np.errstate(invalid="ignore"):
        bad = np.flatnonzero(~((labels >= 0.0) & (labels <= metric.highest_label)))
    return label_complaint(metric, f"position {bad[0]} has {labels[bad[0]]}")


def label_complaint(metric: Metric, where: str) -> str:
    """What is said of a label that the metric is not defined for, and of what to do."""
    instead = f"use lower grades, or {replace(metric, convention='trec')}, whose gain is the label itself"
    instead = instead if metric.gains_grow else "use lower grades"
    return f"{metric} is defined for labels from 0 to {metric.highest_label:g}; {where}: {instead}"


def metric(given: str | Metric) -> Metric:
    """Takes a metric or its name.

    Parameters
    ----------
    given : str or Metric
        `name`, `name@k`, `name:convention` or `name@k:convention`, such as `ndcg@10` or `map:letor`; a `Metric` is
        returned unchanged.

    Examples
    --------
    >>> metric("ndcg@10")
    Metric(name='ndcg', k=10, convention='paper')
    """
    if isinstance(given, Metric):
        return given
    if not isinstance(given, str):
        raise DataError(f"a metric is a name such as ndcg@10 or map:letor, not {given!r}")
    return Metric.parse(given)


def metrics(given: str | Metric | Iterable[str | Metric]) -> tuple[Metric, ...]:
    """Takes one metric or several, by value or by name, without duplicates."""
    several = [given] if isinstance(given, str | Metric) else given
    chosen = tuple(dict.fromkeys(map(metric, several)))
    if not chosen:
        raise DataError("no metric to evaluate: name at least one, such as ndcg@10")
    return chosen


def _resolve_name(kind: str, given: str, names: Iterable[str], aliases: Mapping[str, str]) -> str:
    """The canonical name, or an error that lists what exists."""
    name = aliases.get(given, given)
    if name in names:
        return name
    near = difflib.get_close_matches(str(given), [*names, *aliases], n=1, cutoff=0.5)
    hint = f" (did you mean {near[0]}?)" if near else ""
    raise DataError(f"there is no {kind} {given!r}{hint}; there are: {', '.join(names)}")


def _as_labels(labels: Any) -> Floats:
    try:
        given = np.array(labels, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise DataError(f"labels must be numbers: {error}") from None
    if given.ndim != 1:
        raise DataError(f"labels must be one number per document, not an array of shape {given.shape}")
    return given
