"""Clicks as weighted preferences: inverse propensities, and a list for each click.

A clicked document i, seen with the probability p_i, is preferred to every other document of its list with the weight
g_i / p_i, g_i being its gain. On average over users that is what every relevant document would weigh, wherever it
stood. As each click is a list of its own, in which one document is relevant, any learner that weighs lists learns
from clicks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ranktron.data.impressions import Impressions, encode_ids
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.learners.clicks.examination import Examination
from ranktron.types import Floats


class ClickWeights(NamedTuple):
    """What each row weighs, how many clicks had their propensity clipped, and which share of all weight that took."""

    weights: Floats
    clipped: int
    lost: float


def propensities(log: Impressions, examination: Examination) -> Floats:
    """How likely each row's document was to be seen.

    Where the log knows documents again (`query` and `item`), that is the mean of θ over all impressions of the query, 0
    where the document was not shown: the intervention-aware estimator, for several rankers that logged one query.
    Otherwise it is θ at the row's position. Either weighs a relevant document by 1 on average; the mean has the smaller
    variance.

    Parameters
    ----------
    log : Impressions
        What was shown.
    examination : Examination
        How likely each position is to be seen, without offsets.

    Examples
    --------
    >>> log = Impressions.from_arrays([0, 1], ["a", "b"], [1, 2], query="q", item=[7, 7])
    >>> propensities(log, Examination([1.0, 0.5]))
    array([0.75, 0.75])

    References
    ----------
    Oosterhuis and de Rijke, *Unifying online and counterfactual learning to rank*, WSDM 2021.
    """
    if examination.offsets is not None and examination.offsets.any():
        raise DataError(
            "an examination with offsets (trust bias) makes labels of clicks, (c - offset) / value, for losses that "
            "are linear in the label; weights of clicks cannot undo it"
        )
    theta = examination.at_rows(log)
    if examination.after_click is not None or log.query is None or log.item is None:
        return theta
    documents, queries = log.documents(), encode_ids(log.query)
    impressions = np.bincount(queries[log.offsets[:-1]])
    return (np.bincount(documents, theta)[documents] / impressions[queries]).astype(float)


def click_weights(log: Impressions, propensity: Floats, clip: float = 0.0) -> ClickWeights:
    """What each row weighs: gain / max(propensity, clip).

    Clipping keeps the weights of rare sights small and is paid for with bias: a document whose propensity p is below
    `clip` weighs p / clip on average instead of 1. `lost` is the share of all weight that clipping took.

    Parameters
    ----------
    log : Impressions
        What was shown and clicked.
    propensity : array
        How likely each row was to be seen.
    clip : float
        The smallest propensity that counts, from 0 (none) to 1.

    Examples
    --------
    >>> log = Impressions.from_arrays([1, 1], ["a", "a"], [1, 2])
    >>> click_weights(log, np.array([1.0, 0.1]), clip=0.25)
    ClickWeights(weights=array([1., 4.]), clipped=1, lost=0.5454545454545454)
    """
    if not 0.0 <= clip <= 1.0:
        raise DataError(f"clip is the smallest propensity that counts, from 0 (none) to 1, not {clip}")
    whole = log.gains / propensity
    weights = log.gains / np.maximum(propensity, clip)
    total = float(whole.sum())
    if total == 0.0:
        raise DataError("there is no click in the log: nothing can be learnt from it")
    return ClickWeights(weights, int(np.count_nonzero(weights < whole)), 1.0 - float(weights.sum()) / total)


def click_lists(rounds: Rounds, weights: Floats) -> tuple[Rounds, Floats]:
    """A list for each row of weight above 0, in which it alone has the label 1; and the weights of the lists.

    Lists of a single document teach nothing and are left out.

    Parameters
    ----------
    rounds : Rounds
        The features, row by row as in the log.
    weights : array
        What each row weighs: see `click_weights`.

    Examples
    --------
    >>> lists, weights = click_lists(Rounds.from_arrays([[1.0], [3.0], [2.0]], [1, 0, 1]), np.array([1.0, 0.0, 4.0]))
    >>> [round.labels.tolist() for round in lists], weights
    ([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]], array([1., 4.]))
    """
    sizes = np.diff(rounds.offsets)
    of = np.repeat(np.arange(len(rounds)), sizes)
    clicked = np.flatnonzero((weights > 0.0) & (sizes[of] > 1))
    if not len(clicked):
        raise DataError("no click stands beside another document: there is nothing that it was preferred to")
    lists = rounds[of[clicked]]
    labels = np.zeros(len(lists.labels))
    labels[lists.offsets[:-1] + clicked - rounds.offsets[of[clicked]]] = 1.0
    return replace(lists, labels=labels, qids=np.arange(len(clicked))), weights[clicked]
