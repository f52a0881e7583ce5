"""Training: the plan of a run, its epochs, the choice of the best one on a validation set, and continued training."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil
from typing import Any, Protocol

import numpy as np

from ranktron.data import streams
from ranktron.data.feature_ranges import ENOUGH, FeatureRanges
from ranktron.data.imputation import fit_imputer, impute
from ranktron.data.maps import FeatureMap, as_map
from ranktron.data.query_warnings import (
    warn_high_labels,
    warn_repeated_documents,
    warn_reused_query_ids,
    warn_shared_queries,
    warn_uninformative_queries,
)
from ranktron.data.rounds import Rounds, check_labels
from ranktron.data.scaling import Running, choose_scaling, fit_scaler, scale
from ranktron.errors import DataError, RankingWarning
from ranktron.kernels.csr_rows import Sparse
from ranktron.learners.base import BaseLearner, CompiledPass
from ranktron.learners.clicks.click_models import click_model
from ranktron.learners.fused import can_fuse, play_pass
from ranktron.learners.loop import play
from ranktron.learners.schedule import Fit, History, Schedule, Spread, Validation, next_snapshot, repetitions
from ranktron.metrics import Metric, metric
from ranktron.training.algorithms import algorithm
from ranktron.training.model import Model, served_scores
from ranktron.types import FeedbackModel, Floats, Round

CURVE_POINTS = 200
CHUNK = 1024  # rounds of a compiled pass between two reports of progress and two looks at Ctrl-C


@dataclass(frozen=True, eq=False)
class TrainingPlan:
    """A training run without its data: executed by `train`, on folds, for many values of a parameter, or on parts.

    Parameters
    ----------
    algorithm : str
        The name of the algorithm.
    parameters : mapping
        Its parameters; those left out have the recommended value.
    schedule : Schedule
        The number of epochs, the seed, and whether queries are shuffled.
    scaling : str, optional
        The feature scaling; None, none.
    map : str or FeatureMap, optional
        The feature map.
    nan : str
        The treatment of missing values.
    select : str or Metric
        The metric that selects the best epoch on a validation set.
    patience : int, optional
        Stop after this many epochs without improvement on the validation set.
    metrics : sequence of str or Metric
        Computed for each ranking as it is shown, and on the validation set.
    feedback : FeedbackModel or str, optional
        A simulated user by name, or any feedback model, instead of the learner's `simulated_feedback`.

    Examples
    --------
    >>> TrainingPlan("hinge", {"eta": 0.5}, Schedule(epochs=2)).schedule.epochs
    2
    """

    algorithm: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    schedule: Schedule = field(default_factory=Schedule)
    scaling: str | None = None
    map: str | FeatureMap | None = None
    nan: str = "error"
    select: str | Metric = "ndcg@10"
    patience: int | None = None
    metrics: Sequence[str | Metric] = ()
    feedback: FeedbackModel | str | None = None

    @property
    def shown_metrics(self) -> tuple[Metric, ...]:
        """The metrics as objects."""
        return tuple(metric(each) for each in self.metrics)

    def validation(self, rounds: Rounds | None) -> Validation | None:
        """The choice of the best epoch on prepared queries; None without them.

        Parameters
        ----------
        rounds : Rounds, optional
            The validation set as the learner takes it.
        """
        if rounds is not None:
            return Validation(rounds, metric(self.select), self.patience)
        if self.patience is not None:
            raise DataError("patience counts epochs without improvement on a validation set: give one, or leave it out")
        return None


@dataclass(frozen=True)
class Trained:
    """A model, the history of its training, and the learner that was trained."""

    model: Model
    history: History
    learner: BaseLearner


def train(
    plan: TrainingPlan,
    rounds: Rounds,
    *,
    start: Model | None = None,
    valid: Rounds | None = None,
    weights: Floats | None = None,
    document_weights: Floats | None = None,
    progress: Callable[[int], None] | None = None,
    consume: bool = False,
    compile_first: bool = False,
    ranges: bool = True,
) -> Trained:
    """Trains a new model, or continues `start`: with the same data and seed, as if training had never stopped.

    Imputation is fitted first, then the scaling, then the feature map, each on the result of the one before; a model to
    continue has its own. Online algorithms play the rounds; batch algorithms solve. Ctrl-C ends the run early, with
    `history.interrupted`, and keeps what was learnt.

    Parameters
    ----------
    plan : TrainingPlan
        What to train; of a model to continue only schedule, selection, metrics and feedback count.
    rounds : Rounds
        The queries.
    start : Model, optional
        The model to continue.
    valid : Rounds, optional
        The validation set, which selects the best epoch.
    weights : array, optional
        The weight of each query, by default 1: a query of weight 2 counts like two queries.
    document_weights : array, optional
        The weight of each document within its query, for losses that are averages over pairs.
    progress : callable, optional
        Called with the number of rounds since its previous call.
    consume : bool
        Whether the features of `rounds` and `valid`, two different sets, may be scaled in place.
    compile_first : bool
        Whether to compile what the run calls before its time is measured.
    ranges : bool
        Whether a new model keeps the ranges of the features; one to continue has its own.

    Examples
    --------
    >>> from ranktron.data.synthetic import Separable
    >>> trained = train(TrainingPlan("hinge", {"eta": 0.5}, Schedule(epochs=2)), Separable().rounds(50))
    >>> trained.history.rounds, trained.model.kind
    (100, 'hinge')
    """
    for each in (rounds,) if valid is None else (rounds, valid):
        check_labels(each.labels)
    warn_unlearnable_queries(rounds)
    if valid is not None:
        warn_shared_queries(rounds, valid)
    if any(each.gains_grow for each in (*plan.shown_metrics, *((metric(plan.select),) if valid is not None else ()))):
        warn_high_labels(rounds.labels)
    blank, schedule = start is None, plan.schedule
    start = start or make_untrained(plan, rounds, weights, document_weights)
    if blank and ranges:  # before features are scaled in place
        start = with_ranges(start, rounds, labelled=weights is None)
    epoch = int(start.record.get("epoch", 0))
    history = History(epoch=epoch, position=resume_position(start, len(rounds)), first_epoch=epoch)
    history.spread = Spread.of(start.record)
    validation = plan.validation(None if valid is None else start.prepare(valid, consume=consume))
    prepared = start.prepare(rounds, consume=consume)
    fit = Fit(prepared, schedule, history, validation, start.state, progress, weights, document_weights)
    solver, metrics = start.algorithm.solver(), plan.shown_metrics
    learner = start.blank_learner() if blank or solver is not None else start.learner()
    if solver is None:
        fit.refuse_document_weights()
        if weights is not None and not any(fit.length(epoch + turn) for turn in range(schedule.epochs)):
            raise DataError("the sample weights are so small that no query is used: a weight of 1 is once in each pass")
        fit.feedback = simulated_user(plan.feedback, learner, rounds, schedule.seed)
    elif plan.feedback is not None:
        raise DataError(f"{start.kind} learns from all labels at once, not from the clicks of a simulated user")
    if compile_first:
        compile_ahead(start, fit, metrics)
    if solver is None:
        play_schedule(learner, fit, metrics)
        state = learner.state()
    else:
        state = solver(fit, start.parameters)
        learner.restore(state)
    record = record_run(fit) | ({"feedback": plan.feedback} if isinstance(plan.feedback, str) else {})
    return Trained(replace(start, state=state, record=record), history, learner)


@contextmanager
def _quietly() -> Iterator[None]:
    """Suppresses errors in the data, warnings and log messages, which the run itself reports."""
    log = logging.getLogger("ranktron")
    level = log.level
    log.setLevel(logging.WARNING)
    try:
        with suppress(DataError), warnings.catch_warnings():
            warnings.simplefilter("ignore", RankingWarning)
            yield
    finally:
        log.setLevel(level)


def compile_ahead(model: Model, fit: Fit, metrics: Sequence[Metric] = ()) -> None:
    """Compiles everything a run calls, by training a blank learner once on a list of two documents.

    The reported speed of the run then does not include compilation. The learner is discarded.

    Parameters
    ----------
    model : Model
        The untrained model, or the one to continue.
    fit : Fit
        The run; it is not changed.
    metrics : sequence of Metric
        The metrics of the run.
    """
    solver, trial = model.algorithm.solver(), Fit(fit.rounds, Schedule(), feedback=fit.feedback)
    with _quietly():
        X = fit.rounds.X[:2]
        trial.rounds = Rounds(X, np.arange(X.shape[0], dtype=float), np.array([0, X.shape[0]]), fit.rounds.qids[:1])
        if fit.validation is not None:
            trial.validation = replace(fit.validation, rounds=trial.rounds, patience=None)
        if solver is None:
            play_schedule(model.blank_learner(), trial, metrics)
        else:
            solver(trial, model.parameters)
    if trial.history.interrupted:
        raise KeyboardInterrupt


def learn_once(
    learner: BaseLearner,
    model: Model,
    rounds: Rounds,
    feedback: FeedbackModel | None = None,
    weights: Floats | None = None,
) -> tuple[Model, History]:
    """Plays rounds once, or as often as they weigh, in order, with a learner that has the state of the model.

    The result is that of `train` from the same `start`, with one epoch and without shuffling.
    """
    if len(rounds) > 1:  # in a stream, a query from which nothing can be learnt is no reason to warn
        warn_unlearnable_queries(rounds)
    epoch = int(model.record.get("epoch", 0))
    history = History(epoch=epoch, first_epoch=epoch, spread=Spread.of(model.record))
    schedule = Schedule(1, int(model.record.get("seed", 0)), shuffle=False)
    fit = Fit(model.prepare(rounds), schedule, history, weights=weights, feedback=feedback)
    play_schedule(learner, fit)
    origin = {name: value for name, value in model.record.items() if name in ("feedback", "examination")}
    return replace(model, record=record_run(fit) | origin), history


def record_run(fit: Fit) -> dict[str, Any]:
    """The record of a training run: what is needed to continue exactly where it stopped."""
    history, schedule = fit.history, fit.schedule
    record: dict[str, Any] = {"epoch": history.epoch, "position": history.position, "queries": fit.queries}
    record |= {"seed": schedule.seed, "shuffle": schedule.shuffle}
    return record | ({"spread": history.spread.record()} if history.spread.snapshots else {})


def warn_unlearnable_queries(rounds: Rounds) -> None:
    """Warns if nothing can be learnt from most queries, and if ids may have been used for several queries."""
    warn_uninformative_queries(rounds, "nothing can be learnt from")
    warn_reused_query_ids(rounds)
    warn_repeated_documents(rounds)


def make_untrained(
    plan: TrainingPlan, rounds: Rounds, weights: Floats | None = None, document_weights: Floats | None = None
) -> Model:
    """An untrained model, with imputation, scaling and feature map fitted to the rounds."""
    imputer = fit_imputer(plan.nan, rounds)
    filled = impute(rounds, imputer)
    scaling = choose_scaling(plan.scaling, sparse=isinstance(filled.X, Sparse), mapped=plan.map is not None)
    model = Model(
        kind=plan.algorithm,
        parameters=algorithm(plan.algorithm).complete(plan.parameters),
        state={},
        n_features=rounds.n_features,
        first_index=rounds.first_index,
        feature_names=rounds.feature_names,
        scaler=fit_scaler(scaling, filled, weights, document_weights),
        imputer=imputer,
        encoder=rounds.encoder,
        prefix=rounds.prefix,
    )
    feature_map = None if plan.map is None else as_map(plan.map)
    if isinstance(model.scaler, Running) and not (feature_map is None and model.blank_learner().rescales):
        what = "a feature map is fitted to one scale" if feature_map else f"{plan.algorithm} keeps more than weights"
        raise DataError(
            f"running-standard rescales the weights of a linear learner, and {what}: choose standard, or one of hinge, "
            "slam, minimax and listnet without a map"
        )
    return model if feature_map is None else replace(model, map=feature_map.fit(scale(filled, model.scaler)))


def with_ranges(model: Model, rounds: Rounds, *, labelled: bool = True) -> Model:
    """The model with the ranges of its features in these queries; unchanged if they are too few to compare others."""
    if len(rounds) < ENOUGH:
        return model
    ranges = FeatureRanges.from_rounds(rounds.ordered_by(model.feature_names), labelled=labelled)
    return replace(model, ranges=ranges)


def play_rescaled(
    learner: BaseLearner,
    model: Model,
    scaler: Running,
    rounds: Rounds,
    feedback: FeedbackModel | None = None,
    weights: Floats | None = None,
) -> Model:
    """Plays queries once, in order, with a running scaling; returns the model with the final scaling.

    Each query updates the estimate before it is ranked, and the weights follow: all scores change by the same constant.
    The first query of a learner begins a new estimate. Queries with weights are played as often as they weigh, for
    fractions in some of the passes, which the model's record counts.
    """
    if len(rounds) > 1:
        warn_unlearnable_queries(rounds)
    record, queries = model.record, np.arange(len(rounds))
    if weights is not None:
        epoch = int(record.get("epoch", 0))
        record, queries = {**record, "epoch": epoch + 1}, np.repeat(queries, repetitions(weights, epoch))
    scaler = Running.blank(model.n_filled, scaler.shifts) if learner.rounds == 0 else scaler

    def scaled() -> Iterator[Round]:
        nonlocal scaler
        for round in streams.each(model.fill(rounds), queries):
            before, scaler = scaler, scaler.after(round.X)
            learner.rescale(scaler.divisor / before.divisor)
            yield round._replace(X=scaler(round.X, np.array([0, len(round.X)])))

    state = learner.state()
    try:
        for _ in play(learner, scaled(), feedback or learner.simulated_feedback):
            pass
    except BaseException:
        learner.restore(state)  # the scale of the current weights is unknown
        raise
    return replace(model, scaler=scaler, record=record)


def simulated_user(
    feedback: FeedbackModel | str | None, learner: BaseLearner, rounds: Rounds, seed: int
) -> FeedbackModel | None:
    """The feedback model itself, or the click model of that name.

    A click model has the grades of the labels and looks at as many documents as the learner receives labels, or ten.
    """
    if not isinstance(feedback, str):
        return feedback
    highest = max(1.0, float(rounds.labels.max(initial=0.0)))
    return click_model(feedback, ceil(highest) + 1, seed, learner.labels_received or 10)


class PlayEpoch(Protocol):
    """Plays the rest of an epoch, up to Ctrl-C."""

    def __call__(self, learner: BaseLearner, fit: Fit, metrics: tuple[Metric, ...], every: int, /) -> None: ...


def play_schedule(
    learner: BaseLearner, fit: Fit, metrics: Sequence[Metric] = (), play_epoch: PlayEpoch | None = None
) -> None:
    """Plays the epochs of the schedule, after the rest of an interrupted one; `play_epoch` plays each of them.

    Every epoch is evaluated on the validation set, and the learner returns to its state after the best one.
    """
    play_epoch = _play_epoch if play_epoch is None else play_epoch
    history = fit.history
    last = history.epoch + fit.schedule.epochs + (history.position > 0)
    every = max(1, fit.schedule.epochs * fit.queries // CURVE_POINTS)
    with fit.running():
        while history.epoch < last and not fit.finished:
            play_epoch(learner, fit, tuple(metrics), every)
            if history.position == fit.length(history.epoch):
                history.epoch, history.position = history.epoch + 1, 0
                if fit.validation is not None:
                    learner.weigh_members(fit.validation.rounds, fit.validation.select)
                fit.evaluate(
                    lambda valid: served_scores(learner, valid),
                    lambda: (learner.state(), replace(history.spread)),
                    metrics,
                )
    best = fit.best()
    if best is not None:
        state, history.spread = best
        learner.restore(state)


def _play_epoch(learner: BaseLearner, fit: Fit, metrics: tuple[Metric, ...], every: int) -> None:
    """Plays the rest of an epoch query by query, up to Ctrl-C."""
    compiled = partial(play_pass, learner) if can_fuse(learner) else learner.compiled_pass(fit.rounds)
    if fit.feedback is None and compiled is not None:
        _play_compiled(learner, compiled, fit, metrics, every)
        return
    history, due = fit.history, next_snapshot(learner.rounds)
    rounds = streams.each(fit.rounds, fit.epoch_order(history.epoch, history.position))
    for turn in play(learner, rounds, fit.feedback or learner.simulated_feedback, metrics):
        history.note(turn, every)
        if learner.rounds == due:
            history.spread.note(due, learner.coef)
            due = next_snapshot(due)
        fit.advance(1)
        if fit.interrupted:
            break


def _play_compiled(
    learner: BaseLearner, play_queries: CompiledPass, fit: Fit, metrics: tuple[Metric, ...], every: int
) -> None:
    """Plays the rest of an epoch in compiled chunks, which end where a snapshot of the weights is due."""
    history = fit.history
    queries = fit.epoch_order(history.epoch, history.position)
    while len(queries) and not fit.interrupted:
        due = next_snapshot(learner.rounds)
        chunk = queries[: min(CHUNK, due - learner.rounds)]
        history.note_all(*play_queries(fit.rounds, chunk, metrics), every)
        if learner.rounds == due:
            history.spread.note(due, learner.coef)
        fit.advance(len(chunk))
        queries = queries[len(chunk) :]


def resume_position(model: Model, queries: int, division: Mapping[str, Any] | None = None) -> int:
    """The position in its epoch at which the model stopped; with other data or other shards an epoch begins anew."""
    same = model.record.get("queries") == queries and model.record.get("division") == division
    return int(model.record.get("position", 0)) if same else 0
