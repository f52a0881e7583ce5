"""What a client asks of experiments."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from ranktron.errors import DataError
from ranktron.service.service_connection import Documents, encode_documents, encode_feedback


class ExperimentCalls:
    """The calls of a client that are about experiments; `_ask` sends them."""

    @abstractmethod
    def _ask(
        self, method: str, path: str, content: Mapping[str, Any] | None = None, repeatable: bool = True
    ) -> dict[str, Any]: ...

    def create_experiment(self, name: str, arms: Sequence[str], **settings: Any) -> dict[str, Any]:
        """Compares rankers on live traffic; to make the same experiment again changes nothing.

        Parameters
        ----------
        name : str
            The experiment.
        arms : sequence of str
            Rankers, "shop", or kept versions of them, "shop:7".
        settings : dict
            Those of the service: `method`, `shares`, `metric`, `k`, `level`, `users`, `promote`, `seed`, `close_after`,
            `guard`.
        """
        return self._ask("PUT", _path(name), {"arms": [encode_arm(each) for each in arms], **settings})

    def experiments(self) -> list[dict[str, Any]]:
        """All experiments, each with its verdict."""
        found: list[dict[str, Any]] = self._ask("GET", "/v1/experiments")["experiments"]
        return found

    def experiment(self, name: str) -> dict[str, Any]:
        """An experiment with its verdict: `winner`, `pairs` with their confidence sequences, `why` in words.

        Parameters
        ----------
        name : str
            The experiment.
        """
        return self._ask("GET", _path(name))

    def delete_experiment(self, name: str) -> None:
        """Ends an experiment; its rankers stay as they are.

        Parameters
        ----------
        name : str
            The experiment.
        """
        self._ask("DELETE", _path(name))

    def rank_experiment(
        self, name: str, documents: Documents, user: str = "", query: str = "", shown: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """The page that an experiment shows to a user.

        Parameters
        ----------
        name : str
            The experiment.
        documents : dict
            {id: features}; features as a list in the order of the rankers, or as {name: value}.
        user : str
            Who sees it; the same user sees the same arm.
        query : str
            What was asked, for people who look at the round.
        shown : sequence of str, optional
            In apprentice mode, the ids in the order that your own system shows.
        """
        content = {"query": query, "user": user, "documents": encode_documents(documents)}
        if shown is not None:
            content["shown"] = list(shown)
        return self._ask("POST", _path(name, "/rank"), content)

    def feedback_experiment(
        self,
        name: str,
        round: int,
        labels: Mapping[str, float] | None = None,
        *,
        clicks: Sequence[str] | None = None,
        gains: Mapping[str, float] | None = None,
    ) -> dict[str, Any]:
        """What came back about a page of an experiment, as in `feedback`; safe to send again.

        Parameters
        ----------
        name : str
            The experiment.
        round : int
            The round that `rank_experiment` returned.
        labels : dict, optional
            {id: label}.
        clicks : sequence of str, optional
            The ids of the documents that were clicked.
        gains : dict, optional
            {id: gain}, what each document has gained so far.
        """
        return self._ask("POST", _path(name, "/feedback"), encode_feedback(round, labels, clicks, gains))

    def promote_experiment(self, name: str) -> dict[str, Any]:
        """Shows the winner to everyone; with a guard, makes the ranker as it is now the incumbent.

        Parameters
        ----------
        name : str
            The experiment.
        """
        return self._ask("POST", _path(name, "/promote"))


def _path(name: str, what: str = "") -> str:
    return f"/v1/experiments/{quote(name, safe='')}{what}"


def encode_arm(text: str) -> dict[str, Any]:
    """A ranker, or a kept version of one, as requests have it.

    >>> encode_arm("shop"), encode_arm("shop:7")
    ({'ranker': 'shop'}, {'ranker': 'shop', 'version': 7})
    """
    ranker, colon, version = text.partition(":")
    if colon and not (version.isascii() and version.isdecimal()):
        raise DataError(f"an arm is a ranker, 'shop', or one of its kept versions, 'shop:7', not {text!r}")
    return {"ranker": ranker, "version": int(version)} if colon else {"ranker": ranker}
