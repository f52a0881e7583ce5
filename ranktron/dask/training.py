"""Training, evaluation and scaling on parts of data that workers read: the client sees counts, sums and states.

The workers are those of a cluster, or threads of this process (`ranktron train --stream`), which needs no Dask.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ranktron.dask.mixed_pass import MIXES, MixedPass, PlayedQueries, check_mixable
from ranktron.dask.solvers import solve_on_parts
from ranktron.dask.tasks import (
    PartSummary,
    common_features,
    evaluate_part,
    name_of,
    name_query,
    play_parts,
    prepare_part,
    sample_part,
    square_part,
    sum_part,
    summarise_part,
    warm_part,
)
from ranktron.data.feature_ranges import ENOUGH, Drift, FeatureRanges, sampled_queries, warn_of_drift
from ranktron.data.imputation import make_imputer
from ranktron.data.io.parts import FeatureNumbers, FilePart, shared_query
from ranktron.data.moments import Moments
from ranktron.data.rounds import Rounds
from ranktron.data.scaling import GLOBAL, choose_scaling, make_scaler
from ranktron.errors import DataError, warn
from ranktron.learners.schedule import Fit, History, Spread
from ranktron.metrics import Evaluation, Metric
from ranktron.training.algorithms import algorithm, stored_algorithm
from ranktron.training.fit import Trained, TrainingPlan, play_schedule, record_run, resume_position
from ranktron.training.model import Model
from ranktron.training.shards import Division, QueryPiece, record_division
from ranktron.training.workers import Workers
from ranktron.types import Floats, State

_NOTHING = Rounds(np.zeros((0, 1), np.float32), np.zeros(0), np.zeros(1, np.int64), np.zeros(0, object))
SAMPLED_PARTS = 16  # from which the ranges of features are computed
SHARDS = 16
"""The default number of shards is that of parts, up to this one. It does not depend on the number of workers."""


@dataclass(frozen=True, eq=False)
class PartData:
    """Parts with whole queries, and the workers that read them.

    Parameters
    ----------
    parts : list
        File parts, or futures of `Rounds` that the workers hold.
    names : list of str
        The names of the parts in messages.
    summaries : list of PartSummary
        Counts and sums of each part.
    features : FeatureNumbers
        The features of all parts together.
    workers : Workers
        The workers that read and play them.
    homes : list of int
        For each part the number of its worker: the same for all parts of a shard.
    """

    parts: list[Any]
    names: list[str]
    summaries: list[PartSummary]
    features: FeatureNumbers
    workers: Workers
    homes: list[int]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of queries of each part."""
        return tuple(summary.queries for summary in self.summaries)

    @property
    def documents(self) -> int:
        """The number of documents of all parts."""
        return sum(summary.documents for summary in self.summaries)

    def map(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Applies a function to each part."""
        pairs = zip(self.parts, self.homes, strict=True)
        futures = [self.workers.submit(function, part, *arguments, home=home) for part, home in pairs]
        return _results(futures, self.names)

    def map_homes(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Applies a function to the list of the parts of each home, which are neighbours."""
        groups = [list(own) for _, own in itertools.groupby(range(len(self.parts)), key=self.homes.__getitem__)]
        futures = [
            self.workers.submit(function, [self.parts[p] for p in own], *arguments, home=self.homes[own[0]])
            for own in groups
        ]
        return _results(futures, [self.names[own[0]] for own in groups])

    def hold(self, function: Callable[..., Any], *arguments: Any) -> PartData:
        """The same with the results of a function in place of the parts; the workers hold them in memory."""
        pairs = zip(self.parts, self.homes, strict=True)
        return replace(self, parts=[self.workers.submit(function, part, *arguments, home=home) for part, home in pairs])

    def prepare(self, model: Model) -> list[Any]:
        """The parts for a model: files as they are, and parts in memory prepared."""
        pairs = zip(self.parts, self.homes, strict=True)
        return [
            part
            if isinstance(part, FilePart)
            else self.workers.submit(prepare_part, part, self.features, model, home=h)
            for part, h in pairs
        ]


def _results(futures: list[Future[Any]], names: Sequence[str]) -> list[Any]:
    results = []
    for future, name in zip(futures, names, strict=True):
        try:
            results.append(future.result())
        except DataError as error:
            named = name.partition(" (")[0] in str(error)  # by the reader, without the range of the part
            raise DataError(str(error) if named else f"{name}: {error}") from None
    return results


def inspect_parts(
    parts: Sequence[Any],
    workers: Workers,
    names: Sequence[str] | None = None,
    *,
    missing: bool = False,
    shards: int = 1,
) -> PartData:
    """Counts the queries of the parts; a query that lies in two of them is refused.

    Parameters
    ----------
    parts : sequence
        File parts, or futures of `Rounds`.
    workers : Workers
        The workers that read them.
    names : sequence of str, optional
        The names of the parts in messages.
    missing : bool
        Whether features may be missing.
    shards : int
        The number of shards to come, so that a worker reads the parts it will play.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from ranktron.data.io.parts import divide_files
    >>> from ranktron.training.workers import LocalWorkers
    >>> path = getfixture("tmp_path") / "train.txt"
    >>> _ = path.write_text("1 qid:7 1:1\\n0 qid:7 1:2\\n1 qid:8 1:3\\n")
    >>> with ThreadPoolExecutor(2) as executor:
    ...     data = inspect_parts(divide_files(path, size=20), LocalWorkers(executor))
    >>> data.sizes, data.features.n_features
    ((1, 1), 1)
    """
    names = list(names) if names is not None else [name_of(part) for part in parts]
    homes = [p if shards == 1 else p * shards // len(parts) for p in range(len(parts))]
    pairs = zip(parts, homes, strict=True)
    summaries = _results([workers.submit(summarise_part, part, missing, home=home) for part, home in pairs], names)
    filled = [p for p, summary in enumerate(summaries) if summary.queries]
    if not filled:
        raise DataError("there is no query in any part")
    parts, summaries = [parts[p] for p in filled], [summaries[p] for p in filled]
    names, homes = [names[p] for p in filled], [homes[p] for p in filled]
    shared = shared_query([summary.hashes for summary in summaries])
    if shared is not None:
        one, two, query = shared
        name = workers.submit(name_query, parts[one], query, home=homes[one]).result()
        raise DataError(
            f"query {name} is split over {names[one]} and {names[two]}: put its rows into one part, or shuffle the "
            "data by query id"
        )
    queries, idle = (sum(getattr(summary, name) for summary in summaries) for name in ("queries", "idle"))
    if 2 * idle > queries:
        warn(f"nothing can be learnt from {idle:,} of {queries:,} queries: one document, or the same label everywhere")
    return PartData(parts, names, summaries, common_features(summaries, names), workers, homes)


def make_untrained_parts(plan: TrainingPlan, data: PartData, *, in_order: bool = False) -> Model:
    """An untrained model, with imputation and scaling fitted to all parts.

    With `in_order`, sums continue from part to part, which gives the bits of one machine; otherwise each part is summed
    alone, and the sums are added.
    """
    if plan.map is not None:
        raise DataError(
            "a feature map is fitted to all documents at once: train a model with the map on some of the queries, and "
            "continue it (--from) on all of them"
        )
    features = data.features
    model = Model(
        plan.algorithm, algorithm(plan.algorithm).complete(plan.parameters), {}, features.n_features,
        features.first_index, features.feature_names, imputer=_fit_imputer(plan.nan, data),
    )  # fmt: skip
    scaling = choose_scaling(plan.scaling, sparse=features.sparse, mapped=False)
    if scaling is None or scaling == "none":
        return model
    if scaling == "running-standard":
        raise DataError("running-standard follows one query after the other: choose standard for data in parts")
    if scaling not in GLOBAL:
        return replace(model, scaler=make_scaler(scaling, model.n_filled))
    moments = _moments(data, model, in_order)
    return replace(model, scaler=make_scaler(scaling, model.n_filled, moments, sparse=features.sparse))


def measure_ranges(model: Model, data: PartData) -> Model:
    """The model with the ranges of its features in at most 16 of the parts; of so few parts those of one machine."""
    samples = sample_parts(data, data.features)
    if not samples:
        return model
    return replace(model, ranges=_of_samples(_ranges_of, data, samples, model.feature_names))


def warn_of_parts_drift(model: Model, data: PartData, name: str) -> list[Drift]:
    """The features of a sample that have left the model's training data, with one warning that names them.

    Parameters
    ----------
    model : Model
        The model.
    data : PartData
        The parts and the workers.
    name : str
        What the warning calls the model.
    """
    samples = sample_parts(data, _features_of(model, data))
    if not samples or model.ranges is None:
        return []
    drifts: list[Drift] = _of_samples(_drifts_of, data, samples, model)
    warn_of_drift(drifts, model.ranges, name)
    return drifts


def sample_parts(data: PartData, features: FeatureNumbers) -> list[Future[Any]]:
    """Samples of at most 16 parts, on the workers; none of too few queries to compare features."""
    n = len(data.parts)
    chosen = np.arange(min(n, SAMPLED_PARTS)) * n // max(min(n, SAMPLED_PARTS), 1)
    first = np.concatenate(([0], np.cumsum(np.array(data.sizes)[chosen])))
    if first[-1] < ENOUGH:
        return []
    queries, samples = sampled_queries(int(first[-1]), features.n_features), []
    for a, b, p in zip(first, first[1:], chosen.tolist(), strict=False):
        own = queries[(queries >= a) & (queries < b)] - a
        if len(own):
            samples.append(data.workers.submit(sample_part, data.parts[p], features, own, home=data.homes[p]))
    return samples


def _of_samples(function: Callable[..., Any], data: PartData, samples: list[Future[Any]], about: Any) -> Any:
    """What a function says of all samples, on one worker: documents do not pass through this machine."""
    return data.workers.submit(function, samples, about, home=data.homes[0]).result()


def _ranges_of(samples: list[Rounds], names: tuple[str, ...] | None) -> FeatureRanges:
    return FeatureRanges.from_sample(Rounds.concat(samples).ordered_by(names))


def _drifts_of(samples: list[Rounds], model: Model) -> list[Drift]:
    return model.drifts(Rounds.concat(samples))


def _features_of(model: Model, data: PartData) -> FeatureNumbers:
    """The features of a model, as parts are read for it."""
    return FeatureNumbers(model.n_features, model.first_index, model.feature_names, data.features.sparse)


def _fit_imputer(nan: str, data: PartData) -> Any:
    if nan == "error":
        return None
    width = data.features.n_features
    if any(len(summary.sums) != width for summary in data.summaries):
        raise DataError("missing values can only be filled in if all parts have the same number of features")
    sums = sum((summary.sums for summary in data.summaries), np.zeros(width))
    known = sum((summary.known for summary in data.summaries), np.zeros(width, np.int64))
    return make_imputer(nan, sums, known, data.documents)


def _moments(data: PartData, model: Model, in_order: bool) -> Moments:
    sums: Any = None
    squares: Any = None
    if in_order:
        for p, part in enumerate(data.parts):
            sums = data.workers.submit(sum_part, part, data.features, model, sums, home=data.homes[p]).result()
        for p, part in enumerate(data.parts if not data.features.sparse else []):
            arguments = part, data.features, model, sums.mean, squares
            squares = data.workers.submit(square_part, *arguments, home=data.homes[p]).result()
    else:
        for each in data.map(sum_part, data.features, model):
            sums = each if sums is None else sums + each
        for each in data.map(square_part, data.features, model, sums.mean) if not data.features.sparse else []:
            squares = each if squares is None else squares + each
    sums = sums if squares is None else sums._replace(squares=squares)
    moments: Moments = sums.moments(data.features.sparse)
    return moments


def train_parts(
    plan: TrainingPlan,
    data: PartData,
    *,
    mode: str = "mix",
    shards: int | None = None,
    mixes: int = MIXES,
    start: Model | None = None,
    valid: Rounds | None = None,
    progress: Callable[[int], None] | None = None,
    save: Callable[[Model], None] | None = None,
    report: Callable[[str], None] | None = None,
) -> Trained:
    """Trains a model on parts that workers read, or continues `start`.

    Parameters
    ----------
    plan : TrainingPlan
        What to train; of a model to continue only schedule, selection and metrics count.
    data : PartData
        The parts and the workers.
    mode : {"mix", "sequential"}
        Shards in parallel, whose weights are mixed; or one learner that goes from part to part and, if nothing is
        shuffled, has the weights of one machine to the bit.
    shards : int, optional
        The number of shards to mix; by default that of parts, and at most 16.
    mixes : int
        The number of mixes in a pass.
    start : Model, optional
        The model to continue.
    valid : Rounds, optional
        The validation set, which selects the best epoch.
    progress : callable, optional
        Called with the number of rounds since its previous call.
    save : callable, optional
        Called with the model after every pass.
    report : callable, optional
        Called after every mix or part with the pass and the time averages of the metrics so far, as text.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from ranktron.data.io.parts import divide_files
    >>> from ranktron.learners.schedule import Schedule
    >>> from ranktron.training.workers import LocalWorkers
    >>> path = getfixture("tmp_path") / "train.txt"
    >>> _ = path.write_text("".join(f"{d} qid:{q} 1:{q + d}\\n" for q in range(50) for d in range(3)))
    >>> with ThreadPoolExecutor(2) as executor:
    ...     data = inspect_parts(divide_files(path, size=400), LocalWorkers(executor))
    ...     trained = train_parts(TrainingPlan("hinge", schedule=Schedule(2)), data, shards=2)
    >>> trained.history.rounds
    100
    """
    if mode not in ("mix", "sequential"):
        raise DataError(f"there is no mode {mode!r}; choose mix or sequential")
    if plan.feedback is not None:
        raise DataError("a simulated user answers one round after the other: train on one machine")
    in_order, schedule, metrics = mode == "sequential", plan.schedule, plan.shown_metrics
    division = Division(data.sizes, 1 if in_order else shards or min(SHARDS, len(data.sizes)), mixes)
    stored_division = record_division(division)
    blank = start is None
    if start is None:
        start = measure_ranges(make_untrained_parts(plan, data, in_order=in_order), data)
    validation = plan.validation(None if valid is None else start.prepare(valid))
    epoch, queries, untrained = int(start.record.get("epoch", 0)), sum(data.sizes), replace(start, state={}, record={})
    sent = replace(untrained, ranges=None)  # with each task
    history = History(epoch=epoch, first_epoch=epoch)
    fit = Fit(_NOTHING, schedule, history, validation, start.state, progress, n_queries=queries)
    if stored_algorithm(start.kind).solver() is not None:
        model = replace(untrained, state=solve_on_parts(data, sent, fit, division.shard_parts, metrics))
        return Trained(replace(model, record=record_run(fit)), history, model.learner())
    fit.progress = _reporting(progress, report, fit, metrics)
    learner = start.blank_learner() if blank else start.learner()
    if division.shards > 1:
        check_mixable(start.kind, learner)
    history.position, history.spread = resume_position(start, queries, stored_division), Spread.of(start.record)
    mixed = MixedPass(division, _run_parts(data, sent, division))

    def play_epoch(learner: Any, fit: Fit, metrics: tuple[Metric, ...], every: int) -> None:
        mixed(learner, fit, metrics, every)
        if save is not None and not fit.interrupted:
            record = record_run(fit) | {"division": stored_division, "epoch": history.epoch + 1, "position": 0}
            save(replace(untrained, state=learner.state(), record=record))

    play_schedule(learner, fit, metrics, play_epoch)
    record = record_run(fit) | {"division": stored_division}
    return Trained(replace(untrained, state=learner.state(), record=record), history, learner)


def _reporting(
    progress: Callable[[int], None] | None, report: Callable[[str], None] | None, fit: Fit, metrics: Sequence[Metric]
) -> Callable[[int], None] | None:
    """Progress that also reports the pass and the time averages as text."""
    if report is None:
        return progress

    def advance(count: int) -> None:
        if progress is not None:
            progress(count)
        history = fit.history
        means = (f"{m} {value:.4f}" for m, value in zip(metrics, history.averages(), strict=False))
        last = history.first_epoch + fit.schedule.epochs
        report(", ".join([f"pass {history.epoch + 1} of {last}", *means]))

    return advance


def _run_parts(data: PartData, model: Model, division: Division) -> Any:
    """Submits the pieces of a shard to the worker that has its parts."""
    token, features, workers = secrets.token_hex(8), data.features, data.workers
    parts = data.prepare(model)
    homes = [data.homes[own.start] for own in division.shard_parts for _ in own] if division.shards > 1 else data.homes

    def run(
        shard: int, state: State, pieces: list[QueryPiece], following: list[QueryPiece], metrics: tuple[Metric, ...]
    ) -> Future[PlayedQueries]:
        own, queries = [parts[piece.part] for piece in pieces], [piece.queries for piece in pieces]
        home = homes[pieces[0].part] if pieces else 0
        future = workers.submit(play_parts, token, own, features, model, state, queries, metrics, home=home)
        if division.shards == 1:  # the next part is loaded meanwhile
            for piece in following:
                if isinstance(parts[piece.part], FilePart):
                    workers.submit(warm_part, token, parts[piece.part], features, model, home=homes[piece.part])
        return future

    return run


def evaluate_parts(model: Model, data: PartData, metrics: Sequence[Metric]) -> Evaluation:
    """Evaluates a model on parts, with the values of one machine to the bit.

    Parameters
    ----------
    model : Model
        The model.
    data : PartData
        The parts and the workers.
    metrics : sequence of Metric
        The metrics of each query.
    """
    results = data.map(evaluate_part, _features_of(model, data), model, tuple(metrics))
    per_query: dict[str, Floats] = {
        str(each): np.concatenate([values[str(each)] for values, _, _ in results]) for each in metrics
    }
    qids = np.concatenate([ids for _, ids, _ in results])
    means = {name: float(values.mean()) for name, values in per_query.items()}
    return Evaluation(means, per_query, qids, sum(empty for _, _, empty in results))
