"""Training: passes over a data set, the best of them chosen on held-out queries, and going on where one stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from ranktron import feedback, streams
from ranktron.algorithms import algorithm
from ranktron.errors import DataError
from ranktron.metrics import Metric, evaluate, metric
from ranktron.model import Model
from ranktron.play import play
from ranktron.rounds import Rounds
from ranktron.scaling import fit_scaler, scale
from ranktron.types import FeedbackModel, Learner, Round, State, Turn

Watch = Callable[[Turn], None]
CURVE_POINTS = 200


@dataclass(frozen=True)
class Schedule:
    """How often and in which order the queries are played. The order of an epoch is a function of seed and epoch."""

    epochs: int = 1
    seed: int = 0
    shuffle: bool = True

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise DataError(f"the number of epochs must be 1 or more, not {self.epochs}")

    def epoch(self, rounds: Rounds, number: int, start: int = 0) -> Iterator[Round]:
        """The rounds of epoch `number`, from position `start` on."""
        if self.shuffle:
            return streams.shuffled(rounds, self.seed, number, start)
        return streams.in_order(rounds, start)


@dataclass
class Course:
    """Where training stands and what it has seen: filled while it runs, so that an interrupted run is not lost."""

    epoch: int = 0
    position: int = 0
    first_epoch: int = 0
    seconds: float = 0.0
    rounds: int = 0
    mistakes: int = 0
    sums: list[float] = field(default_factory=list)
    curve: list[tuple[int, tuple[float, ...]]] = field(default_factory=list)
    valid: list[dict[str, float]] = field(default_factory=list)
    interrupted: bool = False

    def note(self, turn: Turn, every: int) -> None:
        self.position += 1
        self.rounds += 1
        self.mistakes += turn.loss > 0.0
        if turn.values:
            self.sums = [a + b for a, b in zip(self.sums or [0.0] * len(turn.values), turn.values, strict=True)]
            if self.rounds % every == 0:
                self.curve.append((self.rounds, self.averages()))

    def averages(self) -> tuple[float, ...]:
        """The time averages of the metrics so far."""
        return tuple(total / self.rounds for total in self.sums)


def run(
    learner: Learner,
    rounds: Rounds,
    schedule: Schedule,
    course: Course,
    *,
    hear: FeedbackModel = feedback.full,
    metrics: Sequence[Metric] = (),
    valid: Rounds | None = None,
    select: Metric | None = None,
    watch: Watch | None = None,
) -> None:
    """Plays `schedule.epochs` more passes, after what is left of a pass that was interrupted.

    With `valid`, every pass is scored by `select` (NDCG@10) on it, and the learner ends as it was after the best one.
    Ctrl-C ends the run early with `course.interrupted`; the learner keeps what it has learnt.
    """
    best: tuple[float, int, State] | None = None
    select = select or metric("ndcg@10")
    last = course.epoch + schedule.epochs + (course.position > 0)
    every = max(1, schedule.epochs * len(rounds) // CURVE_POINTS)
    started = perf_counter()
    try:
        while course.epoch < last:
            for turn in play(learner, schedule.epoch(rounds, course.epoch, course.position), hear, metrics):
                course.note(turn, every)
                if watch is not None:
                    watch(turn)
            course.epoch, course.position = course.epoch + 1, 0
            if valid is not None:
                best = _better(best, learner, valid, [select, *metrics], course)
    except KeyboardInterrupt:
        course.interrupted = True
    course.seconds += perf_counter() - started
    if best is not None and not course.interrupted:
        _, course.epoch, state = best
        learner.restore(state)


def _better(
    best: tuple[float, int, State] | None, learner: Learner, valid: Rounds, metrics: Sequence[Metric], course: Course
) -> tuple[float, int, State]:
    means = evaluate(learner.predict(valid.X), valid, metrics).means
    course.valid.append(dict(means))
    value = means[str(metrics[0])] * (1.0 if metrics[0].higher_is_better else -1.0)
    if best is None or value > best[0]:
        return value, course.epoch, learner.state()
    return best


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
    start: Model | None = None,
    valid: Rounds | None = None,
    select: Metric | None = None,
    metrics: Sequence[Metric] = (),
    watch: Watch | None = None,
) -> Trained:
    """Trains a model from nothing, or on from `start`: with the same data and seed, as if it had never stopped."""
    if start is None:
        algo = algorithm(name)
        start = Model(
            kind=name,
            parameters=algo.complete(parameters),
            state={},
            n_features=rounds.n_features,
            first_index=rounds.first_index,
            feature_names=rounds.feature_names,
            scaler=fit_scaler(scaling, rounds),
        )
        learner = algo.learner(rounds.n_features, start.parameters)
        course = Course()
    else:
        learner = start.learner()
        epoch = int(start.record.get("epoch", 0))
        course = Course(epoch=epoch, position=_resumable(start, rounds), first_epoch=epoch)
    scaled_valid = None if valid is None else scale(valid, start.scaler)
    run(
        learner,
        scale(rounds, start.scaler),
        schedule,
        course,
        metrics=metrics,
        valid=scaled_valid,
        select=select,
        watch=watch,
    )
    record = {"epoch": course.epoch, "position": course.position, "queries": len(rounds)}
    record |= {"seed": schedule.seed, "shuffle": schedule.shuffle}
    return Trained(replace(start, state=learner.state(), record=record), course)


def _resumable(model: Model, rounds: Rounds) -> int:
    """Where in its pass the model stopped; a pass over other data starts from its beginning."""
    return int(model.record.get("position", 0)) if model.record.get("queries") == len(rounds) else 0
