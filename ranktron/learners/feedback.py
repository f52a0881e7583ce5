"""Who answers: functions (round, ranking) -> Feedback that decide which labels the learner receives.

`full` and `top(k)` reveal labels; the click models of `ranktron.learners.click_models` click instead.
"""

from functools import lru_cache, partial

import numpy as np

from ranktron.learners.click_models import (
    ClickModel,
    cascade,
    click_model,
    dependent_click,
    dynamic_bayesian,
    position_based,
)
from ranktron.types import Feedback, FeedbackModel, Integers, Ranking, Round
from ranktron.types.validation import check_count

__all__ = [
    "ClickModel",
    "cascade",
    "click_model",
    "dependent_click",
    "dynamic_bayesian",
    "full",
    "position_based",
    "top",
]


def full(round: Round, ranking: Ranking) -> Feedback:
    """Reveals every label of the list.

    >>> list_ = Round(np.ones((2, 1), np.float32), np.array([0.0, 1.0]), "q1")
    >>> full(list_, Ranking(np.array([1, 0]), np.zeros(2), 0))
    Feedback(items=array([0, 1]), labels=array([0., 1.]))
    """
    return Feedback._make((_everyone(round.labels.shape[0]), round.labels))


@lru_cache(maxsize=256)
def _everyone(m: int) -> Integers:
    """The numbers of all documents of a list, made once for each length and not to be written to."""
    items = np.arange(m)
    items.setflags(write=False)
    return items


def top(k: int) -> FeedbackModel:
    """Reveals the labels of the first k shown documents; those of the others are not in the feedback at all.

    >>> list_ = Round(np.ones((3, 1), np.float32), np.array([0.0, 1.0, 2.0]), "q1")
    >>> top(2)(list_, Ranking(np.array([2, 0, 1]), np.zeros(3), 0))
    Feedback(items=array([2, 0]), labels=array([2., 0.]))
    """
    return partial(_first, check_count(k, "k", 1))


def _first(k: int, round: Round, ranking: Ranking) -> Feedback:
    items = ranking.order[:k]
    return Feedback._make((items, round.labels[items]))
