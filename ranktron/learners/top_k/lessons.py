"""Many pending rounds learnt in one compiled loop: for who has them all at once, as a replay has.

It calls the very kernels that `TopK.learn_pending` calls, in the same order, and gives the same weights to the bit.
"""

from __future__ import annotations

from typing import NamedTuple, TypeGuard

import numpy as np
import numpy.typing as npt

from ranktron.kernels.jit import jit
from ranktron.learners.base import BaseLearner
from ranktron.learners.top_k.descent import descend_dense
from ranktron.learners.top_k.estimator import inverse_propensities
from ranktron.learners.top_k.learner import TopK
from ranktron.surrogates.pairwise_hinge import PairwiseHinge, estimate_hinge
from ranktron.types import Floats, Integers


class Lessons(NamedTuple):
    """Pending rounds of the same sizes and their feedback; the first axis counts the rounds, in the order to learn.

    `sizes` are the numbers of documents, `rows` those of the first k documents shown; `places` rise within a round.
    """

    numbers: list[int]
    sizes: list[int]
    rows: npt.NDArray[np.float32]
    shown: Floats
    propensities: Floats
    places: Integers
    labels: Floats


def can_learn_many(learner: BaseLearner) -> TypeGuard[TopK]:
    """Whether a learner's pending rounds can be learnt in one go; its rows must be a matrix, too."""
    if type(learner) is not TopK or type(learner.surrogate) is not PairwiseHinge:
        return False
    return not learner.strict


@jit
def _learn_all(
    rows: npt.NDArray[np.float32], shown: Floats, propensities: Floats, places: Integers, labels: Floats, etas: Floats,
    share: float, floor: float, margin: float, radius: float, adaptive: bool, late: bool, rounds: int,
    w: Floats, total: Floats, squares: Floats, learnt: npt.NDArray[np.bool_],
) -> int:  # fmt: skip
    none, gradient, items = np.zeros(0), np.empty(shown.shape[1]), np.arange(shown.shape[1])
    for n in range(shown.shape[0]):
        weights = inverse_propensities(propensities[n], share, floor)
        estimate_hinge(shown[n], places[n], labels[n], weights, margin, gradient)
        weight = rounds + 1.0 if late else 1.0
        learnt[n] = descend_dense(
            rows[n], items, gradient, none, 0.0, etas[n], radius, adaptive, weight, w, total, squares
        )  # fmt: skip
        rounds += learnt[n]
    return rounds


def learn_many(learner: TopK, lessons: Lessons) -> npt.NDArray[np.bool_] | None:
    """Learns from many rounds, and says from which: not from those whose update would have overflowed.

    None, and nothing is learnt, where feedback is such that `learn_pending` has to look at it.
    """
    labels, places, k = lessons.labels, lessons.places, lessons.shown.shape[1]
    fits = (labels >= 0.0).all() and (labels <= learner.highest).all() and np.isfinite(labels).all()
    fits = fits and (places >= 0).all() and (places < k).all() and (np.diff(places) > 0).all()
    if not fits or k > learner.k or lessons.propensities.shape[1:] != (k, k) or lessons.rows.shape[1] != k:
        return None
    surrogate = learner.surrogate
    assert isinstance(surrogate, PairwiseHinge)
    learnt = np.empty(len(lessons.numbers), np.bool_)
    learner.rounds = _learn_all(
        lessons.rows, lessons.shown, lessons.propensities, places, labels,
        np.array([learner.step(number) for number in lessons.numbers], float),
        learner.answered**surrogate.coordinates, learner.floor, surrogate.margin, learner.radius, learner.adaptive,
        learner.late, learner.rounds, learner.w, learner.total, learner.squares, learnt,
    )  # fmt: skip
    if learner.floor > 0.0:
        for number, size, taken in zip(lessons.numbers, lessons.sizes, learnt, strict=True):
            learner.lost += learner.shortfall_of(size, number) if taken else 0.0
    return learnt
