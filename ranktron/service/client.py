"""A client of the service, with the standard library only."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

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
        compiles = method == "PUT" or path.partition("?")[0].endswith("/model")
        self._set_timeout(_COMPILE_TIMEOUT if compiles else _TIMEOUT)
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


class ExperimentCalls:
    """The methods of `Client` for experiments."""

    @abstractmethod
    def _request(
        self, method: str, path: str, content: Mapping[str, Any] | None = None, repeatable: bool = True
    ) -> dict[str, Any]: ...

    def create_experiment(self, name: str, arms: Sequence[str], **settings: Any) -> dict[str, Any]:
        """Starts an experiment, which compares rankers on live traffic; idempotent.

        Parameters
        ----------
        name : str
            The experiment.
        arms : sequence of str
            Rankers, such as "shop", or kept versions of them, such as "shop:7".
        settings : dict
            `method`, `shares`, `metric`, `k`, `level`, `users`, `promote`, `seed`, `close_after`, `guard`.
        """
        return self._request("PUT", _path(name), {"arms": [encode_arm(arm) for arm in arms], **settings})

    def experiments(self) -> list[dict[str, Any]]:
        """All experiments, each with its verdict."""
        experiments: list[dict[str, Any]] = self._request("GET", "/v1/experiments")["experiments"]
        return experiments

    def experiment(self, name: str) -> dict[str, Any]:
        """An experiment and its verdict: `winner`, `pairs` with confidence sequences, `why` in words.

        Parameters
        ----------
        name : str
            The experiment.
        """
        return self._request("GET", _path(name))

    def delete_experiment(self, name: str) -> None:
        """Deletes an experiment; its rankers stay as they are.

        Parameters
        ----------
        name : str
            The experiment.
        """
        self._request("DELETE", _path(name))

    def rank_experiment(
        self, name: str, documents: Documents, user: str = "", query: str = "", shown: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Ranks documents for a user, by the experiment's method.

        Parameters
        ----------
        name : str
            The experiment.
        documents : dict
            {id: features}; features as a list in the order of the rankers, or as {name: value}.
        user : str
            Id of the user; the same user sees the same arm.
        query : str
            The user's query; shown on the dashboard.
        shown : sequence of str, optional
            In apprentice mode, the ids in the order of your own system.
        """
        content = {"query": query, "user": user, "documents": encode_documents(documents)}
        if shown is not None:
            content["shown"] = list(shown)
        return self._request("POST", _path(name, "/rank"), content)

    def feedback_experiment(
        self,
        name: str,
        round: int,
        labels: Mapping[str, float] | None = None,
        *,
        clicks: Sequence[str] | None = None,
        gains: Mapping[str, float] | None = None,
    ) -> dict[str, Any]:
        """Sends feedback on a round of an experiment, as `feedback` does. Safe to retry.

        Parameters
        ----------
        name : str
            The experiment.
        round : int
            The round that `rank_experiment` returned.
        labels : dict, optional
            {id: label}, for any of the top k.
        clicks : sequence of str, optional
            The ids of the clicked documents; an empty list if none was.
        gains : dict, optional
            {id: gain}, the total gain of each document so far.
        """
        return self._request("POST", _path(name, "/feedback"), encode_feedback(round, labels, clicks, gains))

    def promote_experiment(self, name: str) -> dict[str, Any]:
        """Shows the winner to all users; with a guard, makes the ranker's current version the incumbent.

        Parameters
        ----------
        name : str
            The experiment.
        """
        return self._request("POST", _path(name, "/promote"))


def _path(name: str, suffix: str = "") -> str:
    return f"/v1/experiments/{quote(name, safe='')}{suffix}"


def _start_query(algorithm: str | None, trust: float | None) -> str:
    """The query of an address that makes a learner start from a model file."""
    given = {"as": algorithm, "trust": trust}
    query = urlencode({name: value for name, value in given.items() if value is not None})
    return f"?{query}" if query else ""


def encode_arm(text: str) -> dict[str, Any]:
    """An arm of the request that creates an experiment.

    >>> encode_arm("shop"), encode_arm("shop:7")
    ({'ranker': 'shop'}, {'ranker': 'shop', 'version': 7})
    """
    ranker, colon, version = text.partition(":")
    if colon and not (version.isascii() and version.isdecimal()):
        raise DataError(f"an arm is a ranker, 'shop', or one of its kept versions, 'shop:7', not {text!r}")
    return {"ranker": ranker, "version": int(version)} if colon else {"ranker": ranker}


__all__ = ["Client", "ServiceError"]


class Client(ServiceConnection, ExperimentCalls):
    """Sends requests to a running service over one persistent connection. Not thread-safe.

    A request is retried once if its connection turns out to be closed, as after a restart of the service. `full` and
    `promote` are not idempotent, and are retried only if they cannot have arrived.

    Parameters
    ----------
    url : str
        Address of the service.
    token : str, optional
        Access token, where the service requires one.
    timeout : float, optional
        Seconds to wait for an answer; by default 10, or 60 for requests that load a model, since the service may have
        to compile.

    Examples
    --------
    A session, with a service at the default address::

        client = ranktron.Client("http://127.0.0.1:8080")
        client.create("shop", ["price", "age"])
        shown = client.rank("shop", {"a": [1.0, 2.0], "b": [0.5, 3.0]}, query="chairs")
        client.feedback("shop", shown["round"], {shown["ranking"][0]["id"]: 1})

    >>> Client("ftp://example")
    Traceback (most recent call last):
    ...
    ranktron.errors.DataError: a service's address is http://... or https://..., not 'ftp://example'
    """

    def create(
        self,
        name: str,
        features: Sequence[str],
        algorithm: str = "",
        parameters: Mapping[str, Any] | None = None,
        labels: tuple[float, float] = (0, 4),
        close_after: float | None = None,
        scale: str | None = None,
        start: Mapping[str, float] | None = None,
        trust: float | None = None,
        per: str | None = None,
        learns_from: str | None = None,
    ) -> dict[str, Any]:
        """Creates a ranker; idempotent.

        Parameters
        ----------
        name : str
            Name of the ranker: letters, digits, dots, dashes and underscores.
        features : sequence of str
            Names of the features, in the order in which documents list their values.
        algorithm : str
            One of `ranktron.ALGORITHMS` that learns online, instead of `learns_from`.
        parameters : dict, optional
            Parameters of the algorithm that differ from their defaults.
        labels : (float, float)
            The lowest and the highest label that feedback may have.
        close_after : float, optional
            Seconds after which a round without feedback is closed, and counts as feedback without any gain.
        scale : str, optional
            How features are scaled within each list: "standard-query", "minmax-query" or "none"; by default the
            algorithm's own choice, and "none" with a `start`.
        start : dict, optional
            Weights to start from, by feature; the others are 0.
        trust : float, optional
            How far weights may go from those of the start, in Euclidean distance.
        per : {"user"}, optional
            Whether each user has weights of their own on top of everybody's.
        learns_from : {"clicks", "top-labels", "labels"}, optional
            What will come back: clicks (the default), labels of the first documents, or labels of whole lists.
        """
        definition: dict[str, Any] = {"features": list(features), "labels": list(labels)}
        definition |= {"algorithm": algorithm} if algorithm else {}
        definition |= {} if learns_from is None else {"learns_from": learns_from}
        definition |= {} if close_after is None else {"close_after": close_after}
        given = {"scale": scale, "start": None if start is None else dict(start), "trust": trust, "per": per}
        definition |= {field: value for field, value in given.items() if value is not None}
        return self._request("PUT", self._path(name), {**definition, "parameters": dict(parameters or {})})

    def forget(self, name: str, user: str) -> dict[str, Any]:
        """Forgets a user of a ranker made with `history="keep"`: restores the weights of a replay without them.

        Parameters
        ----------
        name : str
            The ranker.
        user : str
            The user, as rankings named them.
        """
        return self._request("DELETE", f"{self._path(name)}/users/{quote(user, safe='')}")

    def create_from_model(
        self, name: str, data: bytes, algorithm: str | None = None, trust: float | None = None
    ) -> dict[str, Any]:
        """Creates a ranker from the bytes of a model file; idempotent.

        Parameters
        ----------
        name : str
            The ranker.
        data : bytes
            A model file.
        algorithm : str, optional
            The online algorithm that starts from the weights of the model; by default the ranker is the model itself.
        trust : float, optional
            With `algorithm`: how far weights may go from those of the model, in Euclidean distance.
        """
        path = self._path(name) + _start_query(algorithm, trust)
        answer: dict[str, Any] = json.loads(self._send("PUT", path, data, "application/octet-stream"))
        return answer

    def delete(self, name: str) -> None:
        """Deletes a ranker with its history.

        Parameters
        ----------
        name : str
            The ranker.
        """
        self._request("DELETE", self._path(name))

    def rankers(self) -> list[dict[str, Any]]:
        """All rankers."""
        rankers: list[dict[str, Any]] = self._request("GET", "/v1/rankers")["rankers"]
        return rankers

    def rank(self, name: str, documents: Documents, query: str = "", *, carry: bool = False) -> dict[str, Any]:
        """Ranks documents; feedback refers to the answer's `round`.

        Parameters
        ----------
        name : str
            The ranker.
        documents : dict
            {id: features}; features as a list in the ranker's order, or as {name: value}.
        query : str
            The user's query; shown on the dashboard.
        carry : bool
            Seal the round: the service stores nothing, and the answer's `carry` is a token to send with `feedback`.
        """
        content = {"query": query, "documents": encode_documents(documents), **({"carry": True} if carry else {})}
        return self._request("POST", self._path(name, "rank"), content)

    def feedback(
        self,
        name: str,
        round: int,
        labels: Mapping[str, float] | None = None,
        *,
        clicks: Sequence[str] | None = None,
        gains: Mapping[str, float] | None = None,
        carry: str | None = None,
    ) -> dict[str, Any]:
        """Sends feedback on the top k documents of a round: labels, clicks or gains. Safe to retry.

        Further clicks and higher gains may follow later; labels may not change.

        Parameters
        ----------
        name : str
            The ranker.
        round : int
            The round that `rank` returned.
        labels : dict, optional
            {id: label}, for any of the top k.
        clicks : sequence of str, optional
            The ids of the clicked documents; an empty list if none was.
        gains : dict, optional
            {id: gain}, the total gain of each document so far.
        carry : str, optional
            The token of a sealed round: the `carry` that `rank` returned.
        """
        return self._request("POST", self._path(name, "feedback"), encode_feedback(round, labels, clicks, gains, carry))

    def full(self, name: str, documents: Documents, labels: Mapping[str, float]) -> dict[str, Any]:
        """Learns from a list with the labels of all its documents.

        Parameters
        ----------
        name : str
            The ranker.
        documents : dict
            {id: features}; features as a list in the ranker's order, or as {name: value}.
        labels : dict
            {id: label}, for every document.
        """
        content = {"documents": encode_documents(documents), "labels": dict(labels)}
        return self._request("POST", self._path(name, "full"), content, repeatable=False)

    def ingest(self, name: str, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Sends a batch of feedback from a source, exactly once: see `ranktron ingest`.

        Parameters
        ----------
        name : str
            The ranker.
        batch : dict
            `source`, `start`, `end`, `feedback`, `places` and `dead`, as in the OpenAPI document.
        """
        return self._request("POST", self._path(name, "ingest"), batch)

    def source(self, source: str) -> dict[str, Any]:
        """The next offset of a source, and its latest dead letters.

        Parameters
        ----------
        source : str
            The source.
        """
        return self._request("GET", f"/v1/sources/{quote(source, safe='')}")

    def promote(self, *, force: bool = False) -> dict[str, Any]:
        """Promotes a follower to leader: see `ranktron promote`.

        Parameters
        ----------
        force : bool
            Promote even if the leader still answers.
        """
        return self._request("POST", "/v1/promote", {"force": force}, repeatable=False)

    def explain(self, name: str, round: int) -> dict[str, Any]:
        """Explains the order of a round: scores, and the features' contributions.

        Parameters
        ----------
        name : str
            The ranker.
        round : int
            An open round, or one of the last answered ones (`explained_rounds`).
        """
        return self._request("GET", self._path(name, f"explain/{round}"))

    def dashboard(self, name: str) -> dict[str, Any]:
        """The data of the dashboard.

        Parameters
        ----------
        name : str
            The ranker.
        """
        return self._request("GET", self._path(name, "dashboard"))

    def model(self, name: str) -> bytes:
        """The model file, for `ranktron.Model.from_bytes`.

        Parameters
        ----------
        name : str
            The ranker.
        """
        return self._send("GET", self._path(name, "model"), b"", "")

    def set_model(
        self, name: str, data: bytes, algorithm: str | None = None, trust: float | None = None
    ) -> dict[str, Any]:
        """Replaces a ranker's model by that of a model file.

        Parameters
        ----------
        name : str
            The ranker.
        data : bytes
            A model file.
        algorithm : str, optional
            The online algorithm that starts from the weights of the model; by default the ranker is the model itself.
        trust : float, optional
            With `algorithm`: how far weights may go from those of the model, in Euclidean distance.
        """
        path = self._path(name, "model") + _start_query(algorithm, trust)
        answer: dict[str, Any] = json.loads(self._send("POST", path, data, "application/octet-stream"))
        return answer

    def versions(self, name: str) -> dict[str, Any]:
        """The current version, and the kept ones.

        Parameters
        ----------
        name : str
            The ranker.
        """
        return self._request("GET", self._path(name, "versions"))

    def keep(self, name: str) -> dict[str, Any]:
        """Keeps the current version, for a later `rollback`.

        Parameters
        ----------
        name : str
            The ranker.
        """
        return self._request("POST", self._path(name, "versions"))

    def release(self, name: str, version: int) -> dict[str, Any]:
        """Deletes a kept version; the two newest cannot be deleted, since recovery starts from them.

        Parameters
        ----------
        name : str
            The ranker.
        version : int
            One of the kept versions.
        """
        return self._request("DELETE", self._path(name, f"versions/{version}"))

    def rollback(self, name: str, version: int) -> dict[str, Any]:
        """Restores the weights of a kept version.

        Parameters
        ----------
        name : str
            The ranker.
        version : int
            One of the kept versions.
        """
        return self._request("POST", self._path(name, "rollback"), {"version": version})

    def _path(self, name: str, suffix: str = "") -> str:
        return f"/v1/rankers/{quote(name, safe='')}{'/' if suffix else ''}{suffix}"
