"""Feedback models: functions (round, ranking) -> Feedback that decide what the learner receives.

`full` and `top(k)` reveal labels; the click models of `ranktron.learners.clicks.click_models` simulate clicks.
"""

from functools import lru_cache, partial

import numpy as np

from ranktron.learners.clicks import click_models
from ranktron.learners.clicks.click_model import ClickModel
from ranktron.learners.clicks.click_models import *  # noqa: F403
from ranktron.types import Feedback, FeedbackModel, Integers, Ranking, Round
from ranktron.types.validation import check_count

__all__ = ["ClickModel", "full", "top", *click_models.__all__]


def full(round: Round, ranking: Ranking) -> Feedback:
    """Reveals the labels of all documents of the query.

    Parameters
    ----------
    round : Round
        The query with its labels.
    ranking : Ranking
        What was shown; it makes no difference.

    Examples
    --------
    >>> list_ = Round(np.ones((2, 1), np.float32), np.array([0.0, 1.0]), "q1")
    >>> full(list_, Ranking(np.array([1, 0]), np.zeros(2), 0))
    Feedback(items=array([0, 1]), labels=array([0., 1.]))
    """
    return Feedback._make((everyone(round.labels.shape[0]), round.labels))


@lru_cache(maxsize=256)
def everyone(m: int) -> Integers:
    """The indices of all m documents, read-only, so that one array serves all queries of that length."""
    items = np.arange(m)
    items.setflags(write=False)
    return items


def top(k: int) -> FeedbackModel:
    """Reveals the labels of the first k documents shown; the other documents are not in the feedback.

    Parameters
    ----------
    k : int
        How many labels to reveal.

    Examples
    --------
    >>> list_ = Round(np.ones((3, 1), np.float32), np.array([0.0, 1.0, 2.0]), "q1")
    >>> top(2)(list_, Ranking(np.array([2, 0, 1]), np.zeros(3), 0))
    Feedback(items=array([2, 0]), labels=array([2., 0.]))
    """
    return partial(_first, check_count(k, "k", 1))


def _first(k: int, round: Round, ranking: Ranking) -> Feedback:
    items = ranking.order[:k]
    return Feedback._make((items, round.labels[items]))
