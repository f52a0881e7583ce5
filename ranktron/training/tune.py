"""Tuning: learner, map, scaling and parameters are chosen on folds; what was chosen is measured on other queries.

A fifth of the queries is set aside. The others are divided into folds: candidates learn on all folds but one and are
measured on that one. Once `EVIDENCE` validation queries have been seen, after each fold the better half of the
families goes on (successive halving: Jamieson and Talwalkar 2016). The winner is measured once on the queries that were
set aside, which have chosen nothing, and is then trained on everything.

Time enters in one way only: what does not fit into the budget is not tried. Where all fits, the answer is a function
of data and seed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from ranktron.data.query_warnings import all_uninformative, warn_label_features
from ranktron.data.rounds import NO_QUERY_IDS, Rounds, take_qid_column
from ranktron.errors import DataError, RankingWarning
from ranktron.learners.interrupts import Interrupts
from ranktron.learners.schedule import Schedule
from ranktron.metrics import Evaluation, Metric, evaluate
from ranktron.metrics import metric as as_metric
from ranktron.training.fit import train
from ranktron.training.model import Model
from ranktron.training.parts import Workers, keep
from ranktron.training.tune_families import Candidate, Family, families
from ranktron.types import Floats
from ranktron.types.validation import check_count

LEAST = 10  # queries: two to report on, and two in each of four folds
FOLDS = 4
SET_ASIDE = 0.2
EVIDENCE = 50
MOST_IN_SAMPLE = 300  # queries of the first look, where there are more than twice as many
FOR_THE_SEARCH = 0.75  # of the time; the rest is for the two trainings of what was chosen
NOTHING_FITS = "there was no time to try anything: give it more minutes"


class Progress(NamedTuple):
    """How far a search is: what is tried, how many settings have been, the best so far, seconds left."""

    fold: int
    folds: int
    family: str
    tried: int
    best: str
    seconds_left: float


@dataclass(eq=False)
class CandidateTrace:
    """What is known of a candidate: its values on the validation queries of each fold, and the seconds they took.

    The sample is learnt from fewer queries than the folds: its values count only while there are no others.
    """

    candidate: Candidate
    folds: list[Floats] = field(default_factory=list)
    sample: Floats | None = None
    seconds: float = 0.0

    def evaluation(self, key: str) -> Evaluation:
        """All validation queries so far, as `evaluate` gives them."""
        values = self.sample if self.sample is not None and not self.folds else np.concatenate(self.folds)
        return Evaluation({key: float(values.mean())}, {key: values}, np.arange(len(values)), 0)


@dataclass(frozen=True, eq=False)
class Tuned:
    """What a search found.

    Parameters
    ----------
    model : Model
        The winner, trained on all queries.
    table : list of dict
        A row for each setting that was tried, the best first: learner, parameters, scale, map, epochs; mean, low and
        high of the metric over the validation queries (95 % interval); folds (0: seen on a sample only), seconds.
    test : dict
        Mean, low and high on the queries that chose nothing, and their number, after training on all others.
    stopped : str
        Why the search ended before everything was tried: "time", "interrupt", or nothing.
    """

    model: Model
    table: list[dict[str, Any]]
    test: dict[str, float]
    stopped: str = ""


def tune(
    X: Any,
    y: Any,
    qid: Any = None,
    group: Any = None,
    *,
    minutes: float = 2.0,
    metric: str | Metric = "ndcg@10",
    learners: Sequence[str] | None = None,
    exportable: bool = False,
    seed: int = 0,
    nan: str = "error",
) -> Any:
    """Chooses learner, map, scaling and parameters within a budget of time, and fits what it has chosen.

    Parameters
    ----------
    X : table of numbers, data frame or sparse matrix
        A row per document.
    y : array
        The labels, finite and at least 0.
    qid, group : array
        The query of each row, or sizes of consecutive lists.
    minutes : float
        How long it may take, above 0. What does not fit is not tried; where all fits, time changes nothing.
    metric : str or Metric
        What the best is best in.
    learners : sequence of str, optional
        Names of algorithms to choose among; all of `hinge`, `listnet`, `slam`, `ranksvm`,
        `smoothrank` and `rankboost` unless given.
    exportable : bool
        Leave out what no search engine can compute: scaling within each query, and maps.
    seed : int
        Of the division of the queries and of the order in which they are played.
    nan : str
        What stands for a missing value, as in the estimators.

    Returns
    -------
    estimator
        Fitted on all queries. `table_` has a row (dict) for everything that was tried, `test_` the value on queries
        that chose nothing, measured before they were learnt from.

    Examples
    --------
    >>> import ranktron
    >>> lists = ranktron.synthetic.Separable(documents=8, features=4).rounds(30)
    >>> ranker = ranktron.tune(lists.X, lists.labels, group=[8] * 30, learners=["hinge"])
    >>> ranker.test_["mean"] > 0.9, ranker.table_[0]["learner"]
    (True, 'hinge')
    """
    X, own = take_qid_column(X)
    qid = own if qid is None and group is None else qid
    if qid is None and group is None:
        raise DataError(NO_QUERY_IDS)
    rounds = Rounds.from_arrays(X, y, qid, group, missing=nan != "error")
    warn_label_features(rounds.X, rounds.labels, rounds.feature_names or range(rounds.n_features))
    found = tune_rounds(
        rounds, minutes=minutes, metric=metric, learners=learners, exportable=exportable, seed=seed, nan=nan
    )
    estimator = found.model.estimator()
    estimator.table_, estimator.test_ = found.table, found.test
    return estimator


def tune_rounds(
    rounds: Rounds,
    *,
    minutes: float = 2.0,
    metric: str | Metric = "ndcg@10",
    learners: Sequence[str] | None = None,
    exportable: bool = False,
    seed: int = 0,
    nan: str = "error",
    watch: Callable[[Progress], None] | None = None,
    workers: Workers | None = None,
) -> Tuned:
    """The same for rounds; `watch` is told how far it is. Ctrl-C ends the search with the best so far.

    With `workers`, such as a Dask cluster, the families of a fold are tried at the same time.

    >>> from ranktron.data.synthetic import Separable
    >>> found = tune_rounds(Separable(documents=8, features=4).rounds(30), learners=["listnet"])
    >>> found.model.kind, found.test["queries"], found.table[0]["folds"]
    ('listnet', 6, 4)
    """
    by, check = as_metric(metric), check_count(seed, "the seed", 0)
    if not 0.0 < minutes < float("inf"):
        raise DataError(f"minutes must be a number above 0, not {minutes}")
    if len(rounds) < LEAST:
        raise DataError(f"tuning divides the queries and needs at least {LEAST} of them, not {len(rounds)}")
    if all_uninformative(rounds):
        raise DataError("no query has documents with different labels: there is nothing to learn, nor to choose by")
    order = np.random.default_rng((check, 20)).permutation(len(rounds))
    aside = round(SET_ASIDE * len(rounds))
    rest, test = rounds[np.sort(order[aside:])], rounds[np.sort(order[:aside])]
    tried = families(rest, learners, exportable)
    search = Search(rest, by, tried, check, nan, minutes * 60.0 * FOR_THE_SEARCH, watch, workers=workers)
    with Interrupts() as interrupts:
        search.run(interrupts)
    best = search.ranked()[0].candidate
    values = evaluate(_train_candidate(best, rest, check, nan).score_rounds(test), test, [by])
    low, high = values.interval(str(by))
    honest = {"mean": values.means[str(by)], "low": low, "high": high, "queries": len(test)}
    return Tuned(_train_candidate(best, rounds, check, nan), search.table(), honest, search.stopped)


def rehearse(rounds: Rounds, metric: Metric, learners: Sequence[str] | None, exportable: bool, nan: str) -> None:
    """Tries all families on a few queries, for nothing but what they compile: on a first run that takes a while."""
    few = rounds[:LEAST]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankingWarning)
        for family in families(few, learners, exportable):
            with suppress(DataError):  # the search will tell
                _measure_family(few, few, family, 0, nan, metric)


def _train_candidate(candidate: Candidate, rounds: Rounds, seed: int, nan: str) -> Model:
    schedule = Schedule(candidate.epochs, seed)
    name, given = candidate.learner, candidate.parameters
    return train(name, given, rounds, schedule, scaling=candidate.scale, map=candidate.map, nan=nan).model


def _measure_family(
    part: Rounds, valid: Rounds, family: Family, seed: int, nan: str, by: Metric
) -> list[tuple[Candidate, Floats]]:
    scored = family.scores(part, valid, seed, nan)
    return [(candidate, evaluate(scores, valid, [by]).per_query[str(by)]) for candidate, scores in scored]


@dataclass(eq=False)
class Search:
    """The search itself: folds, families that are still in it, and what is known of every candidate."""

    rounds: Rounds
    by: Metric
    alive: list[Family]
    seed: int
    nan: str
    seconds: float
    watch: Callable[[Progress], None] | None = None
    traces: dict[Candidate, CandidateTrace] = field(default_factory=dict)
    stopped: str = ""
    workers: Workers | None = None
    _began: float = field(default_factory=lambda: perf_counter())
    _speed: dict[Family, float] = field(default_factory=dict)  # seconds for a query to learn from

    def run(self, interrupts: Interrupts) -> None:
        """Tries all families on one fold after the other, the better half of them on the next."""
        error = None
        for number, (part, valid) in enumerate(self._folds()):
            found: dict[Candidate, tuple[Floats, float]] = {}
            tasks = self._send(part, valid)
            for family in self.alive:
                if self.stopped or not self._fits(family, len(part), interrupts):
                    break
                self._tell(max(number - 1, 0) if self._sampled else number, family, len(found))
                began = perf_counter()
                try:
                    for candidate, values in tasks.get(family) or self._measured(family, part, valid, interrupts):
                        found[candidate] = values, perf_counter() - began
                except DataError as refused:  # of one family; the others may well do
                    error = refused
                self._speed[family] = (perf_counter() - began) / len(part)
            if not self.stopped or not self.traces:
                self._note(found, sample=self._sampled and number == 0)
            if not self.traces:
                raise error or DataError(NOTHING_FITS)
            if self.stopped:
                return
            self._halve(after_sample=self._sampled and number == 0)

    @property
    def _sampled(self) -> bool:
        return len(self.rounds) > 2 * MOST_IN_SAMPLE

    def _folds(self) -> Iterator[tuple[Rounds, Rounds]]:
        """For each fold the queries to learn from and the others; before them, of many queries, a sample."""
        parts = np.array_split(np.random.default_rng((self.seed, 21)).permutation(len(self.rounds)), FOLDS)
        divided = [(np.concatenate([part for j, part in enumerate(parts) if j != i]), parts[i]) for i in range(FOLDS)]
        if self._sampled:
            divided.insert(0, (divided[0][0][:MOST_IN_SAMPLE], divided[0][1][:MOST_IN_SAMPLE]))
        for part, valid in divided:
            yield self.rounds[np.sort(part)], self.rounds[np.sort(valid)]

    def _fits(self, family: Family, queries: int, interrupts: Interrupts) -> bool:
        """Whether there is time for a family, by what it took before; the first one is always tried."""
        left = self.seconds - (perf_counter() - self._began)
        if interrupts.asked:
            self.stopped = "interrupt"
        elif left < self._speed.get(family, 0.0) * queries and (self.traces or self._speed):
            self.stopped = "time"
        return not self.stopped

    def _send(self, part: Rounds, valid: Rounds) -> dict[Family, Iterator[tuple[Candidate, Floats]]]:
        """Lets workers measure all families of a fold at once; without workers each is measured when its turn comes."""
        if self.workers is None:
            return {}
        data = [self.workers.submit(keep, each, home=0) for each in (part, valid)]
        tasks = [
            self.workers.submit(_measure_family, *data, family, self.seed, self.nan, self.by, home=at)
            for at, family in enumerate(self.alive)
        ]
        return {family: self._received(task) for family, task in zip(self.alive, tasks, strict=True)}

    def _received(self, task: Any) -> Iterator[tuple[Candidate, Floats]]:
        try:
            yield from task.result(max(0.0, self.seconds - (perf_counter() - self._began)) or 1e-3)
        except TimeoutError:
            self.stopped = "time"

    def _measured(
        self, family: Family, part: Rounds, valid: Rounds, interrupts: Interrupts
    ) -> Iterator[tuple[Candidate, Floats]]:
        for candidate, scores in family.scores(part, valid, self.seed, self.nan):
            yield candidate, evaluate(scores, valid, [self.by]).per_query[str(self.by)]
            if interrupts.asked:
                self.stopped = "interrupt"
            elif perf_counter() - self._began > self.seconds:
                self.stopped = "time"
            if self.stopped:
                return

    def _note(self, found: Mapping[Candidate, tuple[Floats, float]], *, sample: bool) -> None:
        for candidate, (values, seconds) in found.items():
            trace = self.traces.setdefault(candidate, CandidateTrace(candidate))
            if sample:
                trace.sample = values
            else:
                trace.folds.append(values)
            trace.seconds += seconds

    def _halve(self, *, after_sample: bool) -> None:
        """Keeps the better half of the families, by their best candidates, once enough queries have been seen."""
        ranked = self.ranked()
        if after_sample or sum(map(len, ranked[0].folds)) >= EVIDENCE:
            best = {id(f): min(i for i, t in enumerate(ranked) if t.candidate in f.candidates) for f in self._tried()}
            order = sorted(self._tried(), key=lambda family: best[id(family)])
            kept = {id(family) for family in order[: max(2, (len(order) + 1) // 2)]}
            self.alive = [family for family in self.alive if id(family) in kept]
        else:
            self.alive = self._tried()

    def _tried(self) -> list[Family]:
        return [family for family in self.alive if any(c in self.traces for c in family.candidates)]

    def ranked(self) -> list[CandidateTrace]:
        """All that was tried, the best first; what was left out earlier stands behind what was left out later."""
        key, sign = str(self.by), 1.0 if self.by.higher_is_better else -1.0
        return sorted(self.traces.values(), key=lambda t: (-len(t.folds), -sign * t.evaluation(key).means[key]))

    def table(self) -> list[dict[str, Any]]:
        """A row for each candidate, the best first."""
        rows, key = [], str(self.by)
        for trace in self.ranked():
            one, values = trace.candidate, trace.evaluation(key)
            low, high = values.interval(key)
            row: dict[str, Any] = {"learner": one.learner, "parameters": dict(one.parameters), "scale": one.scale}
            row |= {
                "map": one.map,
                "epochs": one.epochs,
                "metric": key,
                "mean": values.means[key],
                "low": low,
                "high": high,
            }
            rows.append({**row, "folds": len(trace.folds), "seconds": trace.seconds})
        return rows

    def _tell(self, number: int, family: Family, now: int) -> None:
        if self.watch is not None:
            best = str(self.ranked()[0].candidate) if self.traces else ""
            left = max(0.0, self.seconds - (perf_counter() - self._began))
            self.watch(Progress(number + 1, FOLDS, str(family), max(now, len(self.traces)), best, left))
