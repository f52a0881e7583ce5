"""Errors of requests: an HTTP status, an error code and a message."""

from __future__ import annotations

from ranktron.errors import RanktronError

_MAX_MESSAGE = 2_000  # characters: messages may quote the request


def encodable(message: str) -> str:
    """A message that can be encoded: lone surrogates are escaped, and long messages truncated.

    >>> encodable("no kind " + chr(0xD800))
    'no kind \\\\ud800'
    """
    if len(message) > _MAX_MESSAGE:
        message = f"{message[:_MAX_MESSAGE]} ..."
    return message.encode("utf-8", "backslashreplace").decode()


class RequestError(RanktronError):
    """A refused request; it has changed nothing.

    Parameters
    ----------
    status : int
        The status that the service answers with, as 404 or 422.
    code : str
        The reason in a word, as "unknown_ranker".
    message : str
        The reason in a sentence.

    Examples
    --------
    >>> import ranktron
    >>> with ranktron.open(":memory:") as store:
    ...     store.ranker("shop")
    Traceback (most recent call last):
    ...
    ranktron.store.errors.RequestError: there is no ranker 'shop': `features` makes one
    """

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(encodable(message))
        self.status, self.code = status, code


def unknown_ranker(name: str) -> RequestError:
    advice = f"PUT /v1/rankers/{name} makes one, from a definition or from a model file"
    return RequestError(404, "unknown_ranker", f"there is no ranker {name!r}: {advice}")


def unknown_version(version: int) -> RequestError:
    return RequestError(404, "unknown_version", f"version {version} is not kept: see GET .../versions")


def unknown_round(number: int) -> RequestError:
    advice = "send the `round` that came with the ranking"
    return RequestError(404, "unknown_round", f"round {number} does not exist: {advice}")


def round_gone(number: int, answered: bool = False, known: bool = True) -> RequestError:
    """The error for a round that is no longer open; says whether it was answered, if known."""
    if answered:
        why = "it was answered before, and learnt from then; this request changed nothing"
    elif known:
        why = "it has expired, was lost in a crash, or needs its `carry`; nothing was learnt from it"
    else:
        why = "it is too old to tell whether it was answered or has expired; this request changed nothing"
    return RequestError(410, "round_gone", f"round {number} is no longer open: {why}")


def foreign_round(number: int) -> RequestError:
    """The error for a round of another epoch."""
    return RequestError(
        410,
        "round_gone",
        f"round {number} was not shown here: the state has been copied or restored since; nothing was learnt from it",
    )


def deleted_rankers_round(number: int) -> RequestError:
    """The error for a round of an earlier ranker of the same name."""
    why = "it belongs to a deleted ranker of the same name; this request changed nothing"
    return RequestError(410, "round_gone", f"round {number} is no longer open: {why}")


def not_leader(why: str) -> RequestError:
    return RequestError(503, "not_leader", f"this server has stepped down: {why}")


def not_written(why: str) -> RequestError:
    return RequestError(503, "not_written", f"the journal cannot be written ({why}); nothing was learnt, try again")
