"""Mistake bounds for kernel learners with a budget of documents, and the lists on which most rules have none.

The question is the one that closes *Perceptron-like Algorithms for Online Learning to Rank*. The proof of
`random_removal_bound` is in docs/theory.md.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ranktron.errors import DataError
from ranktron.types import Learner, Round
from reproduction.theory.tight_streams import orthogonal_lists


def random_removal_bound(R: float, norm: float, losses: float, budget: int) -> float:
    """Bounds the expected mistakes of Algorithm 3 with a budget from which documents go at random. Ours.

        E M <= (c |u|² + 2 L)/(1 − c κ |u|²),    c = 4R² + 2R² (B − 2)/(B − 1),    κ = 2 (B − 1)/(B (2B − 3))

    c is below 6R² and κ about 1/B: the comparator u has to be shorter than about √(B/6)/R, ∞ otherwise. Documents are
    no longer than R in the space of the kernel, and no document is stored twice.

    Parameters
    ----------
    R : float
        The longest document.
    norm : float
        |u|; 1/γ where a unit vector ranks all lists with margin γ.
    losses : float
        L, the sum of u's losses (`WorstPair`) over the rounds that were mistakes.
    budget : int
        B, an even number of documents.

    Examples
    --------
    >>> round(random_removal_bound(R=1.0, norm=2.0, losses=0.0, budget=100), 1)
    31.5
    >>> random_removal_bound(R=1.0, norm=5.0, losses=0.0, budget=100)
    inf
    """
    if budget < 2 or budget % 2:
        raise DataError(f"the bound is for an even budget of at least 2 documents, not {budget}")
    c = 4.0 * R**2 + 2.0 * R**2 * (budget - 2.0) / (budget - 1.0)
    kappa = 2.0 * (budget - 1.0) / (budget * (2.0 * budget - 3.0))
    left = 1.0 - c * kappa * norm**2
    return (c * norm**2 + 2.0 * losses) / left if left > 0.0 else float("inf")


def forgotten_lists(learner: Learner, count: int, rounds: int) -> Iterator[Round]:
    """Yields, of some orthogonal queries, always the one that a learner remembers least.

    All together they are separable, with margin 2/√count.

    Parameters
    ----------
    learner : Learner
        The learner, with `count` features; its scores choose the next query.
    count : int
        The number of different queries.
    rounds : int
        The length of the stream.

    Examples
    --------
    >>> from ranktron.learners import kernel_perceptron
    >>> learner = kernel_perceptron(3, kernel="linear", budget=4)
    >>> [int(round.X[1].argmax()) for round in forgotten_lists(learner, 3, 2)]
    [0, 0]
    """
    lists = list(orthogonal_lists(count))
    for _ in range(rounds):
        yield min(lists, key=lambda round: float(np.abs(learner.scores(round.X)).max()))
