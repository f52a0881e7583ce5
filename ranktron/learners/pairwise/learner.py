"""The pairwise perceptron: one small update for every misranked pair of documents, and its four outputs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ranktron.errors import DataError
from ranktron.kernels.csr_rows import check_features, linear_scores
from ranktron.kernels.dense import first_non_finite, gather_observed
from ranktron.kernels.dispatch import as_arrays
from ranktron.kernels.sorting import argsort_descending
from ranktron.learners.base import BaseLearner
from ranktron.learners.linear import overflow, stored_count, why_refused
from ranktron.learners.pairwise.hypothesis_history import (
    HYPOTHESIS,
    Counts,
    HypothesisHistory,
    blank_history,
    stored_history,
    visit,
)
from ranktron.learners.pairwise.outputs import EVERYONE, Average, Committee, Ensemble, Last, Output
from ranktron.learners.pairwise.pairs import Pairs
from ranktron.types import Features, Feedback, Floats, Ranking, State

UNBOUNDED: Counts = np.zeros(0, np.int32)
"""Counts no misrankings, so that no pair is ever passed over."""


@dataclass(eq=False)
class Pairwise(BaseLearner):
    """Visits the pairs of a query and updates the weights for each that it misranks.

        wⁱ⁺¹ = wⁱ + η_q (x_r − x_n)  if ⟨wⁱ, x_n⟩ ≥ ⟨wⁱ, x_r⟩,    η_q = 1/|S_q|

    r is a document of higher grade than n for the same query, S_q the pairs of that query. A pair is judged by the
    current hypothesis, not by the scores that were shown. Neighbouring pairs share a document, so pairs are
    visited in a random order that is a function of the round number. `rank` uses the current hypothesis, `predict` the
    output.

    Parameters
    ----------
    n_features : int
        The number of features.
    output : Output
        What `predict` uses: `Last`, `Average` or a `Committee`.
    selective : int >= 0
        Hypotheses that ranked fewer pairs correctly than this are ignored (selective voting).
    pairs_per_query : int >= 0
        Visit only that many pairs of a query, drawn at random; 0: all.

    Examples
    --------
    >>> learner = Pairwise(1, Last())
    >>> X = np.array([[1.0], [3.0]], np.float32)
    >>> learner.learn(X, learner.rank(X, 0), Feedback(np.array([0, 1]), np.array([0.0, 1.0])))
    1.0
    >>> learner.coef
    array([2.])

    References
    ----------
    COMMITTEE, Table 1.
    """

    n_features: int
    output: Output
    selective: int = 0
    pairs_per_query: int = 0
    rounds: int = field(default=0, init=False)
    hypotheses: HypothesisHistory = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.selective < 0:
            raise DataError(f"selective must be 0 (off) or more, not {self.selective}")
        if self.pairs_per_query < 0:
            raise DataError(f"pairs_per_query must be 0 (all pairs) or more, not {self.pairs_per_query}")
        self.hypotheses = blank_history(self.n_features)
        self._ensemble: Ensemble | None = None

    @property
    def mistakes(self) -> int:
        """The number of misranked pairs so far."""
        return int(self.hypotheses.tally[HYPOTHESIS])

    @property
    def votes(self) -> bool:
        """Whether `predict` takes one query at a time, because its scores are votes."""
        return self.output.votes

    @property
    def floor(self) -> int:
        """The smallest counter of a hypothesis that is not ignored."""
        unlimited = self.output.size >= EVERYONE
        return max(self.selective, 1) if unlimited else self.selective

    @property
    def ensemble(self) -> Ensemble:
        """The hypotheses of the output at this point, with their weights."""
        if self._ensemble is None:
            self._ensemble = self.output.ensemble(self.hypotheses.settled(self.output.size, self.floor))
        return self._ensemble

    @property
    def coef(self) -> Floats | None:
        """The weights of `predict`; None if hypotheses vote."""
        return None if self.votes else self.ensemble.members[0]

    @property
    def ranking_weights(self) -> Floats:
        return self.hypotheses.w

    def scores(self, X: Features) -> Floats:
        return linear_scores(X, self.hypotheses.w)

    def predict(self, X: Features) -> Floats:
        return self.ensemble.scores(X)

    def rank(self, X: Features, number: int) -> Ranking:
        scores = self.scores(X)
        return Ranking(argsort_descending(scores), scores, number)

    def learn(self, X: Features, ranking: Ranking, feedback: Feedback) -> float:
        """Visits the pairs of observed documents and returns the share of them that were misranked."""
        check_features(X, self.n_features)
        _, bad = gather_observed(ranking.scores, feedback.items, feedback.labels)
        if bad >= 0 or X.shape[0] != ranking.scores.shape[0]:
            raise DataError(why_refused(ranking, feedback, bad))
        if first_non_finite(ranking.scores) >= 0:
            raise DataError(overflow(ranking.number))
        pairs = Pairs.of(feedback.labels, np.array([0, len(feedback.labels)]))
        rng = np.random.default_rng(ranking.number)
        numbers = pairs.sample(self.pairs_per_query, rng) if self.pairs_per_query else pairs.all()
        if len(numbers) == 0:
            self.rounds += 1
            return 0.0
        upper, lower = (feedback.items[some].astype(np.int32) for some in pairs.decode(numbers))
        steps = np.full(len(X), 1.0 / len(numbers))
        order = rng.permutation(len(numbers))
        self.follow(self.hypotheses.with_room(self.output.size, len(numbers)))
        self.rounds += 1
        mistakes = visit(as_arrays(X), upper, lower, order, steps, UNBOUNDED, 0.0, self.floor, self.hypotheses)
        return float(mistakes / len(numbers))

    def follow(self, hypotheses: HypothesisHistory) -> None:
        """Continues from a history, without copying it.

        Parameters
        ----------
        hypotheses : HypothesisHistory
            The hypotheses so far.
        """
        self.hypotheses, self._ensemble = hypotheses, None

    def state(self) -> State:
        return {"rounds": self.rounds, **self.hypotheses.state()}

    def restore(self, state: State) -> None:
        hypotheses, rounds = stored_history(state, self.n_features), stored_count(state, "rounds")
        self.follow(hypotheses)
        self.rounds = rounds


OUTPUTS: dict[str, Output] = {
    "last": Last(),
    "pocket": Committee(1, weights="count"),
    "average": Average(),
    "voted": Committee(EVERYONE, "borda", "count"),
}


def check_bound(alpha_bound: float, pairs_per_query: int) -> None:
    """Refuses an α-bound that is not a share of the passes, or that is combined with randomly drawn pairs."""
    if not 0.0 < alpha_bound <= 1.0:
        raise DataError(f"alpha_bound must be a share of the passes above 0 and up to 1 (off), not {alpha_bound}")
    if alpha_bound < 1.0 and pairs_per_query:
        raise DataError("alpha_bound counts how often each pair is misranked: it needs all pairs, pairs_per_query=0")
