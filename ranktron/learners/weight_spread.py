"""How much weights still change: running mean and variance over the last part of a stream, in two vectors.

A snapshot of the weights is taken eight times for every doubling of the number of rounds, at round numbers that do not
depend on how training is divided into runs. Each new snapshot has weight 1/4 and the older ones fade, so that
nine tenths of the weight are on the last half of all rounds. Even a long stream has only a few dozen snapshots.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranktron.types import Floats

_FIRST = 32
_PER_DOUBLING = 8
_SHARE = 1 / 4


def next_snapshot(rounds: int) -> int:
    """The first number of rounds after `rounds` at which a snapshot is due.

    >>> [next_snapshot(0), next_snapshot(32), next_snapshot(67), next_snapshot(1024)]
    [32, 36, 72, 1152]
    """
    after = max(rounds + 1, _FIRST)
    gap = (1 << (after.bit_length() - 1)) // _PER_DOUBLING
    return -(-after // gap) * gap


@dataclass(eq=False)
class Spread:
    """The fading mean and variance of weights, and the number of rounds at the last snapshot.

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

    def note(self, rounds: int, coef: Floats) -> None:
        """Takes a snapshot."""
        if self.mean is None or self.variance is None:
            self.mean, self.variance = np.zeros(len(coef)), np.zeros(len(coef))
        self.snapshots, self.rounds = self.snapshots + 1, rounds
        share = max(_SHARE, 1.0 / self.snapshots)
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
        kept = record.get("spread") or {}
        if not kept:
            return cls()
        mean, variance = np.array(kept["mean"], float), np.array(kept["variance"], float)
        return cls(int(kept["snapshots"]), int(kept["rounds"]), mean, variance)
