"""A training run: the order of its queries, the best pass, progress, the spread of the weights, and Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from types import FrameType
from typing import Any, Self

import numpy as np

from ranktron.data import streams
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.metrics import Metric
from ranktron.metrics.evaluation import evaluate_rounds
from ranktron.types import FeedbackModel, Floats, Integers, Round, State, Turn
from ranktron.types.validation import check_count

_FIRST_SNAPSHOT = 32  # rounds
_SNAPSHOTS_PER_DOUBLING = 8
_SNAPSHOT_SHARE = 1 / 4  # the weight of a new snapshot in the running mean
PATIENCE = "passes in a row without a better one, after which training ended"
UNEVEN = (
    "sample_weight must be the same for all rows of a query, or 0 for rows to leave out: a ranker that learns in "
    "passes plays whole queries; RankSVM, RankBoost and RankMM take weights of single documents"
)


def next_snapshot(rounds: int) -> int:
    """The first number of rounds after `rounds` at which a snapshot is due.

    >>> [next_snapshot(0), next_snapshot(32), next_snapshot(67), next_snapshot(1024)]
    [32, 36, 72, 1152]
    """
    after = max(rounds + 1, _FIRST_SNAPSHOT)
    gap = (1 << (after.bit_length() - 1)) // _SNAPSHOTS_PER_DOUBLING
    return -(-after // gap) * gap


@dataclass(eq=False)
class Spread:
    """How much the weights still change: their running mean and variance over the last part of a stream.

    A snapshot of the weights is taken eight times for every doubling of the number of rounds, at round numbers that do
    not depend on how training is divided into runs. Each new snapshot has weight 1/4 and the older ones fade, so that
    nine tenths of the weight are on the last half of all rounds. Even a long stream has only a few dozen snapshots.

    >>> spread = Spread()
    >>> for rounds, w in enumerate([1.0, 3.0], start=32):
    ...     spread.note(rounds, np.array([w]))
    >>> spread.mean, spread.deviation, spread.rounds
    (array([2.]), array([1.]), 33)
    """

    snapshots: int = 0
    rounds: int = 0
    mean: Floats | None = None
    variance: Floats | None = None

    def note(self, rounds: int, coef: Floats | None) -> None:
        """Takes a snapshot of the weights, if the learner has any."""
        if coef is None:
            return
        if self.mean is None or self.variance is None:
            self.mean, self.variance = np.zeros(len(coef)), np.zeros(len(coef))
        self.snapshots, self.rounds = self.snapshots + 1, rounds
        share = max(_SNAPSHOT_SHARE, 1.0 / self.snapshots)
        step = coef - self.mean
        self.mean = self.mean + share * step
        self.variance = (1.0 - share) * (self.variance + share * step * step)

    @property
    def deviation(self) -> Floats | None:
        """The standard deviation of each weight; None before two snapshots."""
        return None if self.variance is None or self.snapshots < 2 else np.sqrt(self.variance)

    def record(self) -> dict[str, Any]:
        """The spread as a model file stores it; empty before the first snapshot."""
        if self.mean is None:
            return {}
        return {"snapshots": self.snapshots, "rounds": self.rounds, "mean": self.mean, "variance": self.variance}

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Spread:
        """The spread that the record of a model stores."""
        stored = record.get("spread")
        if not stored:
            return cls()
        mean, variance = np.array(stored["mean"], float), np.array(stored["variance"], float)
        return cls(int(stored["snapshots"]), int(stored["rounds"]), mean, variance)


class Interrupts:
    """While entered, the first Ctrl-C only sets `requested`, so that no update is cut short; the second one interrupts.

    Outside the main thread, which receives no signals, it does nothing.

    >>> with Interrupts() as interrupts:
    ...     interrupts.requested
    False
    """

    def __init__(self) -> None:
        self.requested = False  # set by the handler, read between two updates
        self._previous: Any = None  # the handler to restore; None outside the main thread

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *error: object) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True


@dataclass(frozen=True)
class Schedule:
    """The number of passes and the order of the queries, which is a function of seed and epoch."""

    epochs: int = 1
    seed: int = 0
    shuffle: bool = True

    def __post_init__(self) -> None:
        check_count(self.epochs, "the number of epochs", 1)
        check_count(self.seed, "the seed", 0)

    def queries(self, count: int, number: int, start: int = 0) -> Integers:
        """The order of `count` queries in epoch `number`, from position `start` on."""
        if self.shuffle:
            return np.random.default_rng((self.seed, number)).permutation(count)[start:]
        return np.arange(start, count)

    def epoch(self, rounds: Rounds, number: int, start: int = 0) -> Iterator[Round]:
        """The rounds of epoch `number`, from position `start` on."""
        return streams.each(rounds, self.queries(len(rounds), number, start))


@dataclass
class History:
    """The progress and results of training, updated while it runs, so that an interrupted run is not lost."""

    epoch: int = 0  # completed epochs, earlier runs included; after training the selected one
    position: int = 0  # queries played in the current epoch
    first_epoch: int = 0  # `epoch` at the start of this run
    seconds: float = 0.0  # time in passes and evaluation; reading and compiling are not counted
    rounds: int = 0  # rounds of this run
    mistakes: int = 0  # rounds with a loss
    sums: list[float] = field(default_factory=list)  # of each metric, over the rounds of this run
    curve: list[tuple[int, tuple[float, ...]]] = field(default_factory=list)  # (rounds, time averages), at intervals
    valid: list[dict[str, float]] = field(default_factory=list)  # metrics on the validation set after each epoch
    interrupted: bool = False  # ended by Ctrl-C
    remarks: dict[str, int] = field(default_factory=dict)  # counts to report, such as queries with one grade
    spread: Spread = field(default_factory=Spread, compare=False)  # how much the weights still change

    def note(self, turn: Turn, every: int) -> None:
        """Counts a round and its metrics; every `every` rounds adds a point to the learning curve."""
        self.position += 1
        self.rounds += 1
        self.mistakes += turn.loss > 0.0
        if turn.values:
            self.sums = [a + b for a, b in zip(self.sums or [0.0] * len(turn.values), turn.values, strict=True)]
            if self.rounds % every == 0:
                self.curve.append((self.rounds, self.averages()))

    def note_all(self, losses: Floats, values: Floats, every: int) -> None:
        """As `note`, for many rounds."""
        before = self.rounds
        self.position += len(losses)
        self.rounds += len(losses)
        self.mistakes += int(np.count_nonzero(losses > 0.0))
        if values.shape[1]:
            sums = np.cumsum(np.vstack([self.sums or np.zeros(values.shape[1]), values]), axis=0)
            for n in range(every - before % every, len(losses) + 1, every):
                self.curve.append((before + n, tuple((sums[n] / (before + n)).tolist())))
            self.sums = sums[-1].tolist()

    def averages(self) -> tuple[float, ...]:
        """The time averages of the metrics so far."""
        return tuple(total / self.rounds for total in self.sums)

    @property
    def best_values(self) -> dict[str, float]:
        """The validation metrics of the best epoch; empty without a validation set."""
        if not self.valid:
            return {}
        return self.valid[min(self.epoch - self.first_epoch, len(self.valid)) - 1]


@dataclass(eq=False)
class Validation:
    """A validation set, the metric that selects on it, and the best epoch with its state.

    Stops after `patience` epochs without improvement.
    """

    rounds: Rounds  # prepared as the training queries are
    select: Metric
    patience: int | None = None  # epochs without improvement after which training stops; None: never
    best: float = -np.inf  # the highest value of `select`, negated where lower is better
    epoch: int = 0  # the epoch with that value
    best_state: Any = None  # what `save` returned after it; None before the first epoch
    epochs_without_improvement: int = 0

    def __post_init__(self) -> None:
        if self.patience is not None:
            check_count(self.patience, "patience", 1)
        if not (self.rounds.labels > 0.0).any():
            raise DataError("the validation data have no relevant document: they cannot tell good rankers from bad")

    def evaluate(
        self, epoch: int, scores: Floats, save: Callable[[], Any], metrics: Sequence[Metric] = ()
    ) -> dict[str, float]:
        """Evaluates the scores after an epoch; stores the result of `save` if no earlier epoch was as good."""
        means = dict(evaluate_rounds(self.rounds, scores, [self.select, *metrics]).means)
        value = means[str(self.select)] * (1.0 if self.select.higher_is_better else -1.0)
        self.epochs_without_improvement += 1
        if self.best_state is None or value > self.best:
            self.best, self.epoch, self.best_state, self.epochs_without_improvement = value, epoch, save(), 0
        return means

    @property
    def out_of_patience(self) -> bool:
        """Whether there were `patience` epochs without improvement."""
        return self.patience is not None and self.epochs_without_improvement >= self.patience


def repetitions(weights: Floats, epoch: int) -> Integers:
    """How often epoch `epoch` plays queries of these weights: w times, or the neighbouring integers in turn.

    Over E epochs a query is played w E times, rounded up or down. The turns differ between queries, so that they are
    not all played in the same epochs.

    >>> [repetitions(np.array([2.0, 0.5, 0.5]), epoch).tolist() for epoch in range(4)]
    [[2, 1, 0], [2, 0, 1], [2, 1, 0], [2, 0, 1]]
    """
    # Multiples of the golden ratio are evenly spread, however many there are (Knuth, The Art of Computer Programming,
    # volume 3, section 6.4).
    turn = np.arange(len(weights)) * (np.sqrt(5.0) - 1.0) / 2.0 % 1.0
    times: Integers = (np.floor(weights * (epoch + 1) + turn) - np.floor(weights * epoch + turn)).astype(np.int64)
    return times


@dataclass(eq=False)
class Fit:
    """One training run: passes of an online learner, passes over pairs, or a batch solver.

    All of them share its handling of Ctrl-C and its selection of the best epoch.

    Parameters
    ----------
    rounds : Rounds
        The training queries, scaled and mapped.
    schedule : Schedule
        The number of epochs and the order of the queries.
    history : History
        The progress; updated while it runs.
    validation : Validation, optional
        The validation set that selects the best epoch.
    start : State
        The state to continue from; empty for a new model.
    progress : callable, optional
        Called with the number of queries since the previous call.
    weights : array, optional
        The weight of each query, above 0. Solvers multiply its loss; passes play it that many times.
    document_weights : array, optional
        The weight of each document within its query, for solvers whose loss is an average over pairs.
    feedback : FeedbackModel, optional
        The feedback model, instead of the learner's `simulated_feedback`.
    n_queries : int, optional
        The number of queries, where `rounds` does not hold them: parts that workers read.
    """

    rounds: Rounds
    schedule: Schedule
    history: History = field(default_factory=History)
    validation: Validation | None = None
    start: State = field(default_factory=dict)
    progress: Callable[[int], None] | None = None
    weights: Floats | None = None
    document_weights: Floats | None = None
    feedback: FeedbackModel | None = None
    n_queries: int | None = None
    _interrupts: Interrupts = field(default_factory=Interrupts)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Measures the time; meanwhile Ctrl-C sets `interrupted` and does not cut an update short."""
        began = perf_counter()
        with self._interrupts:
            try:
                yield
            finally:
                self.history.interrupted = self.interrupted
                if self.validation is not None and self.validation.out_of_patience:
                    self.history.remarks[PATIENCE] = self.validation.epochs_without_improvement
                self.history.seconds += perf_counter() - began

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._interrupts.requested

    @property
    def finished(self) -> bool:
        """Whether to start no further epoch: after Ctrl-C, or out of patience."""
        return self.interrupted or (self.validation is not None and self.validation.out_of_patience)

    def epoch_order(self, number: int, start: int = 0) -> Integers:
        """The queries of epoch `number` in the order they are played, from position `start` on."""
        if self.weights is None:
            return self.schedule.queries(len(self.rounds), number, start)
        queries = np.repeat(np.arange(len(self.rounds)), repetitions(self.weights, number))
        return queries[self.schedule.queries(len(queries), number, start)]

    def length(self, number: int) -> int:
        """The number of queries that epoch `number` plays."""
        return self.queries if self.weights is None else int(repetitions(self.weights, number).sum())

    @property
    def queries(self) -> int:
        """The number of queries."""
        return len(self.rounds) if self.n_queries is None else self.n_queries

    def refuse_document_weights(self) -> None:
        """Refuses weights of single documents: most losses that passes minimise cannot use them."""
        if self.document_weights is not None:
            raise DataError(UNEVEN)

    def expand_weights(self) -> Rounds:
        """The queries, each as often as its weight, for passes over the pairs of all queries."""
        self.refuse_document_weights()
        if self.weights is None:
            return self.rounds
        times = repetitions(self.weights, 0)
        if not np.array_equal(times, self.weights):
            raise DataError("passes over pairs take whole sample weights: a query of weight 2 is used twice")
        return self.rounds[np.repeat(np.arange(len(self.rounds)), times)]

    def advance(self, queries: int) -> None:
        """Reports that `queries` more queries have been learnt from."""
        if self.progress is not None:
            self.progress(queries)

    def evaluate(
        self, scores: Callable[[Rounds], Floats], save: Callable[[], Any], metrics: Sequence[Metric] = ()
    ) -> None:
        """Evaluates the epoch that has just ended on the validation set, if there is one."""
        if self.validation is not None:
            means = self.validation.evaluate(self.history.epoch, scores(self.validation.rounds), save, metrics)
            self.history.valid.append(means)

    def best(self) -> Any:
        """The state of the best epoch, to which the history returns; None without a validation set or after Ctrl-C."""
        if self.validation is None or self.validation.best_state is None or self.history.interrupted:
            return None
        self.history.epoch = self.validation.epoch
        return self.validation.best_state
