"""How a request is answered: authorize, read, decode, act, encode, answer. Every request takes these steps.

An endpoint is a plain ASGI application: a few microseconds a request, a tenth of the cost of a framework's request and
response objects.
"""

from __future__ import annotations

import asyncio
import difflib
import logging
import re
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from inspect import isawaitable
from time import perf_counter
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import parse_qsl

import msgspec
from msgspec import structs
from starlette.routing import Router

from ranktron.service.auth import Authenticator
from ranktron.service.http.logs import REQUESTS, request_id
from ranktron.store.errors import RequestError
from ranktron.store.journal.journal import JournalError
from ranktron.store.messages import BatchAnswer, Document, ErrorAnswer, ErrorBody, ResponseBody
from ranktron.store.rankers.features import MAX_CHUNK, document_matrix
from ranktron.store.rankers.live_ranker import LiveRanker

if TYPE_CHECKING:
    from ranktron.service.service import RankingService
    from ranktron.service.telemetry import Telemetry
    from ranktron.service.tracing import Tracing

_logger = logging.getLogger("ranktron.service")


Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

JSON, BYTES = "application/json", "application/octet-stream"
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")  # a valid X-Request-Id
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True)
class Content:
    """An answer that is not JSON."""

    body: bytes
    kind: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


@dataclass(frozen=True)
class Action:
    """A method at a path: its scope, the types of request and answer, and its function (request, path) -> answer.

    `takes` is a type, bytes for a binary body, or None for no body; `scope` None means anyone. `upload` is the function
    for a binary body, where `run` is the one for JSON. It takes the parameters of `query` as a dict of that name; their
    values are JSON schemas.
    """

    method: str
    path: str
    summary: str
    scope: str | None
    takes: Any
    gives: Any
    run: Callable[..., Any]
    upload: Callable[..., Any] | None = None
    query: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The content types it accepts."""
        if self.takes is None:
            return ()
        return (BYTES,) if self.takes is bytes else (JSON, BYTES) if self.upload else (JSON,)

    @property
    def name(self) -> str:
        """The label in metrics: the path without the ranker."""
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
        except JournalError as error:  # the database may be unreachable
            self.telemetry.refused("journal_away")
            status = await send_refusal(send, RequestError(503, "journal_away", str(error)), self._readable(scope))
        except OSError:  # the client has disconnected
            status = 499
        except Exception:
            _logger.exception("a request failed")
            message = "an internal error: the log of the server has the details"
            status = await send_refusal(send, RequestError(500, "internal", message), self._readable(scope))
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
        if action.query:
            path = {**path, "query": _query(scope, action.query)}
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
            raise RequestError(422, "invalid", str(error) + _meant_field(str(error), action.takes)) from None
        except (msgspec.DecodeError, RecursionError, ValueError) as error:
            raise RequestError(400, "malformed", f"the body is not valid JSON: {error}") from None


def _meant_field(complaint: str, kind: Any) -> str:
    """The field of a request that an unknown one may stand for, as a question; empty if there is none like it."""
    unknown = re.search(r"unknown field `(.*?)`$", complaint)  # of the request itself, not of an object within it
    kinds = get_args(kind) or (kind,)
    fields = [field for each in kinds for field in getattr(each, "__struct_encode_fields__", ())]
    near = difflib.get_close_matches(unknown[1], fields, n=1, cutoff=0.5) if unknown else []
    return f" (did you mean `{near[0]}`?)" if near else ""


def _query(scope: Scope, known: Collection[str]) -> dict[str, str]:
    """The parameters after the question mark; each is known, and given once."""
    try:
        given = parse_qsl(scope.get("query_string", b"").decode("ascii"), keep_blank_values=True)
    except UnicodeDecodeError:
        raise RequestError(422, "bad_query", "the address has characters that are not ASCII") from None
    for name, _ in given:
        if name not in known:
            raise RequestError(422, "bad_query", f"there is no parameter {name!r} here, but {', '.join(known)}")
    if len(dict(given)) < len(given):
        raise RequestError(422, "bad_query", "a parameter is given twice")
    return dict(given)


async def read_body(receive: Receive, limit: int) -> bytes:
    """The body of a request, up to a size."""
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
    """Sends an answer; returns its status."""
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
    """Sends an error; returns its status."""
    answer = ErrorAnswer(ErrorBody(refused.code, str(refused)))
    if refused.status in (408, 413) or refused.code == "too_many_bodies":
        headers.append((b"connection", b"close"))
    if refused.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    return await send_answer(send, refused.status, answer, headers)


class Missing:
    """The ASGI application for unknown paths."""

    def __init__(self, authenticator: Authenticator) -> None:
        self.authenticator = authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            missing = RequestError(404, "not_found", "there is nothing at this path: see /openapi.json")
            await send_refusal(send, missing, self.authenticator.headers(dict(scope["headers"])))


class LoggedRouter(Router):
    """A router that returns each request's `X-Request-Id`, or a new id, in the answer.

    Requests are logged to `ranktron.requests`: at level ERROR if they failed with a 5xx, otherwise INFO.
    """

    tracing: Tracing | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        header = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
        identity = header if _REQUEST_ID.fullmatch(header) else secrets.token_hex(8).encode()
        started, status = perf_counter(), 0

        async def answer(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", identity)]
            await send(message)

        token = request_id.set(identity.decode())
        try:
            if self.tracing is None:
                await super().__call__(scope, receive, answer)
            else:
                with self.tracing.span(scope["method"], scope["path"], scope["headers"]) as span:
                    await super().__call__(scope, receive, answer)
                    span.set_attribute("http.response.status_code", status)
                    span.set_attribute("ranktron.request", identity.decode())
        finally:
            level = logging.ERROR if status >= 500 else logging.INFO
            if REQUESTS.isEnabledFor(level):
                self._log(level, scope, status, perf_counter() - started)
            request_id.reset(token)

    def _log(self, level: int, scope: Scope, status: int, seconds: float) -> None:
        about = {"method": scope["method"], "path": scope["path"], "status": status, "seconds": round(seconds, 6)}
        REQUESTS.log(level, "%s %r: %d", about["method"], about["path"], status, extra={"about": about})


# Large requests and batches: parsed in chunks that yield to other requests

_ATTEMPTS = 3  # to parse a list while its ranker is being replaced

Answer = Callable[[str, Any], Any]


def answer_in_turns(service: RankingService, one: Answer, name: str, request: Any) -> Any:
    """The answer of `one` to a request; the documents of a large request are parsed in chunks."""
    return (
        _large(service, one, name, request) if _is_large(service, service.live(name), request) else one(name, request)
    )


def _is_large(service: RankingService, live: LiveRanker, request: Any) -> bool:
    count = len(getattr(request, "documents", ()))
    return count * len(live.names) > 2 * MAX_CHUNK and count <= service.config.max_documents


async def _large(service: RankingService, one: Answer, name: str, request: Any) -> Any:
    document_format = _document_format(service.live(name))
    for _ in range(_ATTEMPTS):
        documents = await read_in_turns(request.documents, *document_format)
        before, document_format = document_format, _document_format(service.live(name))
        if document_format == before:  # the model was not replaced meanwhile by one with other features
            answer = one(name, structs.replace(request, documents=documents))
            return await answer if isinstance(answer, Awaitable) else answer
    raise RequestError(409, "replaced", f"ranker {name!r} was replaced several times meanwhile: try again")


def _document_format(live: LiveRanker) -> tuple[tuple[str, ...], bool]:
    """The names of a ranker's features, in order, and whether values may be missing."""
    return live.names, live.template.imputer is not None


async def read_in_turns(documents: Sequence[Document], names: Sequence[str], missing: bool = False) -> list[Document]:
    """The documents with parsed features; yields to other requests between chunks."""
    step = max(1, MAX_CHUNK // len(names))
    parsed: list[Document] = []
    for start in range(0, len(documents), step):
        chunk = documents[start : start + step]
        rows = document_matrix(chunk, names, missing)
        parsed += [Document(document.id, row) for document, row in zip(chunk, rows, strict=True)]
        await asyncio.sleep(0)
    return parsed


async def answer_batch(service: RankingService, one: Answer, name: str, requests: Sequence[Any]) -> BatchAnswer:
    """The answers to many requests, each an answer or an error; their entries share commits."""
    live, limit = service.live(name), service.config.max_batch
    if len(requests) > limit:
        raise RequestError(413, "too_many_requests_in_batch", f"a batch has at most {limit} requests")

    async def attempt(request: Any) -> ResponseBody:
        try:
            answer = answer_in_turns(service, one, name, request)
            body: ResponseBody = await answer if isinstance(answer, Awaitable) else answer
            return body
        except RequestError as refused:
            return ErrorAnswer(ErrorBody(refused.code, str(refused)))

    answers: list[asyncio.Future[ResponseBody]] = []
    for request in requests:  # started one by one, so that rounds are numbered in the order of the batch
        answers.append(asyncio.ensure_future(attempt(request)))
        await (asyncio.wait(answers[-1:]) if _is_large(service, live, request) else asyncio.sleep(0))
    return BatchAnswer(await asyncio.gather(*answers))
