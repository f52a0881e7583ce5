"""All rankers and the journal behind them. Python code in the same process talks to it without HTTP.

Everything here runs on one thread, that of the event loop: there is one writer of each ranker, and whoever reads never
sees it half written. What changes weights goes to the journal first, and is applied when it is on disk.
"""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from msgspec import structs

from ranktron.data import serialization
from ranktron.errors import DataError
from ranktron.lazy import lazy_names
from ranktron.service import views
from ranktron.service.config import Config
from ranktron.service.entries import JournalEntry, Result, encode
from ranktron.service.epochs import Epochs
from ranktron.service.errors import RequestError, unknown_ranker, unwritten
from ranktron.service.journal import (
    AddRanker,
    Append,
    Call,
    DropRounds,
    Job,
    Journal,
    Prune,
    RemoveRanker,
    Reserve,
    Settle,
    StoreRound,
    Write,
)
from ranktron.service.live_ranker import LiveRanker
from ranktron.service.models import blank_model, checked_model, complete, definition_of, stored_bytes
from ranktron.service.recovery import SetAside, crash_file, recovered, snapshot_of
from ranktron.service.snapshots import Snapshots
from ranktron.service.sqlite_journal import SQLiteJournal
from ranktron.service.stats import observed_quality
from ranktron.service.turns import answer_batch
from ranktron.service.types import (
    BatchAnswer,
    DashboardAnswer,
    Definition,
    ExplainAnswer,
    FeedbackAnswer,
    FeedbackRequest,
    FullAnswer,
    FullRequest,
    Health,
    RankAnswer,
    RankerAnswer,
    RankersAnswer,
    RankRequest,
    RollbackRequest,
    SetAsideAnswer,
    VersionsAnswer,
)
from ranktron.training.model import Model

_logger = logging.getLogger("ranktron.service")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_SWEEP = 64  # rounds, at most, between two looks at whether there are too many
MOST_WISHED = 100  # versions of a ranker that are kept because someone wished it
RESERVE = 20_000  # numbers of rounds that are set aside on disk: after a crash none of them is given out again


class RankingService:
    """Named rankers over one folder, which it reads when it is made; `start` begins to write.

    >>> import asyncio, tempfile
    >>> from ranktron.service.types import Document
    >>> async def session(folder):
    ...     async with RankingService(folder) as service:
    ...         await service.create("shop", Definition(["price"]))
    ...         documents = [Document("a", [1.0]), Document("b", [3.0])]
    ...         shown = service.rank("shop", RankRequest(documents))
    ...         return await service.feedback("shop", FeedbackRequest(shown.round, {"a": 0.0, "b": 1.0}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     asyncio.run(session(folder))
    FeedbackAnswer(learned=True, version=1)
    """

    def __init__(self, folder: str | Path, config: Config | None = None) -> None:
        self.folder, self.config = Path(folder), config or Config()
        self.journal: Journal = SQLiteJournal(self.folder)
        self.cut = 0
        self.live_rankers: dict[str, LiveRanker] = {}
        self.set_aside: dict[str, SetAside] = {}
        self._sweep = max(1, min(_SWEEP, self.config.max_open // 100))
        self._changing = asyncio.Lock()  # of the list of rankers: a name stands for one of them, whoever is in a hurry
        try:
            for stored in self.journal.rankers():
                crash = crash_file(self.folder, stored.id)
                found = recovered(self.journal, stored, self._snapshots(stored.id), self.config, crash)
                if isinstance(found, SetAside):
                    self.set_aside[found.name] = found
                else:
                    self.cut += found.cut
                    self.live_rankers[found.name] = found
        except BaseException:
            self.journal.close()
            raise

    async def __aenter__(self) -> RankingService:
        self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    def start(self) -> None:
        """Begins to write, from within the event loop."""
        observed_quality(np.ones(1))  # loads its kernel
        for live in self.live_rankers.values():
            live.reserved = live.next + RESERVE
            self.journal.write_now(Reserve(live.id, live.reserved))
        self.journal.start(asyncio.get_running_loop())

    async def stop(self) -> None:
        """Waits for all that is under way, takes a snapshot of every ranker, and lets go of the folder."""
        await self._written(Call(lambda: None), patient=True)
        for live in self.live_rankers.values():
            if live.version != live.kept_version:
                self._snapshot(live)
            self.journal.put(Job(Settle(live.id, live.next), failed=lambda _error: None))
        await asyncio.to_thread(self.journal.close)

    # Rankers

    def live(self, name: str) -> LiveRanker:
        found = self.live_rankers.get(name)
        if found is None:
            self._check_not_set_aside(name)
            raise unknown_ranker(name)
        return found

    def _check_not_set_aside(self, name: str) -> None:
        if name in self.set_aside:
            raise RequestError(409, "set_aside", self.set_aside[name].message)

    async def create(self, name: str, definition: Definition) -> RankerAnswer:
        """Makes a ranker; to make the same one again changes nothing."""
        if definition.model:
            raise RequestError(422, "invalid", "`model` is noted by the service: PUT the model file itself instead")
        live = await asyncio.shield(asyncio.ensure_future(self._made(name, definition)))
        if definition != live.asked and complete(definition) != live.definition:
            raise RequestError(
                409, "exists", f"there is another ranker {name!r} already: delete it first, or choose another name"
            )
        return views.ranker(live)

    async def create_from_model(self, name: str, data: bytes) -> RankerAnswer:
        """Makes a ranker from a model file; from the same file again, whatever it has learnt since, changes nothing."""
        definition = definition_of(data, self.config)
        checked_model(data, definition, self.config)
        live = await asyncio.shield(asyncio.ensure_future(self._made(name, definition)))
        if live.definition.model != definition.model:
            raise RequestError(
                409,
                "exists",
                f"there is a ranker {name!r} already, which was not made from this model: POST .../model gives it this "
                "one; or delete it first, or choose a new name",
            )
        if live.version == 0:
            await self.set_model(name, data)
        return views.ranker(live)

    async def _made(self, name: str, definition: Definition) -> LiveRanker:
        if not _NAME.fullmatch(name):
            raise RequestError(
                422,
                "bad_name",
                "a ranker's name has 1 to 64 letters, digits, dots, hyphens and underscores, a letter or digit first",
            )
        async with self._changing:
            if name in self.live_rankers:
                return self.live_rankers[name]
            self._check_not_set_aside(name)
            count = len(self.live_rankers) + len(self.set_aside)
            if count >= self.config.max_rankers:
                raise RequestError(409, "too_many_rankers", f"there are {count} rankers already: delete one first")
            made = complete(definition)
            model = blank_model(made, self.config)
            bodies = stored_bytes(made), stored_bytes(definition)
            stored = await self._written(AddRanker(name, *bodies, RESERVE))
            snapshots = self._snapshots(stored.id)
            snapshots.clear()  # what a ranker of another copy of this folder may have left there
            live = LiveRanker(stored.id, name, made, definition, model, self.config, snapshots, stored.next)
            live.incarnation, live.epochs = stored.incarnation, Epochs(stored.epochs)
            live.reserved = stored.next + RESERVE
            self.live_rankers[name] = live
            return live

    async def delete(self, name: str) -> None:
        """Deletes a ranker with all that it has learnt."""
        await asyncio.shield(asyncio.ensure_future(self._removed(name)))

    async def _removed(self, name: str) -> None:
        async with self._changing:
            rankers: dict[str, Any] = self.set_aside if name in self.set_aside else self.live_rankers
            removed = self.set_aside.get(name) or self.live(name)
            del rankers[name]
            try:
                await self._written(RemoveRanker(removed.id, removed.next))
            except RequestError:
                rankers[name] = removed
                raise
        removed.snapshots.clear()
        crash_file(self.folder, removed.id).unlink(missing_ok=True)

    def rankers(self) -> RankersAnswer:
        aside = [SetAsideAnswer(each.name, each.version, each.message) for each in self.set_aside.values()]
        return RankersAnswer([views.ranker(live) for live in self.live_rankers.values()], aside)

    def ranker(self, name: str) -> RankerAnswer:
        return views.ranker(self.live(name))

    # Rounds

    def rank(self, name: str, request: RankRequest) -> RankAnswer:
        """Shows a ranking and keeps its round open; the round is written to disk just after the answer."""
        live = self.live(name)
        self._spare_number(live)
        answer, number, kept = live.rank(request)
        self.journal.put_later(StoreRound(live.id, number, kept))
        if number % self._sweep == 0:
            self._drop(live)
        return answer

    def _drop(self, live: LiveRanker) -> None:
        """Drops open rounds of a ranker, and of the one that has most where all of them together are too large."""
        live.drop()
        self._forget(live)
        over = sum(each.open.size for each in self.live_rankers.values()) - self.config.open_bytes
        if over > 0:
            largest = max(self.live_rankers.values(), key=lambda each: each.open.size)
            largest.drop(over)
            self._forget(largest)

    async def feedback(self, name: str, request: FeedbackRequest) -> FeedbackAnswer:
        """Learns from labels of what a round showed, once they are on disk."""
        live = self.live(name)
        entry = live.check_feedback(request)
        if isinstance(entry, JournalEntry):
            result = await asyncio.shield(self._logged(live, entry, entry.round))
        else:  # this feedback has come before, and may still be on its way to the disk
            result = entry if isinstance(entry, Result) else await asyncio.shield(entry)
        return FeedbackAnswer(result.learned, result.version)

    async def full(self, name: str, request: FullRequest) -> FullAnswer:
        """Learns from a list of which all labels are known, once it is on disk."""
        live = self.live(name)
        self._spare_number(live)
        entry = live.check_full(request)
        result = await asyncio.shield(self._logged(live, entry))
        return FullAnswer(live.epochs.public(entry.round), result.loss, result.learned, result.version)

    async def batch(self, requests: Sequence[Any], one: Callable[[str, Any], Any], name: str) -> BatchAnswer:
        """The answers to many requests, each its own or why it was refused; those that wait are written together."""
        return await answer_batch(self, one, name, requests)

    # Models and versions

    async def set_model(self, name: str, data: bytes) -> RankerAnswer:
        """Starts a ranker from a trained model; rounds that another kind of model has shown are dropped."""
        live = self.live(name)
        model = checked_model(data, live.definition, self.config)
        before, version = live.template.kind, live.version
        if model.kind != before and version:
            await self.keep(name)  # it may have been the wrong file
        entry = live.replacement(model.to_bytes())
        self._reserve(live, model.learner().rounds)  # its rounds go on counting
        await asyncio.shield(self._logged(live, entry))
        note = "" if model.kind == before else _other_kind(name, before, model.kind, version)
        return structs.replace(views.ranker(live), note=note)

    def versions(self, name: str) -> VersionsAnswer:
        live = self.live(name)
        return VersionsAnswer(live.version, live.snapshots.versions())

    async def keep(self, name: str) -> VersionsAnswer:
        """Keeps the present version, to roll back to."""
        live = self.live(name)
        version, wished = live.version, live.snapshots.wished()
        if len(wished) >= MOST_WISHED and version not in wished:
            remedy = f"stop the server, and delete some of {live.snapshots.folder}/*.kept"
            raise RequestError(409, "too_many_versions", f"{MOST_WISHED} versions are kept already: {remedy}")
        await self._snapshot(live, wished=True)
        if version not in live.snapshots.wished():
            raise unwritten("no snapshot could be written")
        return self.versions(name)

    async def rollback(self, name: str, request: RollbackRequest) -> RankerAnswer:
        """Makes the weights those of a version that was kept; this is a new version, and rounds go on counting."""
        live = self.live(name)
        if request.version not in live.snapshots.versions():
            raise RequestError(404, "unknown_version", f"version {request.version} is not kept: see GET .../versions")
        try:
            kept = live.snapshots.read(request.version)
            if kept.get("incarnation", 0) != live.incarnation:
                raise DataError(f"version {request.version} is of another ranker")
        except DataError as error:
            raise RequestError(409, "damaged_version", str(error)) from None
        await asyncio.shield(self._logged(live, live.replacement(kept["model"].tobytes())))
        return views.ranker(live)

    def model(self, name: str) -> Model:
        return self.live(name).model

    # Looking

    def explain(self, name: str, number: int) -> ExplainAnswer:
        return views.explain(self.live(name), number)

    def dashboard(self, name: str) -> DashboardAnswer:
        live = self.live(name)
        age = None if live.kept_at is None else monotonic() - live.kept_at
        disk = shutil.disk_usage(self.folder).free
        return views.dashboard(live, Health(self.journal.ready, disk, age, self.journal.size, live.stats.dropped))

    # Writing

    def _snapshots(self, ranker: int) -> Snapshots:
        return Snapshots(self.folder, ranker, self.config.versions)

    def _spare_number(self, live: LiveRanker) -> None:
        if live.reserved - live.next < RESERVE * 3 // 4 and not live.reserving:
            self._reserve(live, live.next)
        if live.next >= live.reserved:
            raise unwritten("no further rounds can be numbered")

    def _reserve(self, live: LiveRanker, first: int) -> None:
        """Sets numbers of rounds aside before they are given out."""
        upto, live.reserving = max(first, live.next) + RESERVE, True

        def done(_result: object) -> None:
            live.reserved, live.reserving = max(live.reserved, upto), False

        self.journal.put(Job(Reserve(live.id, upto), done))

    def _written(self, write: Write, *, patient: bool = False) -> asyncio.Future[Any]:
        """A future of what a job gives; if the disk refuses, so does the future, unless it is patient."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def failed(error: BaseException) -> None:
            if not future.done():
                if patient:
                    future.set_result(None)
                else:
                    future.set_exception(unwritten(str(error)))

        def done(result: Any) -> None:
            if not future.done():
                future.set_result(result)

        self.journal.put(Job(write, done, failed))
        return future

    def _logged(self, live: LiveRanker, entry: JournalEntry, answers: int | None = None) -> asyncio.Future[Result]:
        """A future of what comes of an entry: it is logged, and when that is on disk, applied."""
        if len(self.journal) >= self.config.max_waiting:
            raise RequestError(503, "busy", "too many requests are waiting for the disk: try again")
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

        def done(version: int) -> None:
            result = live.apply(entry, version)
            self._forget(live)
            if not future.done():
                future.set_result(result)
            if version - live.kept_version >= self.config.snapshot_every and self.live_rankers.get(live.name) is live:
                self._snapshot(live)

        def failed(error: BaseException) -> None:
            live.unwritten.pop(answers, None)
            live.closed = live.closed and entry.kind != "model"
            if not future.done():
                future.set_exception(unwritten(str(error)))

        live.closed = live.closed or entry.kind == "model"  # until it is applied, nothing is shown or heard
        if answers is not None:
            live.unwritten[answers] = (entry, future)
        self.journal.put(Append(live.id, answers, encode(entry), done, failed))
        return future

    def _forget(self, live: LiveRanker) -> None:
        if live.forgotten:
            self.journal.put(Job(DropRounds(live.id, live.forgotten)))
            live.forgotten = []

    def _snapshot(self, live: LiveRanker, *, wished: bool = False) -> asyncio.Future[Any]:
        """Writes a snapshot of what is on disk already, then shortens the journal to what the one before it needs."""
        version, content = live.version, snapshot_of(live)
        live.note_kept(monotonic())

        def write() -> Prune | None:
            try:
                checksum = self.journal.checksum(live.id, version)
                live.snapshots.write(version, serialization.serialize({**content, "checksum": checksum}), wished=wished)
            except (DataError, OSError) as error:  # the journal has everything still: it only stays longer
                _logger.warning("no snapshot of %s: %s", live.name, error)
                return None
            settled = live.snapshots.versions()[-2:-1]
            return Prune(live.id, settled[0], version - self.config.remembered) if settled else None

        return self._written(Call(write), patient=True)


def _other_kind(name: str, before: str, now: str, version: int) -> str:
    """What to know about a model of another kind than the one before it."""
    back = f"; to go back, roll back to version {version}" if version else ""
    return f"ranker {name!r} was {before} and is {now} now: its open rounds were dropped{back}"


__getattr__ = lazy_names(__name__, renamed={"Office": "RankingService"})
