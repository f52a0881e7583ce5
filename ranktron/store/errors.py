"""Errors of requests: a status, a code for programs, a sentence for people."""

from __future__ import annotations

from ranktron.errors import RanktronError

_LONGEST = 2_000  # characters of a message, which may quote the request


def encodable(message: str) -> str:
    """A message that can be encoded: lone surrogates are escaped, and long messages truncated.

    >>> encodable("no kind " + chr(0xD800))
    'no kind \\\\ud800'
    """
    if len(message) > _LONGEST:
        message = f"{message[:_LONGEST]} ..."
    return message.encode("utf-8", "backslashreplace").decode()


class RequestError(RanktronError):
    """A refused request, which changed nothing."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(encodable(message))
        self.status, self.code = status, code


def unknown_ranker(name: str) -> RequestError:
    how = f"PUT /v1/rankers/{name} makes one, from a definition or from a model file"
    return RequestError(404, "unknown_ranker", f"there is no ranker {name!r}: {how}")


def unknown_version(version: int) -> RequestError:
    return RequestError(404, "unknown_version", f"version {version} is not kept: see GET .../versions")


def round_gone(number: int, answered: bool = False, known: bool = True) -> RequestError:
    """The error for a round that is no longer open, which says whether it was answered, if known."""
    if answered:
        why = "it was answered before, and learnt from then; this request changed nothing"
    elif known:
        why = "it was dropped, being old, or lost in a crash, or came without its `carry`; nothing was learnt from it"
    else:
        why = "it was answered or dropped too long ago for that to be known; this request changed nothing"
    return RequestError(410, "round_gone", f"round {number} is no longer open: {why}")


def foreign(number: int) -> RequestError:
    return RequestError(
        410,
        "round_gone",
        f"round {number} was not shown here: the state has been copied or restored since; nothing was learnt from it",
    )


def of_deleted_ranker(number: int) -> RequestError:
    why = "it is of another one of this name, deleted with all that it had learnt; this request changed nothing"
    return RequestError(410, "round_gone", f"round {number} is no longer open: {why}")


def not_leader(why: str) -> RequestError:
    return RequestError(503, "not_leader", f"this server has stepped down: {why}")


def not_written(why: str) -> RequestError:
    return RequestError(503, "not_written", f"nothing can be written to disk ({why}); nothing was learnt, try again")
