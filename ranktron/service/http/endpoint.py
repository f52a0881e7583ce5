"""One path of the service. Every request takes these steps: authorize, read, decode, act, encode, answer.

An endpoint is an ASGI application of its own. It costs a request a few microseconds, where a framework's request and
response objects would cost ten times that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from inspect import isawaitable
from time import perf_counter
from typing import Any

import msgspec

from ranktron.service.auth import Authenticator
from ranktron.service.telemetry import Telemetry
from ranktron.store.errors import RequestError
from ranktron.store.journal.journal import JournalError
from ranktron.store.types import ErrorAnswer, ErrorBody

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

JSON, BYTES = "application/json", "application/octet-stream"
_logger = logging.getLogger("ranktron.service")
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Content:
    """An answer that is not JSON."""

    body: bytes
    kind: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(frozen=True)
class Action:
    """What a method does at a path: who may, what it takes and gives, and the function (path, request) -> answer.

    `takes` is a type, or bytes for a body that is not JSON, or None for no body; `scope` None means anyone. `upload` is
    what a body of bytes does where one of JSON would do `run`.
    """

    method: str
    path: str
    summary: str
    scope: str | None
    takes: Any
    gives: Any
    run: Callable[..., Any]
    upload: Callable[..., Any] | None = None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The content types of the body that it takes."""
        if self.takes is None:
            return ()
        return (BYTES,) if self.takes is bytes else (JSON, BYTES) if self.upload else (JSON,)

    @property
    def name(self) -> str:
        """Short, for metrics: the path without the ranker."""
        return f"{self.method} {self.path}"


class Endpoint:
    """The ASGI application at one path."""

    def __init__(self, actions: list[Action], authenticator: Authenticator, telemetry: Telemetry) -> None:
        self.actions = {action.method: action for action in actions}
        self.decoders = {
            action.method: msgspec.json.Decoder(action.takes, strict=True)
            for action in actions
            if action.takes not in (None, bytes)
        }
        self.authenticator, self.telemetry = authenticator, telemetry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = perf_counter()
        name, status = "other", 500
        try:
            if scope["method"] == "OPTIONS" and (allowed := self.authenticator.preflight(scope, self.actions)):
                status = await send_answer(send, 204, Content(b"", "text/plain"), allowed)
                return
            action = self._action(scope)
            name = action.name
            headers = self.authenticator.authorize(scope, action.scope)
            answer = await self._act(action, scope, receive, headers)
            status = await send_answer(send, 200, answer, self.authenticator.headers(headers))
        except RequestError as refused:
            self.telemetry.refused(refused.code)
            status = await send_refusal(send, refused, self._readable(scope))
        except JournalError as error:  # a database may be away for a while
            self.telemetry.refused("journal_away")
            status = await send_refusal(send, RequestError(503, "journal_away", str(error)), self._readable(scope))
        except OSError:  # the client has gone
            status = 499
        except Exception:
            _logger.exception("a request failed")
            trouble = "an internal error: the log of the server has the details"
            status = await send_refusal(send, RequestError(500, "internal", trouble), self._readable(scope))
        finally:
            self.telemetry.request(name, status, perf_counter() - started)

    def _readable(self, scope: Scope) -> list[tuple[bytes, bytes]]:
        return self.authenticator.headers(dict(scope["headers"]))

    def _action(self, scope: Scope) -> Action:
        action = self.actions.get(scope["method"])
        if action is None:
            raise RequestError(405, "method_not_allowed", f"this path supports {', '.join(self.actions)}")
        return action

    async def _act(self, action: Action, scope: Scope, receive: Receive, headers: Mapping[bytes, bytes]) -> Any:
        path = scope["path_params"]
        if action.takes is None:
            answer = action.run(**path)
        else:
            kind = self.authenticator.check_kind(headers, *action.kinds)
            body = await self._body(headers, receive)
            if kind == JSON:
                answer = action.run(request=self._decoded(action, body), **path)
            else:
                answer = (action.upload or action.run)(request=body, **path)
        if not isawaitable(answer):
            return answer
        try:
            async with asyncio.timeout(self.authenticator.config.answer_seconds):
                return await answer
        except TimeoutError:
            complaint = (
                "the disk or the compiler took too long; the request may have been accepted: feedback may be sent again"
            )
            raise RequestError(503, "slow_disk", complaint) from None

    async def _body(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        length = self.authenticator.check_length(headers)
        self.authenticator.arriving += length
        try:
            async with asyncio.timeout(self.authenticator.config.request_seconds):
                return await read_body(receive, self.authenticator.config.max_body)
        except TimeoutError:
            raise RequestError(408, "too_slow", "the body of the request took too long to arrive") from None
        finally:
            self.authenticator.arriving -= length

    def _decoded(self, action: Action, body: bytes) -> Any:
        try:
            return self.decoders[action.method].decode(body)
        except msgspec.ValidationError as error:
            raise RequestError(422, "invalid", str(error)) from None
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            raise RequestError(400, "malformed", f"the body is not valid JSON: {error}") from None


async def read_body(receive: Receive, limit: int) -> bytes:
    """The body of a request; one that is too large is refused."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ConnectionResetError
    body: bytes = message.get("body", b"")
    if not message.get("more_body") and len(body) <= limit:
        return body
    parts, length = [body], len(body)
    while message.get("more_body") and length <= limit:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionResetError
        parts.append(message.get("body", b""))
        length += len(parts[-1])
    if length > limit:
        raise RequestError(413, "too_large", f"the body of a request may have at most {limit} bytes")
    return b"".join(parts)


async def send_answer(send: Send, status: int, answer: Any, headers: list[tuple[bytes, bytes]]) -> int:
    """Sends an answer; its status."""
    if isinstance(answer, Content):
        body, kind = answer.body, answer.kind
        headers = [*headers, *answer.headers]
    else:
        body, kind = _encode(answer), JSON
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", kind.encode("ascii")),
                (b"content-length", str(len(body)).encode("ascii")),
                (b"x-content-type-options", b"nosniff"),
                *headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})
    return status


async def send_refusal(send: Send, refused: RequestError, headers: list[tuple[bytes, bytes]]) -> int:
    """Sends why a request is refused; the status."""
    answer = ErrorAnswer(ErrorBody(refused.code, str(refused)))
    if refused.status in (408, 413) or refused.code == "too_many_bodies":
        headers.append((b"connection", b"close"))
    if refused.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    return await send_answer(send, refused.status, answer, headers)


class Missing:
    """The ASGI application of all other paths."""

    def __init__(self, authenticator: Authenticator) -> None:
        self.authenticator = authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            missing = RequestError(404, "not_found", "there is nothing at this path: see /openapi.json")
            await send_refusal(send, missing, self.authenticator.headers(dict(scope["headers"])))
