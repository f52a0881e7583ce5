"""Training: passes over a data set, the best of them chosen on a validation set, and going on where one stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from ranktron.data.maps import FeatureMap, as_map
from ranktron.data.rounds import Rounds
from ranktron.data.scaling import fit_scaler, scale
from ranktron.errors import DataError
from ranktron.learners import Linear
from ranktron.learners.base import BaseLearner
from ranktron.learners.click_models import click_model
from ranktron.learners.fused import can_fuse, play_pass
from ranktron.learners.loop import play
from ranktron.learners.schedule import Fit, History, Schedule, Validation
from ranktron.learners.weight_spread import Spread, next_snapshot
from ranktron.metrics import Metric, metric
from ranktron.training.algorithms import algorithm, stored_algorithm
from ranktron.training.model import Model, served_scores
from ranktron.types import FeedbackModel

CURVE_POINTS = 200
CHUNK = 1024  # rounds of a compiled pass, after which progress is told and Ctrl-C is noticed


@dataclass(frozen=True)
class Trained:
    """A model, and the history that led to it."""

    model: Model
    history: History


def train(
    name: str,
    parameters: Mapping[str, Any],
    rounds: Rounds,
    schedule: Schedule,
    *,
    scaling: str | None = None,
    map: str | FeatureMap | None = None,
    start: Model | None = None,
    valid: Rounds | None = None,
    select: Metric | None = None,
    metrics: Sequence[Metric] = (),
    progress: Callable[[int], None] | None = None,
    feedback: FeedbackModel | str | None = None,
) -> Trained:
    """Trains a model from nothing, or on from `start`: with the same data and seed, as if it had never stopped.

    The scaling is fitted first, then the feature map on what the scaling gives; a model to go on from has its own.
    Online algorithms play the rounds; batch algorithms solve. Either way a validation set, where given, chooses the
    best epoch by `select` (NDCG@10). Ctrl-C ends the run early with `history.interrupted` and loses nothing. `progress`
    is told how many rounds have been played since it was told before; it changes nothing else. `feedback` answers
    instead of the learner's own simulation: a simulated user by name, or any feedback model.

    >>> from ranktron.data.synthetic import Separable
    >>> trained = train("hinge", {"eta": 0.5}, Separable().rounds(50), Schedule(epochs=2))
    >>> trained.history.rounds, trained.model.kind
    (100, 'hinge')
    """
    blank = start is None
    start = untrained(name, parameters, rounds, scaling, map) if start is None else start
    epoch = int(start.record.get("epoch", 0))
    history = History(epoch=epoch, position=_resumable(start, rounds), first_epoch=epoch)
    history.spread = Spread.of(start.record)
    validation = None if valid is None else Validation(start.prepare(valid), select or metric("ndcg@10"))
    fit = Fit(start.prepare(rounds), schedule, history, validation, start.state, progress)
    solver = stored_algorithm(start.kind).solver()
    if solver is not None:
        if feedback is not None:
            raise DataError(f"{start.kind} learns from all labels at once: there is no user to simulate")
        state = solver(fit, start.parameters)
    else:
        learner = start.blank_learner() if blank else start.learner()
        fit.feedback = simulated_user(feedback, learner, rounds, schedule.seed)
        run(learner, fit, metrics)
        state = learner.state()
    record: dict[str, Any] = {"epoch": history.epoch, "position": history.position, "queries": len(rounds)}
    record |= {"seed": schedule.seed, "shuffle": schedule.shuffle}
    if isinstance(feedback, str):
        record["feedback"] = feedback
    if history.spread.snapshots:
        record["spread"] = history.spread.record()
    return Trained(replace(start, state=state, record=record), history)


def untrained(
    name: str, parameters: Mapping[str, Any], rounds: Rounds, scaling: str | None, map: str | FeatureMap | None
) -> Model:
    """A model that has learnt nothing, with the scaling and the feature map that the rounds ask for."""
    model = Model(
        kind=name,
        parameters=algorithm(name).complete(parameters),
        state={},
        n_features=rounds.n_features,
        first_index=rounds.first_index,
        feature_names=rounds.feature_names,
        scaler=fit_scaler(scaling, rounds),
    )
    recipe = as_map(map)
    return model if recipe is None else replace(model, map=recipe.fit(scale(rounds, model.scaler)))


def simulated_user(
    feedback: FeedbackModel | str | None, learner: BaseLearner, rounds: Rounds, seed: int
) -> FeedbackModel | None:
    """Who answers: a feedback model as it is, or a click model by name.

    Its grades are those of the labels; it sees as many documents as the learner receives labels of, else ten.
    """
    if not isinstance(feedback, str):
        return feedback
    highest = max(1.0, float(rounds.labels.max(initial=0.0)))
    return click_model(feedback, ceil(highest) + 1, seed, learner.labels_received or 10)


def run(learner: BaseLearner, fit: Fit, metrics: Sequence[Metric] = ()) -> None:
    """Plays the schedule's passes, after what is left of a pass that was interrupted.

    Validation queries measure every pass, and the learner ends as it was after the best one.
    """
    history = fit.history
    last = history.epoch + fit.schedule.epochs + (history.position > 0)
    every = max(1, fit.schedule.epochs * len(fit.rounds) // CURVE_POINTS)
    with fit.running():
        while history.epoch < last and not fit.stopping:
            _play_epoch(learner, fit, tuple(metrics), every)
            if history.position == len(fit.rounds):
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
    """Plays what is left of an epoch, or as much of it as comes before Ctrl-C."""
    if fit.feedback is None and can_fuse(learner):
        _play_fused(learner, fit, metrics, every)
        return
    history, due = fit.history, next_snapshot(learner.rounds)
    rounds = fit.schedule.epoch(fit.rounds, history.epoch, history.position)
    for turn in play(learner, rounds, fit.feedback or learner.simulated_feedback, metrics):
        history.note(turn, every)
        if learner.rounds == due:
            _snapshot(learner, history)
            due = next_snapshot(learner.rounds)
        fit.advance(1)
        if fit.stopping:
            break


def _play_fused(learner: Linear, fit: Fit, metrics: tuple[Metric, ...], every: int) -> None:
    """The same in compiled passes over parts of the epoch, which end where a snapshot of the weights is due."""
    history = fit.history
    queries = fit.schedule.queries(len(fit.rounds), history.epoch, history.position)
    while len(queries) and not fit.stopping:
        due = next_snapshot(learner.rounds)
        part = queries[: min(CHUNK, due - learner.rounds)]
        history.note_all(*play_pass(learner, fit.rounds, part, metrics), every)
        if learner.rounds == due:
            _snapshot(learner, history)
        fit.advance(len(part))
        queries = queries[len(part) :]


def _snapshot(learner: BaseLearner, history: History) -> None:
    coef = learner.coef
    if coef is not None:
        history.spread.note(learner.rounds, coef)


def _resumable(model: Model, rounds: Rounds) -> int:
    """Where in its pass the model stopped; a pass over other data starts from its beginning."""
    return int(model.record.get("position", 0)) if model.record.get("queries") == len(rounds) else 0
