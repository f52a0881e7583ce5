"""Feedback of a replay that nobody remembers: learnt many rounds at a time, where the learner can."""

from __future__ import annotations

from itertools import chain, groupby
from typing import NamedTuple

import numpy as np

from ranktron.learners.top_k.passes import PendingBatch, can_learn_many, learn_many
from ranktron.service import learning, stored_round
from ranktron.service.journal_entries import JournalEntry, Told, read_told
from ranktron.service.live_ranker import LiveRanker
from ranktron.service.stored_round import ShownRound

MANY = 1_000  # rounds that are learnt at a time


class Lesson(NamedTuple):
    """An entry of feedback, and the round that it answers, as it is stored and read."""

    version: int
    entry: JournalEntry
    kept: bytes
    shown: ShownRound
    told: Told

    @property
    def sizes(self) -> tuple[int, ...]:
        """Lessons that are learnt together have the same."""
        shown = self.shown
        return len(shown.rows), len(shown.shown), len(shown.drift), len(self.told), *shown.shape


class UnwatchedFeedback:
    """Takes feedback in the order of the journal; `learn` learns all that it has taken, to the same bit as one by one.

    Versions and answered rounds are noted at once, and weights change with `learn`.
    """

    def __init__(self, live: LiveRanker) -> None:
        self._live = live
        self._lessons: list[Lesson] = []

    def add(self, entry: JournalEntry, version: int, kept: bytes) -> None:
        self._lessons.append(Lesson(version, entry, kept, stored_round.read_shown(kept), read_told(entry.body)))
        self._live.version = version
        self._live.answered_ever.add(entry.round)
        if len(self._lessons) >= MANY:
            self.learn()

    def learn(self) -> None:
        if not self._lessons:
            return
        for _, run in groupby(self._lessons, lambda lesson: lesson.sizes):
            lessons = list(run)
            if not self._learn_at_once(lessons):
                for lesson in lessons:
                    learning.learn_shown(self._live, lesson.version, stored_round.unpack(lesson.kept), lesson.told)
        for _, entry, _, shown, told in self._lessons:
            learning.count(self._live, entry, shown, told)
        self._live.note_weights()
        self._lessons = []

    def _learn_at_once(self, lessons: list[Lesson]) -> bool:
        live, learner = self._live, self._live.learner
        first = lessons[0].shown
        if live.map is not None or first.drift or first.propensities is None or not can_learn_many(learner):
            return False
        n, k, shown = len(lessons), len(first.shown) // 8, [lesson.shown for lesson in lessons]
        told = list(chain.from_iterable(lesson.told for lesson in lessons))
        rows = np.frombuffer(b"".join([each.rows for each in shown]), np.float32).reshape(n, -1, len(live.filled_names))
        learnt = learn_many(
            learner,
            PendingBatch(
                [each.number for each in shown],
                [each.size for each in shown],
                rows[:, :k].copy(),
                np.frombuffer(bytearray().join([each.shown for each in shown])).reshape(n, k),
                np.frombuffer(bytearray().join([each.propensities or b"" for each in shown])).reshape(n, *first.shape),
                np.array([place for place, _, _ in told]).reshape(n, -1),
                np.array([label for _, label, _ in told], float).reshape(n, -1),
            ),
        )
        if learnt is None:
            return False
        for index in np.flatnonzero(~learnt):
            learning.refuse(live, lessons[index].version)
        return True
