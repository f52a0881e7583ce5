"""Recovery: a ranker from its newest intact snapshot, and the entries after it applied again (replay).

A ranker that cannot be recovered is quarantined (clients read "set aside"): its files stay as they are, and the other
rankers serve. A replay gives bit-identical weights. Feedback is applied in batches, and state that only the last
entries determine (remembered answers, the drift of the weights) is skipped before them, so a replay takes a fraction
of the time of the original updates.
"""

from __future__ import annotations

import faulthandler
import gc
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import msgspec
import numpy as np

from ranktron.errors import DataError, RanktronError
from ranktron.learners.top_k.passes import PendingBatch, can_learn_many, learn_many
from ranktron.store.config import StoreConfig
from ranktron.store.journal.entries import FeedbackItems, JournalEntry, Result, decode_feedback, encode
from ranktron.store.journal.journal import Journal, JournalError, MissingEntriesError, StoredRanker
from ranktron.store.journal.snapshots import Snapshots
from ranktron.store.messages import Definition
from ranktron.store.rankers import apply_entry, open_rounds
from ranktron.store.rankers.live_ranker import DRIFT, LiveRanker
from ranktron.store.rankers.models import blank_model, warm
from ranktron.store.rankers.open_rounds import RECENT, OpenRounds, RoundIds, ShownRound
from ranktron.store.rankers.stats import Stats
from ranktron.training.model import Model

_logger = logging.getLogger("ranktron.service")


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


_RIGHT = "Put that right"


def take_snapshot(live: LiveRanker) -> dict[str, Any]:
    """The content of a snapshot: all of a ranker except its open rounds, which are in the journal."""
    return {
        "version": live.version,
        "incarnation": live.incarnation,
        "model": np.frombuffer(live.model.to_bytes(), np.uint8),
        "barrier": live.rounds.barrier,
        "refused": live.refused,
        "answered": live.rounds.answered_ever.state(),
        "tally": live.stats.state(),
    }


@dataclass(frozen=True)
class Quarantined:
    """A ranker that could not be recovered, and why; it can only be deleted. `next` is the number of its next round."""

    id: int
    name: str
    next: int
    snapshots: Snapshots
    version: int
    reason: str
    remedy: str

    @property
    def message(self) -> str:
        return f"ranker {self.name!r} is set aside at version {self.version}: {self.reason}. {self.remedy}"


def crash_file(folder: Path, ranker: int) -> Path:
    """The file for the traceback of a crash in compiled code during the recovery of a ranker."""
    return folder / f"crash-{ranker}.txt"


@contextmanager
def _noting_crashes(path: Path) -> Iterator[None]:
    """Writes the traceback of a crash in compiled code to a file, which stays empty if the process is killed."""
    before = faulthandler.is_enabled()
    try:
        with open(path, "wb") as file:
            faulthandler.enable(file)
            try:
                yield
            finally:
                faulthandler.disable()
                if before:
                    with suppress(Exception):  # there may be no standard error
                        faulthandler.enable()
    finally:
        path.unlink(missing_ok=True)


def recover_ranker(
    journal: Journal, stored: StoredRanker, snapshots: Snapshots, config: StoreConfig, crash: Path
) -> LiveRanker | Quarantined:
    """The recovered ranker, or a quarantined one; only errors of the whole journal are raised.

    A ranker whose recovery has crashed the process is quarantined until its crash file is deleted.
    """

    def aside(version: int, reason: str, before: str) -> Quarantined:
        delete = f"or delete the ranker with DELETE /v1/rankers/{stored.name}"
        remedy = f"{before}, or restore the folder from a copy, and start again; {delete}"
        found = Quarantined(stored.id, stored.name, stored.next, snapshots, version, reason, remedy)
        _logger.error("%s", found.message)
        return found

    if stored.wrong is not None:
        return aside(stored.last_acknowledged, str(stored.wrong), getattr(stored.wrong, "remedy", _RIGHT))
    if crash.exists() and crash.stat().st_size:
        crashed = f"its recovery crashed the server the last time, {crash} says where"
        return aside(max(snapshots.versions(), default=0), crashed, "To try it again, delete that file")
    live = None
    try:
        with _noting_crashes(crash):
            live = _make_ranker(stored, snapshots, config)
            _restore(live, stored, journal)
        return live
    except JournalError:
        raise
    except Exception as error:
        reason = str(error) if isinstance(error, RanktronError) else f"{type(error).__name__}: {error}"
        return aside(0 if live is None else live.version, reason, getattr(error, "remedy", _RIGHT))


def _make_ranker(stored: StoredRanker, snapshots: Snapshots, config: StoreConfig) -> LiveRanker:
    """The untrained ranker of a stored definition."""
    definition = msgspec.json.decode(stored.definition, type=Definition)
    model = blank_model(definition, _without_limits(config))
    live = LiveRanker(stored.id, stored.name, definition, model, config, snapshots, stored.next)
    live.incarnation, live.rounds.ids = stored.incarnation, RoundIds(stored.epochs)
    return live


def copied_ranker(
    stored: StoredRanker, kept: Mapping[str, Any], snapshots: Snapshots, config: StoreConfig
) -> LiveRanker:
    """A ranker from the content of a snapshot, for a follower."""
    live = _make_ranker(stored, snapshots, config)
    _take(live, kept)
    return live


def _without_limits(config: StoreConfig) -> StoreConfig:
    """The settings without limits: lower limits apply to new rankers only."""
    most = sys.maxsize
    return msgspec.structs.replace(config, max_features=most, max_weights=most, max_k=most, open_seconds=float("inf"))


def _restore(live: LiveRanker, stored: StoredRanker, journal: Journal) -> None:
    """Restores the ranker bit for bit; writes happen at the end, when all else has succeeded."""
    last = journal.last_version(live.id)
    kept = live.snapshots.newest(lambda each: _misfit(each, stored, journal, last))
    if kept is not None:
        _take(live, kept)
        if last < live.version:
            lost = f"its log ends at version {last}, but there is a snapshot of version {live.version}"
            raise DataError(f"{lost}: the log has lost its end, or the snapshot is of another copy; delete it then")
    at, damaged = replay(live, journal, last, stored.last_acknowledged)
    if damaged is not None:
        _drop_last_entry(live, journal, damaged)
    _reopen(live, journal, max(at, stored.at))
    with suppress(Exception):  # loads kernels; not essential
        warm(live.model, live.k)
    live.snapshots.remove_drafts()
    journal.follow(live.id, live.version)
    live.stats.begin()


def _reopen(live: LiveRanker, journal: Journal, at: float) -> None:
    """Opens the unanswered rounds again and sets the clock to the latest known time, `at` or later."""
    rounds = dict(journal.open_rounds(live.id))
    whole = {number: body for number, body in rounds.items() if body is not None}
    if len(whole) < len(rounds):
        _logger.warning("%d rounds of ranker %s are damaged, and gone", len(rounds) - len(whole), live.name)
    # the snapshot may have answers that the log has lost
    learnt = [number for number in whole if number in live.rounds.answered_ever]
    if learnt:
        _logger.warning(
            "the log of ranker %s has lost the answers to %d rounds: they stay answered", live.name, len(learnt)
        )
    for number in learnt:
        del whole[number]
    live.rounds.open = OpenRounds(whole)
    live.forget([number for number in whole if number < live.rounds.barrier])
    recent = [(number, body) for number, body in journal.last_rounds(live.id, RECENT) if body is not None]
    live.rounds.recent.extend(number for number, _ in recent)
    if recent:
        at = max(at, open_rounds.shown_at(recent[-1][1]))
    if at > 0.0:
        live.rounds.set_clock(at)


def _misfit(kept: Mapping[str, Any], stored: StoredRanker, journal: Journal, last: int) -> str:
    """Why a snapshot does not belong to this ranker and log; empty if it does."""
    version = int(kept["version"])
    if kept["incarnation"] != stored.incarnation:
        return "is of another ranker"
    if version > last and stored.last_acknowledged >= 0:  # by the mark, the log is complete
        return "is newer than the log"
    logged = journal.checksum(stored.id, version)
    if None not in (logged, kept.get("checksum")) and kept["checksum"] != logged:
        return "is not of this log"
    return ""


def _take(live: LiveRanker, kept: Any) -> None:
    live.start_from(Model.from_bytes(kept["model"].tobytes()))
    live.version = int(kept["version"])
    live.rounds.next = live.rounds.reserved = max(live.rounds.next, live.learner.rounds)
    live.rounds.barrier, live.refused = int(kept["barrier"]), list(kept["refused"])
    live.rounds.answered_ever.restore(kept["answered"])
    try:
        live.stats.restore(kept["tally"])
    except Exception:  # statistics are for display
        _logger.warning("what was counted of ranker %s cannot be read, and is counted anew", live.name)
        live.stats = Stats()
    live.note_kept(monotonic())


def _drop_last_entry(live: LiveRanker, journal: Journal, version: int) -> None:
    """Replaces a damaged last entry by an empty one; its round is deleted if a snapshot has learnt it."""
    nothing = JournalEntry("nothing", 0, 0.0, b"")
    journal.cut(live.id, version, encode(nothing), learnt=version <= live.version)
    if version > live.version:
        apply_entry.apply(live, nothing, version)
    live.cut += 1
    _logger.warning("the last entry of ranker %s, version %d, was damaged and is cut off", live.name, version)
