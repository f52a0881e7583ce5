"""Forgets a person: replays a ranker's log without the entries of one user, while the ranker goes on serving."""

from __future__ import annotations

import msgspec

from ranktron.errors import DataError
from ranktron.store.journal.entries import JournalEntry, decode_gains
from ranktron.store.journal.journal import Journal
from ranktron.store.rankers import apply_entry, open_rounds
from ranktron.store.rankers.live_ranker import LiveRanker
from ranktron.store.rankers.models import blank_model
from ranktron.store.rankers.recovery import ReplayBatch, without_limits

_entry = msgspec.msgpack.Decoder(JournalEntry)


class Erasure:
    """A copy of a ranker that never learns from one user. `replay` may run on a thread of its own."""

    def __init__(self, live: LiveRanker, user: str, journal: Journal) -> None:
        model = blank_model(live.definition, without_limits(live.config))
        self._copy = LiveRanker(live.id, live.name, live.definition, model, live.config, live.snapshots)
        self._user, self._journal = user, journal  # fixed
        self.versions: list[int] = []  # entries to erase: the user's, and states after earlier erasures; replay
        self.forgotten = 0  # entries of the user; replay
        self.rounds: list[int] = []  # rounds that they answer; replay
        self.models: list[int] = []  # versions at which a model was uploaded or restored, and stays; replay

    @property
    def version(self) -> int:
        """The last entry replayed."""
        return self._copy.version

    def replay(self, last: int) -> None:
        """Replays the entries up to a version that is on disk."""
        copy, batch = self._copy, ReplayBatch(self._copy)
        for version, body, shown in self._journal.entries(copy.id, copy.version):
            if version > last:
                break
            if body is None or version != copy.version + 1:
                raise DataError(f"the log of ranker {copy.name!r} is damaged at version {copy.version + 1}")
            entry = _entry.decode(body)
            if entry.kind in ("forget", "nothing") or self._is_theirs(entry, shown):
                self._skip(entry, version)
            elif entry.kind == "feedback" and shown is not None:
                batch.add(entry, version, shown)
            else:
                batch.learn()
                apply_entry.apply(copy, entry, version)
            if entry.kind == "model":
                self.models.append(version)
        batch.learn()

    def _skip(self, entry: JournalEntry, version: int) -> None:
        self._copy.version = version
        if entry.kind == "nothing":
            return
        self.versions.append(version)
        if entry.kind != "forget":
            self.forgotten += 1
            self.rounds.append(entry.round)

    def _is_theirs(self, entry: JournalEntry, shown: bytes | None) -> bool:
        if entry.kind == "gains":
            shown = decode_gains(entry.body).shown
        elif entry.kind != "feedback":
            return False
        if shown is None:
            raise DataError(f"the log of ranker {self._copy.name!r} has lost round {entry.round}")
        return is_round_of(self._user, shown)

    def entry(self, live: LiveRanker) -> JournalEntry:
        """The entry that replaces the weights by those of the copy."""
        return JournalEntry("forget", live.rounds.next, live.rounds.now(), self._copy.model.to_bytes())


def is_round_of(user: str, body: bytes) -> bool:
    """Whether a stored round was shown to a user."""
    return user.encode() in body and open_rounds.unpack(body).user == user  # few rounds are decoded
