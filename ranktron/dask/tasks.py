"""The tasks of training on parts, which run in this process or on the workers of a cluster.

Every task is a pure function of its arguments: if a worker dies, another one reads its parts again. A process caches
the parts that it has prepared, up to its share of memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ranktron.dask.mixed_pass import PlayedQueries, play_pieces
from ranktron.data.feature_ranges import thin
from ranktron.data.imputation import known_values
from ranktron.data.io.grouping import in_file
from ranktron.data.io.parts import QUERIES, FeatureNumbers, FilePart, fit_features, hash_queries
from ranktron.data.moments import FeatureSums, sum_features, sum_squares
from ranktron.data.query_warnings import count_uninformative
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import Sparse
from ranktron.kernels.dense import first_non_finite
from ranktron.metrics import Metric
from ranktron.metrics.evaluation import evaluate_rounds
from ranktron.training.model import Model
from ranktron.training.shards import QueryPiece
from ranktron.types import Floats, Integers, State

CACHE_BYTES = 1 << 30

Part = FilePart | Rounds
"""A part that is read on demand, or one that is in memory already."""


class PartSummary(NamedTuple):
    """Counts and sums of a part, without its documents."""

    queries: int
    documents: int
    features: FeatureNumbers
    idle: int
    hashes: npt.NDArray[np.uint64]
    sums: Floats
    known: Integers
    highest: float
    borders: tuple[Any, ...]


@dataclass
class PartCache:
    """The prepared parts of this process: permanently up to a limit, and the last two of those beyond it.

    A pass goes over all parts in turn. Evicting the least recently used part would evict each just before its next use.

    Parameters
    ----------
    limit : int
        The number of bytes.

    Examples
    --------
    >>> cache = PartCache(limit=100)
    >>> rounds = Rounds.from_arrays([[1.0]], [1])
    >>> cache.get("a", lambda: rounds) is cache.get("a", lambda: None)
    True
    """

    limit: int = CACHE_BYTES
    permanent: dict[Any, Rounds] = field(default_factory=dict)  # parts within the limit
    recent: dict[Any, Rounds] = field(default_factory=dict)  # the last two of the others
    locks: dict[Any, threading.Lock] = field(default_factory=dict)  # held while a part is loaded
    used: int = 0  # bytes of the permanent parts
    _lock: threading.Lock = field(default_factory=threading.Lock)  # guards all of the above

    def get(self, key: Any, load: Callable[[], Rounds]) -> Rounds:
        """The part of that key; it is loaded once, even if two threads ask for it."""
        with self._lock:
            lock = self.locks.setdefault(key, threading.Lock())
        with lock:
            rounds = self.permanent.get(key, self.recent.get(key))
            if rounds is None:
                rounds = load()
                self._add(key, rounds)
        return rounds

    def _add(self, key: Any, rounds: Rounds) -> None:
        size = _bytes_of(rounds)
        with self._lock:
            if self.used + size <= self.limit:
                self.permanent[key], self.used = rounds, self.used + size
                return
            while len(self.recent) > 1:
                self.recent.pop(next(iter(self.recent)))
            self.recent[key] = rounds

    def evict(self, key: Any) -> None:
        """Removes a part from the permanent ones."""
        with self._lock:
            rounds = self.permanent.pop(key, None)
            self.used -= 0 if rounds is None else _bytes_of(rounds)

    def clear(self) -> None:
        """Removes all parts."""
        with self._lock:
            self.permanent.clear()
            self.recent.clear()
            self.locks.clear()
            self.used = 0


def _bytes_of(rounds: Rounds) -> int:
    X = rounds.X
    arrays = (X.starts, X.columns, X.values) if isinstance(X, Sparse) else (X,)
    return sum(int(array.nbytes) for array in arrays) + int(rounds.labels.nbytes)


CACHE = PartCache()
"""The parts of this process."""


def name_of(part: Part) -> str:
    """The name of a part in messages."""
    return part.name if isinstance(part, FilePart) else "a part in memory"


def _naming(part: Part) -> AbstractContextManager[None]:
    """Adds the name of a file part to errors."""
    return in_file(part.name) if isinstance(part, FilePart) else nullcontext()


def load_part(part: Part, features: FeatureNumbers | None = None) -> Rounds:
    """The queries of a part, with `features`, or else with those it has itself.

    Parsed text is cached until it is prepared; a store needs no parsing.
    """
    if not isinstance(part, FilePart):
        return part if features is None else fit_features(part, features)
    if part.unit == QUERIES:
        return part.read(features)
    rounds = CACHE.get(part, part.read)
    if features is None:
        return rounds
    if isinstance(rounds.X, Sparse) != features.sparse:
        return part.read(features)
    with in_file(part.name):
        return fit_features(rounds, features)


def summarise_part(part: Part, missing: bool = False) -> PartSummary:
    """Reads a part and counts; numbers that are not finite are refused."""
    rounds = load_part(part)
    with _naming(part):
        numbers = rounds.X.values if isinstance(rounds.X, Sparse) else rounds.X.reshape(-1)
        if not missing and first_non_finite(np.ascontiguousarray(numbers)) >= 0:
            raise DataError("its features are not finite: is it damaged?")
        if not (rounds.labels >= 0.0).all() or not np.isfinite(rounds.labels).all():
            raise DataError("its labels are not finite numbers of 0 or more: is it damaged?")
    features = FeatureNumbers(rounds.n_features, rounds.first_index, rounds.feature_names, isinstance(rounds.X, Sparse))
    sums, known = known_values(rounds) if missing else (np.zeros(0), np.zeros(0, np.int64))
    borders = tuple(rounds.qids[[0, -1]].tolist()) if len(rounds) else ()
    return PartSummary(
        len(rounds), len(rounds.labels), features, sum(count_uninformative(rounds)) if len(rounds) else 0,
        hash_queries(rounds.qids), sums, known, float(rounds.labels.max(initial=0.0)), borders,
    )  # fmt: skip


def name_query(part: Part, query: int) -> str:
    """The id of a query of a part."""
    return repr(load_part(part).qids[query : query + 1].tolist()[0])


def sample_part(part: Part, features: FeatureNumbers, queries: Integers) -> Rounds:
    """A few documents of some queries of a part, from which the ranges of features are computed."""
    return thin(load_part(part, features), queries)


def sum_part(part: Part, features: FeatureNumbers, model: Model, before: FeatureSums | None = None) -> FeatureSums:
    """The sums of the features of a part, filled in but not scaled."""
    return sum_features(model.fill(load_part(part, features)).X, before)


def square_part(
    part: Part, features: FeatureNumbers, model: Model, mean: Floats, before: Floats | None = None
) -> Floats:
    """The squares of the features of a part about their mean."""
    return sum_squares(model.fill(load_part(part, features)).X, mean, before)


def prepare_part(part: Part, features: FeatureNumbers, model: Model) -> Rounds:
    """The queries of a part as the learner takes them."""
    with _naming(part):
        prepared = model.prepare(load_part(part, features))
    if isinstance(part, FilePart):
        CACHE.evict(part)
    return prepared


def warm_part(token: str, part: Part, features: FeatureNumbers, model: Model) -> None:
    """Loads and prepares a part in advance."""
    take_prepared(token, part, features, model)


def on_prepared(
    part: Part, token: str, features: FeatureNumbers, model: Model, function: Callable[..., Any], *arguments: Any
) -> Any:
    """Applies a function to the prepared queries of a part, which are cached for the next call."""
    rounds = part if isinstance(part, FilePart) else prepare_part(part, features, model)
    return function(take_prepared(token, rounds, features, model), *arguments)


def take_prepared(token: str, part: Part, features: FeatureNumbers, model: Model) -> Rounds:
    """The prepared queries of a part: a file is prepared once and cached, a part in memory is prepared already."""
    if not isinstance(part, FilePart):
        return part
    return CACHE.get((token, part), lambda: prepare_part(part, features, model))


def play_parts(
    token: str,
    parts: Sequence[Part],
    features: FeatureNumbers,
    model: Model,
    state: State,
    queries: Sequence[Integers],
    metrics: tuple[Metric, ...] = (),
) -> PlayedQueries:
    """Plays queries of parts, from a state: a task that any worker may run, any number of times.

    Parts in memory are prepared already. `token` names the run, to which cached parts belong.
    """

    def load(number: int) -> Rounds:
        return take_prepared(token, parts[number], features, model)

    pieces = [QueryPiece(number, order) for number, order in enumerate(queries)]
    with _naming(parts[0]) if len(parts) == 1 else nullcontext():
        return play_pieces(model.blank_learner, state, pieces, load, metrics)


def evaluate_part(
    part: Part, features: FeatureNumbers | None, model: Model, metrics: tuple[Metric, ...]
) -> tuple[dict[str, Floats], npt.NDArray[Any], int]:
    """The metrics of a model on each query of a part, the query ids, and how many have no relevant document."""
    rounds = load_part(part, features)
    if not len(rounds):
        return {str(each): np.zeros(0) for each in metrics}, rounds.qids, 0
    with _naming(part):
        evaluation = evaluate_rounds(rounds, model.score_rounds(rounds), metrics)
    return dict(evaluation.per_query), evaluation.qids, evaluation.empty_queries


def common_features(summaries: Sequence[PartSummary], names: Sequence[str]) -> FeatureNumbers:
    """The features of all parts together: numbered ones may be missing at the end of a part, named ones may not."""
    first = summaries[0].features
    for summary, name in zip(summaries, names, strict=True):
        if summary.features.feature_names != first.feature_names:
            expected, own = set(first.feature_names or ()), set(summary.features.feature_names or ())
            if expected != own:
                differing = ", ".join(sorted(expected ^ own)) or "names and numbers"
                raise DataError(f"{name}: it has other features than {names[0]}: {differing}")
    low = min(summary.features.first_index for summary in summaries)
    width = max(s.features.n_features + s.features.first_index - low for s in summaries)
    return FeatureNumbers(width, low, first.feature_names, first.sparse)
