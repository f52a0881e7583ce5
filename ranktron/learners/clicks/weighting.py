"""Clicks as weighted preferences: inverse propensities, and a list for each click.

    Σ_clicks g_i / θ(k_i)  Σ_{j ≠ i on the page} ℓ(s_i − s_j),    E = Σ_pages Σ_{i ≠ j} r_i ℓ(s_i − s_j)

A clicked document i at position k_i is preferred to every other document of its page, clicked or not. Over the clicks
of position-based users that is the loss of true relevance r on the same pages: each pair of documents counts as often
as both were shown, whatever ranker chose the pages. It is not the loss over all candidates of a query. As each click is
a list of its own, in which one document is relevant, any learner that weighs lists learns from clicks.
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

OTHERS = 20  # documents of other impressions that a click on a single document is compared with


class ClickWeights(NamedTuple):
    """What each row weighs, how many clicks had their propensity clipped, and which share of all weight that took."""

    weights: Floats
    clipped: int
    lost: float


def propensities(log: Impressions, examination: Examination) -> Floats:
    """How likely each row's document was to be seen: θ at the position at which it was shown.

    A mean of θ over impressions has smaller weights, and is exact only if every impression that it is taken over shows
    both documents of a pair. Over all impressions of the query, 0 where the document was not shown (Oosterhuis and de
    Rijke, 2021), it is exact for a comparison with all candidates of the query, and on truncated pages it prefers what
    is rarely shown.

    Parameters
    ----------
    log : Impressions
        What was shown.
    examination : Examination
        How likely each position is to be seen, without offsets.

    Examples
    --------
    >>> log = Impressions.from_arrays([0, 1], ["a", "b"], [1, 2])
    >>> propensities(log, Examination([1.0, 0.5]))
    array([1. , 0.5])

    References
    ----------
    Joachims, Swaminathan and Schnabel, *Unbiased learning-to-rank with biased feedback*, WSDM 2017.
    """
    if examination.offsets is not None and examination.offsets.any():
        raise DataError(
            "an examination with offsets (trust bias) makes labels of clicks, (c - offset) / value, for losses that "
            "are linear in the label; weights of clicks cannot undo it"
        )
    return examination.at_rows(log)


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

    Learners take the mean over the m − 1 pairs of such a list. So that every pair counts the same, the weight of a
    shorter list is smaller, in proportion to m − 1. Lists of a single document teach nothing and are left out.

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
        raise DataError(
            "no click stands beside another document: there is nothing that it was preferred to; single documents are "
            "compared across impressions if exploration= says how likely each was to be shown"
        )
    lists = rounds[of[clicked]]
    labels = np.zeros(len(lists.labels))
    labels[lists.offsets[:-1] + clicked - rounds.offsets[of[clicked]]] = 1.0
    pairs = (sizes[of[clicked]] - 1.0) / (sizes.max() - 1.0)
    return replace(lists, labels=labels, qids=np.arange(len(clicked))), weights[clicked] * pairs


def lists_across_impressions(log: Impressions, rounds: Rounds, weights: Floats, seed: int = 0) -> tuple[Rounds, Floats]:
    """A list for each click of a log whose impressions show single documents; and the weights of the lists.

        Σ_clicks g_i / (θ e_i)  Σ_b 1 / e_b  ℓ(s_i − s_b)  ∝ on average  Σ_q n_q Σ_{i, j} r_i ℓ(s_i − s_j)

    A clicked document is compared with documents b that other impressions of its query showed; e is how likely each was
    to be shown. That is the loss of true relevance over all candidates of a query that the logging ranker may show. The
    sum over b is a mean over OTHERS rows, drawn with probabilities in proportion to 1 / e_b. Without `query` all
    impressions are of one.

    Parameters
    ----------
    log : Impressions
        Impressions of one document each, with `exploration`.
    rounds : Rounds
        The features, row by row as in the log.
    weights : array
        What each row weighs: its gain over θ e.
    seed : int
        Of the draw.

    Examples
    --------
    >>> log = Impressions.from_arrays([1, 0], ["a", "b"], [1, 1], exploration=[0.5, 0.5])
    >>> rounds = Rounds.from_arrays([[1.0], [3.0]], [1, 0], [0, 1])
    >>> lists, weights = lists_across_impressions(log, rounds, log.gains / 0.5)
    >>> len(lists[0].X), weights
    (21, array([1.]))
    """
    if log.exploration is None:
        raise DataError("to compare documents across impressions takes exploration= (how likely each was shown)")
    rng = np.random.default_rng(seed)
    queries = np.zeros(len(log), np.int64) if log.query is None else encode_ids(log.query)
    shown = np.bincount(queries)
    clicked = np.flatnonzero((weights > 0.0) & (shown[queries] > 1))
    if not len(clicked):
        raise DataError("no click is of a query with another impression: there is nothing that it was preferred to")
    order = np.argsort(queries, kind="stable")
    inverse = 1.0 / log.exploration[order]
    ends = np.cumsum(inverse)
    last = ends[np.cumsum(shown) - 1]  # of each query
    first = np.concatenate(([0.0], last[:-1]))
    q = queries[clicked]
    points = first[q, None] + (last - first)[q, None] * rng.random((len(clicked), OTHERS))
    others = order[np.minimum(np.searchsorted(ends, points, side="right"), np.cumsum(shown)[q, None] - 1)]
    lists = rounds[np.column_stack([clicked, others]).ravel()]
    labels = np.zeros((len(clicked), 1 + OTHERS))
    labels[:, 0] = 1.0
    offsets = np.arange(len(clicked) + 1) * (1 + OTHERS)
    candidates = (last - first) / shown  # the mean of 1 / e: how many documents may be shown for a query
    scale = candidates[q] / candidates.max() ** 2  # of pairs of a query, and of 1 / e
    return replace(lists, labels=labels.ravel(), offsets=offsets, qids=np.arange(len(clicked))), weights[
        clicked
    ] * scale
