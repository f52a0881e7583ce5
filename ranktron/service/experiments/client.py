"""The client's methods for experiments."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from ranktron.errors import DataError
from ranktron.service.service_connection import Documents, encode_documents, encode_feedback


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


def encode_arm(text: str) -> dict[str, Any]:
    """An arm of the request that creates an experiment.

    >>> encode_arm("shop"), encode_arm("shop:7")
    ({'ranker': 'shop'}, {'ranker': 'shop', 'version': 7})
    """
    ranker, colon, version = text.partition(":")
    if colon and not (version.isascii() and version.isdecimal()):
        raise DataError(f"an arm is a ranker, 'shop', or one of its kept versions, 'shop:7', not {text!r}")
    return {"ranker": ranker, "version": int(version)} if colon else {"ranker": ranker}
