"""Recovery: a ranker from its newest whole snapshot and the entries of the journal after it."""

from __future__ import annotations

import logging
from contextlib import suppress
from time import monotonic
from typing import Any

import msgspec
import numpy as np

from ranktron.data import serialization
from ranktron.errors import DataError
from ranktron.service.config import Config
from ranktron.service.entries import JournalEntry, Result
from ranktron.service.journal import Define, Journal, StoredRanker
from ranktron.service.live_ranker import LiveRanker
from ranktron.service.models import complete_stored, warm
from ranktron.service.snapshots import Snapshots
from ranktron.service.types import Definition
from ranktron.training.model import Model

_logger = logging.getLogger("ranktron.service")
_entry = msgspec.msgpack.Decoder(JournalEntry)


def snapshot_of(live: LiveRanker) -> bytes:
    """All of a ranker but its open rounds, which the journal keeps."""
    content = {
        "version": live.version,
        "model": np.frombuffer(live.model.to_bytes(), np.uint8),
        "barrier": live.barrier,
        "refused": live.refused,
        "tally": live.stats.state(),
    }
    return serialization.pack(content)


def restored(journal: Journal, stored: StoredRanker, snapshots: Snapshots, config: Config) -> LiveRanker:
    """The ranker as it was when its last entry was on disk: the same weights, to the bit."""
    definition = _defined(journal, stored)
    asked = msgspec.json.decode(stored.asked, type=Definition)
    live = LiveRanker(stored.id, stored.name, definition, asked, config, snapshots, stored.next)
    kept = snapshots.newest()
    if kept is not None:
        _take(live, kept)
    entries = _whole(journal, live)
    rounds = {number: body for number, body in journal.rounds(live.id) if body is not None}
    live.open = {number: body for number, body in rounds.items() if number >= live.barrier}
    for version, body in entries:
        entry = _entry.decode(body)
        if version <= live.version:
            if entry.kind == "feedback":
                shown = live.open.pop(entry.round, None)
                live.remember(entry, Result(version not in live.refused, version), shown or rounds.get(entry.round))
        else:
            _replay(live, entry, version)
    live.recent.extend(sorted(rounds)[-live.recent.maxlen :] if live.recent.maxlen else [])
    journal.follow(live.id, live.version)
    with suppress(DataError):
        warm(live.model, live.k)
    return live


def _defined(journal: Journal, stored: StoredRanker) -> Definition:
    """The definition with every parameter; one that an older version left incomplete is completed on disk, too."""
    definition = msgspec.json.decode(stored.definition, type=Definition)
    made = complete_stored(definition)
    if made != definition:
        journal.write_now(Define(stored.id, msgspec.json.encode(made), stored.asked))
    return made


def _take(live: LiveRanker, kept: Any) -> None:
    live.start_from(Model.from_bytes(kept["model"].tobytes()))
    live.version = int(kept["version"])
    live.next = live.reserved = max(live.next, live.learner.rounds)
    live.barrier, live.refused = int(kept["barrier"]), list(kept["refused"])
    live.stats.restore(kept["tally"])
    live.note_kept(monotonic())


def _whole(journal: Journal, live: LiveRanker) -> list[tuple[int, bytes]]:
    """The entries of the journal; a damaged last one is cut off, and damage before it ends the matter."""
    entries = list(journal.entries(live.id))
    if entries and entries[-1][1] is None:
        version, _ = entries.pop()
        journal.cut(live.id, version, learnt=version <= live.version)
        live.cut += 1
        _logger.warning("the last entry of ranker %s, version %d, was damaged and is cut off", live.name, version)
    whole = [(version, body) for version, body in entries if body is not None]
    reached = live.version
    for version, _ in whole:
        reached += version == reached + 1
    if len(whole) < len(entries) or (whole and whole[-1][0] > reached):
        raise DataError(
            f"the log of ranker {live.name!r} is damaged after version {reached}, or the snapshot that it goes on "
            "from is: restore the folder from a copy"
        )
    return whole


def _replay(live: LiveRanker, entry: JournalEntry, version: int) -> None:
    if entry.kind == "feedback" and entry.round not in live.open:
        raise DataError(
            f"the log of ranker {live.name!r} is damaged: version {version} answers round {entry.round}, which is not "
            "there: restore the folder from a copy"
        )
    live.apply(entry, version)
