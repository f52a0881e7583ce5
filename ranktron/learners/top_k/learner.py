"""RTop-kF: learning from the labels of the first k documents shown."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import inf

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import check_features
from ranktron.kernels.dense import first_non_finite
from ranktron.kernels.dispatch import as_arrays
from ranktron.kernels.jit import jit
from ranktron.kernels.sorting import argsort_descending
from ranktron.learners.base import CompiledPass, WeightVectorLearner
from ranktron.learners.clicks.examination import Examination
from ranktron.learners.linear import as_weights, overflow, stored_count, stored_number
from ranktron.learners.pending_rounds import PendingRound
from ranktron.learners.top_k.descent import descend_dense, descend_in_ball, first_scores, gather_top
from ranktron.learners.top_k.estimator import Decomposed, check_decomposed, estimate, inverse_propensities, is_outlined
from ranktron.learners.top_k.exploration import (
    price_address,
    rank_documents,
    rank_groups,
    rank_pairs,
    restrict_exploration,
    uniform_scores,
)
from ranktron.learners.top_k.refusals import (
    NO_LABEL,
    NOT_SHOWN,
    TOO_HIGH,
    TWICE,
    check_limits,
    why_feedback_refused,
    why_never_ranked,
)
from ranktron.surrogates.pairwise_hinge import PairwiseHinge, estimate_hinge
from ranktron.types import Features, Feedback, Floats, Integers, Matrix, Ranking, Round, State, Step

_NOTHING = np.zeros(0)


@jit
def _locate(order: Integers, k: int, items: Integers, labels: Floats, highest: float) -> tuple[Integers, int, int]:
    """The positions of the observed documents, and the error code and index of the first invalid one."""
    places = np.empty(items.shape[0], np.int64)
    seen = np.zeros(k, np.bool_)
    for i in range(items.shape[0]):
        place = i
        if i >= k or order[i] != items[i]:
            place = 0
            while place < k and order[place] != items[i]:
                place += 1
            if place == k:
                return places, NOT_SHOWN, i
        if seen[place]:
            return places, TWICE, i
        if not 0.0 <= labels[i] < np.inf:
            return places, NO_LABEL, i
        if labels[i] > highest:
            return places, TOO_HIGH, i
        seen[place] = True
        places[i] = place
    return places, 0, 0


@jit
def learn_top_pairs(
    X: Matrix, order: Integers, scores: Floats, propensities: Floats, n: int, items: Integers, labels: Floats,
    highest: float, share: float, floor: float, margin: float, eta: float, radius: float, adaptive: bool, weight: float,
    w: Floats, total: Floats, squares: Floats,
) -> float:  # fmt: skip
    """Learns the pairwise hinge from a list that is still there: the loss, or NaN if the round has to be refused."""
    k = propensities.shape[0]
    shown, gradient = first_scores(scores, order, n), np.empty(k)
    places, wrong, _ = _locate(order, k, items, labels, highest)
    if wrong or first_non_finite(shown) >= 0:
        return np.nan
    loss = estimate_hinge(shown, places, labels, inverse_propensities(propensities, share, floor), margin, gradient)
    moved = descend_dense(X, order, gradient, np.empty(0), 0.0, eta, radius, adaptive, weight, w, total, squares)
    return loss if moved else np.nan


@dataclass(eq=False)
class TopK(WeightVectorLearner):
    """Online gradient descent with gradients estimated from the labels of the first k documents shown.

        shown:      by score with probability 1 − γ_t, else in an order drawn uniformly
        z_t:        an unbiased estimate of ∇φ(X_t w, R_t) at w_t
        w_{t+1} =   the projection of w_t − η_t z_t onto the ball of radius U

    The propensities are part of the ranking, so that feedback may come late, out of order or never. Labels are weighted
    by one over the probability that they are seen: k may be larger than the surrogate needs, and every label that is
    seen counts. Feedback may lack some of the k documents; `answered` says how often a document's label comes back, if
    not always. `rank` uses the current w even where `coef` and `predict` are averaged.

    Parameters
    ----------
    n_features : int
        The number of features.
    surrogate : Decomposed
        Squared, PairwiseHinge, KL, SmoothDCG, or one of your own.
    k : int
        How many labels come back.
    explore, step : Step
        γ_t, between 0 and 1, and η_t.
    adaptive : bool
        Divide each coordinate's step by the root of its squared gradients so far (AdaGrad).
    radius : float
        U; with adaptive steps the projection is still the Euclidean one.
    shortlist : int
        Explore among that many best-scored documents only; 0 means among all. The learner then minimises the loss on
        the shortlist: it learns nothing about documents that never come near the top.
    exploration_price : float
        Explore among as few of the best-scored documents as it takes that no list falls below the one by score by more
        than this share of its estimated reward (`ranktron.kernels.exploration_price`); 1 explores among all. What
        holds for a shortlist holds here: the loss on those documents is what is learnt.
    floor : float
        Propensities count as at least this. A floor trades variance for bias: see `shortfall`.
    answered : float
        The share of shown documents whose label comes back, by chance alone.
    highest : float
        The highest label there can be.
    strict : bool
        Refuse queries with one document or fewer than k, and γ outside (0, 1/2), which the theory does not cover.
        Otherwise all labels of a short query come back.
    seed : int
        Seed of the exploration, which is a function of seed and round number.
    average : bool
        Whether `coef` and `predict` use the mean of w_1 … w_T.
    late : bool
        Whether that mean weighs round t by t, so that later weights count more.
    examination : Examination, optional
        Labels are clicks then, of users who see position k with this probability: each becomes (c − β_k) / α_k, on
        average the relevance of its document. For surrogates whose gradient is linear in the label: Squared.

    Examples
    --------
    >>> from ranktron.learners.steps import Constant
    >>> from ranktron.surrogates import PairwiseHinge
    >>> learner = TopK(1, PairwiseHinge(), 2, explore=Constant(0.25), step=Constant(0.5))
    >>> X = np.array([[1.0], [3.0], [2.0]], np.float32)
    >>> ranking = learner.rank(X, 2)
    >>> ranking.order, ranking.propensities.round(3)
    (array([0, 1, 2]), array([[0.917, 0.833],
           [0.833, 0.917]]))
    >>> learner.learn(X, ranking, Feedback(np.array([0, 1]), np.array([0.0, 1.0])))
    1.2
    >>> learner.w
    array([1.2])

    References
    ----------
    Chaudhuri and Tewari, Online Learning to Rank with Feedback at the Top, Algorithm 1.
    """

    n_features: int
    surrogate: Decomposed
    k: int
    explore: Step
    step: Step
    adaptive: bool = False
    radius: float = inf
    shortlist: int = 0
    floor: float = 0.0
    answered: float = 1.0
    highest: float = inf
    strict: bool = False
    seed: int = 0
    average: bool = True
    late: bool = False
    examination: Examination | None = None
    exploration_price: float = 1.0
    rounds: int = field(default=0, init=False)
    w: Floats = field(init=False, repr=False)
    total: Floats = field(init=False, repr=False)
    squares: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_decomposed(self.surrogate, self.k)
        check_limits(self)
        if self.examination is not None and not getattr(self.surrogate, "linear_in_label", False):
            raise DataError(
                f"{type(self.surrogate).__name__} is not linear in the label: what corrects clicks on average would "
                "not correct its gradient; take Squared, or labels"
            )
        self.w, self.total, self.squares = (np.zeros(self.n_features) for _ in range(3))
        self.lost, self._z = 0.0, np.zeros(self.n_features)

    @property
    def coef(self) -> Floats:
        """The weights to serve."""
        if self.average and self.rounds:
            T = self.rounds
            return self.total / (T * (T + 1) / 2 if self.late else T)
        return self.w

    @property
    def shortfall(self) -> float:
        """The bias of the floor: the share that it takes from the gradient of a document (or pair) outside the top k.

        The exact mean over all rounds; 0 without a floor.
        """
        return self.lost / self.rounds if self.rounds else 0.0

    @property
    def labels_received(self) -> int:
        return self.k

    def simulated_feedback(self, round: Round, ranking: Ranking) -> Feedback:
        items = ranking.order[: self.k]
        return Feedback._make((items, round.labels[items]))  # arrays that are known to be right: no check

    def rank(self, X: Features, number: int) -> Ranking:
        check_features(X, self.n_features)
        k, n = self._sizes(X.shape[0])
        price = self.exploration_price
        how = self.seed, number, self.explore(number), k, n, price, price_address(price)
        rows, coordinates = as_arrays(X), self.surrogate.coordinates
        if coordinates == 1:
            shown = rank_documents(rows, self.w, *how)
        elif coordinates == 2:
            shown = rank_pairs(rows, self.w, *how)
        else:
            shown = rank_groups(rows, self.w, *how, coordinates)
        scores, order, explored, propensities = shown
        return Ranking(order, scores, number, explored, propensities)

    def learn(self, X: Features, ranking: Ranking, feedback: Feedback) -> float:
        """Learns from the labels of some of the first k documents and returns an estimate of the surrogate's loss."""
        hinge = self.surrogate
        if type(hinge) is PairwiseHinge and self._is_plain(X):
            _, n = self._check_ranked(X, ranking)
            eta, weight = self.step(ranking.number), self._weight
            loss, propensities = float("nan"), ranking.propensities
            if len(feedback.items) == len(feedback.labels) and propensities is not None:
                loss = learn_top_pairs(
                    X, ranking.order, ranking.scores, propensities, n, feedback.items, feedback.labels,
                    self.highest, self.answered**hinge.coordinates, self.floor, hinge.margin, eta, self.radius,
                    self.adaptive, weight, self.w, self.total, self.squares,
                )  # fmt: skip
            if loss == loss:  # otherwise the steps one by one say what is wrong
                self._count(X.shape[0], ranking.number)
                return loss
        pending = self.pending(X, ranking, self.k)
        return self._learn(pending, self._places(ranking.order, pending.size, feedback), feedback.labels)

    @property
    def _weight(self) -> float:
        """How much the current weights count in the mean that is served."""
        return self.rounds + 1.0 if self.late else 1.0

    def _is_plain(self, X: Features) -> bool:
        """Whether labels are learnt as they are, of a matrix: what is compiled as a whole."""
        return self.examination is None and isinstance(X, np.ndarray)

    def compiled_pass(self, rounds: Rounds) -> CompiledPass | None:
        if type(self) is not TopK or type(self.surrogate) is not PairwiseHinge or not self._is_plain(rounds.X):
            return None
        from ranktron.learners.top_k.passes import play_top_k

        return partial(play_top_k, self)

    def pending(self, X: Features, ranking: Ranking, k: int) -> PendingRound:
        """What `learn_pending` needs: the rows of the first documents, one direction, and the propensities.

        The number of documents is the learner's own k; the argument `k` is ignored.

        For a surrogate without `outline` the whole shortlist is kept.
        """
        k, n = self._check_ranked(X, ranking)  # its own k: the estimator needs just these labels
        scores = first_scores(ranking.scores, ranking.order, n)
        if first_non_finite(scores) >= 0:
            raise DataError(overflow(ranking.number))
        if is_outlined(self.surrogate):
            base, shown, constant = self.surrogate.outline(scores, k)
        else:
            base, shown, constant = _NOTHING, scores, 0.0
        rows, drift, columns = gather_top(X, ranking.order, shown.shape[0], base)
        return PendingRound(rows, shown, ranking.number, X.shape[0], drift, constant, ranking.propensities, columns)

    def learn_pending(self, pending: PendingRound, places: Feedback) -> float:
        """Learns from a pending round the same as `learn` from all documents, to the bit; items are positions."""
        order = np.arange(pending.shown.shape[0])
        return self._learn(pending, self._places(order, pending.size, places), places.labels)

    def estimate(self, X: Features, ranking: Ranking, feedback: Feedback) -> tuple[float, Floats]:
        """The estimated loss and its gradient for the first documents of the ranking, in the order shown.

        Parameters
        ----------
        X : array of shape (documents, features)
            One query.
        ranking : Ranking
            What was shown.
        feedback : Feedback
            The labels of some of the first k documents.
        """
        _, n = self._check_ranked(X, ranking)
        places = self._places(ranking.order, X.shape[0], feedback)
        scores = first_scores(ranking.scores, ranking.order, n)
        weights = self._weights(ranking.propensities)
        own: Callable[..., tuple[float, Floats]] | None = getattr(self.surrogate, "estimate", None)
        if own is None:
            return estimate(self.surrogate, scores, places, self._labels(places, feedback.labels), weights)
        return own(scores, places, self._labels(places, feedback.labels), weights)

    def _labels(self, places: Integers, received: Floats) -> Floats:
        """The labels, or what clicks stand for on average."""
        return received if self.examination is None else self.examination.correct(received, places + 1)

    def _learn(self, pending: PendingRound, places: Integers, labels: Floats) -> float:
        weights, factor = self._weights(pending.propensities), 0.0
        labels = self._labels(places, labels)
        if is_outlined(self.surrogate):
            loss, factor, gradient = self.surrogate.settle(pending.shown, pending.constant, places, labels, weights)
        else:
            loss, gradient = estimate(self.surrogate, pending.shown, places, labels, weights)
        eta, weight = self.step(pending.number), self._weight
        state = self.w, self.total, self.squares, self._z
        if not descend_in_ball(pending, gradient, factor, eta, self.radius, self.adaptive, weight, *state):
            raise DataError(overflow(pending.number))
        self._count(pending.size, pending.number)
        return loss

    def _count(self, m: int, number: int) -> None:
        self.rounds += 1
        if self.floor > 0.0:
            self.lost += self.shortfall_of(m, number)

    def _check_ranked(self, X: Features, ranking: Ranking) -> tuple[int, int]:
        check_features(X, self.n_features)
        propensities = ranking.propensities
        m = X.shape[0]
        alike = m == ranking.scores.shape[0] == ranking.order.shape[0]
        if propensities is None or ranking.number < 0 or not alike:
            raise DataError(why_never_ranked(X, ranking))
        k, n = self._sizes(m)
        if propensities.shape != (k,) * self.surrogate.coordinates:
            raise DataError(why_never_ranked(X, ranking))
        price = self.exploration_price
        if price < 1.0:
            best = argsort_descending(ranking.scores)
            _, n = restrict_exploration(ranking.scores, best, 0.0, k, n, price, price_address(price))
        return k, n

    def _places(self, order: Integers, m: int, feedback: Feedback) -> Integers:
        k, _ = self._sizes(m)
        if len(feedback.items) != len(feedback.labels):
            raise DataError(f"feedback on {len(feedback.items)} documents with {len(feedback.labels)} labels")
        places, wrong, where = _locate(order, k, feedback.items, feedback.labels, self.highest)
        if wrong:
            raise DataError(why_feedback_refused(order, feedback, wrong, where, k, self.highest))
        return places

    def _weights(self, propensities: Floats | None) -> Floats:
        assert propensities is not None
        return inverse_propensities(propensities, self.answered**self.surrogate.coordinates, self.floor)

    def played(self, ranking: Ranking) -> Floats:
        """The scores that give the order shown: the learner's own, or random ones if it explored.

        Exploration among a shortlist uses the learner's own scores, reassigned in the order shown.

        Parameters
        ----------
        ranking : Ranking
            What was shown.
        """
        if not ranking.explored:
            return ranking.scores
        m = ranking.scores.shape[0]
        if self.exploration_price == 1.0 and self._sizes(m)[1] == m:
            return uniform_scores(self.seed, ranking.number, m)
        played = np.empty(m)
        played[ranking.order] = ranking.scores[argsort_descending(ranking.scores)]
        return played

    def state(self) -> State:
        arrays = {"w": self.w.copy(), "total": self.total.copy(), "squares": self.squares.copy()}
        return {"rounds": self.rounds, "lost": self.lost, **arrays}

    def restore(self, state: State) -> None:
        w, total, squares = (as_weights(state[name], self.n_features) for name in ("w", "total", "squares"))
        rounds, lost = stored_count(state, "rounds"), stored_number(state, "lost")
        self.rounds, self.lost, self.w, self.total, self.squares = rounds, lost, w, total, squares

    def _sizes(self, m: int) -> tuple[int, int]:
        """For m documents: how many labels come back, and among how many documents exploration draws."""
        if self.strict and m < max(self.k, 2):
            raise DataError(
                f"a query of {m} document{'s' * (m > 1)} is too short: the labels of the first {self.k} are needed, "
                "and at least 2 documents to choose from"
            )
        k = self.k if self.k < m else m
        return k, max(k, self.shortlist) if 0 < self.shortlist < m else m

    def shortfall_of(self, m: int, number: int) -> float:
        """The bias of the floor in one round of m documents; see `shortfall`.

        Parameters
        ----------
        m : int
            The number of documents.
        number : int
            The number of the round.
        """
        k, n = self._sizes(m)
        p = self.explore(number)
        for i in range(self.surrogate.coordinates):
            p *= self.answered * max(k - i, 0) / max(n - i, 1)
        return 1.0 - p / max(p, self.floor)
