"""A training run: its queries and their order, the choice of the best pass, and its progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from ranktron.data import streams
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.learners.interrupts import Interrupts
from ranktron.learners.weight_spread import Spread
from ranktron.metrics import Metric, evaluate
from ranktron.types import FeedbackModel, Floats, Integers, Round, State, Turn
from ranktron.types.validation import check_count

PATIENCE = "passes in a row without a better one, after which training ended"
UNEVEN = (
    "sample_weight must be the same for all rows of a query, or 0 for rows to leave out: a ranker that learns in "
    "passes plays whole queries; RankSVM, RankBoost and RankMM take weights of single documents"
)


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
    """The progress and results of training, updated while it runs, so that an interrupted run is not lost.

    `remarks` counts what users should know, such as queries from which nothing can be learnt.
    """

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
    remarks: dict[str, int] = field(default_factory=dict)
    spread: Spread = field(default_factory=Spread, compare=False)

    def note(self, turn: Turn, every: int) -> None:
        """Counts a round, adds up its values and keeps time averages at intervals for the learning curve."""
        self.position += 1
        self.rounds += 1
        self.mistakes += turn.loss > 0.0
        if turn.values:
            self.sums = [a + b for a, b in zip(self.sums or [0.0] * len(turn.values), turn.values, strict=True)]
            if self.rounds % every == 0:
                self.curve.append((self.rounds, self.averages()))

    def note_all(self, losses: Floats, values: Floats, every: int) -> None:
        """The same as `note` for many rounds."""
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
    def kept(self) -> dict[str, float]:
        """The metrics of the best epoch on the validation set; empty without one."""
        if not self.valid:
            return {}
        return self.valid[min(self.epoch - self.first_epoch, len(self.valid)) - 1]


@dataclass(eq=False)
class Validation:
    """A validation set, the metric that selects on it, and the best pass so far with its state.

    With `patience`, so many passes in a row that are no better than the best before them are the last ones.
    """

    rounds: Rounds
    select: Metric
    patience: int | None = None
    best: float = -np.inf
    epoch: int = 0
    kept: Any = None
    in_vain: int = 0

    def __post_init__(self) -> None:
        if self.patience is not None:
            check_count(self.patience, "patience", 1)
        if not (self.rounds.labels > 0.0).any():
            raise DataError("the validation data have no relevant document: they cannot tell good rankers from bad")

    def judge(
        self, epoch: int, scores: Floats, keep: Callable[[], Any], metrics: Sequence[Metric] = ()
    ) -> dict[str, float]:
        """Evaluates the scores after a pass; keeps what `keep` returns if no earlier pass was better."""
        means = dict(evaluate(scores, self.rounds, [self.select, *metrics]).means)
        value = means[str(self.select)] * (1.0 if self.select.higher_is_better else -1.0)
        self.in_vain += 1
        if self.kept is None or value > self.best:
            self.best, self.epoch, self.kept, self.in_vain = value, epoch, keep(), 0
        return means

    @property
    def exhausted(self) -> bool:
        """Whether patience is at its end."""
        return self.patience is not None and self.in_vain >= self.patience


def repetitions(weights: Floats, epoch: int) -> Integers:
    """How often an epoch uses queries of these weights: w times, or the neighbouring integers in turn.

    Over E epochs a query is used w E times, rounded up or down. The turns differ between queries, so that not
    all of them are used in the same epochs.

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

    Ctrl-C and the choice of the best pass are implemented here for all of them.

    Parameters
    ----------
    rounds : Rounds
        The training queries, scaled and mapped.
    schedule : Schedule
        How many passes, in which order.
    history : History
        The progress; updated while it runs.
    validation : Validation, optional
        The validation set that selects the best pass.
    start : State
        The state to continue from; empty to start anew.
    progress : callable, optional
        Called with the number of queries since the previous call.
    weights : array, optional
        The weight of each query, above 0. Solvers multiply its loss; passes use it that many times.
    document_weights : array, optional
        How much each document counts beside the others of its query, for solvers whose loss is an average over pairs.
    feedback : FeedbackModel, optional
        The feedback model, instead of the learner's `simulated_feedback`.
    elsewhere : int, optional
        The number of queries, if they are not in `rounds` but in parts that others read.
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
    elsewhere: int | None = None
    _interrupts: Interrupts = field(default_factory=Interrupts)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Measures the time; meanwhile Ctrl-C sets `stopping` instead of interrupting an update."""
        began = perf_counter()
        with self._interrupts:
            try:
                yield
            finally:
                self.history.interrupted = self.stopping
                if self.validation is not None and self.validation.exhausted:
                    self.history.remarks[PATIENCE] = self.validation.in_vain
                self.history.seconds += perf_counter() - began

    @property
    def stopping(self) -> bool:
        """Whether Ctrl-C was pressed."""
        return self._interrupts.asked

    @property
    def ended(self) -> bool:
        """Whether no further pass is wanted: Ctrl-C, or the end of patience."""
        return self.stopping or (self.validation is not None and self.validation.exhausted)

    def plays(self, number: int, start: int = 0) -> Integers:
        """The queries of epoch `number`, in order, from position `start` on."""
        if self.weights is None:
            return self.schedule.queries(len(self.rounds), number, start)
        played = np.repeat(np.arange(len(self.rounds)), repetitions(self.weights, number))
        return played[self.schedule.queries(len(played), number, start)]

    def length(self, number: int) -> int:
        """The number of queries of epoch `number`."""
        return self.queries if self.weights is None else int(repetitions(self.weights, number).sum())

    @property
    def queries(self) -> int:
        """The number of queries."""
        return len(self.rounds) if self.elsewhere is None else self.elsewhere

    def refuse_document_weights(self) -> None:
        """Passes play whole queries: to most of what they learn from, it is no matter how much a document counts."""
        if self.document_weights is not None:
            raise DataError(UNEVEN)

    def repeated(self) -> Rounds:
        """The queries, each as often as its weight says, for passes that mix the pairs of all queries."""
        self.refuse_document_weights()
        if self.weights is None:
            return self.rounds
        times = repetitions(self.weights, 0)
        if not np.array_equal(times, self.weights):
            raise DataError("passes over pairs take whole sample weights: a query of weight 2 is used twice")
        return self.rounds[np.repeat(np.arange(len(self.rounds)), times)]

    def advance(self, queries: int) -> None:
        """Reports progress: the number of further queries that have been learnt from."""
        if self.progress is not None:
            self.progress(queries)

    def judge(
        self, scores: Callable[[Rounds], Floats], keep: Callable[[], Any], metrics: Sequence[Metric] = ()
    ) -> None:
        """Evaluates the pass that has just ended on the validation set, if there is one."""
        if self.validation is not None:
            found = self.validation.judge(self.history.epoch, scores(self.validation.rounds), keep, metrics)
            self.history.valid.append(found)

    def best(self) -> Any:
        """The state of the best pass, to which the history returns; None without one, or after Ctrl-C."""
        if self.validation is None or self.validation.kept is None or self.history.interrupted:
            return None
        self.history.epoch = self.validation.epoch
        return self.validation.kept
