"""The HTTP side of the client: requests over one persistent connection, with the standard library only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Self
from urllib.parse import urlsplit

from ranktron.errors import DataError, RanktronError

_TIMEOUT = 10.0  # seconds
_COMPILE_TIMEOUT = 60.0  # seconds, for requests that load a model: the service may have to compile


class ServiceError(RanktronError):
    """A request that the service refused or did not answer.

    Parameters
    ----------
    status : int
        The HTTP status; 0 if there was no answer.
    code : str
        The error code: stable, for programs.
    message : str
        One sentence that describes the error, for people.

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
    """Sends requests over one connection, opened by the first of them."""

    def __init__(
        self, url: str = "http://127.0.0.1:8080", token: str | None = None, timeout: float | None = None
    ) -> None:
        parts = urlsplit(url)
        connections = {"http": HTTPConnection, "https": HTTPSConnection}
        if parts.scheme not in connections or not parts.hostname:
            raise DataError(f"a service's address is http://... or https://..., not {url!r}")
        self._connection = connections[parts.scheme](parts.hostname, parts.port)
        self._base, self._token, self._timeout = parts.path.rstrip("/"), token, timeout

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection; the next request opens a new one."""
        self._connection.close()

    def _request(
        self, method: str, path: str, content: Mapping[str, Any] | None = None, repeatable: bool = True
    ) -> dict[str, Any]:
        try:
            body = b"" if content is None else json.dumps(content, allow_nan=False).encode()
        except ValueError:
            raise DataError("a NaN or an infinite number cannot be sent: all numbers must be finite") from None
        answer: dict[str, Any] = json.loads(self._send(method, path, body, "application/json", repeatable))
        return answer

    def _set_timeout(self, default: float) -> None:
        self._connection.timeout = default if self._timeout is None else self._timeout
        if self._connection.sock is not None:
            self._connection.sock.settimeout(self._connection.timeout)

    def _send(self, method: str, path: str, body: bytes, content_type: str, repeatable: bool = True) -> bytes:
        headers = {"Content-Type": content_type} if body else {}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        reused, maybe_received = self._connection.sock is not None, False
        self._set_timeout(_COMPILE_TIMEOUT if method == "PUT" or path.endswith("/model") else _TIMEOUT)
        try:
            self._connection.request(method, self._base + path, body or None, headers)
            maybe_received = True  # the service ignores incomplete requests; from here on it has the whole one
            response = self._connection.getresponse()
            data: bytes = response.read()
        except (OSError, HTTPException) as error:
            self.close()
            if reused and isinstance(error, ConnectionError) and (repeatable or not maybe_received):
                return self._send(method, path, body, content_type, repeatable)
            address = f"{self._connection.host}:{self._connection.port}"
            message = f"no answer from the service at {address}: {error or type(error).__name__}"
            hint = "; is `ranktron serve` running there?" if isinstance(error, ConnectionRefusedError) else ""
            raise ServiceError(0, "no_answer", message + hint) from None
        if response.status != 200:
            raise _decode_error(response.status, data)
        return data


def _decode_error(status: int, data: bytes) -> ServiceError:
    try:
        error = json.loads(data)["error"]
        return ServiceError(status, error["code"], error["message"])
    except (ValueError, KeyError, TypeError):
        return ServiceError(status, "unknown", f"the service answered with status {status}")


Documents = Mapping[str, Sequence[float] | Mapping[str, float]]
"""{id: features}; features as a list in the ranker's order, or as {name: value}."""


def encode_documents(documents: Documents) -> list[dict[str, Any]]:
    """The `documents` of a request.

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
    """The body of a feedback request.

    >>> encode_feedback(7, None, ["a"], None)
    {'round': 7, 'clicks': ['a']}
    """
    fields = {
        "labels": None if labels is None else dict(labels),
        "clicks": None if clicks is None else list(clicks),
        "gains": None if gains is None else dict(gains),
        "carry": carry,
    }
    return {"round": round, **{key: value for key, value in fields.items() if value is not None}}
