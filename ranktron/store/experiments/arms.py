"""Arms of an experiment: a live ranker, or a kept version of one, which neither explores nor learns."""

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
    """The part of a service that arms use."""

    def live(self, name: str) -> LiveRanker:
        """The live ranker of a name."""
        ...

    def rank(self, name: str, request: RankRequest) -> RankAnswer:
        """Ranks, and opens a round."""
        ...

    def shadow(self, name: str, request: RankRequest, shown: Sequence[str]) -> RankAnswer:
        """Opens a round with the order of another system."""
        ...


class Arm:
    """One of the rankers that an experiment compares."""

    def __init__(self, definition: ArmDefinition, rankers: Rankers) -> None:
        self.definition, self._rankers = definition, rankers
        self._frozen: LiveRanker | None = None

    @property
    def live(self) -> LiveRanker:
        """The live ranker, also of a frozen arm."""
        return self._rankers.live(self.definition.ranker)

    @property
    def shown(self) -> LiveRanker:
        """The ranker whose pages are shown: the live one, or one frozen at a kept version."""
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
        """Ranks as the live ranker does, with exploration and an open round."""
        return self._rankers.rank(self.definition.ranker, request)

    def shadow(self, request: RankRequest, shown: Sequence[str]) -> RankAnswer:
        """Opens a round with the order of the client's own system, for the ranker to learn from."""
        return self._rankers.shadow(self.definition.ranker, request, shown)


def kept_model(live: LiveRanker, version: int) -> bytes:
    """The model file of a kept version; a RequestError if it is unknown or damaged."""
    if version not in live.snapshots.versions():
        raise unknown_version(version)
    try:
        snapshot = live.snapshots.read(version)
        if snapshot.get("incarnation", 0) != live.incarnation:
            raise DataError(f"version {version} belongs to another ranker")
    except JournalError:
        raise
    except DataError as error:
        raise RequestError(409, "damaged_version", str(error)) from None
    model: bytes = snapshot["model"].tobytes()
    return model
