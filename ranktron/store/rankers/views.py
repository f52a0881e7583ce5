"""Read-only views of a ranker: its description, its dashboard, the explanation of a round."""

from __future__ import annotations

from dataclasses import replace
from time import monotonic

import numpy as np

from ranktron.store.messages import (
    DashboardAnswer,
    ExplainAnswer,
    Explained,
    FeatureDistances,
    Health,
    RankerAnswer,
    Recent,
    Shown,
    Updates,
    Weight,
)
from ranktron.store.rankers import open_rounds
from ranktron.store.rankers.feature_window import NEEDED
from ranktron.store.rankers.live_ranker import LiveRanker


def ranker(live: LiveRanker) -> RankerAnswer:
    from ranktron.export import exportable_to

    model = replace(live.template, state=live.template.blank_learner().state())  # untrained: the weights do not matter
    return RankerAnswer(
        live.name,
        live.template.kind,
        dict(live.template.parameters),
        list(live.names),
        live.definition.labels,
        live.k,
        live.learns,
        live.version,
        live.rounds.next,
        len(live.rounds.open),
        None if live.map is None else live.map.name,
        list(exportable_to(model)),
        live.definition.close_after,
        None if live.template.scaler is None else live.template.scaler.name,
    )


def dashboard(live: LiveRanker, health: Health) -> DashboardAnswer:
    stats, rounds = live.stats, live.rounds
    return DashboardAnswer(
        live.name,
        live.template.kind,
        live.version,
        live.rounds.next,
        len(live.rounds.open),
        live.k,
        monotonic() - stats.started,
        stats.received(),
        stats.explored / stats.ranked if stats.ranked else 0.0,
        stats.curve(),
        _weights(live),
        Updates(*stats.steps(), live.drift[0]),
        [
            _recent(live, number)
            for number in reversed(live.rounds.recent)
            if number in rounds.open or number in rounds.past
        ],
        health,
        None if live.map is None else live.map.name,
        distances(live),
    )


def distances(live: LiveRanker) -> FeatureDistances:
    """How far the features of recent lists are from the training data."""
    window = live.features
    return FeatureDistances(window.reference, window.lists, NEEDED, window.distances())


def explain(live: LiveRanker, number: int) -> ExplainAnswer:
    """Explains the order of a round: contributions w_j x_j, and the lead of each document over the next."""
    public, number = number, live.rounds.ids.number_of(number)
    body = live.rounds.open.get(number) or live.rounds.past.get(number)
    if body is None:
        raise live.rounds.gone(number, public)
    shown = open_rounds.unpack(body)
    scores, parts = shown.shown_scores(), shown.contributions()
    answered = live.rounds.answered.get(number)
    documents = []
    for place, document in enumerate(shown.ids):
        last = place + 1 == len(shown.ids)
        documents.append(
            Explained(
                document,
                place + 1,
                float(scores[place]),
                None if parts is None else _name_values(live, parts[place]),
                None if last else float(scores[place] - scores[place + 1]),
                None if last or parts is None else _name_values(live, parts[place] - parts[place + 1]),
            )
        )
    labels = {} if answered is None else answered.labels
    return ExplainAnswer(public, shown.query, shown.version, shown.explored, answered is not None, labels, documents)


def _name_values(live: LiveRanker, values: np.ndarray) -> dict[str, float]:
    return dict(zip(live.filled_names, values.tolist(), strict=True))


def _weights(live: LiveRanker) -> list[Weight]:
    weights, (_, earlier) = live.weights, live.drift
    if weights is None:
        return []
    if live.curves is not None:
        weights, earlier = live.curves.spans(weights), live.curves.spans(earlier)
    drift = weights - earlier
    return [Weight(*row) for row in zip(live.filled_names, weights.tolist(), drift.tolist(), strict=True)]


def _recent(live: LiveRanker, number: int) -> Recent:
    shown = open_rounds.unpack(live.rounds.open.get(number) or live.rounds.past[number])
    answered = live.rounds.answered.get(number)
    return Recent(
        live.rounds.ids.public(number),
        shown.query,
        shown.explored,
        answered is not None,
        None if answered is None else max(answered.at - shown.at, 0.0),
        {} if answered is None else answered.labels,
        [Shown(*row) for row in zip(shown.ids, shown.shown_scores().tolist(), strict=True)],
    )
