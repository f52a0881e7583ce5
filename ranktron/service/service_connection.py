"""How a client sends requests: one connection that is kept open, with nothing but the standard library."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Self
from urllib.parse import urlsplit

from ranktron.errors import DataError, RanktronError

_PATIENCE = 10.0  # seconds to wait for an answer
_COMPILING = 60.0  # the same where a ranker is made, which may have to compile


class ServiceError(RanktronError):
    """A request that the service refused.

    Parameters
    ----------
    status : int
        The HTTP status.
    code : str
        The error code, which programs can rely on.
    message : str
        What was wrong, in one sentence.

    Examples
    --------
    >>> error = ServiceError(404, "unknown_ranker", "there is no ranker 'shop'")
    >>> error.status, error.code
    (404, 'unknown_ranker')
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


class ServiceConnection:
    """Sends requests over one connection, which is opened when it is needed."""

    def __init__(
        self, url: str = "http://127.0.0.1:8080", token: str | None = None, timeout: float | None = None
    ) -> None:
        parts = urlsplit(url)
        kinds = {"http": HTTPConnection, "https": HTTPSConnection}
        if parts.scheme not in kinds or not parts.hostname:
            raise DataError(f"a service is at http://... or https://..., not at {url!r}")
        self._connection = kinds[parts.scheme](parts.hostname, parts.port)
        self._base, self._token, self._timeout = parts.path.rstrip("/"), token, timeout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection; the next request opens it again."""
        self._connection.close()

    def _ask(
        self, method: str, path: str, content: Mapping[str, Any] | None = None, repeatable: bool = True
    ) -> dict[str, Any]:
        try:
            body = b"" if content is None else json.dumps(content, allow_nan=False).encode()
        except ValueError:
            raise DataError("what is sent must be finite: there is a NaN or an infinite number in it") from None
        answer: dict[str, Any] = json.loads(self._send(method, path, body, "application/json", repeatable))
        return answer

    def _wait(self, usual: float) -> None:
        """Says how long the next answer is waited for."""
        self._connection.timeout = usual if self._timeout is None else self._timeout
        if self._connection.sock is not None:
            self._connection.sock.settimeout(self._connection.timeout)

    def _send(self, method: str, path: str, body: bytes, kind: str, repeatable: bool = True) -> bytes:
        headers = {"Content-Type": kind} if body else {}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        kept_open, arrived = self._connection.sock is not None, False
        self._wait(_COMPILING if method == "PUT" or path.endswith("/model") else _PATIENCE)
        try:
            self._connection.request(method, self._base + path, body or None, headers)
            arrived = True  # it may have: what is not sent to its end is nothing to the service
            response = self._connection.getresponse()
            data: bytes = response.read()
        except (OSError, HTTPException) as error:
            self.close()
            if kept_open and isinstance(error, ConnectionError) and (repeatable or not arrived):
                return self._send(method, path, body, kind, repeatable)
            where = f"{self._connection.host}:{self._connection.port}"
            why = f"no answer from the service at {where}: {error or type(error).__name__}"
            refused = "; is `ranktron serve` running there?" if isinstance(error, ConnectionRefusedError) else ""
            raise ServiceError(0, "no_answer", why + refused) from None
        if response.status != 200:
            raise _error_of_answer(response.status, data)
        return data


def _error_of_answer(status: int, data: bytes) -> ServiceError:
    try:
        error = json.loads(data)["error"]
        return ServiceError(status, error["code"], error["message"])
    except (ValueError, KeyError, TypeError):
        return ServiceError(status, "unknown", f"the service answered with status {status}")


Documents = Mapping[str, Sequence[float] | Mapping[str, float]]
"""{id: features}; features as a list in the ranker's order, or as {name: value}."""


def encode_documents(documents: Documents) -> list[dict[str, Any]]:
    """Documents as requests have them.

    >>> encode_documents({"a": [1, 2]})
    [{'id': 'a', 'features': [1.0, 2.0]}]
    """
    return [
        {"id": name, "features": dict(features) if isinstance(features, Mapping) else [float(x) for x in features]}
        for name, features in documents.items()
    ]


def encode_feedback(
    round: int,
    labels: Mapping[str, float] | None,
    clicks: Sequence[str] | None,
    gains: Mapping[str, float] | None,
    carry: str | None = None,
) -> dict[str, Any]:
    """Feedback as requests have it.

    >>> encode_feedback(7, None, ["a"], None)
    {'round': 7, 'clicks': ['a']}
    """
    told = {
        "labels": None if labels is None else dict(labels),
        "clicks": None if clicks is None else list(clicks),
        "gains": None if gains is None else dict(gains),
        "carry": carry,
    }
    return {"round": round, **{key: value for key, value in told.items() if value is not None}}
