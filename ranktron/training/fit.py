"""Training: passes over a data set, the best of them chosen on held-out queries, and going on where one stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from ranktron.data.maps import FeatureMap, as_map
from ranktron.data.rounds import Rounds
from ranktron.data.scaling import fit_scaler, scale
from ranktron.learners import KernelLearner, Linear
from ranktron.learners.fused import play_pass, recipe_of
from ranktron.learners.loop import play
from ranktron.learners.schedule import Course, Schedule, check_held_out
from ranktron.learners.signals import Interrupts
from ranktron.learners.weight_spread import Spread, next_snapshot
from ranktron.metrics import Metric, evaluate, metric
from ranktron.training.algorithms import algorithm, stored_algorithm
from ranktron.training.model import Model, served_scores
from ranktron.types import Learner, State, Turn

Watch = Callable[[Turn], None]
Best = tuple[float, int, State, Spread]
CURVE_POINTS = 200
CHUNK = 1024  # rounds played at a time where nobody watches single ones


@dataclass(frozen=True)
class Trained:
    """A model, and the course that led to it."""

    model: Model
    course: Course


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
    watch: Watch | None = None,
) -> Trained:
    """Trains a model from nothing, or on from `start`: with the same data and seed, as if it had never stopped.

    The scaling is fitted first, then the feature map on what the scaling gives; a model to go on from has its own.
    Online algorithms play the rounds; batch algorithms solve. Either way held-out queries, where given, choose the
    best epoch by `select` (NDCG@10). Ctrl-C ends the run early with `course.interrupted` and loses nothing.

    >>> from ranktron.data.synthetic import Separable
    >>> trained = train("hinge", {"eta": 0.5}, Separable().rounds(50), Schedule(epochs=2))
    >>> trained.course.rounds, trained.model.kind
    (100, 'hinge')
    """
    blank = start is None
    start = untrained(name, parameters, rounds, scaling, map) if start is None else start
    epoch = int(start.record.get("epoch", 0))
    course = Course(epoch=epoch, position=_resumable(start, rounds), first_epoch=epoch)
    course.spread = Spread.of(start.record)
    scaled, held_out = start.prepare(rounds), None if valid is None else start.prepare(valid)
    if valid is not None:
        check_held_out(valid)
    select = select or metric("ndcg@10")
    solver = stored_algorithm(start.kind).solver()
    if solver is not None:
        state = solver(scaled, start.parameters, schedule, course, valid=held_out, select=select, start=start.state)
    else:
        learner = start.blank_learner() if blank else start.learner()
        run(learner, scaled, schedule, course, metrics=metrics, valid=held_out, select=select, watch=watch)
        state = learner.state()
    record: dict[str, Any] = {"epoch": course.epoch, "position": course.position, "queries": len(rounds)}
    record |= {"seed": schedule.seed, "shuffle": schedule.shuffle}
    if course.spread.snapshots:
        record["spread"] = course.spread.record()
    return Trained(replace(start, state=state, record=record), course)


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


def run(
    learner: Learner,
    rounds: Rounds,
    schedule: Schedule,
    course: Course,
    *,
    select: Metric,
    metrics: Sequence[Metric] = (),
    valid: Rounds | None = None,
    watch: Watch | None = None,
) -> None:
    """Plays `schedule.epochs` more passes, after what is left of a pass that was interrupted.

    With `valid`, every pass is scored on it, and the learner ends as it was after the best one.
    """
    best: Best | None = None
    last = course.epoch + schedule.epochs + (course.position > 0)
    every = max(1, schedule.epochs * len(rounds) // CURVE_POINTS)
    started = perf_counter()
    with Interrupts() as interrupts:
        while course.epoch < last and not course.interrupted:
            _play_epoch(learner, rounds, schedule, course, tuple(metrics), every, watch, interrupts)
            if course.position == len(rounds):
                course.epoch, course.position = course.epoch + 1, 0
                if valid is not None:
                    best = _better(best, learner, valid, [select, *metrics], course)
    course.seconds += perf_counter() - started
    if best is not None and not course.interrupted:
        _, course.epoch, state, course.spread = best
        learner.restore(state)


def _play_epoch(
    learner: Learner,
    rounds: Rounds,
    schedule: Schedule,
    course: Course,
    metrics: tuple[Metric, ...],
    every: int,
    watch: Watch | None,
    interrupts: Interrupts,
) -> None:
    """Plays what is left of an epoch, or as much of it as comes before an interruption."""
    recipe = recipe_of(learner)
    if recipe is not None and watch is None and isinstance(learner, Linear):
        queries = schedule.queries(len(rounds), course.epoch, course.position)
        for at in range(0, len(queries), CHUNK):
            rest = queries[at : at + CHUNK]
            while len(rest):
                due = next_snapshot(learner.rounds) - learner.rounds
                course.note_all(*play_pass(learner, recipe, rounds, rest[:due], metrics), every)
                if due <= len(rest):
                    _snapshot(learner, course)
                rest = rest[due:]
            if interrupts.asked:
                break
    else:
        due = next_snapshot(learner.rounds)
        for turn in play(learner, schedule.epoch(rounds, course.epoch, course.position), learner.hears, metrics):
            course.note(turn, every)
            if learner.rounds == due:
                _snapshot(learner, course)
                due = next_snapshot(learner.rounds)
            if watch is not None:
                watch(turn)
            if interrupts.asked:
                break
    course.interrupted = interrupts.asked


def _snapshot(learner: Learner, course: Course) -> None:
    coef = getattr(learner, "coef", None)
    if coef is not None:
        course.spread.note(learner.rounds, coef)


def _better(best: Best | None, learner: Learner, valid: Rounds, metrics: Sequence[Metric], course: Course) -> Best:
    if isinstance(learner, KernelLearner):
        learner.weigh(valid, metrics[0])
    means = evaluate(served_scores(learner, valid), valid, metrics).means
    course.valid.append(dict(means))
    value = means[str(metrics[0])] * (1.0 if metrics[0].higher_is_better else -1.0)
    if best is None or value > best[0]:
        return value, course.epoch, learner.state(), replace(course.spread)
    return best


def _resumable(model: Model, rounds: Rounds) -> int:
    """Where in its pass the model stopped; a pass over other data starts from its beginning."""
    return int(model.record.get("position", 0)) if model.record.get("queries") == len(rounds) else 0
