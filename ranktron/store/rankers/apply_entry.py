"""Applies journal entries to a ranker, live or in a replay.

Only this module changes weights. The same entries in the same order give bit-identical weights. Nothing here blocks or
writes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from math import isfinite

import numpy as np

from ranktron.errors import DataError
from ranktron.store.journal.entries import (
    REPLACING,
    Answered,
    FeedbackItems,
    JournalEntry,
    Result,
    decode,
    decode_feedback,
    decode_gains,
    encode,
)
from ranktron.store.rankers import open_rounds
from ranktron.store.rankers.live_ranker import LiveRanker
from ranktron.store.rankers.open_rounds import ShownRound, StoredRound
from ranktron.store.rankers.stats import observed_quality
from ranktron.training.model import Model
from ranktron.types import Feedback

_logger = logging.getLogger("ranktron.service")


def apply(live: LiveRanker, entry: JournalEntry, version: int, model: Model | None = None) -> Result:
    """Applies an entry; weights that would overflow stay unchanged. `model` is the entry's model, if already parsed."""
    body: bytes | None = None
    feedback: FeedbackItems = []
    if entry.kind == "feedback":
        body, feedback = live.rounds.open[entry.round], decode_feedback(entry.body)
    elif entry.kind == "gains":
        gains = decode_gains(entry.body)
        body, feedback = gains.shown, gains.new
    shown = None if body is None else open_rounds.unpack(body)
    loss = _learn(live, entry, version, model) if shown is None else learn_shown(live, version, shown, feedback)
    live.version = version
    if entry.kind in REPLACING:
        live.closed = False
    result = Result(loss is not None, version, loss if loss is None or isfinite(loss) else None)
    if body is not None:
        live.rounds.open.pop(entry.round, None)
        live.rounds.unwritten.pop(entry.round, None)
        remember(live, entry, result, body)
    try:
        if entry.kind not in (*REPLACING, "nothing"):
            live.note_update()
        count(live, entry, shown, feedback)
    except Exception:  # statistics are for display: the update stands
        _logger.exception("version %d of ranker %s could not be counted", version, live.name)
    return result


def _learn(live: LiveRanker, entry: JournalEntry, version: int, model: Model | None) -> float | None:
    """The loss of an entry that answers no round; None if the learner refused it."""
    return _try_learn(live, version, lambda: _learn_entry(live, entry, model))


def learn_shown(live: LiveRanker, version: int, shown: StoredRound, feedback: FeedbackItems) -> float | None:
    """The loss of feedback on a round; None if the learner refused it."""
    places, labels, _ = zip(*feedback, strict=True)
    received = Feedback._make((np.array(places), np.array(labels, float)))  # validated when the request came
    learner = live.learner.of(shown.user)
    return _try_learn(live, version, lambda: learner.learn_pending(shown.pending(live.mapped), received))


def _try_learn(live: LiveRanker, version: int, learn: Callable[[], float]) -> float | None:
    try:
        return learn()
    except DataError:
        pass
    except Exception:  # deterministic: a replay fails in the same way
        _logger.exception("version %d of ranker %s could not be learnt", version, live.name)
    mark_unlearnt(live, version)
    return None


def mark_unlearnt(live: LiveRanker, version: int) -> None:
    """Records that the learner refused an entry."""
    live.refused = [*live.refused, version][-live.config.remembered :]


def _learn_entry(live: LiveRanker, entry: JournalEntry, model: Model | None) -> float:
    if entry.kind == "nothing":
        raise DataError("it replaces a damaged entry")
    if entry.kind in REPLACING:
        _replace_model(live, Model.from_bytes(entry.body) if model is None else model, entry.round)
        return 0.0
    rows, labels = decode(entry.body)
    grades = np.frombuffer(labels).copy()
    X = live.mapped(np.frombuffer(rows, np.float32).reshape(len(grades), -1).copy())
    return live.learner.learn(X, live.learner.rank(X, entry.round), Feedback(np.arange(len(grades)), grades))


def _replace_model(live: LiveRanker, model: Model, barrier: int) -> None:
    """Replaces the model; one of another kind cannot learn from earlier rounds, which are dropped."""
    before = live.template
    live.start_from(model)
    live.rounds.next = max(live.rounds.next, live.learner.rounds)
    if before.to_bytes() != live.template.to_bytes():
        live.rounds.barrier = barrier
        live.forget([number for number in live.rounds.open if number < barrier])


def count(live: LiveRanker, entry: JournalEntry, shown: StoredRound | ShownRound | None, items: FeedbackItems) -> None:
    """Updates the statistics for display; learning does not depend on them."""
    if shown is not None and entry.kind == "feedback":
        delay = max(entry.at - shown.at, 0.0)  # clocks may step back
        quality = observed_quality(tuple([label for _, label, _ in items]))
        live.stats.answered(entry.round, quality, shown.explored, delay)


def remember(live: LiveRanker, entry: JournalEntry, result: Result, body: bytes | None) -> None:
    """Remembers a round's answer and, if known, its body."""
    answered = Answered(entry.body, entry.at, result)
    if entry.kind == "gains":
        gains = decode_gains(entry.body)
        body = gains.shown
        answered = Answered(encode(gains.now), entry.at, result, gains.first)
    live.rounds.remember(entry.round, answered, body)
