"""The office: all desks and the log behind them. Python code in the same process talks to it without HTTP.

Everything here runs on one thread, that of the event loop: there is one writer of each ranker, and whoever reads never
sees it half written. What changes weights goes to the log first, and is applied when it is on disk.
"""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
from collections.abc import Awaitable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec
import numpy as np

from ranktron.errors import DataError
from ranktron.service import journal_writes, views
from ranktron.service.config import Config
from ranktron.service.entries import Entry, Result, encode
from ranktron.service.errors import Refused, unknown_ranker, unwritten
from ranktron.service.journal import Append, Job, KeepRound, Log
from ranktron.service.live_ranker import Desk
from ranktron.service.models import blank_model, checked_model, complete
from ranktron.service.recovery import restored, snapshot_of
from ranktron.service.snapshots import Snapshots
from ranktron.service.stats import observed_quality
from ranktron.service.types import (
    BatchAnswer,
    DashboardAnswer,
    Definition,
    ErrorAnswer,
    ExplainAnswer,
    FeedbackAnswer,
    FeedbackRequest,
    FullAnswer,
    FullRequest,
    Given,
    Health,
    RankAnswer,
    RankerAnswer,
    RankersAnswer,
    RankRequest,
    RollbackRequest,
    Trouble,
    VersionsAnswer,
)
from ranktron.training.model import Model

_logger = logging.getLogger("ranktron.service")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_SWEEP = 64  # rounds between two looks at the age of the oldest
RESERVE = 20_000  # numbers of rounds that are set aside on disk: after a crash none of them is given out again


class Office:
    """Named rankers over one folder, which it reads when it is made; `start` begins to write.

    >>> import asyncio, tempfile
    >>> from ranktron.service.types import Document
    >>> async def session(folder):
    ...     async with Office(folder) as office:
    ...         await office.create("shop", Definition(["price"]))
    ...         documents = [Document("a", [1.0]), Document("b", [3.0])]
    ...         shown = office.rank("shop", RankRequest(documents))
    ...         return await office.feedback("shop", FeedbackRequest(shown.round, {"a": 0.0, "b": 1.0}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     asyncio.run(session(folder))
    FeedbackAnswer(learned=True, version=1)
    """

    def __init__(self, folder: str | Path, config: Config | None = None) -> None:
        self.folder, self.config = Path(folder), config or Config()
        self.log = Log(self.folder)
        self.cut = 0
        self.desks: dict[str, Desk] = {}
        self._changing = asyncio.Lock()  # of the list of rankers: a name stands for one of them, whoever is in a hurry
        try:
            for stored in self.log.rankers():
                desk = restored(self.log, stored, self._snapshots(stored.id), self.config)
                self.cut += desk.cut
                self.desks[desk.name] = desk
        except BaseException:
            self.log.close()
            raise

    async def __aenter__(self) -> Office:
        self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.stop()

    def start(self) -> None:
        """Begins to write, from within the event loop."""
        observed_quality(np.ones(1))  # loads its kernel
        for desk in self.desks.values():
            desk.reserved = desk.next + RESERVE
            self.log.write_now(journal_writes.reserve(desk.id, desk.reserved))
        self.log.start(asyncio.get_running_loop())

    async def stop(self) -> None:
        """Waits for all that is under way, takes a snapshot of every ranker, and lets go of the folder."""
        await self._written(lambda _connection: None, patient=True)
        for desk in self.desks.values():
            if desk.version != desk.kept_version:
                self._snapshot(desk)
            self.log.put(Job(journal_writes.settle(desk.id, desk.next), failed=lambda _error: None))
        await asyncio.to_thread(self.log.close)

    # Rankers

    def desk(self, name: str) -> Desk:
        found = self.desks.get(name)
        if found is None:
            raise unknown_ranker(name)
        return found

    async def create(self, name: str, definition: Definition) -> RankerAnswer:
        """Makes a ranker; to make the same one again changes nothing."""
        if not _NAME.fullmatch(name):
            raise Refused(
                422, "bad_name", "a ranker's name has 1 to 64 letters, digits, points, dashes and underscores"
            )
        desk = await asyncio.shield(asyncio.ensure_future(self._made(name, definition)))
        if definition != desk.asked and complete(definition) != desk.definition:
            raise Refused(409, "exists", f"there is another ranker {name!r}: delete it first, or choose a new name")
        return views.ranker(desk)

    async def _made(self, name: str, definition: Definition) -> Desk:
        async with self._changing:
            if name in self.desks:
                return self.desks[name]
            if len(self.desks) >= self.config.max_rankers:
                raise Refused(409, "too_many_rankers", f"there are {len(self.desks)} rankers already: delete one first")
            made = complete(definition)
            blank_model(made, self.config)
            bodies = msgspec.json.encode(made), msgspec.json.encode(definition)
            stored = await self._written(self.log.add_ranker(name, *bodies, RESERVE))
            desk = Desk(stored.id, name, made, definition, self.config, self._snapshots(stored.id), stored.next)
            desk.reserved = stored.next + RESERVE
            self.desks[name] = desk
            return desk

    async def delete(self, name: str) -> None:
        """Deletes a ranker with all that it has learnt."""
        await asyncio.shield(asyncio.ensure_future(self._removed(name)))

    async def _removed(self, name: str) -> None:
        async with self._changing:
            desk = self.desk(name)
            del self.desks[name]
            try:
                await self._written(journal_writes.remove_ranker(desk.id, desk.next))
            except Refused:
                self.desks[name] = desk
                raise
        desk.snapshots.clear()

    def rankers(self) -> RankersAnswer:
        return RankersAnswer([views.ranker(desk) for desk in self.desks.values()])

    def ranker(self, name: str) -> RankerAnswer:
        return views.ranker(self.desk(name))

    # Rounds

    def rank(self, name: str, request: RankRequest) -> RankAnswer:
        """Shows a ranking and keeps its round open; the round is written to disk just after the answer."""
        desk = self.desk(name)
        self._spare_number(desk)
        answer, kept = desk.rank(request)
        self.log.put_later(KeepRound(desk.id, answer.round, kept))
        if len(desk.open) > self.config.max_open or answer.round % _SWEEP == 0:
            desk.drop()
            self._forget(desk)
        return answer

    async def feedback(self, name: str, request: FeedbackRequest) -> FeedbackAnswer:
        """Learns from labels of what a round showed, once they are on disk."""
        desk = self.desk(name)
        entry = desk.check_feedback(request)
        if isinstance(entry, Entry):
            result = await asyncio.shield(self._logged(desk, entry, entry.round))
        else:  # this feedback has come before, and may still be on its way to the disk
            result = entry if isinstance(entry, Result) else await asyncio.shield(entry)
        return FeedbackAnswer(result.learned, result.version)

    async def full(self, name: str, request: FullRequest) -> FullAnswer:
        """Learns from a list of which all labels are known, once it is on disk."""
        desk = self.desk(name)
        self._spare_number(desk)
        entry = desk.check_full(request)
        result = await asyncio.shield(self._logged(desk, entry))
        return FullAnswer(entry.round, result.loss, result.learned, result.version)

    async def batch(self, requests: Sequence[Any], one: Any, name: str) -> BatchAnswer:
        """The answers to many requests, each its own or why it was refused; they are written together."""
        self.desk(name)
        if len(requests) > self.config.max_batch:
            raise Refused(413, "too_many_requests_in_batch", f"a batch has at most {self.config.max_batch} requests")

        async def attempt(request: Any) -> Given:
            try:
                answer = one(name, request)
                given: Given = await answer if isinstance(answer, Awaitable) else answer
                return given
            except Refused as refused:
                return ErrorAnswer(Trouble(refused.code, str(refused)))

        return BatchAnswer(await asyncio.gather(*map(attempt, requests)))

    # Models and versions

    async def set_model(self, name: str, data: bytes) -> RankerAnswer:
        """Starts a ranker from a trained model; rounds that another kind of model has shown are dropped."""
        desk = self.desk(name)
        model = checked_model(data, desk.definition, self.config)
        entry = desk.replacement(model.to_bytes())
        self._reserve(desk, model.learner().rounds)  # its rounds go on counting
        await asyncio.shield(self._logged(desk, entry))
        return views.ranker(desk)

    def versions(self, name: str) -> VersionsAnswer:
        desk = self.desk(name)
        return VersionsAnswer(desk.version, desk.snapshots.versions())

    async def keep(self, name: str) -> VersionsAnswer:
        """Keeps the present version, to roll back to."""
        desk = self.desk(name)
        version = desk.version
        await self._snapshot(desk)
        if version not in desk.snapshots.versions():
            raise unwritten("no snapshot could be written")
        return self.versions(name)

    async def rollback(self, name: str, request: RollbackRequest) -> RankerAnswer:
        """Makes the weights those of a version that was kept; this is a new version, and rounds go on counting."""
        desk = self.desk(name)
        if request.version not in desk.snapshots.versions():
            raise Refused(404, "unknown_version", f"version {request.version} is not kept: see GET .../versions")
        try:
            kept = desk.snapshots.read(request.version)
        except DataError as error:
            raise Refused(409, "damaged_version", str(error)) from None
        await asyncio.shield(self._logged(desk, desk.replacement(kept["model"].tobytes())))
        return views.ranker(desk)

    def model(self, name: str) -> Model:
        return self.desk(name).model

    # Looking

    def explain(self, name: str, number: int) -> ExplainAnswer:
        return views.explain(self.desk(name), number)

    def dashboard(self, name: str) -> DashboardAnswer:
        desk = self.desk(name)
        age = None if desk.kept_at is None else monotonic() - desk.kept_at
        disk = shutil.disk_usage(self.folder).free
        return views.dashboard(desk, Health(self.log.ready, disk, age, self.log.size, desk.tally.dropped))

    # Writing

    def _snapshots(self, ranker: int) -> Snapshots:
        return Snapshots(self.folder, ranker, self.config.versions)

    def _spare_number(self, desk: Desk) -> None:
        if desk.reserved - desk.next < RESERVE * 3 // 4 and not desk.reserving:
            self._reserve(desk, desk.next)
        if desk.next >= desk.reserved:
            raise unwritten("no further rounds can be numbered")

    def _reserve(self, desk: Desk, first: int) -> None:
        """Sets numbers of rounds aside before they are given out."""
        upto, desk.reserving = max(first, desk.next) + RESERVE, True

        def done(_result: object) -> None:
            desk.reserved, desk.reserving = max(desk.reserved, upto), False

        self.log.put(Job(journal_writes.reserve(desk.id, upto), done))

    def _written(self, do: journal_writes.Do, *, patient: bool = False) -> asyncio.Future[Any]:
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

        self.log.put(Job(do, done, failed))
        return future

    def _logged(self, desk: Desk, entry: Entry, answers: int | None = None) -> asyncio.Future[Result]:
        """A future of what comes of an entry: it is logged, and when that is on disk, applied."""
        if len(self.log) >= self.config.max_waiting:
            raise Refused(503, "busy", "too many requests wait for the disk: try again")
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

        def done(version: int) -> None:
            result = desk.apply(entry, version)
            self._forget(desk)
            if not future.done():
                future.set_result(result)
            if version - desk.kept_version >= self.config.snapshot_every and self.desks.get(desk.name) is desk:
                self._snapshot(desk)

        def failed(error: BaseException) -> None:
            desk.pending.pop(answers, None)
            desk.closed = desk.closed and entry.kind != "model"
            if not future.done():
                future.set_exception(unwritten(str(error)))

        desk.closed = desk.closed or entry.kind == "model"  # until it is applied, nothing is shown or heard
        if answers is not None:
            desk.pending[answers] = (entry, future)
        self.log.put(Append(desk.id, answers, encode(entry), done, failed))
        return future

    def _forget(self, desk: Desk) -> None:
        if desk.forgotten:
            self.log.put(Job(journal_writes.drop_rounds(desk.id, desk.forgotten)))
            desk.forgotten = []

    def _snapshot(self, desk: Desk) -> asyncio.Future[Any]:
        """Writes a snapshot of what is on disk already, then shortens the log to what the one before it needs."""
        version, data = desk.version, snapshot_of(desk)
        desk.note_kept(monotonic())

        def do(connection: Any) -> None:
            try:
                desk.snapshots.write(version, data)
            except (DataError, OSError) as error:  # the log has everything still: it only stays longer
                _logger.warning("no snapshot of %s: %s", desk.name, error)
                return
            settled = desk.snapshots.versions()[-2:-1]
            if settled:
                journal_writes.prune(desk.id, settled[0], version - self.config.remembered)(connection)

        return self._written(do, patient=True)
