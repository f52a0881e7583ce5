"""Arms: a ranker as it serves, or a kept version of one, which shows its best order and does not learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ranktron.errors import DataError
from ranktron.store.errors import RequestError, unknown_version
from ranktron.store.experiments.types import ArmDefinition
from ranktron.store.journal.journal import JournalError
from ranktron.store.rankers.live_ranker import LiveRanker
from ranktron.store.types import Document, RankAnswer, RankRequest
from ranktron.training.model import Model
from ranktron.types import Integers


class Rankers(Protocol):
    """What arms need of the service that has the rankers."""

    def live(self, name: str) -> LiveRanker:
        """The ranker of a name, at work."""
        ...

    def rank(self, name: str, request: RankRequest) -> RankAnswer:
        """Shows a ranking and keeps its round open."""
        ...

    def shadow(self, name: str, request: RankRequest, shown: Sequence[str]) -> RankAnswer:
        """Keeps a round open that another system has ordered."""
        ...


class Arm:
    """One of the rankers that an experiment compares."""

    def __init__(self, definition: ArmDefinition, rankers: Rankers) -> None:
        self.definition, self._rankers = definition, rankers
        self._frozen: LiveRanker | None = None

    @property
    def live(self) -> LiveRanker:
        """The ranker that serves, whatever its version."""
        return self._rankers.live(self.definition.ranker)

    @property
    def shown(self) -> LiveRanker:
        """The ranker of which pages are shown: the one that serves, or one that stays at a kept version."""
        if self.definition.version is None:
            return self.live
        if self._frozen is None:
            live = self.live
            model = Model.from_bytes(kept_model(live, self.definition.version))
            self._frozen = LiveRanker(live.id, live.name, live.definition, model, live.config, live.snapshots)
        return self._frozen

    def order(self, documents: Sequence[Document]) -> Integers:
        """The documents, best first, without exploration."""
        return self.shown.best_order(documents)

    def rank(self, request: RankRequest) -> RankAnswer:
        """Shows a page as the ranker itself does: it may explore, and its round waits for feedback."""
        return self._rankers.rank(self.definition.ranker, request)

    def shadow(self, request: RankRequest, shown: Sequence[str]) -> RankAnswer:
        """Keeps a page that the client's own system has ordered, so that the ranker can learn from it."""
        return self._rankers.shadow(self.definition.ranker, request, shown)


def kept_model(live: LiveRanker, version: int) -> bytes:
    """The model of a version that is kept; a RequestError if there is none, or if it cannot be read."""
    if version not in live.snapshots.versions():
        raise unknown_version(version)
    try:
        kept = live.snapshots.read(version)
        if kept.get("incarnation", 0) != live.incarnation:
            raise DataError(f"version {version} is of another ranker")
    except JournalError:
        raise
    except DataError as error:
        raise RequestError(409, "damaged_version", str(error)) from None
    model: bytes = kept["model"].tobytes()
    return model
