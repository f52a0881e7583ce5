"""The office: all desks and the log behind them. Python code in the same process talks to it without HTTP.

Everything here runs on one thread, that of the event loop: there is one writer, and what it reads is never half
written.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from ranktron.service import views
from ranktron.service.config import Config
from ranktron.service.desk import Desk, Entry, Result
from ranktron.service.refusals import Refused, unknown_ranker
from ranktron.service.types import (
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
)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class Office:
    """Named rankers over one folder."""

    def __init__(self, folder: str | Path, config: Config | None = None) -> None:
        self.folder, self.config = Path(folder), config or Config()
        self.desks: dict[str, Desk] = {}

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
        if name in self.desks:
            if self.desks[name].definition != definition:
                raise Refused(409, "exists", f"there is another ranker {name!r}: delete it first, or choose a new name")
            return views.ranker(self.desks[name])
        if len(self.desks) >= self.config.max_rankers:
            raise Refused(409, "too_many_rankers", f"there are {len(self.desks)} rankers already, and no more allowed")
        self.desks[name] = Desk(name, definition, self.config)
        return views.ranker(self.desks[name])

    async def delete(self, name: str) -> None:
        self.desk(name)
        del self.desks[name]

    def rankers(self) -> RankersAnswer:
        return RankersAnswer([views.ranker(desk) for desk in self.desks.values()])

    def ranker(self, name: str) -> RankerAnswer:
        return views.ranker(self.desk(name))

    def rank(self, name: str, request: RankRequest) -> RankAnswer:
        """Shows a ranking and keeps its round open."""
        desk = self.desk(name)
        answer, _kept = desk.rank(request)
        desk.drop()
        return answer

    async def feedback(self, name: str, request: FeedbackRequest) -> FeedbackAnswer:
        """Learns from labels of what a round showed, once they are on disk."""
        desk = self.desk(name)
        entry = desk.check_feedback(request)
        result = entry if isinstance(entry, Result) else await self._log(desk, entry)
        return FeedbackAnswer(result.learned, result.version)

    async def full(self, name: str, request: FullRequest) -> FullAnswer:
        """Learns from a list of which all labels are known, once it is on disk."""
        desk = self.desk(name)
        entry = desk.check_full(request)
        result = await self._log(desk, entry)
        return FullAnswer(entry.round, result.loss, result.learned, result.version)

    async def _log(self, desk: Desk, entry: Entry) -> Result:
        return desk.apply(entry, desk.version + 1)

    def explain(self, name: str, number: int) -> ExplainAnswer:
        return views.explain(self.desk(name), number)

    def dashboard(self, name: str) -> DashboardAnswer:
        desk = self.desk(name)
        health = Health(True, shutil.disk_usage(self.folder).free, None, 0, desk.tally.dropped)
        return views.dashboard(desk, health)
