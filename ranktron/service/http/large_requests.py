"""Large requests and batches: others have their turn while they are read and answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import structs

from ranktron.store.errors import RequestError
from ranktron.store.rankers.features import AT_ONCE, document_matrix
from ranktron.store.rankers.live_ranker import LiveRanker
from ranktron.store.types import BatchAnswer, Document, ErrorAnswer, ErrorBody, ResponseBody

if TYPE_CHECKING:
    from ranktron.service.service import RankingService

_ATTEMPTS = 3  # to read a list for a ranker that is replaced meanwhile

Answer = Callable[[str, Any], Any]


def answer_in_turns(service: RankingService, one: Answer, name: str, request: Any) -> Any:
    """What `one` gives for a request; the documents of a large one are read a few at a time."""
    return (
        _large(service, one, name, request) if _is_large(service, service.live(name), request) else one(name, request)
    )


def _is_large(service: RankingService, live: LiveRanker, request: Any) -> bool:
    count = len(getattr(request, "documents", ()))
    return count * len(live.names) > 2 * AT_ONCE and count <= service.config.max_documents


async def _large(service: RankingService, one: Answer, name: str, request: Any) -> Any:
    form = _form(service.live(name))
    for _ in range(_ATTEMPTS):
        documents = await read_in_turns(request.documents, *form)
        before, form = form, _form(service.live(name))
        if form == before:  # what was read is still what the ranker takes
            answer = one(name, structs.replace(request, documents=documents))
            return await answer if isinstance(answer, Awaitable) else answer
    raise RequestError(409, "replaced", f"ranker {name!r} changed its features again and again: send it again")


def _form(live: LiveRanker) -> tuple[tuple[str, ...], bool]:
    """How a ranker takes documents: the names of its features in order, and whether any may be missing."""
    return live.names, live.template.imputer is not None


async def read_in_turns(documents: Sequence[Document], names: Sequence[str], missing: bool = False) -> list[Document]:
    """The same documents with their features read, a few at a time: others have their turn in between."""
    step = max(1, AT_ONCE // len(names))
    read: list[Document] = []
    for start in range(0, len(documents), step):
        some = documents[start : start + step]
        read += [Document(each.id, row) for each, row in zip(some, document_matrix(some, names, missing), strict=True)]
        await asyncio.sleep(0)
    return read


async def answer_batch(service: RankingService, one: Answer, name: str, requests: Sequence[Any]) -> BatchAnswer:
    """The answers to many requests, each its own or why it was refused; those that wait are written together."""
    live, most = service.live(name), service.config.max_batch
    if len(requests) > most:
        raise RequestError(413, "too_many_requests_in_batch", f"a batch has at most {most} requests")

    async def attempt(request: Any) -> ResponseBody:
        try:
            answer = answer_in_turns(service, one, name, request)
            given: ResponseBody = await answer if isinstance(answer, Awaitable) else answer
            return given
        except RequestError as refused:
            return ErrorAnswer(ErrorBody(refused.code, str(refused)))

    answers: list[asyncio.Future[ResponseBody]] = []
    for request in requests:  # rounds are numbered in the order of the batch
        answers.append(asyncio.ensure_future(attempt(request)))
        await (asyncio.wait(answers[-1:]) if _is_large(service, live, request) else asyncio.sleep(0))
    return BatchAnswer(await asyncio.gather(*answers))
