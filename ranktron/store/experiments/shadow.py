"""Apprentice mode: compares the order of a shadow ranker with the order that the client's own system shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ranktron.metrics.always_valid import ConfidenceSequence
from ranktron.store.experiments.types import AgreementAnswer


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
        self._level = level
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
