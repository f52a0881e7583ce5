"""A client of the service, with nothing but the standard library."""

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
    """Talks to a running service over one connection that is kept open. Not for several threads at a time.

    A request that finds this connection closed, as after a restart of the service, is sent once more over a new one;
    `full` only if it cannot have arrived, since it would be learnt twice.

    Parameters
    ----------
    url : str
        Where the service listens.
    token : str, optional
        What it asks for, if it asks for one.
    timeout : float, optional
        Seconds to wait for an answer; by default 10, and 60 where a ranker is made, since the service may have to
        compile.

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
    ranktron.errors.DataError: a service is at http://... or https://..., not at 'ftp://example'
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
        """Makes a ranker; to make the same one again changes nothing.

        After `close_after` seconds, if it is given, a round without feedback counts as one that gained nothing.

        Parameters
        ----------
        name : str
            What to call the ranker: letters, digits, dots, dashes and underscores.
        features : sequence of str
            The names of the features, in the order in which documents give them.
        algorithm : str
            One of `ranktron.ALGORITHMS` that learns online.
        parameters : dict, optional
            Parameters of the algorithm that differ from their defaults.
        labels : (float, float)
            The lowest and the highest label that feedback may have.
        close_after : float, optional
            Seconds until a round without feedback is closed.
        scale : str, optional
            How features are scaled within each list: "standard-query", "minmax-query" or "none"; what suits the
            algorithm unless given.
        """
        definition: dict[str, Any] = {"features": list(features), "algorithm": algorithm, "labels": list(labels)}
        definition |= {} if close_after is None else {"close_after": close_after}
        definition |= {} if scale is None else {"scale": scale}
        return self._ask("PUT", self._path(name), {**definition, "parameters": dict(parameters or {})})

    def create_from_model(self, name: str, data: bytes) -> dict[str, Any]:
        """Makes a ranker from the bytes of a model file; from the same file again changes nothing.

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
        """Deletes a ranker and all that it has learnt.

        Parameters
        ----------
        name : str
            The ranker.
        """
        self._ask("DELETE", self._path(name))

    def rankers(self) -> list[dict[str, Any]]:
        """All rankers."""
        found: list[dict[str, Any]] = self._ask("GET", "/v1/rankers")["rankers"]
        return found

    def rank(self, name: str, documents: Documents, query: str = "", *, carry: bool = False) -> dict[str, Any]:
        """Ranks documents, given as {id: features}; the answer's `round` is what feedback refers to.

        Parameters
        ----------
        name : str
            The ranker.
        documents : dict
            {id: features}; features as a list in the ranker's order, or as {name: value}.
        query : str
            What the user asked for; shown on the dashboard.
        carry : bool
            Whether the service keeps nothing of the round: the answer's `carry` holds it, sealed, for `feedback`.
        """
        content = {"query": query, "documents": encode_documents(documents), **({"carry": True} if carry else {})}
        return self._ask("POST", self._path(name, "rank"), content)

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
        """Labels of some of the first documents shown, or which of them were clicked (an empty list: none was).

        Or what each has gained so far: gains and clicks may come again, when there are more. Safe to send again after
        an error of the connection.

        Parameters
        ----------
        name : str
            The ranker.
        round : int
            The round that `rank` returned.
        labels : dict, optional
            {id: label}.
        clicks : sequence of str, optional
            The ids of the documents that were clicked.
        gains : dict, optional
            {id: gain}, what each document has gained so far.
        carry : str, optional
            The `carry` that `rank` returned, if it returned one.
        """
        return self._ask("POST", self._path(name, "feedback"), encode_feedback(round, labels, clicks, gains, carry))

    def full(self, name: str, documents: Documents, labels: Mapping[str, float]) -> dict[str, Any]:
        """A list of which all labels are known.

        Parameters
        ----------
        name : str
            The ranker.
        documents : dict
            {id: features}; features as a list in the ranker's order, or as {name: value}.
        labels : dict
            {id: label}, of every document.
        """
        content = {"documents": encode_documents(documents), "labels": dict(labels)}
        return self._ask("POST", self._path(name, "full"), content, repeatable=False)

    def ingest(self, name: str, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Feedback from a source, learnt from once: see `ranktron ingest`.

        Parameters
        ----------
        name : str
            The ranker.
        batch : dict
            `source`, `start`, `end`, `feedback` with its `places`, and `dead` letters: see the OpenAPI document.
        """
        return self._ask("POST", self._path(name, "ingest"), batch)

    def source(self, source: str) -> dict[str, Any]:
        """Where a source of feedback goes on, and its last dead letters.

        Parameters
        ----------
        source : str
            Its name.
        """
        return self._ask("GET", f"/v1/sources/{quote(source, safe='')}")

    def promote(self, *, force: bool = False) -> dict[str, Any]:
        """Lets a server that follows lead, since its leader is gone: see `ranktron promote`.

        Parameters
        ----------
        force : bool
            Even if the leader still answers.
        """
        return self._ask("POST", "/v1/promote", {"force": force}, repeatable=False)

    def explain(self, name: str, round: int) -> dict[str, Any]:
        """Why a round was ordered as it was.

        Parameters
        ----------
        name : str
            The ranker.
        round : int
            A round that was shown not long ago.
        """
        return self._ask("GET", self._path(name, f"explain/{round}"))

    def dashboard(self, name: str) -> dict[str, Any]:
        """What the dashboard shows.

        Parameters
        ----------
        name : str
            The ranker.
        """
        return self._ask("GET", self._path(name, "dashboard"))

    def model(self, name: str) -> bytes:
        """The model file, for `ranktron.Model.from_bytes`.

        Parameters
        ----------
        name : str
            The ranker.
        """
        return self._send("GET", self._path(name, "model"), b"", "")

    def set_model(self, name: str, data: bytes) -> dict[str, Any]:
        """Starts a ranker from the bytes of a model file.

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
        """The present version, and those that are kept.

        Parameters
        ----------
        name : str
            The ranker.
        """
        return self._ask("GET", self._path(name, "versions"))

    def keep(self, name: str) -> dict[str, Any]:
        """Keeps the present version, to roll back to.

        Parameters
        ----------
        name : str
            The ranker.
        """
        return self._ask("POST", self._path(name, "versions"))

    def release(self, name: str, version: int) -> dict[str, Any]:
        """Lets a version that is kept go; the two newest stay, since a start goes on from them.

        Parameters
        ----------
        name : str
            The ranker.
        version : int
            A version that `versions` lists as kept.
        """
        return self._ask("DELETE", self._path(name, f"versions/{version}"))

    def rollback(self, name: str, version: int) -> dict[str, Any]:
        """Goes back to the weights of a version that was kept.

        Parameters
        ----------
        name : str
            The ranker.
        version : int
            A version that `versions` lists as kept.
        """
        return self._ask("POST", self._path(name, "rollback"), {"version": version})

    def _path(self, name: str, what: str = "") -> str:
        return f"/v1/rankers/{quote(name, safe='')}{'/' if what else ''}{what}"
