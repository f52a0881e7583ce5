"""Replay: the entries after the snapshot are applied again, in order, to bit-identical weights.

Feedback is applied in batches. State that only the last entries determine (remembered answers, the drift of
the weights) is skipped before them, so a replay takes a fraction of the time of the original updates.
"""

from __future__ import annotations

import gc
from itertools import chain, groupby
from typing import NamedTuple

import msgspec
import numpy as np

from ranktron.errors import DataError
from ranktron.learners.top_k.passes import PendingBatch, can_learn_many, learn_many
from ranktron.store.journal.entries import FeedbackItems, JournalEntry, Result, decode_feedback
from ranktron.store.journal.journal import Journal, MissingEntriesError
from ranktron.store.rankers import apply_entry, open_rounds
from ranktron.store.rankers.live_ranker import DRIFT, LiveRanker
from ranktron.store.rankers.open_rounds import ShownRound

MANY = 1_000  # rounds per batch


class Lesson(NamedTuple):
    """An entry of feedback with the round that it answers, stored and decoded."""

    version: int
    entry: JournalEntry
    kept: bytes
    shown: ShownRound
    feedback: FeedbackItems

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shapes that all rounds of a batch share."""
        shown = self.shown
        return len(shown.rows), len(shown.shown), len(shown.drift), len(self.feedback), *shown.shape


class ReplayBatch:
    """Collects feedback in the order of the journal; `learn` applies it, bit-identical to one entry after another.

    Versions and answered rounds are noted at once, and weights change with `learn`.
    """

    def __init__(self, live: LiveRanker) -> None:
        self._live = live
        self._lessons: list[Lesson] = []

    def add(self, entry: JournalEntry, version: int, kept: bytes) -> None:
        self._lessons.append(Lesson(version, entry, kept, open_rounds.read_shown(kept), decode_feedback(entry.body)))
        self._live.version = version
        self._live.rounds.answered_ever.add(entry.round)
        if len(self._lessons) >= MANY:
            self.learn()

    def learn(self) -> None:
        if not self._lessons:
            return
        for _, run in groupby(self._lessons, lambda lesson: lesson.sizes):
            lessons = list(run)
            if not self._learn_at_once(lessons):
                for lesson in lessons:
                    apply_entry.learn_shown(
                        self._live, lesson.version, open_rounds.unpack(lesson.kept), lesson.feedback
                    )
        for _, entry, _, shown, feedback in self._lessons:
            apply_entry.count(self._live, entry, shown, feedback)
        self._live.note_weights()
        self._lessons = []

    def _learn_at_once(self, lessons: list[Lesson]) -> bool:
        live, learner = self._live, self._live.learner
        first = lessons[0].shown
        if live.map is not None or first.drift or first.propensities is None or not can_learn_many(learner):
            return False
        n, k, shown = len(lessons), len(first.shown) // 8, [lesson.shown for lesson in lessons]
        feedback = list(chain.from_iterable(lesson.feedback for lesson in lessons))
        rows = np.frombuffer(b"".join([each.rows for each in shown]), np.float32).reshape(n, -1, len(live.filled_names))
        learnt = learn_many(
            learner,
            PendingBatch(
                [each.number for each in shown],
                [each.size for each in shown],
                rows[:, :k].copy(),
                np.frombuffer(bytearray().join([each.shown for each in shown])).reshape(n, k),
                np.frombuffer(bytearray().join([each.propensities or b"" for each in shown])).reshape(n, *first.shape),
                np.array([place for place, _, _ in feedback]).reshape(n, -1),
                np.array([label for _, label, _ in feedback], float).reshape(n, -1),
            ),
        )
        if learnt is None:
            return False
        for index in np.flatnonzero(~learnt):
            apply_entry.mark_unlearnt(live, lessons[index].version)
        return True


_entry = msgspec.msgpack.Decoder(JournalEntry)


def replay(live: LiveRanker, journal: Journal, last: int, last_acknowledged: int) -> tuple[float, int | None]:
    """Applies the entries up to version `last` again; returns the latest time in them and the damaged version, if any.

    Only the last entry may be damaged, and only if its version is above `last_acknowledged`.
    """
    collecting = gc.isenabled()
    gc.disable()  # entries make no reference cycles
    try:
        return _replay_entries(live, journal, last, last_acknowledged)
    finally:
        if collecting:
            gc.enable()


def _replay_entries(live: LiveRanker, journal: Journal, last: int, last_acknowledged: int) -> tuple[float, int | None]:
    config, at, unwatched = live.config, 0.0, ReplayBatch(live)
    watched = min(last - DRIFT - 1, journal.before_answers(live.id, config.most_remembered))
    for version, body, shown in journal.entries(live.id):
        if version > live.version + 1 or (body is None and version < last):
            wrong = min(version, live.version + 1)
            raise DataError(f"its log is damaged at version {wrong}, or the snapshot that it goes on from is")
        if body is None:  # the last one
            if live.version < version <= last_acknowledged:
                raise MissingEntriesError(f"its log is damaged at version {version}, which was acknowledged")
            return at, version
        entry = _entry.decode(body)
        at = max(at, entry.at)
        if version <= live.version:
            if entry.kind in ("feedback", "gains"):
                apply_entry.remember(live, entry, Result(version not in live.refused, version), shown)
            continue
        if entry.kind == "feedback":
            kept = _round(live, entry, version, shown)
            if version <= watched:
                unwatched.add(entry, version, kept)
                continue
            live.rounds.open[entry.round] = kept
        unwatched.learn()
        apply_entry.apply(live, entry, version)
    return at, None


def _round(live: LiveRanker, entry: JournalEntry, version: int, shown: bytes | None) -> bytes:
    """The round that an entry answers; it must exist and be unanswered."""
    again = entry.round in live.rounds.answered_ever
    if shown is None or again or entry.round < live.rounds.barrier or open_rounds.read_number(shown) != entry.round:
        raise DataError(f"its log is damaged: version {version} answers round {entry.round}, which is not there")
    return shown
