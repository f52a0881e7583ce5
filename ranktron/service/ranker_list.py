"""The list of rankers: which there are, how one is made and deleted, and what a start finds."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from time import time
from typing import Any

from ranktron.service.awaiting import AwaitedWriter
from ranktron.store.config import Config
from ranktron.store.errors import RequestError, not_leader, unknown_ranker
from ranktron.store.journal.entries import JournalEntry, encode
from ranktron.store.journal.journal import PREFIX, AddRanker, Journal, RemoveRanker, StoredRanker
from ranktron.store.journal.snapshots import Snapshots
from ranktron.store.rankers import apply_entry
from ranktron.store.rankers.journal_writer import RESERVE
from ranktron.store.rankers.live_ranker import LiveRanker
from ranktron.store.rankers.models import Upload, blank_model, complete, stored_bytes
from ranktron.store.rankers.recovery import Quarantined, crash_file, recover_ranker
from ranktron.store.rankers.round_ids import RoundIds
from ranktron.store.types import Definition

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class RankerList:
    """The rankers of a journal by name, those that serve and those that are set aside; made, it has read them all."""

    def __init__(self, folder: Path, config: Config, journal: Journal) -> None:
        self.folder, self.config, self._journal = folder, config, journal
        self.live_rankers: dict[str, LiveRanker] = {}
        self.quarantined: dict[str, Quarantined] = {}
        self.stepped_down: RequestError | None = None
        self._changing = asyncio.Lock()  # a name stands for one ranker, whoever is in a hurry
        self.experiments: list[StoredRanker] = []  # which are in the same journal, by names that no ranker has
        for stored in journal.rankers():
            if stored.name.startswith(PREFIX):
                self.experiments.append(stored)
                continue
            crash = crash_file(folder, stored.id)
            found = recover_ranker(journal, stored, self._snapshots(stored.id), config, crash)
            if isinstance(found, Quarantined):
                self.quarantined[found.name] = found
            else:
                self.live_rankers[found.name] = found

    def live(self, name: str) -> LiveRanker:
        """The ranker of a name; a RequestError if there is none that serves."""
        found = self.live_rankers.get(name)
        if found is None:
            self.check_leading()
            self._check_not_quarantined(name)
            raise unknown_ranker(name)
        return found

    def step_down(self, why: str) -> None:
        """Discards all rankers: another server has taken over, and what is known here is out of date."""
        self.stepped_down = not_leader(why)
        self.live_rankers.clear()
        self.quarantined.clear()

    def check_leading(self) -> None:
        """Refuses once another server has taken over."""
        if self.stepped_down is not None:
            raise self.stepped_down

    def _check_not_quarantined(self, name: str) -> None:
        if name in self.quarantined:
            raise RequestError(409, "set_aside", self.quarantined[name].message)

    async def create(self, name: str, definition: Definition, writer: AwaitedWriter) -> LiveRanker:
        """The ranker of a definition, made if it is not there yet."""
        if definition.model:
            raise RequestError(422, "invalid", "`model` is noted by the service: PUT the model file itself instead")
        live = await asyncio.shield(asyncio.ensure_future(self._made(name, definition, writer)))
        if definition != live.asked and complete(definition) != live.definition:
            raise RequestError(
                409, "exists", f"there is another ranker {name!r} already: delete it first, or choose another name"
            )
        return live

    async def create_from_model(self, name: str, upload: Upload, writer: AwaitedWriter) -> LiveRanker:
        """The ranker of a model file, made if it is not there yet."""
        live = await asyncio.shield(asyncio.ensure_future(self._made(name, upload.definition, writer, upload)))
        if live.definition.model != upload.definition.model:
            raise RequestError(
                409,
                "exists",
                f"there is a ranker {name!r} already, which was not made from this model: POST .../model gives it this "
                "one; or delete it first, or choose a new name",
            )
        return live

    async def _made(
        self, name: str, definition: Definition, writer: AwaitedWriter, upload: Upload | None = None
    ) -> LiveRanker:
        if not _NAME.fullmatch(name):
            raise RequestError(
                422,
                "bad_name",
                "a ranker's name has 1 to 64 letters, digits, dots, hyphens and underscores, a letter or digit first",
            )
        async with self._changing:
            self.check_leading()
            if name in self.live_rankers:
                return self.live_rankers[name]
            self._check_not_quarantined(name)
            count = len(self.live_rankers) + len(self.quarantined)
            if count >= self.config.max_rankers:
                raise RequestError(409, "too_many_rankers", f"there are {count} rankers already: delete one first")
            made = complete(definition)
            model = blank_model(made, self.config)
            add = AddRanker(name, stored_bytes(made), stored_bytes(definition), RESERVE)
            if upload is not None:  # with its model at once: a ranker without it would be another one
                first = JournalEntry("model", 0, time(), upload.body)
                add = add._replace(rounds=upload.rounds, entry=encode(first))
            stored = await writer.written(add)
            snapshots = self._snapshots(stored.id)
            snapshots.clear()  # what a ranker of another copy of this folder may have left there
            live = LiveRanker(stored.id, name, made, definition, model, self.config, snapshots, stored.next)
            live.incarnation, live.round_ids = stored.incarnation, RoundIds(stored.epochs)
            live.reserved = stored.next + RESERVE
            if upload is not None:
                apply_entry.apply(live, first, 1, upload.model)
            self.live_rankers[name] = live
            return live

    async def delete(self, name: str, writer: AwaitedWriter) -> None:
        """Deletes a ranker with all that it has learnt."""
        await asyncio.shield(asyncio.ensure_future(self._removed(name, writer)))

    async def _removed(self, name: str, writer: AwaitedWriter) -> None:
        async with self._changing:
            rankers: dict[str, Any] = self.quarantined if name in self.quarantined else self.live_rankers
            removed = self.quarantined.get(name) or self.live(name)
            del rankers[name]
            try:
                await writer.written(RemoveRanker(removed.id, removed.next))
            except RequestError:
                rankers[name] = removed
                raise
        removed.snapshots.clear()
        crash_file(self.folder, removed.id).unlink(missing_ok=True)

    def _snapshots(self, ranker: int) -> Snapshots:
        return self._journal.snapshots(ranker, self.config.versions)
