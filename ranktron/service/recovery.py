"""Coming back: a desk from its newest whole snapshot and the entries of the log after it."""

from __future__ import annotations

import logging
from contextlib import suppress
from time import monotonic
from typing import Any

import msgspec
import numpy as np

from ranktron.data import serialization
from ranktron.errors import DataError
from ranktron.service import journal_writes
from ranktron.service.config import Config
from ranktron.service.entries import Entry, Result
from ranktron.service.journal import Log, StoredRanker
from ranktron.service.live_ranker import Desk
from ranktron.service.models import complete_stored, warm
from ranktron.service.snapshots import Snapshots
from ranktron.service.types import Definition
from ranktron.training.model import Model

_logger = logging.getLogger("ranktron.service")
_entry = msgspec.msgpack.Decoder(Entry)


def snapshot_of(desk: Desk) -> bytes:
    """All of a desk but its open rounds, which the log keeps."""
    content = {
        "version": desk.version,
        "model": np.frombuffer(desk.model.to_bytes(), np.uint8),
        "barrier": desk.barrier,
        "refused": desk.refused,
        "tally": desk.tally.state(),
    }
    return serialization.pack(content)


def restored(log: Log, stored: StoredRanker, snapshots: Snapshots, config: Config) -> Desk:
    """The desk as it was when its last entry was on disk: the same weights, to the bit."""
    definition = _defined(log, stored)
    asked = msgspec.json.decode(stored.asked, type=Definition)
    desk = Desk(stored.id, stored.name, definition, asked, config, snapshots, stored.next)
    kept = snapshots.newest()
    if kept is not None:
        _take(desk, kept)
    entries = _whole(log, desk)
    rounds = {number: body for number, body in log.rounds(desk.id) if body is not None}
    desk.open = {number: body for number, body in rounds.items() if number >= desk.barrier}
    for version, body in entries:
        entry = _entry.decode(body)
        if version <= desk.version:
            if entry.kind == "feedback":
                shown = desk.open.pop(entry.round, None)
                desk.remember(entry, Result(version not in desk.refused, version), shown or rounds.get(entry.round))
        else:
            _replay(desk, entry, version)
    desk.recent.extend(sorted(rounds)[-desk.recent.maxlen :] if desk.recent.maxlen else [])
    log.follow(desk.id, desk.version)
    with suppress(DataError):
        warm(desk.model, desk.k)
    return desk


def _defined(log: Log, stored: StoredRanker) -> Definition:
    """The definition with every parameter; one that an older version left incomplete is completed on disk, too."""
    definition = msgspec.json.decode(stored.definition, type=Definition)
    made = complete_stored(definition)
    if made != definition:
        log.write_now(journal_writes.define(stored.id, msgspec.json.encode(made), stored.asked))
    return made


def _take(desk: Desk, kept: Any) -> None:
    desk.start_from(Model.from_bytes(kept["model"].tobytes()))
    desk.version = int(kept["version"])
    desk.next = desk.reserved = max(desk.next, desk.learner.rounds)
    desk.barrier, desk.refused = int(kept["barrier"]), list(kept["refused"])
    desk.tally.restore(kept["tally"])
    desk.note_kept(monotonic())


def _whole(log: Log, desk: Desk) -> list[tuple[int, bytes]]:
    """The entries of the log; a damaged last one is cut off, and damage before it ends the matter."""
    entries = list(log.entries(desk.id))
    if entries and entries[-1][1] is None:
        version, _ = entries.pop()
        log.cut(desk.id, version, learnt=version <= desk.version)
        desk.cut += 1
        _logger.warning("the last entry of ranker %s, version %d, was damaged and is cut off", desk.name, version)
    whole = [(version, body) for version, body in entries if body is not None]
    reached = desk.version
    for version, _ in whole:
        reached += version == reached + 1
    if len(whole) < len(entries) or (whole and whole[-1][0] > reached):
        raise DataError(
            f"the log of ranker {desk.name!r} is damaged after version {reached}, or the snapshot that it goes on "
            "from is: restore the folder from a copy"
        )
    return whole


def _replay(desk: Desk, entry: Entry, version: int) -> None:
    if entry.kind == "feedback" and entry.round not in desk.open:
        raise DataError(
            f"the log of ranker {desk.name!r} is damaged: version {version} answers round {entry.round}, which is not "
            "there: restore the folder from a copy"
        )
    desk.apply(entry, version)
