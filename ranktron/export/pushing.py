"""Uploads an exported model with the engine's REST API; earlier versions stay."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from ranktron.errors import DataError, RanktronError

USER, PASSWORD, API_KEY = "RANKTRON_ENGINE_USER", "RANKTRON_ENGINE_PASSWORD", "RANKTRON_ENGINE_API_KEY"
HOMES = {
    "elasticsearch": "http://localhost:9200",
    "opensearch": "http://localhost:9200",
    "solr": "http://localhost:8983/solr",
}


@dataclass(frozen=True)
class EngineCall:
    """One request; if the engine answers 400, `otherwise` is sent instead."""

    purpose: str
    method: str
    path: str
    body: bytes | None = None
    otherwise: EngineCall | None = None


def plugin_calls(content: bytes, featureset: str, store: str | None) -> list[EngineCall]:
    """The requests to the LTR plugin: create the model from a feature set, then clear the cache of compiled models.

    >>> [call.path for call in plugin_calls(b"{}", "movies", None)]
    ['/_ltr/_featureset/movies/_createmodel', '/_ltr/_clearcache']
    """
    home = "/_ltr" if store is None else f"/_ltr/{quote(store, safe='')}"
    return [
        EngineCall(
            "create the model", "POST", f"{home}/_featureset/{quote(featureset, safe='')}/_createmodel", content
        ),
        EngineCall("clear the cache of models", "POST", f"{home}/_clearcache"),
    ]


def solr_calls(content: bytes, collection: str) -> list[EngineCall]:
    """The requests to Solr: put the model into the store, then reload the collection (or the core, without cloud mode).

    >>> [call.path for call in solr_calls(b"{}", "films")]
    ['/films/schema/model-store', '/admin/collections?action=RELOAD&name=films']
    """
    core = EngineCall("reload the core", "GET", "/admin/cores?" + urlencode({"action": "RELOAD", "core": collection}))
    reload = "/admin/collections?" + urlencode({"action": "RELOAD", "name": collection})
    return [
        EngineCall("store the model", "PUT", f"/{quote(collection, safe='')}/schema/model-store", content),
        EngineCall("reload the collection", "GET", reload, otherwise=core),
    ]


def credentials(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The authorization header, from the environment: a user and a password, or an API key.

    >>> credentials({"RANKTRON_ENGINE_USER": "a", "RANKTRON_ENGINE_PASSWORD": "b"})
    {'Authorization': 'Basic YTpi'}
    """
    user, password, key = (environment.get(name) for name in (USER, PASSWORD, API_KEY))
    if key and (user or password):
        raise DataError(f"both {API_KEY} and {USER} are set: set one of them")
    if bool(user) != bool(password):
        raise DataError(f"{USER} and {PASSWORD} go together: set both")
    if key and not (key.isascii() and key.isprintable()):
        raise DataError(f"{API_KEY} must be one line of printable ASCII")
    if key:
        return {"Authorization": f"ApiKey {key}"}
    if user:
        return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode("ascii")}
    return {}


def checked_url(url: str, option: str = "--url") -> str:
    """The address of an engine, without a trailing slash; credentials in it are refused."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        valid = False
    if not valid or parts.query or parts.fragment:
        raise DataError(f"{option} must be an address such as https://search.example:9200")
    if parts.username or parts.password:
        raise DataError(f"{option} must not hold credentials, which others could see: set {USER} and {PASSWORD}")
    return url.rstrip("/")


def send(
    url: str,
    calls: Sequence[EngineCall],
    headers: Mapping[str, str],
    timeout: float,
    done: Callable[[EngineCall, int], None],
) -> None:
    """Sends the requests one after the other and calls `done` after each; the first failure is an error."""
    completed: list[str] = []
    for call in calls:
        try:
            status, _ = exchange(url, call, headers, timeout)
        except _Refused as refused:
            if call.otherwise is None or refused.status != 400:
                raise DataError(_failure_message(completed, call, str(refused))) from None
            call = call.otherwise
            try:
                status, _ = exchange(url, call, headers, timeout)
            except RanktronError as error:
                raise DataError(_failure_message(completed, call, str(error))) from None
        except RanktronError as error:
            raise DataError(_failure_message(completed, call, str(error))) from None
        completed.append(call.purpose)
        done(call, status)


def _failure_message(completed: list[str], call: EngineCall, reason: str) -> str:
    note = f" (completed: {', '.join(completed)})" if completed else ""
    return f"cannot {call.purpose}: {call.method} {call.path}: {reason}{note}"


class _Refused(RanktronError):
    """A response with an error status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _NoRedirects(HTTPRedirectHandler):
    """Refuses redirects, which would send the credentials elsewhere and lose the body."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


def exchange(
    url: str, call: EngineCall, headers: Mapping[str, str], timeout: float, limit: int = 100_000
) -> tuple[int, bytes]:
    """Sends a request; the status and up to `limit` bytes of the response. Raises an error for error statuses."""
    content_type = {"Content-Type": "application/json"} if call.body is not None else {}
    request = Request(url + call.path, call.body, {**content_type, **headers}, method=call.method)
    try:
        with build_opener(_NoRedirects).open(request, timeout=timeout) as response:
            status, text = int(response.status), response.read(limit)
    except HTTPError as error:
        with error:
            raise _Refused(error.code, _describe_failure(error.code, error.read(100_000))) from None
    except URLError as error:
        raise DataError(f"{url} cannot be reached: {error.reason}; is the engine running there?") from None
    except TimeoutError:
        raise DataError(f"{url} did not answer within {timeout:g} seconds (--timeout)") from None
    except (OSError, HTTPException, ValueError) as error:
        raise DataError(f"{url} cannot be reached: {error or type(error).__name__}") from None
    if _header_status(text) != 0:  # Solr may answer 200 with an error in the body
        raise _Refused(_header_status(text), _describe_failure(_header_status(text), text))
    return status, text


_MEANINGS = {
    401: f"the engine requires authentication: set {USER} and {PASSWORD}, or {API_KEY}",
    403: "these credentials do not allow it",
    404: "not found: check the plugin, and the names of the store, the feature set and the collection",
    409: "a model of this name exists: choose another --version",
}


def _describe_failure(status: int, text: bytes) -> str:
    meaning = _MEANINGS.get(status, "the engine redirects: use its final address" if 300 <= status < 400 else "")
    message = _engine_message(text)
    if status == 400 and "exist" in message.lower():
        meaning = meaning or _MEANINGS[409]
    return ". ".join(part for part in (f"answer {status}", meaning, message) if part)


def _engine_message(text: bytes) -> str:
    """The engine's error message, shortened."""
    content: Any = _parse_json(text)
    error = content.get("error") if isinstance(content, dict) else None
    if isinstance(error, dict):
        error = error.get("reason") or error.get("msg") or json.dumps(error)
    words = error if isinstance(error, str) else text.decode("utf-8", "replace")
    return " ".join("".join(c if c.isprintable() else " " for c in words).split())[:300]


def _header_status(text: bytes) -> int:
    content: Any = _parse_json(text)
    header = content.get("responseHeader") if isinstance(content, dict) else None
    status = header.get("status", 0) if isinstance(header, dict) else 0
    return status if isinstance(status, int) else 0


def _parse_json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
