"""Rounds of experiments, as stored in memory and on disk, and their outcomes."""

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
    """A page shown to a user: its top documents, and the arm that ranked it.

    An interleaved page has `arm` -1 and, in `credits`, the credit of each arm for a click on each document. `round` is
    the public round id of the arm's ranker, if it may learn from the page. In apprentice mode `agrees` says whether the
    ranker agrees with the first document, and with the whole page.
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
        """The metric of the page, or the credit of each arm; in apprentice mode followed by `agrees`."""
        page_gains = np.array([gains.get(document, 0.0) for document in self.ids])
        if self.arm < 0:
            credit: list[float] = (np.array(self.credits) @ (page_gains > 0.0)).tolist()
            return credit
        try:
            value = round(float(metric(measure)(page_gains)), 4) if page_gains.any() else 0.0
        except DataError as error:
            raise RequestError(422, "label_out_of_range", str(error)) from None
        return [value, *map(float, self.agrees or ())]


class CountedOutcome(Struct, array_like=True, frozen=True):
    """The body of an entry "outcome": user, period and arm of a page, and its values."""

    user: int
    period: int
    arm: int
    values: list[float]


read_page = msgspec.msgpack.Decoder(ShownPage).decode
read_outcome = msgspec.msgpack.Decoder(CountedOutcome).decode
read_state = msgspec.msgpack.Decoder(dict[str, Any]).decode


def feedback_gains(request: FeedbackRequest, page: ShownPage, public: int) -> dict[str, float]:
    """The gain of each named document; feedback on documents that are not on the page is refused."""
    if request.clicks is not None:
        gains = dict.fromkeys(request.clicks, 1.0)
    else:
        gains = dict(request.labels if request.gains is None else request.gains)  # type: ignore[arg-type]
    for document in gains:
        if document not in page.ids:
            top = f"the first {len(page.ids)} shown in round {public}"
            raise RequestError(422, "not_shown", f"document {document!r} is not among {top}")
    return gains


def part_for_arm(request: FeedbackRequest, page: ShownPage, k: int, takes_clicks: bool) -> FeedbackRequest | None:
    """The feedback for the arm's ranker, on the top k documents of its page; None if it cannot learn from it."""
    assert page.round is not None
    top = set(page.ids[:k])
    if request.labels is not None:
        labels = {document: label for document, label in request.labels.items() if document in top}
        return FeedbackRequest(page.round, labels) if labels else None
    if not takes_clicks:
        return None
    if request.clicks is not None:
        return FeedbackRequest(page.round, clicks=[document for document in request.clicks if document in top])
    gains = request.gains or {}
    return FeedbackRequest(page.round, gains={document: gain for document, gain in gains.items() if document in top})
