"""The application: `application(folder, config)` makes the ASGI app that `ranktron serve` runs.

Its state is on `app.state.office`: Python code in the same process calls `office.rank` and `await office.feedback` on
the event loop's thread, without HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.routing import Route

from ranktron.service.config import Config
from ranktron.service.endpoint import Action, Endpoint
from ranktron.service.guard import Guard
from ranktron.service.office import Office
from ranktron.service.routes import actions
from ranktron.service.telemetry import Telemetry
from ranktron.service.tokens import Tokens


def application(
    folder: str | Path, config: Config | None = None, tokens: Tokens | None = None, more: Sequence[Action] = ()
) -> Starlette:
    """The service over a folder; without tokens it answers to this machine only. It does `more` if asked to."""
    config = config or Config()
    office, telemetry = Office(folder, config), Telemetry()
    guard = Guard(config, tokens or Tokens([]))
    paths: dict[str, list[Any]] = {}
    for action in [*actions(office, telemetry), *more]:
        paths.setdefault(action.path, []).append(action)
    routes = [Route(path, Endpoint(at, guard, telemetry), methods=None) for path, at in paths.items()]

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        yield

    app = Starlette(routes=routes, lifespan=lifespan)
    app.state.office = office
    return app
