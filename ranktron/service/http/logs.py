"""What the service writes about itself: lines for people, or JSON with times and the ids of requests."""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import MutableMapping
from contextvars import ContextVar
from datetime import UTC, datetime
from time import perf_counter
from typing import TYPE_CHECKING, Any, TextIO

from starlette.routing import Router
from starlette.types import Receive, Scope, Send

if TYPE_CHECKING:
    from ranktron.service.tracing import Tracing

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the request that is being answered."""

_GIVEN = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_requests = logging.getLogger("ranktron.requests")


class JsonLines(logging.Formatter):
    """A line of JSON for each record: time, level, logger, message, request, and what the record has beside it.

    >>> line = JsonLines().format(logging.LogRecord("ranktron", logging.INFO, "", 0, "%d done", (3,), None))
    >>> sorted(json.loads(line).items())[:3]
    [('level', 'info'), ('logger', 'ranktron'), ('message', '3 done')]
    """

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if identity := request_id.get():
            line["request"] = identity
        line |= getattr(record, "about", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


class TextLines(logging.Formatter):
    """A line for people, with the time and, where there is one, the id of the request."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        identity = request_id.get()
        return super().format(record) + (f" (request {identity})" if identity else "")


def write_logs(form: str, every_request: bool, stream: TextIO | None = None) -> None:
    """Lets everything below the logger `ranktron` write to standard error, as "text" or "json"."""
    logger, handler = logging.getLogger("ranktron"), logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    logger.handlers = [handler]
    logger.propagate = False
    _requests.setLevel(logging.INFO if every_request else logging.ERROR)


class LoggedRouter(Router):
    """A router whose answers name their request: by the id in `X-Request-Id`, if it came with one, or by a new one.

    A request is logged if the logger `ranktron.requests` wants it: as an error if it failed, or else as information.
    """

    tracing: Tracing | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await super().__call__(scope, receive, send)
            return
        given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
        identity = given if _GIVEN.fullmatch(given) else secrets.token_hex(8).encode()
        started, status = perf_counter(), 0

        async def answer(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", identity)]
            await send(message)

        before = request_id.set(identity.decode())
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
            if _requests.isEnabledFor(level):
                self._log(level, scope, status, perf_counter() - started)
            request_id.reset(before)

    def _log(self, level: int, scope: Scope, status: int, seconds: float) -> None:
        about = {"method": scope["method"], "path": scope["path"], "status": status, "seconds": round(seconds, 6)}
        _requests.log(level, "%s %r: %d", about["method"], about["path"], status, extra={"about": about})
