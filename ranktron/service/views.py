"""What a desk shows to those who look at it: the ranker, its dashboard, the explanation of a round."""

from __future__ import annotations

from time import monotonic

import numpy as np

from ranktron.service import stored_round
from ranktron.service.errors import Refused, gone
from ranktron.service.live_ranker import Desk
from ranktron.service.types import (
    DashboardAnswer,
    ExplainAnswer,
    Explained,
    Health,
    RankerAnswer,
    Recent,
    Shown,
    Updates,
    Weight,
)


def ranker(desk: Desk) -> RankerAnswer:
    return RankerAnswer(
        desk.name,
        desk.template.kind,
        dict(desk.template.parameters),
        list(desk.names),
        desk.definition.labels,
        desk.k,
        desk.learns,
        desk.version,
        desk.next,
        len(desk.open),
        None if desk.map is None else desk.map.name,
    )


def dashboard(desk: Desk, health: Health) -> DashboardAnswer:
    tally = desk.tally
    return DashboardAnswer(
        desk.name,
        desk.template.kind,
        desk.version,
        desk.next,
        len(desk.open),
        desk.k,
        monotonic() - tally.started,
        tally.heard(),
        tally.explored / tally.ranked if tally.ranked else 0.0,
        tally.curve(),
        _weights(desk),
        Updates(*tally.steps(), desk.drift[0]),
        [_recent(desk, number) for number in reversed(desk.recent) if number in desk.open or number in desk.past],
        health,
        None if desk.map is None else desk.map.name,
    )


def explain(desk: Desk, number: int) -> ExplainAnswer:
    """Why a round was ordered as it was: contributions w_j x_j, and what puts each document above the next."""
    kept = desk.open.get(number) or desk.past.get(number)
    if kept is None:
        if number >= desk.next:
            raise Refused(404, "unknown_round", f"there has been no round {number}")
        raise gone(number)
    shown = stored_round.unpack(kept)
    scores, parts = shown.shown_scores(), shown.contributions()
    answered = desk.answered.get(number)
    documents = []
    for place, document in enumerate(shown.ids):
        last = place + 1 == len(shown.ids)
        documents.append(
            Explained(
                document,
                place + 1,
                float(scores[place]),
                None if parts is None else _named(desk, parts[place]),
                None if last else float(scores[place] - scores[place + 1]),
                None if last or parts is None else _named(desk, parts[place] - parts[place + 1]),
            )
        )
    labels = {} if answered is None else answered.labels
    return ExplainAnswer(number, shown.query, shown.version, shown.explored, answered is not None, labels, documents)


def _named(desk: Desk, values: np.ndarray) -> dict[str, float]:
    return dict(zip(desk.names, values.tolist(), strict=True))


def _weights(desk: Desk) -> list[Weight]:
    now, (_, then) = desk.weights, desk.drift
    if now is None:
        return []
    if desk.curves is not None:
        now, then = desk.curves.spans(now), desk.curves.spans(then)
    return [Weight(*each) for each in zip(desk.names, now.tolist(), (now - then).tolist(), strict=True)]


def _recent(desk: Desk, number: int) -> Recent:
    shown = stored_round.unpack(desk.open.get(number) or desk.past[number])
    answered = desk.answered.get(number)
    return Recent(
        number,
        shown.query,
        shown.explored,
        answered is not None,
        None if answered is None else max(answered.at - shown.at, 0.0),
        {} if answered is None else answered.labels,
        [Shown(*each) for each in zip(shown.ids, shown.shown_scores().tolist(), strict=True)],
    )
