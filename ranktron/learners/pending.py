"""Pending rounds: all that must be kept of a round until its feedback comes, however long its list was."""

from typing import NamedTuple, Protocol, TypeGuard

import numpy as np

from ranktron.kernels.csr import Columns
from ranktron.types import Features, Feedback, Floats, Learner, Ranking

_NOTHING = np.zeros(0)

EVERY: Columns = np.zeros(0, np.int32)
"""The columns of a drift that is written out."""


class PendingRound(NamedTuple):
    """What learning from the labels of the first shown documents needs, and no more.

    `rows` are the features of these documents in the order shown, `shown` their scores (or what a surrogate takes from
    them), `drift` the part of the direction that no label changes and `constant` that of the loss; `size` is the length
    of the list. Labels are given by place: 0 is the document shown first. Of sparse rows `drift` is kept where it is
    not 0: in `columns`.
    """

    rows: Features
    shown: Floats
    number: int
    size: int
    drift: Floats = _NOTHING
    constant: float = 0.0
    propensities: Floats | None = None
    columns: Columns = EVERY


class KeepsPendingRounds(Protocol):
    """A learner that says itself what it needs of a round."""

    def pending(self, X: Features, ranking: Ranking, /) -> PendingRound: ...

    def learn_pending(self, pending: PendingRound, places: Feedback, /) -> float: ...


def keeps_pending_rounds(learner: object) -> TypeGuard[KeepsPendingRounds]:
    """Whether a learner says itself what it needs; `isinstance` with a protocol would take longer than the learning."""
    return hasattr(learner, "learn_pending")


def pending_round(learner: Learner, X: Features, ranking: Ranking, k: int) -> PendingRound:
    """All that is kept of a round until labels of at most the first k shown documents come.

    >>> from ranktron.learners import hinge_perceptron
    >>> learner, X = hinge_perceptron(1), np.array([[1.0], [3.0], [2.0]], np.float32)
    >>> pending = pending_round(learner, X, learner.rank(X, 0), 2)
    >>> pending.rows.ravel()
    array([1., 3.], dtype=float32)
    >>> learn_pending(learner, pending, Feedback(np.array([0, 1]), np.array([0.0, 1.0])))
    1.0
    """
    if keeps_pending_rounds(learner):
        return learner.pending(X, ranking)
    first = ranking.order[:k]
    return PendingRound(X[first], ranking.scores[first], ranking.number, len(X))


def learn_pending(learner: Learner, pending: PendingRound, places: Feedback) -> float:
    """Learns from a pending round exactly what `learn` would learn from the whole list; `places.items` are places."""
    if keeps_pending_rounds(learner):
        return learner.learn_pending(pending, places)
    return learner.learn(pending.rows, Ranking(np.arange(len(pending.rows)), pending.shown, pending.number), places)
