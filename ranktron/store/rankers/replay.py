"""The replay of a journal: every entry after the snapshot is learnt again, in the same order, to the same weights.

What only the last entries decide (which feedback is remembered, how far the last updates moved the weights) is left
out before them: a million feedbacks are replayed in a fraction of the time that it took to receive them.
"""

from __future__ import annotations

import gc

import msgspec

from ranktron.errors import DataError
from ranktron.store.journal.entries import JournalEntry, Result
from ranktron.store.journal.journal import Journal, MissingEntriesError
from ranktron.store.rankers import apply_entry, stored_round
from ranktron.store.rankers.live_ranker import DRIFT, LiveRanker
from ranktron.store.rankers.replay_batch import ReplayBatch

_entry = msgspec.msgpack.Decoder(JournalEntry)


def replay(live: LiveRanker, journal: Journal, last: int, last_acknowledged: int) -> tuple[float, int | None]:
    """Learns the entries up to version `last` again: the latest time that they know, and which version was damaged.

    Only the last entry may be, and only if no client was answered for it: they were for versions up to
    `last_acknowledged`.
    """
    collecting = gc.isenabled()
    gc.disable()  # it would look for cycles among all that is read, and there are none
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
            live.open[entry.round] = kept
        unwatched.learn()
        apply_entry.apply(live, entry, version)
    return at, None


def _round(live: LiveRanker, entry: JournalEntry, version: int, shown: bytes | None) -> bytes:
    """The round that an entry answers; it must be there, and not have been answered before."""
    again = entry.round in live.answered_ever
    if shown is None or again or entry.round < live.barrier or stored_round.read_number(shown) != entry.round:
        raise DataError(f"its log is damaged: version {version} answers round {entry.round}, which is not there")
    return shown
