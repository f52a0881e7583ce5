"""Log formats: text, or JSON with times and ids of requests."""

from __future__ import annotations

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TextIO

request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the present request."""

REQUESTS = logging.getLogger("ranktron.requests")


class JsonLines(logging.Formatter):
    """A line of JSON per record: time, level, logger, message, id of the request, and extra fields.

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
    """A line of text with the time and the id of the request, if any."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        identity = request_id.get()
        return super().format(record) + (f" (request {identity})" if identity else "")


def write_logs(form: str, every_request: bool, stream: TextIO | None = None) -> None:
    """Configures the logger `ranktron` to write to standard error, as "text" or "json"."""
    logger, handler = logging.getLogger("ranktron"), logging.StreamHandler(stream)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    logger.handlers = [handler]
    logger.propagate = False
    REQUESTS.setLevel(logging.INFO if every_request else logging.ERROR)
