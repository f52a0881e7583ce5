"""A round of an experiment as it is kept in memory and on disk until its feedback comes, and the outcome of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from ranktron.errors import DataError
from ranktron.metrics import metric
from ranktron.store.errors import RequestError
from ranktron.store.messages import FeedbackRequest


class ShownPage(Struct, array_like=True, frozen=True):
    """What was shown to a user: the first documents, and whose page it was, or what clicks are worth to each arm.

    `arm` is -1 for a mixed page. `round` is what the arm's own ranker calls the page, if it may learn from it. `agrees`
    has, in apprentice mode, whether the first document and the page are those that the ranker would have shown.
    """

    number: int
    at: float
    user: int
    period: int
    arm: int
    ids: list[str]
    round: int | None = None
    credits: list[list[float]] = []
    agrees: tuple[bool, bool] | None = None

    def values(self, gains: Mapping[str, float], measure: str) -> list[float]:
        """What the page was worth: in the metric, or to each arm; in apprentice mode also whether they agreed."""
        found = np.array([gains.get(document, 0.0) for document in self.ids])
        if self.arm < 0:
            worth: list[float] = (np.array(self.credits) @ (found > 0.0)).tolist()
            return worth
        try:
            value = round(float(metric(measure)(found)), 4) if found.any() else 0.0
        except DataError as error:
            raise RequestError(422, "label_out_of_range", str(error)) from None
        return [value, *map(float, self.agrees or ())]


class CountedOutcome(Struct, array_like=True, frozen=True):
    """The body of an entry "outcome": which user's page it was, in which period, of which arm, and its worth."""

    user: int
    period: int
    arm: int
    values: list[float]


read_page = msgspec.msgpack.Decoder(ShownPage).decode
read_outcome = msgspec.msgpack.Decoder(CountedOutcome).decode
read_state = msgspec.msgpack.Decoder(dict[str, Any]).decode


def feedback_gains(request: FeedbackRequest, page: ShownPage, public: int) -> dict[str, float]:
    """What each document has gained; documents that do not count on this page are refused."""
    if request.clicks is not None:
        gains = dict.fromkeys(request.clicks, 1.0)
    else:
        gains = dict(request.labels if request.gains is None else request.gains)  # type: ignore[arg-type]
    for document in gains:
        if document not in page.ids:
            first = f"the first {len(page.ids)} shown in round {public}"
            raise RequestError(422, "not_shown", f"document {document!r} is not among {first}")
    return gains


def part_for_arm(request: FeedbackRequest, page: ShownPage, k: int, takes_clicks: bool) -> FeedbackRequest | None:
    """What the arm's own ranker is told: about the first k documents of its page; None if it cannot learn from it."""
    assert page.round is not None
    own = set(page.ids[:k])
    if request.labels is not None:
        labels = {document: label for document, label in request.labels.items() if document in own}
        return FeedbackRequest(page.round, labels) if labels else None
    if not takes_clicks:
        return None
    if request.clicks is not None:
        return FeedbackRequest(page.round, clicks=[document for document in request.clicks if document in own])
    gains = request.gains or {}
    return FeedbackRequest(page.round, gains={each: gain for each, gain in gains.items() if each in own})
