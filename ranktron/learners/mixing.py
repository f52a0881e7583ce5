"""Iterative parameter mixing: one state from the states of several learners that began alike.

Each shard of the data has a learner of its own. All start from the same state, learn from queries of their shard, and
are mixed; the result is where all of them start from next (McDonald, Hall and Mann, Distributed Training Strategies for
the Structured Perceptron, 2010).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ranktron.errors import DataError
from ranktron.types import Floats, State

LAG = "lag"


def as_shares(weights: Sequence[float] | Floats, count: int) -> Floats:
    """The weights of `count` shards, divided by their sum.

    >>> as_shares([1, 3], 2)
    array([0.25, 0.75])
    """
    shares = np.array(weights, float)
    if shares.shape != (count,) or not (np.isfinite(shares).all() and (shares >= 0.0).all() and shares.sum() > 0.0):
        raise DataError(f"mixing {count} states takes as many weights of 0 or more that are not all 0, not {weights}")
    divided: Floats = shares / shares.sum()
    return divided


def mix_states(
    start: State,
    states: Sequence[State],
    weights: Sequence[float] | Floats,
    vector: str = "w",
    link: Callable[[Floats], Floats] = np.asarray,
) -> State:
    """The mean of the weight vectors, and counts and sums over the rounds of all shards.

        w = Σ_s μ_s w_s,    rounds = n_0 + Σ_s (n_s − n_0),    Σ_t w_t = A_0 + Σ_s (A_s − A_0)

    A is the sum of the weight vectors of all rounds, from which averaged weights are computed: the mean of the mixed
    state is that of all rounds of all shards. A single state is returned unchanged. Sums are taken in the order of the
    states, so that the same states give the same bits.

    Parameters
    ----------
    start : State
        The state from which all shards started.
    states : sequence of State
        The state of each shard.
    weights : sequence of float
        The weight of each shard, at least 0; they are divided by their sum.
    vector : str
        The name of the vector that is mixed.
    link : callable
        Maps such a vector to weights, if it is not the weights themselves.

    Examples
    --------
    >>> from ranktron.learners import hinge_perceptron
    >>> start = hinge_perceptron(1).state()
    >>> shards = [{**start, "rounds": 1, "w": np.array([w]), "lag": np.array([w])} for w in (2.0, 6.0)]
    >>> mixed = mix_states(start, shards, [1, 1])
    >>> mixed["w"], mixed["rounds"], mixed["w"] - mixed["lag"] / mixed["rounds"]
    (array([4.]), 2, array([0.]))
    """
    shares = as_shares(weights, len(states))
    if len(states) == 1:
        return dict(states[0])

    def iterates(state: State) -> Floats:
        total: Floats = state["rounds"] * link(state[vector]) - state[LAG]
        return total

    mixed = {name: value + sum(state[name] - value for state in states) for name, value in start.items()}
    mixed[vector] = sum(share * state[vector] for share, state in zip(shares.tolist(), states, strict=True))
    origin = iterates(start)
    total = origin + sum(iterates(state) - origin for state in states)
    mixed[LAG] = mixed["rounds"] * link(mixed[vector]) - total
    return mixed


def start_from_mean(state: State) -> State:
    """The state with the mean of all weights so far as the current weights; sums are unchanged.

    >>> from ranktron.learners import hinge_perceptron
    >>> begun = {**hinge_perceptron(1).state(), "rounds": 4, "w": np.array([3.0]), "lag": np.array([4.0])}
    >>> begun = start_from_mean(begun)
    >>> begun["w"], begun["lag"]
    (array([2.]), array([0.]))
    """
    return {**state, "w": state["w"] - state[LAG] / state["rounds"], LAG: np.zeros_like(state[LAG])}
