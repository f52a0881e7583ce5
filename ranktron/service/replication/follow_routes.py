"""What servers that follow ask of a leader, over HTTP; bodies are messages of `journal_feed`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ranktron.service.http.endpoint import BYTES, Action, Content
from ranktron.service.replication.journal_feed import FollowRequest, RoundsRequest, decode_message, encode_message

if TYPE_CHECKING:
    from ranktron.service.service import RankingService


def follow_actions(service: RankingService) -> list[Action]:
    """What can be asked for by those who follow."""

    async def follow(request: bytes) -> Content:
        return Content(encode_message(await service.feed.follow(decode_message(request, FollowRequest))), BYTES)

    def keep(request: bytes) -> Content:
        return Content(encode_message(service.feed.keep(decode_message(request, RoundsRequest))), BYTES)

    learnt, shown = (
        "What was learnt since, for a server that follows",
        "Keep rounds that a server has shown that follows",
    )
    return [
        Action("POST", "/v1/follow", learnt, "admin", bytes, bytes, follow),
        Action("POST", "/v1/follow/rounds", shown, "admin", bytes, bytes, keep),
    ]
