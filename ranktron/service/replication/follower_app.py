"""The ASGI application of a follower: it ranks, and forwards every other request to the leader.

Clients may send any request to any server. Answers to `rank` carry the header `ranktron-lag`: seconds since this
follower last had everything that the leader had.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable
from typing import Any

from msgspec import structs

from ranktron.service.auth import Authenticator, Tokens
from ranktron.service.http.endpoint import (
    Action,
    Content,
    Endpoint,
    Receive,
    Scope,
    Send,
    read_body,
    read_in_turns,
    send_answer,
    send_refusal,
)
from ranktron.service.replication.follower import Follower, LeaderAnswer
from ranktron.service.telemetry import Telemetry
from ranktron.store.errors import RequestError
from ranktron.store.messages import HealthAnswer, RankAnswer, RankRequest
from ranktron.store.rankers.features import MAX_CHUNK

_RANK = re.compile(r"/v1/rankers/([^/]+)/rank")
_FEEDBACK = re.compile(r"/v1/rankers/([^/]+)/feedback")
_VERSION = re.compile(rb'"version":(\d+)')
_STALE = 10.0  # seconds of lag above which `/readyz` reports 503
_NOT_FORWARDED = {
    b"host",
    b"connection",
    b"content-length",
    b"transfer-encoding",
    b"expect",
    b"origin",
    b"sec-fetch-site",
}


class FollowerApplication:
    """An ASGI application over a follower.

    Parameters
    ----------
    follower : Follower
        The rankers.
    tokens : Tokens
        Tokens with the scope `rank`; the leader authorizes forwarded requests.
    telemetry : Telemetry
        Counts requests.
    """

    def __init__(self, follower: Follower, tokens: Tokens, telemetry: Telemetry) -> None:
        self._follower, self._authenticator = follower, Authenticator(follower.config, tokens)

        def rank(request: RankRequest, name: str) -> Awaitable[RankAnswer]:
            return self._rank(name, request)

        actions = [Action("POST", "/v1/rankers/{name}/rank", "Rank a list", "rank", RankRequest, RankAnswer, rank)]
        self._endpoint = Endpoint(actions, self._authenticator, telemetry)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match = _RANK.fullmatch(scope["path"])
        if match and scope["method"] == "POST" and match[1] in self._follower.rankers:
            await self._endpoint({**scope, "path_params": {"name": match[1]}}, receive, self._with_lag(send))
            return
        try:
            if scope["path"] in ("/healthz", "/readyz"):
                await send_answer(send, 200, self._health(scope["path"]), [])
            else:
                await self._forward(scope, receive, send)
        except RequestError as refused:
            await send_refusal(send, refused, self._authenticator.headers(dict(scope["headers"])))

    async def _rank(self, name: str, request: RankRequest) -> RankAnswer:
        replica = self._follower.rankers.get(name)
        if replica is None:
            raise RequestError(503, "busy", "the ranker is being replaced: try again in a moment")
        names, missing = replica.live.names, replica.live.template.imputer is not None
        if len(request.documents) * len(names) > 2 * MAX_CHUNK:  # large: read in slices, so that other requests proceed
            request = structs.replace(request, documents=await read_in_turns(request.documents, names, missing))
            if replica.live.names != names:
                raise RequestError(503, "busy", "the model is being replaced: try again in a moment")
        return await replica.rank(request)

    def _with_lag(self, send: Send) -> Send:
        async def send_with_lag(message: Any) -> None:
            if message["type"] == "http.response.start":
                lag = f"{self._follower.lag:.3f}".encode()
                message = {**message, "headers": [*message["headers"], (b"ranktron-lag", lag)]}
            await send(message)

        return send_with_lag

    def _health(self, path: str) -> HealthAnswer:
        if path == "/readyz" and (not self._follower.synchronised.is_set() or self._follower.lag > _STALE):
            raise RequestError(503, "not_ready", f"the leader at {self._follower.leader.url} does not respond")
        return HealthAnswer(True)

    def _note_acknowledged(self, path: str, answer: LeaderAnswer) -> None:
        """Notes the version in an answer to feedback: a promotion reports the acknowledged versions it lacks."""
        match = _FEEDBACK.fullmatch(path) if answer.status == 200 else None
        if match and match[1] in self._follower.rankers and (version := _VERSION.search(answer.body)):
            self._follower.note_acknowledged(match[1], int(version[1]))

    async def _forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = self._authenticator.authorize(scope, None)  # checks host and origin, which the leader cannot see
        if b"content-length" in headers:
            self._authenticator.check_length(headers)
        body = await read_body(receive, self._follower.config.max_body)
        query = b"?" + scope["query_string"] if scope["query_string"] else b""
        path = scope.get("raw_path") or scope["path"].encode()
        forwarded = [(name, value) for name, value in scope["headers"] if name not in _NOT_FORWARDED]
        seconds = self._follower.config.answer_seconds + 5.0
        answer = await self._follower.leader.send(scope["method"], path + query, forwarded, body, seconds)
        self._note_acknowledged(scope["path"], answer)
        content_type = dict(answer.headers).get(b"content-type", b"application/json").decode("latin-1")
        returned = [(name, value) for name, value in answer.headers if name in (b"www-authenticate", b"cache-control")]
        content = Content(answer.body, content_type, tuple(returned))
        await send_answer(send, answer.status, content, self._authenticator.headers(headers))
