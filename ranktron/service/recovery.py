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
from ranktron.service.config import Config
from ranktron.service.entries import JournalEntry, Result, encode
from ranktron.service.epochs import Epochs
from ranktron.service.journal import Define, Journal, JournalError, LossError, StoredRanker
from ranktron.service.live_ranker import LiveRanker
from ranktron.service.models import blank_model, complete_stored, stored_bytes, warm
from ranktron.service.open_rounds import OpenRounds
from ranktron.service.snapshots import Snapshots
from ranktron.service.stats import Stats
from ranktron.service.stored_round import shown_at
from ranktron.service.types import Definition
from ranktron.training.model import Model

_logger = logging.getLogger("ranktron.service")
_RIGHT = "Put that right"
_entry = msgspec.msgpack.Decoder(JournalEntry)


def snapshot_of(live: LiveRanker) -> dict[str, Any]:
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


def recovered(
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
            live = _made(stored, snapshots, config)
            _restore(live, stored, journal)
        return live
    except JournalError:
        raise
    except Exception as error:
        reason = str(error) if isinstance(error, RanktronError) else f"{type(error).__name__}: {error}"
        return aside(0 if live is None else live.version, reason, getattr(error, "remedy", _RIGHT))


def _made(stored: StoredRanker, snapshots: Snapshots, config: Config) -> LiveRanker:
    """The ranker as it is defined: with every parameter, where an older version left some out."""
    definition = complete_stored(msgspec.json.decode(stored.definition, type=Definition))
    asked = msgspec.json.decode(stored.asked, type=Definition)
    model = blank_model(definition, _unlimited(config))
    live = LiveRanker(stored.id, stored.name, definition, asked, model, config, snapshots, stored.next)
    live.incarnation, live.epochs = stored.incarnation, Epochs(stored.epochs)
    return live


def _unlimited(config: Config) -> Config:
    """Limits are for what is new: a ranker that there is goes on when they are lowered."""
    return msgspec.structs.replace(config, max_features=sys.maxsize, max_weights=sys.maxsize, max_k=sys.maxsize)


def _restore(live: LiveRanker, stored: StoredRanker, journal: Journal) -> None:
    """Makes the ranker what it was: the same weights, to the bit. Whatever is written is written at the end."""
    entries, damaged = list(journal.entries(live.id)), None
    last = entries[-1][0] if entries else 0
    kept = live.snapshots.newest(lambda each: _misfit(each, stored, journal, last))
    if kept is not None:
        _take(live, kept)
        if last < live.version:
            lost = f"its log ends at version {last}, but there is a snapshot of version {live.version}"
            raise DataError(f"{lost}: the log has lost its end, or the snapshot is of another copy; delete it then")
    rounds = _whole_rounds(live, journal)
    live.open = OpenRounds({number: body for number, body in rounds.items() if number >= live.barrier})
    at = shown_at(rounds[max(rounds)]) if rounds else 0.0
    for version, body in entries:
        if version > live.version + 1 or (body is None and version < entries[-1][0]):
            wrong = min(version, live.version + 1)
            raise DataError(f"its log is damaged at version {wrong}, or the snapshot that it goes on from is")
        if body is None:  # the last one
            if live.version < version <= stored.told:
                raise LossError(f"its log is damaged at version {version}, which was acknowledged")
            damaged = version
            break
        entry = _entry.decode(body)
        at = max(at, entry.at)
        if version > live.version:
            _replay(live, entry, version)
        elif entry.kind == "feedback":
            shown = live.open.pop(entry.round, None)
            live.remember(entry, Result(version not in live.refused, version), shown or rounds.get(entry.round))
    if at > 0.0:
        live.set_clock(at)
    live.recent.extend(sorted(rounds)[-live.recent.maxlen :] if live.recent.maxlen else [])
    with suppress(Exception):  # it only loads kernels
        warm(live.model, live.k)
    if damaged is not None:
        _cut(live, journal, damaged)
    if live.definition != msgspec.json.decode(stored.definition, type=Definition):
        journal.write_now(Define(stored.id, stored_bytes(live.definition), stored.asked))
    journal.follow(live.id, live.version)
    live.stats.begin()


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


def _whole_rounds(live: LiveRanker, journal: Journal) -> dict[int, bytes]:
    """The rounds that were kept; damaged ones are reported, and nobody can answer them any more."""
    rounds = dict(journal.rounds(live.id))
    whole = {number: body for number, body in rounds.items() if body is not None}
    if len(whole) < len(rounds):
        _logger.warning("%d rounds of ranker %s are damaged, and gone", len(rounds) - len(whole), live.name)
    return whole


def _cut(live: LiveRanker, journal: Journal, version: int) -> None:
    """Cuts the last entry off; its version stays used. The round that it answered is gone, if it has been learnt."""
    nothing = JournalEntry("nothing", 0, 0.0, b"")
    journal.cut(live.id, version, encode(nothing), learnt=version <= live.version)
    if version > live.version:
        live.apply(nothing, version)
    left = {number for number, _ in journal.rounds(live.id)}
    live.open = OpenRounds({number: body for number, body in live.open.items() if number in left})
    live.cut += 1
    _logger.warning("the last entry of ranker %s, version %d, was damaged and is cut off", live.name, version)


def _replay(live: LiveRanker, entry: JournalEntry, version: int) -> None:
    if entry.kind == "feedback" and entry.round not in live.open:
        raise DataError(f"its log is damaged: version {version} answers round {entry.round}, which is not there")
    live.apply(entry, version)
