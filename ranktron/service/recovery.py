"""Recovery: a ranker from its newest whole snapshot and the entries of the journal after it.

A ranker that cannot be recovered is set aside: what it has on disk stays as it is, and the others serve.
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
from ranktron.service import learning, stored_round
from ranktron.service.config import Config
from ranktron.service.journal import Define, Journal, JournalError, StoredRanker
from ranktron.service.journal_entries import JournalEntry, encode
from ranktron.service.live_ranker import RECENT, LiveRanker
from ranktron.service.models import blank_model, stored_bytes, warm
from ranktron.service.open_rounds import OpenRounds
from ranktron.service.replay import replay
from ranktron.service.round_numbers import Epochs
from ranktron.service.snapshots import Snapshots
from ranktron.service.stats import Stats
from ranktron.service.types import Definition
from ranktron.training.model import Model

_logger = logging.getLogger("ranktron.service")
_RIGHT = "Put that right"


def take_snapshot(live: LiveRanker) -> dict[str, Any]:
    """All of a ranker but its open rounds, which the journal keeps."""
    return {
        "version": live.version,
        "incarnation": live.incarnation,
        "model": np.frombuffer(live.model.to_bytes(), np.uint8),
        "barrier": live.barrier,
        "refused": live.refused,
        "answered": live.answered_ever.state(),
        "tally": live.stats.state(),
    }


@dataclass(frozen=True)
class SetAside:
    """A ranker that could not be recovered, and why; it can only be deleted. `next` is where its rounds count on."""

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
    """Where a crash in compiled code leaves its traceback while a ranker is being recovered."""
    return folder / f"crash-{ranker}.txt"


@contextmanager
def _noting_crashes(path: Path) -> Iterator[None]:
    """Lets a crash in compiled code write its traceback to a file; a process that is only killed leaves it empty."""
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
    journal: Journal, stored: StoredRanker, snapshots: Snapshots, config: Config, crash: Path
) -> LiveRanker | SetAside:
    """The ranker as it was when its last entry was on disk, or set aside; only a journal that fails ends the matter.

    A ranker whose recovery has crashed the process would do so again: it is not tried without being asked.
    """

    def aside(version: int, reason: str, before: str) -> SetAside:
        delete = f"or delete the ranker with DELETE /v1/rankers/{stored.name}"
        remedy = f"{before}, or restore the folder from a copy, and start again; {delete}"
        found = SetAside(stored.id, stored.name, stored.next, snapshots, version, reason, remedy)
        _logger.error("%s", found.message)
        return found

    if stored.wrong is not None:
        return aside(stored.told, str(stored.wrong), getattr(stored.wrong, "remedy", _RIGHT))
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


def _make_ranker(stored: StoredRanker, snapshots: Snapshots, config: Config) -> LiveRanker:
    """The ranker as it is defined."""
    definition = msgspec.json.decode(stored.definition, type=Definition)
    asked = msgspec.json.decode(stored.asked, type=Definition)
    model = blank_model(definition, _without_limits(config))
    live = LiveRanker(stored.id, stored.name, definition, asked, model, config, snapshots, stored.next)
    live.incarnation, live.epochs = stored.incarnation, Epochs(stored.epochs)
    return live


def copied_ranker(stored: StoredRanker, kept: Mapping[str, Any], snapshots: Snapshots, config: Config) -> LiveRanker:
    """A ranker as a snapshot of it is, for a server that follows."""
    live = _make_ranker(stored, snapshots, config)
    _take(live, kept)
    return live


def _without_limits(config: Config) -> Config:
    """Limits are for what is new: a ranker that there is goes on when they are lowered."""
    most = sys.maxsize
    return msgspec.structs.replace(config, max_features=most, max_weights=most, max_k=most, open_seconds=float("inf"))


def _restore(live: LiveRanker, stored: StoredRanker, journal: Journal) -> None:
    """Makes the ranker what it was: the same weights, to the bit. Whatever is written is written at the end."""
    last = journal.last_version(live.id)
    kept = live.snapshots.newest(lambda each: _misfit(each, stored, journal, last))
    if kept is not None:
        _take(live, kept)
        if last < live.version:
            lost = f"its log ends at version {last}, but there is a snapshot of version {live.version}"
            raise DataError(f"{lost}: the log has lost its end, or the snapshot is of another copy; delete it then")
    at, damaged = replay(live, journal, last, stored.told)
    if damaged is not None:
        _drop_last_entry(live, journal, damaged)
    _reopen(live, journal, max(at, stored.at))
    with suppress(Exception):  # it only loads kernels
        warm(live.model, live.k)
    if live.definition != msgspec.json.decode(stored.definition, type=Definition):
        journal.write_now(Define(stored.id, stored_bytes(live.definition), stored.asked))
    live.snapshots.remove_drafts()
    journal.follow(live.id, live.version)
    live.stats.begin()


def _reopen(live: LiveRanker, journal: Journal, at: float) -> None:
    """Opens the rounds again that nobody has answered; it is then as late as it was, which was `at` or later."""
    rounds = dict(journal.open_rounds(live.id))
    whole = {number: body for number, body in rounds.items() if body is not None}
    if len(whole) < len(rounds):
        _logger.warning("%d rounds of ranker %s are damaged, and gone", len(rounds) - len(whole), live.name)
    learnt = [number for number in whole if number in live.answered_ever]  # a snapshot has what the log has lost
    if learnt:
        _logger.warning(
            "the log of ranker %s has lost the answers to %d rounds: they stay answered", live.name, len(learnt)
        )
    for number in learnt:
        del whole[number]
    live.open = OpenRounds(whole)
    live.forget([number for number in whole if number < live.barrier])
    recent = [(number, body) for number, body in journal.last_rounds(live.id, RECENT) if body is not None]
    live.recent.extend(number for number, _ in recent)
    if recent:
        at = max(at, stored_round.shown_at(recent[-1][1]))
    if at > 0.0:
        live.set_clock(at)


def _misfit(kept: Mapping[str, Any], stored: StoredRanker, journal: Journal, last: int) -> str:
    """Why a snapshot is not of this ranker, if it is not."""
    version = int(kept["version"])
    if kept.get("incarnation", 0) != stored.incarnation:
        return "is of another ranker"
    if version > last and stored.told >= 0:  # the mark says that the log has lost nothing
        return "is newer than the log"
    logged = journal.checksum(stored.id, version)
    if None not in (logged, kept.get("checksum")) and kept["checksum"] != logged:
        return "is not of this log"
    return ""


def _take(live: LiveRanker, kept: Any) -> None:
    live.start_from(Model.from_bytes(kept["model"].tobytes()))
    live.version = int(kept["version"])
    live.next = live.reserved = max(live.next, live.learner.rounds)
    live.barrier, live.refused = int(kept["barrier"]), list(kept["refused"])
    if "answered" in kept:
        live.answered_ever.restore(kept["answered"])
    else:  # a snapshot of 0.1.0
        live.answered_ever.forget_below(live.next)
    try:
        live.stats.restore(kept["tally"])
    except Exception:  # it is only shown to people
        _logger.warning("what was counted of ranker %s cannot be read, and is counted anew", live.name)
        live.stats = Stats()
    live.note_kept(monotonic())


def _drop_last_entry(live: LiveRanker, journal: Journal, version: int) -> None:
    """Cuts the last entry off; its version stays used. The round that it answered is gone, if it has been learnt."""
    nothing = JournalEntry("nothing", 0, 0.0, b"")
    journal.cut(live.id, version, encode(nothing), learnt=version <= live.version)
    if version > live.version:
        learning.apply(live, nothing, version)
    live.cut += 1
    _logger.warning("the last entry of ranker %s, version %d, was damaged and is cut off", live.name, version)
