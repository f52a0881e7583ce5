"""Evaluates scores against labels: every metric of every query, in one pass for each way of breaking ties."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ranktron.data.query_warnings import warn_high_labels, warn_uninformative_queries
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.metrics.compiled import first_outside, metric_records, values
from ranktron.metrics.metric import Metric, label_complaint, metric
from ranktron.metrics.metric import metrics as as_metrics
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
    >>> evaluation = evaluate([1, 0, 0, 1], [2, 1, 2, 1], ["mrr", "ndcg@1"], group=[2, 2])
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
        >>> evaluate([1, 0, 0, 1], [2, 1, 2, 1], "mrr", group=[2, 2]).interval("mrr")
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


def evaluate(
    y: Any,
    scores: Any,
    metrics: str | Metric | Iterable[str | Metric] = "ndcg@10",
    *,
    qid: Any = None,
    group: Any = None,
    docids: Any = None,
    order: str | None = None,
) -> Evaluation:
    """Evaluates scores against the labels of documents, or a run against judgments; higher scores rank first.

    Parameters
    ----------
    y : array, Rounds, or the judgments of a run
        The labels, one per document. Judgments are a dict `{query: {document: grade}}`, a TREC file (qrels), a data
        frame with columns such as query_id, doc_id and relevance, or the `Qrels` of ranx.
    scores : array, or a run
        One score per document, in the order of `y`. A run has documents with scores for each query: a dict
        `{query: {document: score}}`, a TREC file, a data frame with columns such as query_id, doc_id and score, or a
        `Run` of ranx.
    metrics : metrics
        One or several, by value or by name.
    qid : array
        The query id of each document, in any order.
    group : sequence of int, optional
        The sizes of consecutive queries, instead of `qid`.
    docids : array, optional
        The document ids, by which some conventions order equal scores.
    order : {"rounds", "input"}, optional
        The order of scores beside `Rounds` whose rows were regrouped by query, which is an error without it:
        "rounds" is that of `rounds.X`, "input" that of the rows before.

    Notes
    -----
    A run is evaluated as by `trec_eval -c`. A document that was not judged is not relevant. A relevant document that
    the run does not return counts among the relevant ones and gains nothing. A query that is judged but not in the run
    counts 0; one that is not judged is left out.

    Examples
    --------
    >>> evaluation = evaluate([0, 2, 1, 0], [3.0, 1.0, 2.0, 1.0], ["mrr", "mrr:letor"], qid=[1, 2, 1, 2])
    >>> evaluation.per_query["mrr"], evaluation.means["mrr:letor"]
    (array([0.5, 0.5]), 0.75)
    >>> run, qrels = {"q1": {"a": 2.0, "b": 1.0}}, {"q1": {"b": 1, "c": 1}, "q2": {"a": 1}}
    >>> evaluate(qrels, run, ["map:trec", "recall@10"]).per_query
    {'map:trec': array([0.25, 0.  ]), 'recall@10': array([0.5, 0. ])}
    """
    if hasattr(metrics, "__array__"):
        raise DataError("query ids are given by their name: evaluate(y, scores, metrics, qid=qid)")
    if isinstance(scores, Rounds):  # known by their type, and so allowed to come second
        y, scores = scores, y
    if isinstance(y, Rounds):
        if qid is not None or group is not None or docids is not None:
            raise DataError("Rounds have queries and documents of their own: leave out qid=, group= and docids=")
        return evaluate_rounds(y, _in_order_of(y, scores, order), metrics)
    if order is not None:
        raise DataError("order= is about scores beside Rounds: scores beside labels are in the order of the labels")
    if qid is None and group is None and not _is_array(y):
        return _evaluate_run(as_values(scores, "run"), as_values(y, "qrels"), as_metrics(metrics))
    if qid is None and group is None:
        raise DataError(
            "there are no query ids: pass qid= (one id per row) or group= (sizes of consecutive queries); qid=0 says "
            "that all rows are one list"
        )
    _check_places(y, scores)
    rounds = Rounds.from_arrays(np.zeros((len(y), 1), np.float32), y, qid, group, docids=docids)
    return evaluate_rounds(rounds, _in_order_of(rounds, scores, "input"), metrics)


def evaluate_rounds(rounds: Rounds, scores: Any, metrics: str | Metric | Iterable[str | Metric]) -> Evaluation:
    """As `evaluate`, of scores in the order of `rounds.X`."""
    chosen = as_metrics(metrics)
    if len(rounds) == 0:
        raise DataError("there are no queries to evaluate")
    per_query = _values(scores, rounds, chosen)
    relevant_so_far = np.concatenate(([0], np.cumsum(rounds.labels > 0.0)))[rounds.offsets]
    return _evaluation(per_query, rounds.qids, int(np.count_nonzero(np.diff(relevant_so_far) == 0)))


def _is_array(y: Any) -> bool:
    """Whether labels are one number per document; not the judgments of a run, of any kind."""
    return isinstance(y, list | tuple) or (hasattr(y, "__array__") and not hasattr(y, "columns"))


def _in_order_of(rounds: Rounds, scores: Any, order: str | None) -> Any:
    """Scores in the order of `rounds.X`."""
    if order not in (None, "rounds", "input"):
        raise DataError(f"order must be 'rounds' or 'input', not {order!r}")
    if rounds.rows is None or order == "rounds":
        return scores
    if order is None:
        raise DataError(
            "the rows of these Rounds were regrouped by query, and scores do not say in which order they are: pass "
            "evaluate(y, scores, qid=qid) in the order of your rows, or order='rounds' for scores in the order of "
            "rounds.X and order='input' for that of the rows before"
        )
    return as_scores(scores, len(rounds.labels))[rounds.rows]


def _check_places(y: Any, scores: Any) -> None:
    """Refuses arguments that have changed places, which would be evaluated without an error otherwise."""
    try:
        labels, ranked = np.asarray(y, float), np.asarray(scores, float)
    except (TypeError, ValueError):  # another check says what is wrong
        return
    swapped = ranked.size and not np.any(ranked % 1.0) and ranked.min() >= 0.0
    if swapped and (np.any(labels < 0.0) or np.mean(labels % 1.0 != 0.0) > 0.5):
        raise DataError("the labels seem to be where the scores belong: it is evaluate(y, scores, qid=qid)")


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
    if any(each.gains_grow for each in chosen):
        warn_high_labels(labels)
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
