"""The application: `application(office)` makes the ASGI app that `ranktron serve` runs.

The `Office` is what Python code in the same process talks to: on the event loop's thread it calls `office.rank` and
`await office.feedback`, without HTTP. `routes(office)` can be mounted beside other pages of a Starlette application.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from starlette.routing import BaseRoute, Route, Router

from ranktron.service.auth import Guard
from ranktron.service.endpoint import Action, Endpoint, Missing
from ranktron.service.openapi import document
from ranktron.service.routes import actions
from ranktron.service.service import Office
from ranktron.service.telemetry import Telemetry
from ranktron.service.tokens import Tokens


def application(office: Office, tokens: Tokens | None = None, also: Sequence[BaseRoute] = ()) -> Router:
    """The service as an ASGI application; without tokens it answers to this machine only.

    `also` are routes of one's own, which come first.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     office = Office(folder)
    ...     len(application(office).routes) > 10
    ...     office.log.close()
    True
    """

    @asynccontextmanager
    async def lifespan(_app: object) -> AsyncIterator[None]:
        async with office:
            yield

    every = [*also, *routes(office, tokens)]
    return Router(every, redirect_slashes=False, default=Missing(Guard(office.config, Tokens([]))), lifespan=lifespan)


def routes(office: Office, tokens: Tokens | None = None) -> list[Route]:
    """All paths of the service, each with its endpoint."""
    telemetry, guard = Telemetry(), Guard(office.config, tokens or Tokens([]))
    table = actions(office, telemetry)
    description = document(table)
    table.append(Action("GET", "/openapi.json", "This document", None, None, dict, lambda: description))
    paths: dict[str, list[Action]] = {}
    for action in table:
        paths.setdefault(action.path, []).append(action)
    return [Route(path, Endpoint(at, guard, telemetry), methods=None) for path, at in paths.items()]
