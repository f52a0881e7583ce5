"""How a training run is laid out, and what it has seen so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ranktron.data import streams
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.learners.weight_spread import Spread
from ranktron.types import Floats, Integers, Round, Turn
from ranktron.types.validation import check_count


@dataclass(frozen=True)
class Schedule:
    """How often and in which order the queries are played. The order of an epoch is a function of seed and epoch."""

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


def check_held_out(rounds: Rounds) -> None:
    """Refuses held-out lists that cannot tell a good ranker from a bad one."""
    if not (rounds.labels > 0.0).any():
        raise DataError("the validation data have no relevant document: they cannot tell good rankers from bad")


@dataclass
class Course:
    """Where training stands and what it has seen: filled while it runs, so that an interrupted run is not lost.

    `remarks` counts what a reader of the report should know, such as queries that teach nothing.
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
        """Counts a round, adds up its values and keeps every so-manieth time average for the curve."""
        self.position += 1
        self.rounds += 1
        self.mistakes += turn.loss > 0.0
        if turn.values:
            self.sums = [a + b for a, b in zip(self.sums or [0.0] * len(turn.values), turn.values, strict=True)]
            if self.rounds % every == 0:
                self.curve.append((self.rounds, self.averages()))

    def note_all(self, losses: Floats, values: Floats, every: int) -> None:
        """Notes many rounds at once, as if one by one."""
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
        """What the held-out queries said of the epoch that was kept; empty without any."""
        if not self.valid:
            return {}
        return self.valid[min(self.epoch - self.first_epoch, len(self.valid)) - 1]
