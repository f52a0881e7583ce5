"""How a training run is laid out, and what it has seen so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ranktron import streams
from ranktron.errors import DataError
from ranktron.rounds import Rounds
from ranktron.types import Round, Turn


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
        """Counts a round, adds up its values and keeps every so-manieth time average for the curve."""
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

    @property
    def kept(self) -> dict[str, float]:
        """What the held-out queries said of the epoch that was kept; empty without any."""
        if not self.valid:
            return {}
        return self.valid[min(self.epoch - self.first_epoch, len(self.valid)) - 1]
