"""A client of the service, with the standard library only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from ranktron.service.experiments.client import ExperimentCalls
from ranktron.service.service_connection import (
    Documents,
    ServiceConnection,
    ServiceError,
    encode_documents,
    encode_feedback,
)

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
        algorithm: str = "topk",
        parameters: Mapping[str, Any] | None = None,
        labels: tuple[float, float] = (0, 4),
        close_after: float | None = None,
        scale: str | None = None,
    ) -> dict[str, Any]:
        """Creates a ranker; idempotent.

        Parameters
        ----------
        name : str
            Name of the ranker: letters, digits, dots, dashes and underscores.
        features : sequence of str
            Names of the features, in the order in which documents list their values.
        algorithm : str
            One of `ranktron.ALGORITHMS` that learns online.
        parameters : dict, optional
            Parameters of the algorithm that differ from their defaults.
        labels : (float, float)
            The lowest and the highest label that feedback may have.
        close_after : float, optional
            Seconds after which a round without feedback is closed, and counts as feedback without any gain.
        scale : str, optional
            How features are scaled within each list: "standard-query", "minmax-query" or "none"; by default the
            algorithm's own choice.
        """
        definition: dict[str, Any] = {"features": list(features), "algorithm": algorithm, "labels": list(labels)}
        definition |= {} if close_after is None else {"close_after": close_after}
        definition |= {} if scale is None else {"scale": scale}
        return self._request("PUT", self._path(name), {**definition, "parameters": dict(parameters or {})})

    def create_from_model(self, name: str, data: bytes) -> dict[str, Any]:
        """Creates a ranker from the bytes of a model file; idempotent.

        Parameters
        ----------
        name : str
            The ranker.
        data : bytes
            A model file.
        """
        answer: dict[str, Any] = json.loads(self._send("PUT", self._path(name), data, "application/octet-stream"))
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

    def set_model(self, name: str, data: bytes) -> dict[str, Any]:
        """Replaces a ranker's model by that of a model file.

        Parameters
        ----------
        name : str
            The ranker.
        data : bytes
            A model file.
        """
        answer: dict[str, Any] = json.loads(
            self._send("POST", self._path(name, "model"), data, "application/octet-stream")
        )
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
