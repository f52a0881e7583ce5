"""Recovery: a ranker from its newest intact snapshot and the entries after it.

A ranker that cannot be recovered is quarantined (clients read "set aside"): its files stay as they are, and the other
rankers serve.
"""

from __future__ import annotations

import faulthandler
import logging
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec
import numpy as np

from ranktron.errors import DataError, RanktronError
from ranktron.store.config import StoreConfig
from ranktron.store.journal.entries import JournalEntry, encode
from ranktron.store.journal.journal import Journal, JournalError, StoredRanker
from ranktron.store.journal.snapshots import Snapshots
from ranktron.store.rankers import apply_entry, open_rounds
from ranktron.store.rankers.live_ranker import LiveRanker
from ranktron.store.rankers.models import blank_model, warm
from ranktron.store.rankers.open_rounds import RECENT, OpenRounds, RoundIds
from ranktron.store.rankers.replay import replay
from ranktron.store.rankers.stats import Stats
from ranktron.store.types import Definition
from ranktron.training.model import Model

_logger = logging.getLogger("ranktron.service")
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
