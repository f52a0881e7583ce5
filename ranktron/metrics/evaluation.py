"""Evaluates scores against labels: every metric of every query, in one pass for each way of breaking ties."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.data.query_warnings import warn_uninformative_queries
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.metrics.compiled import first_outside, metric_records, values
from ranktron.metrics.metric import Metric, label_complaint, metric, metrics
from ranktron.metrics.runs import ByQuery, JudgedRun, as_values
from ranktron.metrics.sklearn_ties import tied_values
from ranktron.metrics.ties import Ordering, as_scores
from ranktron.types import Floats, Integers
from ranktron.types.validation import check_count

_CHUNK = 1 << 21


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The values of some metrics on some queries, made by `evaluate`.

    Parameters
    ----------
    means : {str(metric): float}
        The mean over queries.
    per_query : {str(metric): array}
        One value per query, in the order of `qids`.
    qids : array
        The query ids.
    empty_queries : int
        How many queries had no relevant document; each metric's convention says what these count.

    Examples
    --------
    >>> rounds = Rounds.from_arrays([[1.0]] * 4, [1, 0, 0, 1], group=[2, 2])
    >>> evaluation = evaluate([2, 1, 2, 1], rounds, ["mrr", "ndcg@1"])
    >>> evaluation.means, evaluation.per_query["mrr"]
    ({'mrr': 0.75, 'ndcg@1': 0.5}, array([1. , 0.5]))
    """

    means: Mapping[str, float]
    per_query: Mapping[str, Floats]
    qids: npt.NDArray[Any]
    empty_queries: int

    def interval(
        self, which: str | Metric, level: float = 0.95, seed: int = 0, resamples: int = 2000
    ) -> tuple[float, float]:
        """The bootstrap percentile interval of a mean: queries are drawn with replacement.

        Parameters
        ----------
        which : str or Metric
            The metric, one of those evaluated.
        level : float
            The confidence level.
        seed : int
            Seed of the draws; the same seed gives the same interval.
        resamples : int
            How many samples to draw.

        Examples
        --------
        >>> rounds = Rounds.from_arrays([[1.0]] * 4, [1, 0, 0, 1], group=[2, 2])
        >>> evaluate([2, 1, 2, 1], rounds, "mrr").interval("mrr")
        (0.5, 1.0)
        """
        sample = self.values(which)
        if not 0.0 < level < 1.0:
            raise DataError(f"the level of an interval lies between 0 and 1, not {level}")
        check_count(resamples, "the number of resamples", 1)
        rng = np.random.default_rng(check_count(seed, "the seed", 0))
        n = len(sample)
        rows = max(1, _CHUNK // n)
        drawn = [
            sample[rng.integers(0, n, (min(rows, resamples - done), n))].mean(axis=1)
            for done in range(0, resamples, rows)
        ]
        low, high = np.quantile(np.concatenate(drawn), [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
        return float(low), float(high)

    def values(self, which: str | Metric) -> Floats:
        """The values per query of a metric, by value or by any of its names.

        Parameters
        ----------
        which : metric or its name
            One of those that were evaluated.
        """
        key = str(metric(which))
        if key not in self.per_query:
            raise DataError(f"{key} was not evaluated; there are: {', '.join(self.per_query)}")
        return self.per_query[key]

    def __str__(self) -> str:
        width = max(len("metric"), *map(len, self.means))
        lines = [f"{'metric':<{width}}    mean    95 % interval"]
        for name, mean in self.means.items():
            low, high = self.interval(name)
            lines.append(f"{name:<{width}}  {mean:.4f}  {low:.4f} – {high:.4f}")
        lines.append(f"{len(self.qids)} queries, {self.empty_queries} of them without relevant documents")
        return "\n".join(lines)


def evaluate(scores: Any, rounds: Any, which: str | Metric | Iterable[str | Metric]) -> Evaluation:
    """Evaluates scores against the labels of documents, or a run against judgments; higher scores rank first.

    Parameters
    ----------
    scores : array, or a run
        One score per document in the order of `rounds.X`. A run has documents with scores for each query: a dict
        `{query: {document: score}}`, a TREC file, a data frame with columns such as query_id, doc_id and score, or a
        `Run` of ranx.
    rounds : Rounds, or the judgments of a run
        Judgments are a dict `{query: {document: grade}}`, a TREC file (qrels), a data frame with columns such as
        query_id, doc_id and relevance, or the `Qrels` of ranx.
    which : metrics
        One or several, by value or by name.

    Notes
    -----
    A run is evaluated as by `trec_eval -c`. A document that was not judged is not relevant. A relevant document that
    the run does not return counts among the relevant ones and gains nothing. A query that is judged but not in the run
    counts 0; one that is not judged is left out.

    Examples
    --------
    >>> run, qrels = {"q1": {"a": 2.0, "b": 1.0}}, {"q1": {"b": 1, "c": 1}, "q2": {"a": 1}}
    >>> evaluate(run, qrels, ["map:trec", "recall@10"]).per_query
    {'map:trec': array([0.25, 0.  ]), 'recall@10': array([0.5, 0. ])}
    >>> rounds = Rounds.from_arrays([[3.0], [2.0], [1.0], [1.0]], [0, 1, 0, 2], qid=[1, 1, 2, 2])
    >>> evaluation = evaluate(rounds.X[:, 0], rounds, ["mrr", "mrr:letor"])
    >>> evaluation.per_query["mrr"], evaluation.means["mrr:letor"]
    (array([0.5, 0.5]), 0.5)
    """
    chosen = metrics(which)
    if not isinstance(rounds, Rounds):
        if isinstance(scores, list | np.ndarray):
            raise DataError(f"scores are measured on Rounds, not on a {type(rounds).__name__}: see Rounds.from_arrays")
        return _evaluate_run(as_values(scores, "run"), as_values(rounds, "qrels"), chosen)
    if len(rounds) == 0:
        raise DataError("there are no queries to evaluate")
    per_query = _values(scores, rounds, chosen)
    relevant_so_far = np.concatenate(([0], np.cumsum(rounds.labels > 0.0)))[rounds.offsets]
    return _evaluation(per_query, rounds.qids, int(np.count_nonzero(np.diff(relevant_so_far) == 0)))


def _evaluation(per_query: dict[str, Floats], qids: npt.NDArray[Any], empty_queries: int) -> Evaluation:
    means = {name: float(row.mean()) for name, row in per_query.items()}
    return Evaluation(means, per_query, qids, empty_queries)


def _evaluate_run(run: ByQuery, qrels: ByQuery, chosen: tuple[Metric, ...]) -> Evaluation:
    judged = JudgedRun(run, qrels)

    def measure(scores: Floats, rounds: Rounds, each: Metric) -> Floats:
        return _values(scores, rounds, (each,))[str(each)]

    per_query = {str(each): judged.values(each, measure) for each in chosen}
    return _evaluation(per_query, np.array(judged.qids), judged.empty_queries)


def _values(scores: Any, rounds: Rounds, chosen: tuple[Metric, ...]) -> dict[str, Floats]:
    """The values of each metric, one per query."""
    scores = as_scores(scores, len(rounds.labels))
    labels, offsets = (np.require(array, None, ["C", "W", "E"]) for array in (rounds.labels, rounds.offsets))
    for each in chosen:
        _check_labels(each, labels, rounds)
    warn_uninformative_queries(rounds, "there is nothing to rank, and so nothing to measure, in")
    ordering = Ordering(scores, offsets, rounds.docids)
    rows: dict[Metric, Floats] = {}
    for ties in dict.fromkeys(each.choices.ties for each in chosen):
        alike = [each for each in chosen if each.choices.ties == ties]
        rows.update(zip(alike, _measure(ordering, labels, offsets, ties, alike), strict=True))
    return {str(each): rows[each] for each in chosen}


def _measure(ordering: Ordering, labels: Floats, offsets: Integers, ties: str, alike: list[Metric]) -> Floats:
    """The values (metrics × queries) of metrics that break ties in the same way."""
    ranked = ordering.labels(labels, ties)
    averaged = ties == "average" and ordering.tied > 0
    records = metric_records(alike)
    out = np.empty((len(alike), len(offsets) - 1))
    if averaged:
        tied_values(ranked, ordering.ends, offsets, records, out)
    else:
        values(ranked, offsets, records, out)
    return out


def _check_labels(each: Metric, labels: Floats, rounds: Rounds) -> None:
    row = first_outside(labels, each.highest_label)
    if row >= 0:
        query = rounds.qids[int(np.searchsorted(rounds.offsets, row, side="right")) - 1]
        raise DataError(label_complaint(each, f"query {query} has {labels[row]} (document {row})"))
