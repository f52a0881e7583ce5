"""The application: `application(service)` makes the ASGI app that `ranktron serve` runs.

The `RankingService` is what Python code in the same process talks to: on the event loop's thread it calls
`service.rank` and `await service.feedback`, without HTTP. `routes(service)` can be mounted beside other pages of a
Starlette application.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from starlette.routing import BaseRoute, Route, Router

from ranktron.service.auth import Authenticator
from ranktron.service.http.endpoint import Action, Endpoint, Missing
from ranktron.service.http.logs import LoggedRouter
from ranktron.service.http.openapi import document
from ranktron.service.http.routes import actions
from ranktron.service.service import RankingService
from ranktron.service.telemetry import Telemetry
from ranktron.service.tokens import Tokens


def application(
    service: RankingService,
    tokens: Tokens | None = None,
    also: Sequence[BaseRoute] = (),
    telemetry: Telemetry | None = None,
) -> Router:
    """The service as an ASGI application; without tokens it answers to this machine only.

    `also` are routes of one's own, which come first; `telemetry` is where requests are counted.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     service = RankingService(folder)
    ...     len(application(service).routes) > 10
    ...     service.journal.close()
    True
    """

    @asynccontextmanager
    async def lifespan(_app: object) -> AsyncIterator[None]:
        async with service:
            yield

    every = [*also, *routes(service, tokens, telemetry)]
    router = LoggedRouter(
        every, redirect_slashes=False, default=Missing(Authenticator(service.config, Tokens([]))), lifespan=lifespan
    )
    router.tracing = service.tracing
    return router


def routes(service: RankingService, tokens: Tokens | None = None, telemetry: Telemetry | None = None) -> list[Route]:
    """All paths of the service, each with its endpoint."""
    telemetry = telemetry or Telemetry()
    authenticator = Authenticator(service.config, Tokens([]) if tokens is None else tokens)
    table = actions(service, telemetry)
    description = document(table)
    table.append(Action("GET", "/openapi.json", "This document", None, None, dict, lambda: description))
    paths: dict[str, list[Action]] = {}
    for action in table:
        paths.setdefault(action.path, []).append(action)
    return [Route(path, Endpoint(at, authenticator, telemetry), methods=None) for path, at in paths.items()]
