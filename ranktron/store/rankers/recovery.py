"""Recovery: loads a ranker's newest intact snapshot and replays the journal entries after it.

A ranker that cannot be recovered is quarantined (clients read "set aside"): its files stay as they are, and the other
rankers serve. A replay gives bit-identical weights. It takes a fraction of the time of the original updates: feedback
is applied in batches, and state that only the last entries determine (remembered answers, the drift of the weights) is
computed for these alone.
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


BATCH_SIZE = 1_000  # rounds per batch


class ReplayItem(NamedTuple):
    """A feedback entry to replay, with the round that it answers: `body` as stored, `shown` decoded."""

    version: int
    entry: JournalEntry
    body: bytes
    shown: ShownRound
    feedback: FeedbackItems

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shapes that all rounds of a batch share."""
        shown = self.shown
        return len(shown.rows), len(shown.shown), len(shown.drift), len(self.feedback), *shown.shape


class ReplayBatch:
    """Collects feedback in the order of the journal; `learn` applies it, bit-identical to one entry after another.

    `add` updates the version and the answered rounds; the weights change with `learn`.
    """

    def __init__(self, live: LiveRanker) -> None:
        self._live = live
        self._items: list[ReplayItem] = []  # not learnt yet, in order; add appends, learn clears

    def add(self, entry: JournalEntry, version: int, body: bytes) -> None:
        self._items.append(ReplayItem(version, entry, body, open_rounds.read_shown(body), decode_feedback(entry.body)))
        self._live.version = version
        self._live.rounds.answered_ever.add(entry.round)
        if len(self._items) >= BATCH_SIZE:
            self.learn()

    def learn(self) -> None:
        if not self._items:
            return
        for _, run in groupby(self._items, lambda item: item.sizes):
            items = list(run)
            if not self._learn_batch(items):
                for item in items:
                    apply_entry.learn_shown(self._live, item.version, open_rounds.unpack(item.body), item.feedback)
        for _, entry, _, shown, feedback in self._items:
            apply_entry.count(self._live, entry, shown, feedback)
        self._live.note_weights()
        self._items = []

    def _learn_batch(self, items: list[ReplayItem]) -> bool:
        live, learner = self._live, self._live.learner
        first = items[0].shown
        if live.map is not None or first.drift or first.propensities is None or not can_learn_many(learner):
            return False
        n, k, shown = len(items), len(first.shown) // 8, [item.shown for item in items]
        feedback = list(chain.from_iterable(item.feedback for item in items))
        rows = np.frombuffer(b"".join([round.rows for round in shown]), np.float32).reshape(
            n, -1, len(live.filled_names)
        )
        learnt = learn_many(
            learner,
            PendingBatch(
                [round.number for round in shown],
                [round.size for round in shown],
                rows[:, :k].copy(),
                np.frombuffer(bytearray().join([round.shown for round in shown])).reshape(n, k),
                np.frombuffer(bytearray().join([round.propensities or b"" for round in shown])).reshape(
                    n, *first.shape
                ),
                np.array([place for place, _, _ in feedback]).reshape(n, -1),
                np.array([label for _, label, _ in feedback], float).reshape(n, -1),
            ),
        )
        if learnt is None:
            return False
        for index in np.flatnonzero(~learnt):
            apply_entry.mark_unlearnt(live, items[index].version)
        return True


_entry = msgspec.msgpack.Decoder(JournalEntry)


class Replayed(NamedTuple):
    """The latest time in the entries, the version of a damaged last one, and of the last one that forgot a user."""

    at: float
    damaged: int | None
    forgotten: int


def replay(live: LiveRanker, journal: Journal, last: int, last_acknowledged: int) -> Replayed:
    """Replays the entries up to version `last`.

    Only the last entry may be damaged, and only if its version is above `last_acknowledged`.
    """
    collecting = gc.isenabled()
    gc.disable()  # decoded entries have no reference cycles
    try:
        return _replay_entries(live, journal, last, last_acknowledged)
    finally:
        if collecting:
            gc.enable()


def _replay_entries(live: LiveRanker, journal: Journal, last: int, last_acknowledged: int) -> Replayed:
    config, at, batch, forgotten = live.config, 0.0, ReplayBatch(live), 0
    unremembered = journal.before_answers(live.id, config.max_remembered)
    last_batched = min(last - DRIFT - 1, unremembered)
    for version, body, shown in journal.entries(live.id, max(min(unremembered, live.version) - 1, 0)):
        if version > live.version + 1 or (body is None and version < last):
            damaged = min(version, live.version + 1)
            raise DataError(f"its log is damaged at version {damaged}, or the snapshot before it is")
        if body is None:  # the last entry
            if live.version < version <= last_acknowledged:
                raise MissingEntriesError(f"its log is damaged at version {version}, which was acknowledged")
            return Replayed(at, version, forgotten)
        entry = _entry.decode(body)
        at = max(at, entry.at)
        if version <= live.version:
            if entry.kind in ("feedback", "gains"):
                apply_entry.remember(live, entry, Result(version not in live.refused, version), shown)
            continue
        if entry.kind == "feedback":
            stored_round = _answered_round(live, entry, version, shown)
            if version <= last_batched:
                batch.add(entry, version, stored_round)
                continue
            live.rounds.open[entry.round] = stored_round
        batch.learn()
        apply_entry.apply(live, entry, version)
        forgotten = version if entry.kind == "forget" else forgotten
    return Replayed(at, None, forgotten)


def _answered_round(live: LiveRanker, entry: JournalEntry, version: int, shown: bytes | None) -> bytes:
    """The stored round that an entry answers; it must exist and be unanswered."""
    repeated = entry.round in live.rounds.answered_ever
    if shown is None or repeated or entry.round < live.rounds.barrier or open_rounds.read_number(shown) != entry.round:
        raise DataError(f"its log is damaged: version {version} answers round {entry.round}, which is not open")
    return shown


_REPAIR = "Fix the cause"


def take_snapshot(live: LiveRanker) -> dict[str, Any]:
    """The content of a snapshot: a ranker's state without its open rounds, which are in the journal."""
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
    """A ranker that could not be recovered; it can only be deleted. `next` is the number of its next round."""

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
def _record_crashes(path: Path) -> Iterator[None]:
    """Writes the traceback of a crash in compiled code to a file; if the process is killed, the file stays empty."""
    was_enabled = faulthandler.is_enabled()
    try:
        with open(path, "wb") as file:
            faulthandler.enable(file)
            try:
                yield
            finally:
                faulthandler.disable()
                if was_enabled:
                    with suppress(Exception):  # there may be no standard error
                        faulthandler.enable()
    finally:
        path.unlink(missing_ok=True)


def recover_ranker(
    journal: Journal, stored: StoredRanker, snapshots: Snapshots, config: StoreConfig, crash: Path
) -> LiveRanker | Quarantined:
    """The recovered ranker, or a quarantined one; raises only errors of the journal as a whole.

    A ranker whose recovery has crashed the process is quarantined until its crash file is deleted.
    """

    def quarantine(version: int, reason: str, repair: str) -> Quarantined:
        delete = f"or delete the ranker with DELETE /v1/rankers/{stored.name}"
        remedy = f"{repair}, or restore the folder from a copy, and start again; {delete}"
        quarantined = Quarantined(stored.id, stored.name, stored.next, snapshots, version, reason, remedy)
        _logger.error("%s", quarantined.message)
        return quarantined

    if stored.wrong is not None:
        return quarantine(stored.last_acknowledged, str(stored.wrong), getattr(stored.wrong, "remedy", _REPAIR))
    if crash.exists() and crash.stat().st_size:
        crashed = f"its recovery crashed the server the last time, {crash} says where"
        return quarantine(max(snapshots.versions(), default=0), crashed, "To try it again, delete that file")
    live = None
    try:
        with _record_crashes(crash):
            live = _make_ranker(stored, snapshots, config)
            _restore(live, stored, journal)
        return live
    except JournalError:
        raise
    except Exception as error:
        reason = str(error) if isinstance(error, RanktronError) else f"{type(error).__name__}: {error}"
        return quarantine(0 if live is None else live.version, reason, getattr(error, "remedy", _REPAIR))


def _make_ranker(stored: StoredRanker, snapshots: Snapshots, config: StoreConfig) -> LiveRanker:
    """The untrained ranker of a stored definition."""
    definition = msgspec.json.decode(stored.definition, type=Definition)
    model = blank_model(definition, without_limits(config))
    live = LiveRanker(stored.id, stored.name, definition, model, config, snapshots, stored.next)
    live.incarnation, live.rounds.ids = stored.incarnation, RoundIds(stored.epochs)
    return live


def copied_ranker(
    stored: StoredRanker, content: Mapping[str, Any], snapshots: Snapshots, config: StoreConfig
) -> LiveRanker:
    """A ranker from the content of a snapshot, for a follower."""
    live = _make_ranker(stored, snapshots, config)
    _load_snapshot(live, content)
    return live


def without_limits(config: StoreConfig) -> StoreConfig:
    """The settings without limits, which apply to new rankers only."""
    no_limit = sys.maxsize
    return msgspec.structs.replace(
        config, max_features=no_limit, max_weights=no_limit, max_k=no_limit, open_seconds=float("inf")
    )


def _restore(live: LiveRanker, stored: StoredRanker, journal: Journal) -> None:
    """Restores the ranker bit for bit; writes come last, after everything else has succeeded."""
    last = journal.last_version(live.id)
    snapshot = live.snapshots.newest(lambda content: _misfit(content, stored, journal, last))
    if snapshot is not None:
        _load_snapshot(live, snapshot)
        if last < live.version:
            problem = f"its log ends at version {last}, but there is a snapshot of version {live.version}"
            raise DataError(f"{problem}: the log has lost its end, or the snapshot is of another copy; delete it then")
    at, damaged, forgotten = replay(live, journal, last, stored.last_acknowledged)
    if damaged is not None:
        _drop_last_entry(live, journal, damaged)
    _reopen(live, journal, max(at, stored.at))
    with suppress(Exception):  # optional: it only loads kernels
        warm(live.model, live.k)
    live.snapshots.remove_drafts()
    live.snapshots.remove_unpinned(forgotten)  # a crash came before it: they know the user
    journal.follow(live.id, live.version)
    live.stats.begin()


def _reopen(live: LiveRanker, journal: Journal, at: float) -> None:
    """Reopens the unanswered rounds and sets the clock to the latest known time, `at` or later."""
    rounds = dict(journal.open_rounds(live.id))
    intact = {number: body for number, body in rounds.items() if body is not None}
    if len(intact) < len(rounds):
        _logger.warning("%d open rounds of ranker %s are damaged: dropped", len(rounds) - len(intact), live.name)
    # a snapshot may have learnt from answers that the log has lost
    answered = [number for number in intact if number in live.rounds.answered_ever]
    if answered:
        _logger.warning(
            "the log of ranker %s has lost the answers to %d rounds: they stay answered", live.name, len(answered)
        )
    for number in answered:
        del intact[number]
    live.rounds.open = OpenRounds(intact)
    live.forget([number for number in intact if number < live.rounds.barrier])
    recent = [(number, body) for number, body in journal.last_rounds(live.id, RECENT) if body is not None]
    live.rounds.recent.extend(number for number, _ in recent)
    if recent:
        at = max(at, open_rounds.shown_at(recent[-1][1]))
    if at > 0.0:
        live.rounds.set_clock(at)


def _misfit(content: Mapping[str, Any], stored: StoredRanker, journal: Journal, last: int) -> str:
    """Why a snapshot does not belong to this ranker and log; empty if it does."""
    version = int(content["version"])
    if content["incarnation"] != stored.incarnation:
        return "is of another ranker"
    if version > last and stored.last_acknowledged >= 0:  # the high-water mark shows that the log is complete
        return "is newer than the log"
    logged = journal.checksum(stored.id, version)
    if None not in (logged, content.get("checksum")) and content["checksum"] != logged:
        return "is not of this log"
    return ""


def _load_snapshot(live: LiveRanker, content: Any) -> None:
    live.start_from(Model.from_bytes(content["model"].tobytes()))
    live.version = int(content["version"])
    live.rounds.next = live.rounds.reserved = max(live.rounds.next, live.learner.rounds)
    live.rounds.barrier, live.refused = int(content["barrier"]), list(content["refused"])
    live.rounds.answered_ever.restore(content["answered"])
    try:
        live.stats.restore(content["tally"])
    except Exception:  # statistics are for display
        _logger.warning("the statistics of ranker %s cannot be read: they are reset", live.name)
        live.stats = Stats()
    live.note_snapshot(monotonic())


def _drop_last_entry(live: LiveRanker, journal: Journal, version: int) -> None:
    """Replaces a damaged last entry by an empty one; its round is deleted if a snapshot has learnt it."""
    empty = JournalEntry("nothing", 0, 0.0, b"")
    journal.cut(live.id, version, encode(empty), learnt=version <= live.version)
    if version > live.version:
        apply_entry.apply(live, empty, version)
    live.cut += 1
    _logger.warning("the last entry of ranker %s, version %d, was damaged and is cut off", live.name, version)
