"""The ASGI application that `ranktron serve` runs, and its OpenAPI document.

Python code in the same process can use the `RankingService` without HTTP: `service.rank` and `await service.feedback`
on the thread of the event loop. `routes(service)` can be mounted in another Starlette application.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from starlette.routing import BaseRoute, Route, Router

from ranktron import __version__
from ranktron.service.auth import Authenticator, Tokens
from ranktron.service.http.endpoint import BYTES, JSON, Action, Endpoint, LoggedRouter, Missing
from ranktron.service.http.routes import actions
from ranktron.service.service import RankingService
from ranktron.service.telemetry import Telemetry
from ranktron.store.messages import ErrorAnswer


def application(
    service: RankingService,
    tokens: Tokens | None = None,
    extra_routes: Sequence[BaseRoute] = (),
    telemetry: Telemetry | None = None,
) -> Router:
    """The service as an ASGI application; without tokens it accepts requests from this machine only.

    `extra_routes` come before the service's own; `telemetry` counts requests.

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

    all_routes = [*extra_routes, *routes(service, tokens, telemetry)]
    router = LoggedRouter(
        all_routes,
        redirect_slashes=False,
        default=Missing(Authenticator(service.config, Tokens([]))),
        lifespan=lifespan,
    )
    router.tracing = service.tracing
    return router


def routes(service: RankingService, tokens: Tokens | None = None, telemetry: Telemetry | None = None) -> list[Route]:
    """The routes of the service."""
    telemetry = telemetry or Telemetry()
    authenticator = Authenticator(service.config, Tokens([]) if tokens is None else tokens)
    table = actions(service, telemetry)
    description = document(table)
    table.append(Action("GET", "/openapi.json", "This document", None, None, dict, lambda: description))
    paths: dict[str, list[Action]] = {}
    for action in table:
        paths.setdefault(action.path, []).append(action)
    return [  # a user's id may contain slashes
        Route(path.replace("{user}", "{user:path}"), Endpoint(at, authenticator, telemetry), methods=None)
        for path, at in paths.items()
    ]


_STATUSES = {
    "400": "not valid JSON, or not valid HTTP",
    "401": "no valid token",
    "403": "the token does not allow this, or a foreign web page asked",
    "404": "no such ranker, round or version",
    "405": "this path does not support the method",
    "408": "the request took too long to arrive",
    "409": "not possible in the present state of the ranker",
    "410": "the round is no longer open",
    "413": "too large",
    "415": "wrong content type",
    "422": "valid JSON, but not a valid request",
    "429": "too many requests",
    "431": "too many or too long headers",
    "503": "busy, or the disk does not accept writes; try again",
}


def document(actions: Sequence[Action]) -> dict[str, Any]:
    """The OpenAPI document of a table of routes."""
    types = {kind for action in actions for kind in (action.takes, action.gives) if _is_struct(kind)}
    ordered = [*sorted(types, key=lambda kind: str(kind.__name__)), ErrorAnswer]
    schemas, components = msgspec.json.schema_components(ordered, ref_template="#/components/schemas/{name}")
    references = dict(zip(ordered, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for action in actions:
        paths.setdefault(action.path, {})[action.method.lower()] = _operation(action, references)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Ranktron", "version": __version__, "description": "Rankers that learn while they serve."},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(action: Action, references: dict[Any, Any]) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1, "maxLength": 200 if name == "user" else 64},
        }
        for name in re.findall(r"{(\w+)}", action.path)
    ]
    parameters += [{"name": name, "in": "query", "schema": dict(schema)} for name, schema in action.query.items()]
    responses = {"200": {"description": "done", "content": _content(action.gives, references)}}
    error = {JSON: {"schema": references[ErrorAnswer]}}
    responses |= {status: {"description": text, "content": error} for status, text in _STATUSES.items()}
    operation: dict[str, Any] = {"summary": action.summary, "parameters": parameters, "responses": responses}
    if action.takes is not None:
        content = _content(action.takes, references) | (_content(bytes, references) if action.upload else {})
        operation["requestBody"] = {"required": True, "content": content}
    if action.scope is not None:
        operation["security"] = [{}, {"token": []}]
    return operation


def _content(kind: Any, references: dict[Any, Any]) -> dict[str, Any]:
    if _is_struct(kind):
        return {JSON: {"schema": references[kind]}}
    if kind is bytes:
        return {BYTES: {"schema": {"type": "string", "format": "binary"}}}
    if kind is str:
        return {"text/plain": {"schema": {"type": "string"}}}
    return {JSON: {"schema": {}}}


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)
