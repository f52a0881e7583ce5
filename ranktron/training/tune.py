"""Tuning: the choice of learner, map, scaling and parameters by cross-validation, evaluated on held-out queries.

A fifth of the queries is held out. The others are divided into folds: candidates learn on all folds but one and are
evaluated on that one. Once `EVIDENCE` validation queries have been seen, the better half of the families remains after
each fold (successive halving: Jamieson and Talwalkar 2016). The winner is evaluated once on the held-out queries, which
had no influence on the choice, and is then trained on all queries.

Candidates that do not fit into the time budget are not tried. If all of them fit, the result is a function of data and
seed.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, product
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from ranktron.data.query_warnings import all_uninformative, warn_label_features
from ranktron.data.rounds import NO_QUERY_IDS, Rounds, take_qid_column
from ranktron.errors import DataError, RankingWarning
from ranktron.kernels.csr_rows import Sparse
from ranktron.learners.batch.trees import first_trees
from ranktron.learners.fused import can_fuse, play_many
from ranktron.learners.schedule import Interrupts, Schedule
from ranktron.metrics import Evaluation, Metric
from ranktron.metrics import metric as as_metric
from ranktron.metrics.evaluation import evaluate_rounds
from ranktron.training.algorithms import algorithm
from ranktron.training.fit import TrainingPlan, make_untrained, train
from ranktron.training.model import Model, served_scores
from ranktron.training.workers import Workers, keep
from ranktron.types import Floats
from ranktron.types.validation import check_count

LEAST = 10  # queries: two to report on, and two in each of four folds
FOLDS = 4
HELD_OUT = 0.2  # the share of the queries
EVIDENCE = 50  # validation queries before families are dropped
SAMPLE = 300  # queries of a first sample, if there are more than twice as many
SEARCH_SHARE = 0.75  # of the time; the rest is for the two trainings of the winner
NOTHING_FITS = "there was no time to try anything: give it more minutes"


SCALES = ("standard", "standard-query")
SPARSE_SCALES = ("range", "standard")
MAPS = (None, "bins-linear:2", "bins-linear:8", "leaves:60")
PASSES = (1, 3, 10, 30)
MOST_PLAYED = 6000  # queries, over all passes; one pass is always tried
ONLINE: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "listnet": [{"eta": eta, "average": True} for eta in (0.01, 0.03, 0.1, 0.3, 1.0)],
    "hinge": [{"eta": eta, "average": True} for eta in (0.01, 0.03, 0.1, 0.3, 1.0)],
    "slam": [{"eta": eta, "fraction": 0.7, "step": "sqrt", "average": True} for eta in (0.1, 0.3, 1.0)],
}
"""Online learners, which are played together. Averages only: on seven validation sets they were never worse."""
SOLVED: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "ranksvm": [{"C": C} for C in (0.01, 0.1, 1.0, 10.0)],
    "smoothrank": [{"C": C} for C in (3.0, 10.0, 30.0, 100.0)],
}
BEGINNING: Mapping[str, int] = {"smoothrank": 10}
"""The number of passes of ListNet from which a solver starts, if the queries are not too many."""
BOOSTED = "rankboost"
LEARNERS = (*ONLINE, *SOLVED, BOOSTED)
TREES = "lightgbm"
GROWN = [
    {"num_leaves": leaves, "learning_rate": rate, "min_data_in_leaf": least}
    for rate, leaves, least in product((0.1, 0.03), (7, 31), (50, 5))
]
"""Settings of trees, which are tried only when they are asked for: they need another library, and longer."""
NUMBERS = (20, 50, 100, 200, 300)  # of trees, all of which one training evaluates


class Progress(NamedTuple):
    """The progress of a search: the current fold and family, the number of candidates tried, the best, seconds left."""

    fold: int
    folds: int
    family: str
    tried: int
    best: str
    seconds_left: float


@dataclass(frozen=True)
class Candidate:
    """A learner with its parameters, scaling, feature map and number of epochs."""

    learner: str
    settings: tuple[tuple[str, Any], ...]  # the parameters that are not the recommended ones, hashable
    scale: str | None
    map: str | None = None
    epochs: int = 1

    @property
    def parameters(self) -> dict[str, Any]:
        return dict(self.settings)

    def plan(self, seed: int, nan: str) -> TrainingPlan:
        """The training of this candidate."""
        return TrainingPlan(self.learner, self.parameters, Schedule(self.epochs, seed), self.scale, self.map, nan)

    def __str__(self) -> str:
        values = [
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in self.settings
        ]
        passes = [f"{self.epochs} pass{'es' * (self.epochs > 1)}"] if self.learner in ONLINE else []
        return ", ".join([self.learner, *values, *filter(None, [self.scale, self.map]), *passes])


@dataclass(frozen=True)
class Family:
    """Candidates with the same features; online learners among them are played together, pass after pass."""

    candidates: tuple[Candidate, ...]

    def __str__(self) -> str:
        first = self.candidates[0]
        names = dict.fromkeys(each.learner for each in self.candidates)
        return " ".join(filter(None, ["/".join(names), first.scale, first.map]))

    def scores(self, part: Rounds, valid: Rounds, seed: int, nan: str) -> Iterator[tuple[Candidate, Floats]]:
        """The scores of the validation queries of each candidate, after learning from `part`."""
        first = self.candidates[0]
        if first.learner == TREES:  # the first trees of the largest sum are the smaller one
            largest = max(self.candidates, key=lambda each: each.parameters["n_rounds"])
            model = train(largest.plan(seed, nan), part, ranges=False).model
            for each in self.candidates:
                state = first_trees(model.state, each.parameters["n_rounds"])
                yield each, replace(model, state=state).score_rounds(valid)
            return
        if algorithm(first.learner).solver() is not None:
            for each in self.candidates:
                trained = train(each.plan(seed, nan), part, ranges=False)
                yield each, trained.model.score_rounds(valid)
                if trained.history.interrupted:
                    return
            return
        model = make_untrained(TrainingPlan(first.learner, scaling=first.scale, map=first.map, nan=nan), part)
        prepared, checked = model.prepare(part), model.prepare(valid)
        by_settings = {
            (each.learner, each.settings): algorithm(each.learner).learner(prepared.n_features, each.parameters)
            for each in self.candidates
        }
        learners = [learner for learner in by_settings.values() if can_fuse(learner)]
        for epoch in range(max(each.epochs for each in self.candidates)):
            for _ in play_many(learners, Schedule(seed=seed).epoch(prepared, epoch)):
                pass
            for each in self.candidates:
                if each.epochs == epoch + 1:
                    yield each, served_scores(by_settings[each.learner, each.settings], checked)


def families(rounds: Rounds, learners: Sequence[str] | None = None, exportable: bool = False) -> list[Family]:
    """The families to try on these queries; parameters that are not named have the recommended value.

    Cheap and diverse candidates first, in case the budget runs out.

    >>> from ranktron.data.synthetic import Separable
    >>> [str(family) for family in families(Separable().rounds(20), ["hinge", "ranksvm"], exportable=True)]
    ['hinge standard', 'ranksvm standard']
    """
    names = LEARNERS if learners is None else tuple(dict.fromkeys(learners))
    known = (*LEARNERS, TREES)
    for name in names:
        if name not in known:
            raise DataError(f"tuning chooses among {', '.join(known)}, not {name!r}")
    if not names:
        raise DataError(f"tuning needs at least one learner of {', '.join(known)}")
    if exportable and TREES in names:
        raise DataError(f"no search engine gets trees of {TREES} from here: leave them out, or exportable")
    sparse = isinstance(rounds.X, Sparse)
    scales = SPARSE_SCALES if sparse else SCALES[:1] if exportable else SCALES
    maps = MAPS[:1] if sparse or exportable else MAPS
    passes = [epochs for epochs in PASSES if epochs == 1 or epochs * len(rounds) <= MOST_PLAYED]
    online = [(name, point) for name in names if name in ONLINE for point in ONLINE[name]]
    by_map = {
        map: [
            Family(tuple(Candidate(n, tuple(point.items()), scale, map, e) for e in passes for n, point in online))
            for scale in scales
            if online
        ]
        for map in maps
    }
    trials = by_map.pop(None) + [Family((Candidate(BOOSTED, (), None),))] * (BOOSTED in names)
    trials += chain.from_iterable(by_map.values())
    for name in names:
        begin = max(epochs for epochs in passes if epochs <= BEGINNING.get(name, 1))
        points = [tuple(point.items()) for point in SOLVED.get(name, ())]
        trials += [Family(tuple(Candidate(name, p, scale, epochs=begin) for p in points)) for scale in scales if points]
    if TREES in names:
        for setting in GROWN:
            points = [tuple({**setting, "n_rounds": number}.items()) for number in NUMBERS]
            trials.append(Family(tuple(Candidate(TREES, point, None) for point in points)))
    return trials


@dataclass(eq=False)
class CandidateTrace:
    """The results of a candidate: its values on the validation queries of each fold, and the seconds they took."""

    candidate: Candidate
    folds: list[Floats] = field(default_factory=list)  # for each fold the metric of its validation queries
    sample: Floats | None = None  # the same after learning from fewer queries; counts only before the first fold
    seconds: float = 0.0

    def evaluation(self, key: str) -> Evaluation:
        """The metric of all validation queries so far, as an evaluation."""
        values = self.sample if self.sample is not None and not self.folds else np.concatenate(self.folds)
        return Evaluation({key: float(values.mean())}, {key: values}, np.arange(len(values)), 0)


@dataclass(frozen=True, eq=False)
class Tuned:
    """The result of a search.

    Parameters
    ----------
    model : Model
        The winner, trained on all queries.
    table : list of dict
        A row for each candidate, the best first: learner, parameters, scale, map, epochs; mean, low and high of the
        metric over the validation queries (95 % interval); folds (0: evaluated on a sample only), seconds.
    test : dict
        Mean, low and high on the held-out queries, and their number, after training on all others.
    stopped : str
        Why the search ended early: "time", "interrupt", or "" if every candidate was tried.
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
    """Chooses learner, map, scaling and parameters within a time budget, and fits the winner.

    Parameters
    ----------
    X : table of numbers, data frame or sparse matrix
        A row per document.
    y : array
        The labels, finite and at least 0.
    qid, group : array
        The query of each row, or sizes of consecutive lists.
    minutes : float
        The time budget, above 0. Candidates that do not fit are not tried.
    metric : str or Metric
        The metric to maximise, or minimise if lower values are better.
    learners : sequence of str, optional
        The algorithms to choose from; by default `hinge`, `listnet`, `slam`, `ranksvm`, `smoothrank` and `rankboost`.
        `lightgbm`, whose trees take longer, can be named, too.
    exportable : bool
        Whether to try only what search engines can compute: no scaling within queries, no maps.
    seed : int
        The seed of the division into folds and of the order of the queries.
    nan : str
        The treatment of missing values, as in the estimators.

    Returns
    -------
    estimator
        Fitted on all queries. `table_` has a row (dict) for each candidate, `test_` the value on held-out queries,
        measured before they were learnt from.

    Examples
    --------
    >>> import ranktron
    >>> lists = ranktron.synthetic.Separable(documents=8, features=4).rounds(30)
    >>> ranker = ranktron.tune(lists.X, lists.labels, group=[8] * 30, learners=["hinge"])
    >>> ranker.test_["mean"] > 0.9, ranker.table_[0]["learner"]
    (True, 'hinge')
    """
    X, qid_column = take_qid_column(X)
    qid = qid_column if qid is None and group is None else qid
    if qid is None and group is None:
        raise DataError(NO_QUERY_IDS)
    rounds = Rounds.from_arrays(X, y, qid, group, missing=nan != "error")
    warn_label_features(rounds.X, rounds.labels, rounds.feature_names or range(rounds.n_features))
    tuned = tune_rounds(
        rounds, minutes=minutes, metric=metric, learners=learners, exportable=exportable, seed=seed, nan=nan
    )
    estimator = tuned.model.estimator()
    estimator.table_, estimator.test_ = tuned.table, tuned.test
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
    """As `tune`, for rounds. Ctrl-C ends the search with the best candidate so far; `watch` receives the progress.

    With `workers`, such as a Dask cluster, the families of a fold are tried in parallel.

    >>> from ranktron.data.synthetic import Separable
    >>> tuned = tune_rounds(Separable(documents=8, features=4).rounds(30), learners=["listnet"])
    >>> tuned.model.kind, tuned.test["queries"], tuned.table[0]["folds"]
    ('listnet', 6, 4)
    """
    by, seed = as_metric(metric), check_count(seed, "the seed", 0)
    if not 0.0 < minutes < float("inf"):
        raise DataError(f"minutes must be a number above 0, not {minutes}")
    if len(rounds) < LEAST:
        raise DataError(f"tuning divides the queries and needs at least {LEAST} of them, not {len(rounds)}")
    if all_uninformative(rounds):
        raise DataError("no query has documents with different labels: there is nothing to learn, nor to choose by")
    order = np.random.default_rng((seed, 20)).permutation(len(rounds))
    held_out = round(HELD_OUT * len(rounds))
    rest, test = rounds[np.sort(order[held_out:])], rounds[np.sort(order[:held_out])]
    trials = families(rest, learners, exportable)
    search = Search(rest, by, trials, seed, nan, minutes * 60.0 * SEARCH_SHARE, watch, workers=workers)
    with Interrupts() as interrupts:
        search.run(interrupts)
    best = search.ranked()[0].candidate
    plan = best.plan(seed, nan)
    values = evaluate_rounds(test, train(plan, rest, ranges=False).model.score_rounds(test), [by])
    low, high = values.interval(str(by))
    held_out_values = {"mean": values.means[str(by)], "low": low, "high": high, "queries": len(test)}
    return Tuned(train(plan, rounds).model, search.table(), held_out_values, search.stopped)


def compile_families(
    rounds: Rounds, metric: Metric, learners: Sequence[str] | None, exportable: bool, nan: str
) -> None:
    """Compiles everything a search calls, by trying all families on a few queries."""
    few = rounds[:LEAST]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankingWarning)
        for family in families(few, learners, exportable):
            with suppress(DataError):  # the search reports it
                _measure_family(few, few, family, 0, nan, metric)


def _measure_family(
    part: Rounds, valid: Rounds, family: Family, seed: int, nan: str, by: Metric
) -> list[tuple[Candidate, Floats]]:
    scored = family.scores(part, valid, seed, nan)
    return [(candidate, evaluate_rounds(valid, scores, [by]).per_query[str(by)]) for candidate, scores in scored]


@dataclass(eq=False)
class Search:
    """The search: folds, the families that remain, and the results of every candidate."""

    rounds: Rounds  # all queries but those held out
    by: Metric
    alive: list[Family]  # halved after each fold
    seed: int
    nan: str
    seconds: float  # the time budget
    watch: Callable[[Progress], None] | None = None
    traces: dict[Candidate, CandidateTrace] = field(default_factory=dict)
    stopped: str = ""  # "time" or "interrupt" once the search has to end
    workers: Workers | None = None
    _began: float = field(default_factory=lambda: perf_counter())
    _speed: dict[Family, float] = field(default_factory=dict)  # seconds for each query to learn from

    def run(self, interrupts: Interrupts) -> None:
        """Tries all families on the first fold, and the better half of them on each of the following ones."""
        error = None
        for number, (part, valid) in enumerate(self._folds()):
            results: dict[Candidate, tuple[Floats, float]] = {}
            tasks = self._submit(part, valid)
            for family in self.alive:
                if self.stopped or not self._fits(family, len(part), interrupts):
                    break
                self._report(max(number - 1, 0) if self._sampled else number, family, len(results))
                began = perf_counter()
                try:
                    for candidate, values in tasks.get(family) or self._measured(family, part, valid, interrupts):
                        results[candidate] = values, perf_counter() - began
                except DataError as refused:  # of one family; others may succeed
                    error = refused
                self._speed[family] = (perf_counter() - began) / len(part)
            if not self.stopped or not self.traces:
                self._record(results, sample=self._sampled and number == 0)
            if not self.traces:
                raise error or DataError(NOTHING_FITS)
            if self.stopped:
                return
            self._halve(after_sample=self._sampled and number == 0)

    @property
    def _sampled(self) -> bool:
        return len(self.rounds) > 2 * SAMPLE

    def _folds(self) -> Iterator[tuple[Rounds, Rounds]]:
        """The training and validation queries of each fold; of many queries a sample comes first."""
        parts = np.array_split(np.random.default_rng((self.seed, 21)).permutation(len(self.rounds)), FOLDS)
        divided = [(np.concatenate([part for j, part in enumerate(parts) if j != i]), parts[i]) for i in range(FOLDS)]
        if self._sampled:
            divided.insert(0, (divided[0][0][:SAMPLE], divided[0][1][:SAMPLE]))
        for part, valid in divided:
            yield self.rounds[np.sort(part)], self.rounds[np.sort(valid)]

    def _fits(self, family: Family, queries: int, interrupts: Interrupts) -> bool:
        """Whether there is time for a family, judged by its time on earlier folds; the first one is always tried."""
        left = self.seconds - (perf_counter() - self._began)
        if interrupts.requested:
            self.stopped = "interrupt"
        elif left < self._speed.get(family, 0.0) * queries and (self.traces or self._speed):
            self.stopped = "time"
        return not self.stopped

    def _submit(self, part: Rounds, valid: Rounds) -> dict[Family, Iterator[tuple[Candidate, Floats]]]:
        """Submits all families of a fold to the workers; empty without workers."""
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
            yield candidate, evaluate_rounds(valid, scores, [self.by]).per_query[str(self.by)]
            if interrupts.requested:
                self.stopped = "interrupt"
            elif perf_counter() - self._began > self.seconds:
                self.stopped = "time"
            if self.stopped:
                return

    def _record(self, results: Mapping[Candidate, tuple[Floats, float]], *, sample: bool) -> None:
        for candidate, (values, seconds) in results.items():
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
            better = {id(family) for family in order[: max(2, (len(order) + 1) // 2)]}
            self.alive = [family for family in self.alive if id(family) in better]
        else:
            self.alive = self._tried()

    def _tried(self) -> list[Family]:
        return [family for family in self.alive if any(c in self.traces for c in family.candidates)]

    def ranked(self) -> list[CandidateTrace]:
        """All candidates that were tried, the best first; those dropped earlier come after those dropped later."""
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

    def _report(self, number: int, family: Family, now: int) -> None:
        if self.watch is not None:
            best = str(self.ranked()[0].candidate) if self.traces else ""
            left = max(0.0, self.seconds - (perf_counter() - self._began))
            self.watch(Progress(number + 1, FOLDS, str(family), max(now, len(self.traces)), best, left))
