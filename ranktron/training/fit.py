"""Training: passes over a data set, the choice of the best pass on a validation set, and continued training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from typing import Any, Protocol

import numpy as np

from ranktron.data import streams
from ranktron.data.imputation import fit_imputer, impute
from ranktron.data.maps import FeatureMap, as_map
from ranktron.data.query_warnings import warn_reused_query_ids, warn_uninformative_queries
from ranktron.data.rounds import Rounds
from ranktron.data.scaling import Running, choose_scaling, fit_scaler, scale
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import Sparse
from ranktron.learners.base import BaseLearner, CompiledPass
from ranktron.learners.click_models import click_model
from ranktron.learners.fused import can_fuse, play_pass
from ranktron.learners.loop import play
from ranktron.learners.schedule import Fit, History, Schedule, Validation, repetitions
from ranktron.learners.weight_spread import Spread, next_snapshot
from ranktron.metrics import Metric, metric
from ranktron.training.algorithms import algorithm, stored_algorithm
from ranktron.training.mixing import MixedPass, record_division, recorded_division, refuse_unmixable, run_in
from ranktron.training.model import Model, served_scores
from ranktron.training.passes import Division
from ranktron.types import FeedbackModel, Floats, Round

CURVE_POINTS = 200
CHUNK = 1024  # rounds of a compiled pass between two reports of progress, when Ctrl-C is noticed as well


@dataclass(frozen=True)
class Trained:
    """A model and the history of its training."""

    model: Model
    history: History


def train(
    name: str,
    parameters: Mapping[str, Any],
    rounds: Rounds,
    schedule: Schedule,
    *,
    nan: str = "error",
    scaling: str | None = None,
    map: str | FeatureMap | None = None,
    start: Model | None = None,
    valid: Rounds | None = None,
    select: Metric | None = None,
    patience: int | None = None,
    metrics: Sequence[Metric] = (),
    progress: Callable[[int], None] | None = None,
    weights: Floats | None = None,
    document_weights: Floats | None = None,
    feedback: FeedbackModel | str | None = None,
    jobs: int = 1,
    consume: bool = False,
) -> Trained:
    """Trains a new model, or continues `start`: with the same data and seed, as if training had never stopped.

    Imputation is fitted first, then the scaling, then the feature map, each on the result of the one before; a model to
    continue has its own. Online algorithms play the rounds; batch algorithms solve. In both cases a validation set, if
    given, selects the best epoch by `select` (NDCG@10); after `patience` epochs in a row that are no better, training
    ends. Ctrl-C ends the run early, with `history.interrupted`, and keeps what was learnt. `progress` is called with
    the number of rounds since its previous call; it has no other effect. `weights` is the weight of each query, by
    default 1: a query of weight 2 counts like two queries. `document_weights` is the weight of each document beside the
    others of its query, for losses that are averages over pairs. `feedback` replaces the learner's
    `simulated_feedback`: a simulated user by name, or any feedback model. More than one of `jobs` learn at once, each
    from a share of the queries, and are mixed several times a pass; the result depends on their number. `consume` says
    that nobody uses `rounds` and `valid` afterwards, two different sets: their features may be scaled where they are.

    >>> from ranktron.data.synthetic import Separable
    >>> trained = train("hinge", {"eta": 0.5}, Separable().rounds(50), Schedule(epochs=2))
    >>> trained.history.rounds, trained.model.kind
    (100, 'hinge')
    """
    warn_unlearnable_queries(rounds)
    blank, division = start is None, None if jobs == 1 else Division.evenly(len(rounds), jobs)
    start = start or make_untrained(name, parameters, rounds, scaling, map, nan, weights, document_weights)
    epoch = int(start.record.get("epoch", 0))
    history = History(epoch=epoch, position=resume_position(start, len(rounds), division), first_epoch=epoch)
    history.spread = Spread.of(start.record)
    if patience is not None and valid is None:
        raise DataError("patience counts epochs that are no better on a validation set: give one, or leave it out")
    prepare = partial(start.prepare, consume=consume)
    validation = None if valid is None else Validation(prepare(valid), select or metric("ndcg@10"), patience)
    fit = Fit(prepare(rounds), schedule, history, validation, start.state, progress, weights, document_weights)
    solver = stored_algorithm(start.kind).solver()
    if solver is not None:
        if feedback is not None:
            raise DataError(f"{start.kind} learns from all labels at once, not from the clicks of a simulated user")
        if jobs != 1:
            raise DataError(f"{start.kind} solves for all queries at once: train it with one job")
        state = solver(fit, start.parameters)
    else:
        fit.refuse_document_weights()
        if weights is not None and not any(fit.length(epoch + turn) for turn in range(schedule.epochs)):
            raise DataError("the sample weights are so small that no query is used: a weight of 1 is once in each pass")
        learner = start.blank_learner() if blank else start.learner()
        fit.feedback = simulated_user(feedback, learner, rounds, schedule.seed)
        if division is None:
            play_schedule(learner, fit, metrics)
        else:
            refuse_unmixable(start.kind, learner, feedback)
            with ThreadPoolExecutor(division.shards) as executor:
                run = run_in(executor, start.blank_learner, fit.rounds, division)
                play_schedule(learner, fit, metrics, MixedPass(division, run))
        state = learner.state()
    record = record_run(fit, division) | ({"feedback": feedback} if isinstance(feedback, str) else {})
    return Trained(replace(start, state=state, record=record), history)


def learn_once(
    learner: BaseLearner,
    model: Model,
    rounds: Rounds,
    feedback: FeedbackModel | None = None,
    weights: Floats | None = None,
) -> tuple[Model, History]:
    """Plays some rounds once, or as often as they weigh, in order, after all that a model's learner has played.

    The result is that of `train` from the same `start`, with one epoch and without shuffling.
    """
    if len(rounds) > 1:  # in a stream, a query from which nothing can be learnt is no reason to warn
        warn_unlearnable_queries(rounds)
    epoch = int(model.record.get("epoch", 0))
    history = History(epoch=epoch, first_epoch=epoch, spread=Spread.of(model.record))
    schedule = Schedule(1, int(model.record.get("seed", 0)), shuffle=False)
    fit = Fit(model.prepare(rounds), schedule, history, weights=weights, feedback=feedback)
    play_schedule(learner, fit)
    kept = {name: value for name, value in model.record.items() if name in ("feedback", "examination")}
    return replace(model, record=record_run(fit) | kept), history


def record_run(fit: Fit, division: Division | None = None) -> dict[str, Any]:
    """The record of a training run: what is needed to continue exactly where it stopped."""
    history, schedule = fit.history, fit.schedule
    record: dict[str, Any] = {"epoch": history.epoch, "position": history.position, "queries": fit.queries}
    record |= {"seed": schedule.seed, "shuffle": schedule.shuffle}
    record |= {} if division is None else {"division": record_division(division)}
    return record | ({"spread": history.spread.record()} if history.spread.snapshots else {})


def warn_unlearnable_queries(rounds: Rounds) -> None:
    """Warns if nothing can be learnt from most queries, and if ids may have been used for several queries."""
    warn_uninformative_queries(rounds, "nothing can be learnt from")
    warn_reused_query_ids(rounds)


def make_untrained(
    name: str,
    parameters: Mapping[str, Any],
    rounds: Rounds,
    scaling: str | None,
    map: str | FeatureMap | None,
    nan: str = "error",
    weights: Floats | None = None,
    document_weights: Floats | None = None,
) -> Model:
    """An untrained model, with imputation, scaling and feature map fitted to the rounds."""
    imputer = fit_imputer(nan, rounds)
    filled = impute(rounds, imputer)
    scaling = choose_scaling(scaling, sparse=isinstance(filled.X, Sparse), mapped=map is not None)
    model = Model(
        kind=name,
        parameters=algorithm(name).complete(parameters),
        state={},
        n_features=rounds.n_features,
        first_index=rounds.first_index,
        feature_names=rounds.feature_names,
        scaler=fit_scaler(scaling, filled, weights, document_weights),
        imputer=imputer,
    )
    recipe = as_map(map)
    if isinstance(model.scaler, Running) and not (recipe is None and model.blank_learner().rescales):
        what = f"{name} keeps more than weights" if recipe is None else "a feature map is fitted to one scale"
        raise DataError(
            f"running-standard rescales the weights of a linear learner, and {what}: choose standard, or one of hinge, "
            "slam, minimax and listnet without a map"
        )
    return model if recipe is None else replace(model, map=recipe.fit(scale(filled, model.scaler)))


def play_rescaled(
    learner: BaseLearner,
    model: Model,
    scaler: Running,
    rounds: Rounds,
    feedback: FeedbackModel | None = None,
    weights: Floats | None = None,
) -> Model:
    """Plays queries once, in order, with a running scaling; returns the model with the final scaling.

    Each query updates the estimate before it is ranked, and the weights follow, so that scores stay what they were but
    for a constant. The first query of a learner starts the estimate from nothing. Queries with weights are played as
    often as they weigh, for fractions by turns, which the model's record counts.
    """
    if len(rounds) > 1:
        warn_unlearnable_queries(rounds)
    record, played = model.record, np.arange(len(rounds))
    if weights is not None:
        turn = int(record.get("epoch", 0))
        record, played = {**record, "epoch": turn + 1}, np.repeat(played, repetitions(weights, turn))
    scaler = Running.blank(model.n_filled, scaler.shifts) if learner.rounds == 0 else scaler

    def scaled() -> Iterator[Round]:
        nonlocal scaler
        for round in streams.each(model.fill(rounds), played):
            before, scaler = scaler, scaler.after(round.X)
            learner.rescale(scaler.divisor / before.divisor)
            yield round._replace(X=scaler(round.X, np.array([0, len(round.X)])))

    kept = learner.state()
    try:
        for _ in play(learner, scaled(), feedback or learner.simulated_feedback):
            pass
    except BaseException:
        learner.restore(kept)  # the scale of these weights would be unknown
        raise
    return replace(model, scaler=scaler, record=record)


def simulated_user(
    feedback: FeedbackModel | str | None, learner: BaseLearner, rounds: Rounds, seed: int
) -> FeedbackModel | None:
    """The feedback model: a given one, or a click model by name.

    Its grades are those of the labels; it sees as many documents as the learner receives labels, or ten.
    """
    if not isinstance(feedback, str):
        return feedback
    highest = max(1.0, float(rounds.labels.max(initial=0.0)))
    return click_model(feedback, ceil(highest) + 1, seed, learner.labels_received or 10)


class PlayEpoch(Protocol):
    """Plays the rest of an epoch, or as much of it as comes before Ctrl-C."""

    def __call__(self, learner: BaseLearner, fit: Fit, metrics: tuple[Metric, ...], every: int, /) -> None: ...


def play_schedule(
    learner: BaseLearner, fit: Fit, metrics: Sequence[Metric] = (), play_epoch: PlayEpoch | None = None
) -> None:
    """Plays the passes of the schedule, after the rest of an interrupted pass, query by query or by `play_epoch`.

    The validation set evaluates every pass, and the learner ends in its state after the best one.
    """
    play_epoch = _play_epoch if play_epoch is None else play_epoch
    history = fit.history
    last = history.epoch + fit.schedule.epochs + (history.position > 0)
    every = max(1, fit.schedule.epochs * fit.queries // CURVE_POINTS)
    with fit.running():
        while history.epoch < last and not fit.ended:
            play_epoch(learner, fit, tuple(metrics), every)
            if history.position == fit.length(history.epoch):
                history.epoch, history.position = history.epoch + 1, 0
                if fit.validation is not None:
                    learner.weigh_members(fit.validation.rounds, fit.validation.select)
                fit.judge(
                    lambda valid: served_scores(learner, valid),
                    lambda: (learner.state(), replace(history.spread)),
                    metrics,
                )
    best = fit.best()
    if best is not None:
        state, history.spread = best
        learner.restore(state)


def _play_epoch(learner: BaseLearner, fit: Fit, metrics: tuple[Metric, ...], every: int) -> None:
    """Plays the rest of an epoch, or as much of it as comes before Ctrl-C."""
    compiled = partial(play_pass, learner) if can_fuse(learner) else learner.compiled_pass(fit.rounds)
    if fit.feedback is None and compiled is not None:
        _play_compiled(learner, compiled, fit, metrics, every)
        return
    history, due = fit.history, next_snapshot(learner.rounds)
    rounds = streams.each(fit.rounds, fit.plays(history.epoch, history.position))
    for turn in play(learner, rounds, fit.feedback or learner.simulated_feedback, metrics):
        history.note(turn, every)
        if learner.rounds == due:
            _snapshot(learner, history)
            due = next_snapshot(learner.rounds)
        fit.advance(1)
        if fit.stopping:
            break


def _play_compiled(
    learner: BaseLearner, play_queries: CompiledPass, fit: Fit, metrics: tuple[Metric, ...], every: int
) -> None:
    """The same in compiled passes over parts of the epoch, which end where a snapshot of the weights is due."""
    history = fit.history
    queries = fit.plays(history.epoch, history.position)
    while len(queries) and not fit.stopping:
        due = next_snapshot(learner.rounds)
        part = queries[: min(CHUNK, due - learner.rounds)]
        history.note_all(*play_queries(fit.rounds, part, metrics), every)
        if learner.rounds == due:
            _snapshot(learner, history)
        fit.advance(len(part))
        queries = queries[len(part) :]


def _snapshot(learner: BaseLearner, history: History) -> None:
    coef = learner.coef
    if coef is not None:
        history.spread.note(learner.rounds, coef)


def resume_position(model: Model, queries: int, division: Division | None = None) -> int:
    """The position in its pass at which the model stopped; with other data or other shards a pass starts at 0."""
    alike = model.record.get("queries") == queries and recorded_division(model.record) == division
    return int(model.record.get("position", 0)) if alike else 0
