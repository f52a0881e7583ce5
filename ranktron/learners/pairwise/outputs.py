"""The outputs of a pairwise perceptron: one of its hypotheses, their mean, or a committee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import Sparse, check_features, linear_scores
from ranktron.kernels.dense import score
from ranktron.kernels.jit import jit
from ranktron.kernels.sorting import argsort_descending
from ranktron.learners.pairwise.hypothesis_history import SUCCESSES, HypothesisHistory, add_weighted
from ranktron.types import Features, Floats, Integers, Matrix

EVERYONE = 1 << 62
"""The size of a committee without limit."""

COMBINATIONS = ("average", "borda")
WEIGHTS = ("metric", "count", "uniform")


@jit
def _vote(scores: Floats, weight: float, points: Floats) -> None:
    m = scores.shape[0]
    order = argsort_descending(scores)
    start = 0
    for at in range(1, m + 1):
        if at == m or np.float32(scores[order[at]]) != np.float32(scores[order[start]]):
            share = weight * (m - 0.5 * (start + at + 1))
            for i in range(start, at):
                points[order[i]] += share
            start = at


@jit
def borda(X: Matrix, members: Floats, weights: Floats) -> Floats:
    """The Borda count: each ranker gives a document one point for every document it ranks lower, half a point for ties.

    >>> borda(np.array([[3.0], [1.0], [1.0]], np.float32), np.array([[1.0], [-1.0]]), np.array([2.0, 1.0]))
    array([4. , 2.5, 2.5])
    """
    points = np.zeros(X.shape[0])
    for k in range(members.shape[0]):
        _vote(score(X, members[k]), weights[k], points)
    return points


@jit
def _borda_counts(scores: Floats, weights: Floats) -> Floats:
    """The same from the scores of the rankers, one row for each."""
    points = np.zeros(scores.shape[1])
    for k in range(scores.shape[0]):
        _vote(scores[k], weights[k], points)
    return points


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Hypotheses and their weights. A single one scores documents; several vote on each query."""

    members: Floats
    weights: Floats

    @property
    def votes(self) -> bool:
        return len(self.members) > 1

    def scores(self, X: Features) -> Floats:
        """The scores of one query."""
        check_features(X, self.members.shape[1])
        if not self.votes:
            return linear_scores(X, self.members[0])
        if isinstance(X, Sparse):
            return self.counted(np.array([X.score(member) for member in self.members]))
        return borda(X, self.members, self.weights)

    def counted(self, scores: Floats) -> Floats:
        """The combined scores of one query, from those of each hypothesis, one row for each."""
        return _borda_counts(scores, self.weights) if self.votes else scores[0]

    def of_rounds(self, rounds: Rounds) -> Floats:
        """The scores of many queries, in the order of `rounds.X`."""
        if not self.votes:
            return self.scores(rounds.X)
        return np.concatenate([self.scores(round.X) for round in rounds])


class Output(Protocol):
    """Derives an ensemble from a settled history; `size` is the size of the pool that it needs."""

    @property
    def size(self) -> int: ...

    @property
    def votes(self) -> bool: ...

    @property
    def measured(self) -> bool: ...

    def ensemble(self, hypotheses: HypothesisHistory) -> Ensemble:
        """Returns the ensemble to rank with.

        Parameters
        ----------
        hypotheses : HypothesisHistory
            The hypotheses so far.
        """


@dataclass(frozen=True)
class Last:
    """The last hypothesis.

    Parameters
    ----------
    size, votes, measured
        Constants of this output; do not change them.

    Examples
    --------
    >>> from ranktron import Feedback
    >>> from ranktron.learners import Pairwise
    >>> learner = Pairwise(n_features=1, output=Last())
    >>> X = np.array([[1.0], [3.0]], np.float32)
    >>> _ = learner.learn(X, learner.rank(X, 0), Feedback(np.array([0, 1]), np.array([0.0, 1.0])))
    >>> learner.coef
    array([2.])
    """

    size: int = 1
    votes: bool = False
    measured: bool = False

    def ensemble(self, hypotheses: HypothesisHistory) -> Ensemble:
        return _alone(hypotheses.w)


@dataclass(frozen=True)
class Average:
    """The mean of all hypotheses, each weighted by its success counter: 1/Z Σ c_i wⁱ (COMMITTEE, Table 1).

    Parameters
    ----------
    size, votes, measured
        Constants of this output; do not change them.

    Examples
    --------
    >>> from ranktron.learners import pairwise_perceptron
    >>> pairwise_perceptron(3, output="average").output
    Average(size=1, votes=False, measured=False)
    """

    size: int = 1
    votes: bool = False
    measured: bool = False

    def ensemble(self, hypotheses: HypothesisHistory) -> Ensemble:
        successes = hypotheses.tally[SUCCESSES]
        return _alone(hypotheses.total / successes if successes else hypotheses.w)


@dataclass(frozen=True)
class Committee:
    """The hypotheses with the largest success counters, averaged or voting (COMMITTEE, Table 2 and section 5).

    Parameters
    ----------
    size : int >= 1
        N_com. With one member it is the pocket perceptron; without limit and with counter weights the average is the
        average perceptron and the vote the voted perceptron (Gallant, Perceptron-Based Learning Algorithms, 1990;
        Freund and Schapire, Large Margin Classification Using the Perceptron Algorithm, 1999).
    combine : "average" or "borda"
        The weighted mean of the members, or the weighted Borda count of their rankings of a query.
    weights : "metric", "count" or "uniform"
        The weight of a member: its metric on the validation set (its counter without one), its counter, or 1.
    subcommittee : int >= 0
        Combine only that many, the best on the validation set (by counter without one); 0: all.

    Examples
    --------
    >>> from ranktron.learners import committee_perceptron
    >>> committee_perceptron(3, size=10, combine="borda").output
    Committee(size=10, combine='borda', weights='metric', subcommittee=0)
    """

    size: int = 30
    combine: str = "average"
    weights: str = "metric"
    subcommittee: int = 0

    def __post_init__(self) -> None:
        if self.size < 1:
            raise DataError(f"a committee has at least one member: size must be 1 or more, not {self.size}")
        if self.subcommittee < 0:
            raise DataError(f"subcommittee must be 0 (all members) or more, not {self.subcommittee}")
        for name, given, known in (("combine", self.combine, COMBINATIONS), ("weights", self.weights, WEIGHTS)):
            if given not in known:
                raise DataError(f"{name} must be {' or '.join(known)}, not {given!r}")

    @property
    def votes(self) -> bool:
        """Whether scores are votes, which depend on the other documents of the query."""
        return self.combine == "borda"

    @property
    def measured(self) -> bool:
        """Whether the weights of members depend on the validation set."""
        return self.weights == "metric" or self.subcommittee > 0

    def ensemble(self, hypotheses: HypothesisHistory) -> Ensemble:
        chosen = self.chosen(hypotheses)
        weights = self.weights_of(hypotheses, chosen)
        chosen, weights = chosen[weights > 0.0], weights[weights > 0.0]
        if len(chosen) == 0:  # no hypothesis has ranked a pair correctly yet
            return _alone(hypotheses.w)
        members = hypotheses.members[chosen]
        if self.combine == "borda" or len(chosen) == 1:
            return Ensemble(members, weights)
        mean = np.zeros(members.shape[1])
        for member, weight in zip(members, weights, strict=True):
            add_weighted(mean, weight, member)
        return _alone(mean / weights.sum())

    def chosen(self, hypotheses: HypothesisHistory) -> Integers:
        """The indices of the members in the pool, oldest first.

        Parameters
        ----------
        hypotheses : HypothesisHistory
            The hypotheses so far.
        """
        by_counter = np.lexsort((hypotheses.born, -hypotheses.counters))[: self.size]
        if self.subcommittee:
            if _is_known(hypotheses, by_counter):
                by_counter = by_counter[np.argsort(-hypotheses.values[by_counter], kind="stable")]
            by_counter = by_counter[: self.subcommittee]
        return by_counter[np.argsort(hypotheses.born[by_counter])]

    def weights_of(self, hypotheses: HypothesisHistory, chosen: Integers) -> Floats:
        """The weights of these members; never negative, and equal if the metric of all members is 0.

        Parameters
        ----------
        hypotheses : HypothesisHistory
            The hypotheses so far.
        chosen : array of int
            The indices of the members.
        """
        if self.weights == "metric" and _is_known(hypotheses, chosen):
            weights = np.maximum(hypotheses.values[chosen], 0.0)
            return weights if weights.any() else np.ones(len(chosen))
        if self.weights == "uniform":
            return np.ones(len(chosen))
        return hypotheses.counters[chosen].astype(np.float64)


def _is_known(hypotheses: HypothesisHistory, chosen: Integers) -> bool:
    return bool(np.isfinite(hypotheses.values[chosen]).all())


def _alone(w: Floats) -> Ensemble:
    return Ensemble(w[None, :].copy(), np.ones(1))
