"""The counts of an experiment: a confidence sequence for each pair of arms, and the verdict.

A user counts once. The state is a function of the outcomes in their order: a replay gives the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from math import ceil
from typing import Any

from ranktron.metrics.always_valid import ConfidenceSequence
from ranktron.metrics.change_detection import FallDetector
from ranktron.store.experiments.arms import outcome_of
from ranktron.store.experiments.messages import AgreementAnswer, ExperimentDefinition, SequencePoint

_CENTRES = 64  # the centre is rounded to multiples of 1/64, so that few distinct values occur
_GROWTH = 1.05  # ratio of users between two points of a curve


class Pair:
    """The difference of two arms, second minus first."""

    def __init__(self, first: int, second: int, definition: ExperimentDefinition, level: float) -> None:
        self.first, self.second = first, second
        self._chance = 0.5  # of the second arm, given that a user is in one of the two
        bound = 1.0
        if definition.method == "split":
            shares = definition.shares or (1.0,) * len(definition.arms)
            self._chance = shares[second] / (shares[first] + shares[second])
            bound = 1.0 / min(self._chance, 1.0 - self._chance)
        self.sequence = ConfidenceSequence(level, -bound, bound)
        guard = definition.guard
        self.detector = None if guard is None else FallDetector(-guard.tolerance, guard.run_length)
        self.curve: list[SequencePoint] = []
        self._total, self._next = 0.0, 1  # sum of the values; number of users at the next point of the curve
        self._point: SequencePoint | None = None  # cached by `point`

    def add_value(self, arm: int, value: float) -> None:
        """Counts the value, between 0 and 1, of a user of one of the two arms.

        An inverse-propensity estimate: the value minus the running mean (the centre, which reduces the variance),
        divided by the arm's probability and with the arm's sign, has the difference of the arms as its mean.
        """
        n, chance = self.sequence.n, self._chance
        centre = round((0.5 + self._total) / (1.0 + n) * _CENTRES) / _CENTRES
        self._total += value
        difference = (value - centre) / chance if arm == self.second else (centre - value) / (1.0 - chance)
        self.add_difference(difference, max((1.0 - centre) / chance, centre / (1.0 - chance)))

    def add_difference(self, difference: float, high: float = 1.0) -> None:
        """Counts one user's difference; `high` was its upper bound, known beforehand."""
        self.sequence.update([difference])
        if self.detector is not None:
            self.detector.update(difference, high)
        if self.sequence.n >= self._next:
            self._next = max(self.sequence.n + 1, ceil(self.sequence.n * _GROWTH))
            self.curve.append(self.point())

    def point(self) -> SequencePoint:
        """The confidence sequence now; computed once for each number of users."""
        if self._point is None or self._point.users != self.sequence.n:
            self._point = SequencePoint(self.sequence.n, self.sequence.mean, *self.sequence.interval)
        return self._point

    @property
    def better(self) -> int | None:
        """The better arm; None while undecided."""
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
    """Users and values by arm, and the difference of each pair of arms.

    The level is divided by the m (m − 1) / 2 pairs of m arms: with probability 1 − level, all intervals cover at all
    times (Bonferroni).

    >>> from ranktron.store.experiments.messages import ArmDefinition
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
        """Counts a user: the value of an arm's page or, with arm -1, the credit of each arm for an interleaved page."""
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
        """The arm that every pair with it has decided for; None while undecided."""
        if not self.pairs:
            return None
        beaten = {pair.first + pair.second - pair.better for pair in self.pairs if pair.better is not None}
        unbeaten = set(range(len(self.users))) - beaten
        winner = unbeaten.pop() if len(unbeaten) == 1 else None
        wins = sum(pair.better == winner for pair in self.pairs if winner in (pair.first, pair.second))
        return winner if winner is not None and wins == len(self.users) - 1 else None

    @property
    def alarm(self) -> int | None:
        """The number of users at which the guard raised its alarm; None if it has not."""
        return next((pair.detector.alarm for pair in self.pairs if pair.detector and pair.detector.alarm), None)

    def state(self) -> dict[str, Any]:
        """The counts as plain numbers, for a checkpoint."""
        return {
            "users": self.users,
            "totals": self.totals,
            "count": self.count,
            "pairs": [pair.state() for pair in self.pairs],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self.users, self.totals, self.count = list(state["users"]), list(state["totals"]), state["count"]
        for pair, pair_state in zip(self.pairs, state["pairs"], strict=True):
            pair.restore(pair_state)


class Agreement:
    """How often a shadow ranker agrees with the client's system, and the reward of the rounds where it does.

    >>> agreement = Agreement(level=0.05)
    >>> agreement.add([1.0, 1.0, 1.0])  # reward 1, the same first document, the same page
    >>> agreement.add([0.5, 1.0, 0.0])
    >>> answer = agreement.answer()
    >>> answer.same_first, answer.same_page, answer.reward, answer.reward_where_same, answer.not_identified
    (1.0, 0.5, 0.75, 1.0, 0.5)
    """

    def __init__(self, level: float) -> None:
        self._rounds = self._same_first = self._same_page = 0
        self._total = self._total_where_same = 0.0
        self._sequence = ConfidenceSequence(level, -0.5, 0.5)  # of the reward minus 1/2, over rounds with the same page

    def add(self, values: list[float]) -> None:
        """Counts a round: its reward, and whether the first document and the page were the same."""
        reward, same_first, same_page = values
        self._rounds += 1
        self._same_first += same_first > 0.0
        self._total += reward
        if same_page:
            self._same_page += 1
            self._total_where_same += reward
            self._sequence.update([reward - 0.5])

    def answer(self) -> AgreementAnswer:
        rounds, same = self._rounds, self._same_page
        low, high = self._sequence.interval
        return AgreementAnswer(
            rounds,
            self._same_first / rounds if rounds else None,
            same / rounds if rounds else None,
            self._total / rounds if rounds else None,
            self._total_where_same / same if same else None,
            (max(low + 0.5, 0.0), min(high + 0.5, 1.0)) if same else None,
            1.0 - same / rounds if rounds else None,
        )

    def state(self) -> dict[str, Any]:
        return {
            "rounds": [self._rounds, self._same_first, self._same_page],
            "totals": [self._total, self._total_where_same],
            "sequence": self._sequence.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self._rounds, self._same_first, self._same_page = state["rounds"]
        self._total, self._total_where_same = state["totals"]
        self._sequence.restore(state["sequence"])
