"""The OpenAPI document, made from the table of routes and the types of requests and answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from ranktron import __version__
from ranktron.service.http.endpoint import BYTES, JSON, Action
from ranktron.store.types import ErrorAnswer

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
    """The document for a table of routes."""
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
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1, "maxLength": 64}}
        for name in re.findall(r"{(\w+)}", action.path)
    ]
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
