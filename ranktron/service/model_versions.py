"""The models of a service's rankers: giving a ranker another one, keeping versions, and going back to one."""

from __future__ import annotations

import asyncio
from abc import abstractmethod

from msgspec import structs

from ranktron.errors import DataError
from ranktron.service.awaiting import AwaitedWriter
from ranktron.service.experiments.experiments import Experiments
from ranktron.store.config import Config
from ranktron.store.errors import RequestError, not_written, unknown_version
from ranktron.store.experiments.arms import kept_model
from ranktron.store.journal.journal import Call
from ranktron.store.rankers import views
from ranktron.store.rankers.live_ranker import LiveRanker
from ranktron.store.rankers.models import Upload, note_other_kind, read_upload
from ranktron.store.types import Definition, RankerAnswer, RollbackRequest, VersionsAnswer
from ranktron.training.model import Model

_UPLOADS = 10  # model files that are in memory at one time
MOST_WISHED = 100  # versions of a ranker that are kept because someone wished it


class ModelVersions:
    """The part of a service that is about models and versions."""

    config: Config
    experiments: Experiments
    _writer: AwaitedWriter

    def __init__(self) -> None:
        self._reading, self._uploads = asyncio.Lock(), 0

    @abstractmethod
    def live(self, name: str) -> LiveRanker: ...

    async def _read(self, data: bytes, definition: Definition | None) -> Upload:
        """Reads a model file while others are served; one at a time, since it may be large."""
        if self._uploads >= _UPLOADS:
            raise RequestError(503, "busy", "too many models are waiting to be read: try again")
        self._uploads += 1
        try:
            async with self._reading:
                return await asyncio.to_thread(read_upload, data, definition, self.config)
        finally:
            self._uploads -= 1

    async def set_model(self, name: str, data: bytes) -> RankerAnswer:
        """Starts a ranker from a trained model; rounds that another kind of model has shown are dropped."""
        live = self.live(name)
        upload = await self._read(data, live.definition)
        before, version, kind = live.template.kind, live.version, upload.model.kind
        if kind != before and version and self.live(name) is live:
            await self.keep(name)  # it may have been the wrong file
        if self.live(name) is not live:
            raise RequestError(409, "replaced", f"ranker {name!r} was deleted and made again meanwhile: send it again")
        entry = live.replacement(upload.body)
        self._writer.reserve(live, upload.rounds)  # its rounds go on counting
        await asyncio.shield(self._writer.logged(live, entry, model=upload.model))
        note = "" if kind == before else note_other_kind(name, before, kind, version)
        return structs.replace(views.ranker(live), note=note)

    def versions(self, name: str) -> VersionsAnswer:
        live = self.live(name)
        return VersionsAnswer(live.version, live.snapshots.versions())

    async def keep(self, name: str) -> VersionsAnswer:
        """Keeps the present version, to roll back to."""
        live = self.live(name)
        version, wished = live.version, live.snapshots.wished()
        if len(wished) >= MOST_WISHED and version not in wished:
            remedy = f"let one go with DELETE /v1/rankers/{name}/versions/N"
            raise RequestError(409, "too_many_versions", f"{MOST_WISHED} versions are kept already: {remedy}")
        await self._writer.snapshot(live, wished=True)
        if version not in live.snapshots.wished():
            raise not_written("no snapshot could be written")
        return self.versions(name)

    async def release(self, name: str, version: int) -> VersionsAnswer:
        """Lets a version go; the two newest stay, since a start goes on from them."""
        live = self.live(name)
        if version not in live.snapshots.versions():
            raise unknown_version(version)
        self.experiments.check_not_needed(name, version)
        wrong: list[Exception] = []

        def remove() -> None:
            try:
                live.snapshots.remove(version)
            except (DataError, OSError) as error:
                wrong.append(error)

        await self._writer.written(Call(remove))
        for error in wrong:
            if isinstance(error, DataError):
                raise RequestError(409, "needed_version", str(error))
            raise not_written(str(error))
        return self.versions(name)

    async def rollback(self, name: str, request: RollbackRequest) -> RankerAnswer:
        """Makes the weights those of a version that was kept; this is a new version, and rounds go on counting."""
        live = self.live(name)
        model = kept_model(live, request.version)
        await asyncio.shield(self._writer.logged(live, live.replacement(model)))
        return views.ranker(live)

    def model(self, name: str) -> Model:
        return self.live(name).model
