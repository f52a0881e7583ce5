"""What an experiment has counted: a confidence sequence for each pair of arms, and the verdict that follows.

A user counts once. Everything here is a function of the outcomes in their order: a replay gives the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from math import ceil
from typing import Any

from ranktron.metrics.always_valid import ConfidenceSequence
from ranktron.metrics.change_detection import FallDetector
from ranktron.store.experiments.interleaving import outcome_of
from ranktron.store.experiments.types import ExperimentDefinition, SequencePoint

_CENTRES = 64  # a centre is a multiple of 1/64: few different values are counted
_GROWTH = 1.05  # of the number of users between two points of a curve


class Pair:
    """Two arms: how much better the second is than the first, user by user."""

    def __init__(self, first: int, second: int, definition: ExperimentDefinition, level: float) -> None:
        self.first, self.second = first, second
        self._chance = 0.5
        bound = 1.0
        if definition.method == "split":
            shares = definition.shares or (1.0,) * len(definition.arms)
            self._chance = shares[second] / (shares[first] + shares[second])
            bound = 1.0 / min(self._chance, 1.0 - self._chance)
        self.sequence = ConfidenceSequence(level, -bound, bound)
        guard = definition.guard
        self.detector = None if guard is None else FallDetector(-guard.tolerance, guard.run_length)
        self.curve: list[SequencePoint] = []
        self._total, self._next = 0.0, 1
        self._point: SequencePoint | None = None

    def add_value(self, arm: int, value: float) -> None:
        """Counts what one user of one of the two arms was worth, between 0 and 1.

        The value, less what users before were worth on average, is divided by the probability of the arm: the mean of
        that, with the sign of the arm, is the difference of the arms, whatever their shares.
        """
        n, chance = self.sequence.n, self._chance
        centre = round((0.5 + self._total) / (1.0 + n) * _CENTRES) / _CENTRES
        self._total += value
        difference = (value - centre) / chance if arm == self.second else (centre - value) / (1.0 - chance)
        self.add_difference(difference, max((1.0 - centre) / chance, centre / (1.0 - chance)))

    def add_difference(self, difference: float, high: float = 1.0) -> None:
        """Counts one user's difference, which was known to be at most `high`."""
        self.sequence.update([difference])
        if self.detector is not None:
            self.detector.update(difference, high)
        if self.sequence.n >= self._next:
            self._next = max(self.sequence.n + 1, ceil(self.sequence.n * _GROWTH))
            self.curve.append(self.point())

    def point(self) -> SequencePoint:
        """The confidence sequence now, which is computed once for each number of users."""
        if self._point is None or self._point.users != self.sequence.n:
            self._point = SequencePoint(self.sequence.n, self.sequence.mean, *self.sequence.interval)
        return self._point

    @property
    def better(self) -> int | None:
        """The arm that is better; None while that is open."""
        return {1: self.second, -1: self.first, 0: None}[self.sequence.decision]

    def state(self) -> dict[str, Any]:
        points = [[point.users, point.mean, point.low, point.high] for point in self.curve]
        detector = None if self.detector is None else self.detector.state()
        return {
            "sequence": self.sequence.state(),
            "detector": detector,
            "curve": points,
            "total": self._total,
            "next": self._next,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.sequence.restore(state["sequence"])
        if self.detector is not None:
            self.detector.restore(state["detector"])
        self.curve = [SequencePoint(*point) for point in state["curve"]]
        self._total, self._next, self._point = state["total"], state["next"], None


class Tally:
    """The outcomes of an experiment, counted: users and values by arm, and each pair of arms.

    With m arms there are m (m − 1) / 2 pairs, each at that part of the level: with probability 1 − level none of their
    intervals ever misses (Bonferroni).

    >>> from ranktron.store.experiments.types import ArmDefinition
    >>> tally = Tally(ExperimentDefinition((ArmDefinition("old"), ArmDefinition("new")), seed=0))
    >>> for user in range(200):
    ...     tally.add(user % 2, [float(user % 2)])  # the second arm always earns 1, the first one 0
    >>> tally.winner, tally.pairs[0].sequence.decided_after
    (1, 26)
    """

    def __init__(self, definition: ExperimentDefinition) -> None:
        self._definition = definition
        arms = range(len(definition.arms))
        pairs = list(combinations(arms, 2))
        self.pairs = [Pair(first, second, definition, definition.level / len(pairs)) for first, second in pairs]
        self.users = [0 for _ in arms]
        self.totals = [0.0 for _ in arms]
        self.count = 0

    def add(self, arm: int, values: list[float]) -> None:
        """Counts a user: what the page of an arm was worth, or, with arm -1, the credit of each arm for a mixed one."""
        self.count += 1
        if arm >= 0:
            self.users[arm] += 1
            self.totals[arm] += values[0]
        for pair in self.pairs:
            if arm < 0:
                difference = values[pair.second] - values[pair.first]
                pair.add_difference(outcome_of(self._definition.method, self._definition.k, difference))
            elif arm in (pair.first, pair.second):
                pair.add_value(arm, values[0])

    @property
    def winner(self) -> int | None:
        """The arm that is better than every other one, if that is certain."""
        if not self.pairs:
            return None
        beaten = {pair.first + pair.second - pair.better for pair in self.pairs if pair.better is not None}
        left = set(range(len(self.users))) - beaten
        winner = left.pop() if len(left) == 1 else None
        wins = sum(pair.better == winner for pair in self.pairs if winner in (pair.first, pair.second))
        return winner if winner is not None and wins == len(self.users) - 1 else None

    @property
    def alarm(self) -> int | None:
        """After how many users the guard raised its alarm; None if it did not."""
        return next((pair.detector.alarm for pair in self.pairs if pair.detector and pair.detector.alarm), None)

    def state(self) -> dict[str, Any]:
        """All of it, as plain numbers."""
        return {
            "users": self.users,
            "totals": self.totals,
            "count": self.count,
            "pairs": [pair.state() for pair in self.pairs],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.users, self.totals, self.count = list(state["users"]), list(state["totals"]), state["count"]
        for pair, kept in zip(self.pairs, state["pairs"], strict=True):
            pair.restore(kept)
