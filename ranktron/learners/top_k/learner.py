"""RTop-kF: learning from the labels of the first k documents shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from math import inf
from typing import Any, ClassVar

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import Sparse, check_features
from ranktron.kernels.dense import first_non_finite
from ranktron.kernels.dispatch import as_arrays
from ranktron.kernels.sorting import argsort_descending
from ranktron.learners.base import CompiledPass, WeightVectorLearner
from ranktron.learners.clicks.examination import Examination
from ranktron.learners.linear import as_weights, overflow, stored_count, stored_number
from ranktron.learners.pending_rounds import PendingRound
from ranktron.learners.start import Start, stored_start
from ranktron.learners.top_k.estimator import Decomposed, as_outlined, check_decomposed, inverse_propensities
from ranktron.learners.top_k.exploration import uniform_scores
from ranktron.learners.top_k.kernels import (
    NO_LABEL,
    NOT_SHOWN,
    TOP_K,
    TWICE,
    TopKRecord,
    count_round,
    gather_top,
    learn_list,
    list_sizes,
    locate,
    rank_documents,
    rank_groups,
    rank_pairs,
    shown_scores,
    take_step,
    take_step_rows,
)
from ranktron.types import Features, Feedback, Floats, Integers, Ranking, Round, State, Step

_RANK: Mapping[int, Any] = {1: rank_documents, 2: rank_pairs}  # by the labels in a term of the surrogate's gradient


@dataclass(eq=False)
class TopK(WeightVectorLearner):
    """Online gradient descent with gradients estimated from the labels of the first k documents shown.

        shown:      by score with probability 1 − γ_t, else in an order drawn uniformly
        z_t:        an unbiased estimate of ∇φ(X_t w, R_t) at w_t
        w_{t+1} =   the projection of w_t − η_t z_t onto the ball of radius U

    The propensities are part of the ranking, so that feedback may come late, out of order or never. Labels are weighted
    by one over the probability that they are seen: k may be larger than the surrogate needs, and every label that is
    seen counts. Feedback may lack some of the k documents; `response_rate` says how often a label comes back, if not
    always. `rank` uses the current w even where `coef` and `predict` are averaged.

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
        U; with adaptive steps the projection is still the Euclidean one. The ball is around 0, or around the weights of
        `begin`, whose `trust` is another radius of it: the smaller one holds.
    shortlist : int
        Explore among that many best-scored documents only; 0 means among all. The learner then minimises the loss on
        the shortlist: it learns nothing about documents that never come near the top.
    exploration_price : float
        Explore among as few of the best-scored documents as it takes that no list falls below the one by score by more
        than this share of its estimated reward (`ranktron.kernels.exploration_price`); 1 explores among all. What
        holds for a shortlist holds here: the loss on those documents is what is learnt.
    floor : float
        Propensities count as at least this. A floor trades variance for bias: see `propensity_floor_bias`.
    response_rate : float
        The share of shown documents whose label comes back, by chance alone.
    max_label : float
        The highest label there can be.
    require_full_lists : bool
        Refuse queries with one document or fewer than k, and γ outside (0, 1/2), which the theory does not cover.
        Otherwise all labels of a short query come back.
    seed : int
        Seed of the exploration, which is a function of seed and round number.
    average : bool
        Whether `coef` and `predict` use the mean of w_1 … w_T.
    weighted_average : bool
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
    response_rate: float = 1.0
    max_label: float = inf
    require_full_lists: bool = False
    seed: int = 0
    average: bool = True
    weighted_average: bool = False
    examination: Examination | None = None
    exploration_price: float = 1.0
    begins: ClassVar = True
    start: Start | None = field(default=None, init=False, repr=False)  # w_1, and the ball around it; None: w_1 = 0
    record: TopKRecord = field(init=False, repr=False)  # settings for kernels, and what they count
    # rows: w, its (weighted) sum over rounds, the sums of squares of steps, a step, which is 0 between rounds, and the
    # centre of the ball
    vectors: Floats = field(init=False, repr=False)
    compiled: bool = field(init=False, repr=False)  # whether rounds with a matrix are learnt in a single kernel

    def __post_init__(self) -> None:
        check_decomposed(self.surrogate, self.k)
        _check_settings(self)
        if self.examination is not None and not getattr(self.surrogate, "linear_in_label", False):
            raise DataError(
                f"{type(self.surrogate).__name__} is not linear in the label: what corrects clicks on average would "
                "not correct its gradient; take Squared, or labels"
            )
        self.vectors, self.record = np.zeros((5, self.n_features)), np.zeros(1, TOP_K)
        for name in vars(self).keys() & set(TOP_K.names or ()):
            self.record[name] = getattr(self, name)
        coordinates = self.surrogate.coordinates
        self.record["coordinates"], self.record["price"] = coordinates, self.exploration_price
        self.record["share"] = self.response_rate**coordinates
        margin = as_outlined(self.surrogate).compiled_margin
        self.compiled, self.record["margin"] = margin is not None and self.examination is None, margin or 0.0

    @property
    def rounds(self) -> int:
        return int(self.record["rounds"][0])

    @rounds.setter
    def rounds(self, rounds: int) -> None:
        self.record["rounds"] = rounds

    @property
    def w(self) -> Floats:
        """The current weights."""
        w: Floats = self.vectors[0]
        return w

    @w.setter
    def w(self, w: Floats) -> None:
        self.vectors = self.vectors.copy()  # arrays that were taken from it stay as they are
        self.vectors[0] = w

    def begin(self, start: Start) -> None:
        self.w = start.check(self.n_features).weights
        self._centre(start)

    def _centre(self, start: Start | None) -> None:
        """Moves the ball: its centre, and its radius."""
        self.start = start
        self.vectors[4] = 0.0 if start is None else start.weights
        self.record["radius"] = self.radius if start is None else min(self.radius, start.trust)

    @property
    def coef(self) -> Floats:
        """The weights to serve."""
        if self.average and self.rounds:
            T = self.rounds
            total: Floats = self.vectors[1]
            return total / (T * (T + 1) / 2 if self.weighted_average else T)
        return self.w

    @property
    def propensity_floor_bias(self) -> float:
        """The bias of the floor: the share that it takes from the gradient of a document (or pair) outside the top k.

        The exact mean over all rounds; 0 without a floor.
        """
        return float(self.record["floor_bias"][0]) / self.rounds if self.rounds else 0.0

    @property
    def labels_received(self) -> int:
        return self.k

    def simulated_feedback(self, round: Round, ranking: Ranking) -> Feedback:
        items = ranking.order[: self.k]
        return Feedback._make((items, round.labels[items]))  # arrays that are known to be right: no check

    def rank(self, X: Features, number: int) -> Ranking:
        check_features(X, self.n_features)
        if self.require_full_lists:
            self._received(X.shape[0])
        rank = _RANK.get(self.surrogate.coordinates, rank_groups)
        scores, order, explored, propensities = rank(
            self.record, self.vectors, as_arrays(X), self.seed, number, self.explore(number)
        )
        return Ranking(order, scores, number, explored, propensities)

    def learn(self, X: Features, ranking: Ranking, feedback: Feedback) -> float:
        """Learns from the labels of some of the first k documents and returns an estimate of the surrogate's loss."""
        number, propensities = ranking.number, self._check_ranked(X, ranking)
        if self.compiled and not isinstance(X, Sparse) and len(feedback.items) == len(feedback.labels):
            loss: float = learn_list(
                self.record, self.vectors, X, ranking.order, ranking.scores, propensities, feedback.items,
                feedback.labels, self._gamma(number), self.step(number),
            )  # fmt: skip
            if loss == loss:  # otherwise the steps one by one say what is wrong
                return loss
        pending = self.pending(X, ranking, self.k)
        return self._learn(pending, self._places(ranking.order, pending.size, feedback), feedback.labels)

    def _gamma(self, number: int) -> float:
        """γ of a round, as far as it is needed to learn from it."""
        return self.explore(number) if self.floor > 0.0 else 0.0

    def compiled_pass(self, rounds: Rounds) -> CompiledPass | None:
        if type(self) is not TopK or not self.compiled or isinstance(rounds.X, Sparse):
            return None
        from ranktron.learners.top_k.passes import play_top_k

        return partial(play_top_k, self)

    def pending(self, X: Features, ranking: Ranking, k: int) -> PendingRound:
        """What `learn_pending` needs: the rows of the first documents, one direction, and the propensities.

        The number of documents is the learner's own k; the argument `k` is ignored.

        Of a surrogate without `outline` the whole shortlist is kept.
        """
        self._check_ranked(X, ranking)
        scores = shown_scores(self.record, ranking.scores, ranking.order)
        if first_non_finite(scores) >= 0:
            raise DataError(overflow(ranking.number))
        k = self._received(X.shape[0])  # its own k: the estimator needs just these labels
        base, shown, constant = as_outlined(self.surrogate).outline(scores, k)
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
        weights = self._weights(self._check_ranked(X, ranking))
        places = self._places(ranking.order, X.shape[0], feedback)
        scores = shown_scores(self.record, ranking.scores, ranking.order)
        return as_outlined(self.surrogate).estimate(scores, places, self._labels(places, feedback.labels), weights)

    def _labels(self, places: Integers, received: Floats) -> Floats:
        """The labels, or what clicks stand for on average."""
        return received if self.examination is None else self.examination.correct(received, places + 1)

    def _learn(self, pending: PendingRound, places: Integers, labels: Floats) -> float:
        assert pending.propensities is not None
        weights, labels = self._weights(pending.propensities), self._labels(places, labels)
        settle = as_outlined(self.surrogate).settle
        loss, factor, gradient = settle(pending.shown, pending.constant, places, labels, weights)
        rows, drift, eta = pending.rows, pending.drift, self.step(pending.number)
        if isinstance(rows, Sparse):
            moved = take_step_rows(
                self.record, self.vectors, as_arrays(rows), gradient, drift, pending.columns, factor, eta
            )
        else:
            items = np.arange(len(gradient))
            moved = take_step(self.record, self.vectors, rows, items, gradient, drift, factor, eta)
        if not moved:
            raise DataError(overflow(pending.number))
        count_round(self.record, pending.size, self._gamma(pending.number))
        return loss

    def _check_ranked(self, X: Features, ranking: Ranking) -> Floats:
        """The propensities of a ranking; one that this learner cannot have made of these documents is refused."""
        check_features(X, self.n_features)
        propensities = ranking.propensities
        m = X.shape[0]
        alike = m == ranking.scores.shape[0] == ranking.order.shape[0]
        if propensities is None or ranking.number < 0 or not alike:
            raise DataError(_why_never_ranked(X, ranking))
        k = self._received(m)
        if propensities.shape != (k,) * self.surrogate.coordinates:
            raise DataError(_why_never_ranked(X, ranking))
        return propensities

    def _places(self, order: Integers, m: int, feedback: Feedback) -> Integers:
        k = self._received(m)
        if len(feedback.items) != len(feedback.labels):
            raise DataError(f"feedback on {len(feedback.items)} documents with {len(feedback.labels)} labels")
        places, wrong, where = locate(order, k, feedback.items, feedback.labels, self.max_label)
        if wrong:
            raise DataError(_why_feedback_refused(order, feedback, wrong, where, k, self.max_label))
        return places

    def _weights(self, propensities: Floats) -> Floats:
        return inverse_propensities(propensities, self.response_rate**self.surrogate.coordinates, self.floor)

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
        w, total, squares, _, _ = self.vectors.copy()
        lost, start = float(self.record["floor_bias"][0]), {} if self.start is None else self.start.state()
        return {"rounds": self.rounds, "lost": lost, "w": w, "total": total, "squares": squares, **start}

    def restore(self, state: State) -> None:
        vectors = np.zeros_like(self.vectors)
        for row, name in enumerate(("w", "total", "squares")):
            vectors[row] = as_weights(state[name], self.n_features)
        rounds, lost = stored_count(state, "rounds"), stored_number(state, "lost")
        start = stored_start(state, self.n_features)
        self.vectors, self.record["rounds"], self.record["floor_bias"] = vectors, rounds, lost
        self._centre(start)

    def _received(self, m: int) -> int:
        """How many labels of m documents come back; lists that are too short are refused."""
        if self.require_full_lists and m < max(self.k, 2):
            raise DataError(
                f"a query of {m} document{'s' * (m > 1)} is too short: the labels of the first {self.k} are needed, "
                "and at least 2 documents to choose from"
            )
        return min(self.k, m)

    def _sizes(self, m: int) -> tuple[int, int]:
        """How many labels of m documents come back, and among how many documents exploration draws."""
        k = self._received(m)
        return k, list_sizes(self.record, m)[1]


def _why_never_ranked(X: Features, ranking: Ranking) -> str:
    if ranking.propensities is None or ranking.number < 0:
        return (
            "feedback for a round that this learner never ranked: the ranking has no number or no propensities; "
            "pass to `learn` the ranking that `rank` returned"
        )
    m = ranking.scores.shape[0]
    if m != X.shape[0]:
        return f"the ranking was made for {m} documents, this query has {X.shape[0]}"
    return "the ranking was made by a learner with another k or surrogate: its propensities do not fit"


def _why_feedback_refused(order: Integers, feedback: Feedback, wrong: int, where: int, k: int, max_label: float) -> str:
    item, label = feedback.items[where], feedback.labels[where]
    if wrong == NOT_SHOWN:
        shown = ", ".join(map(str, order[:k]))
        return f"feedback for document {item}, which was not among the first {k} shown ({shown})"
    if wrong == TWICE:
        return f"feedback names document {item} twice"
    if wrong == NO_LABEL:
        return f"labels must be finite and >= 0; document {item} has {label}"
    return f"document {item} has label {label}, above the declared highest, {max_label:g}"


def _check_settings(learner: TopK) -> None:
    """Refuses settings that are invalid or, if the learner is strict, outside the theory."""
    gamma, half, price = learner.explore(0), learner.require_full_lists, learner.exploration_price
    if not 0.0 < gamma <= 1.0 or (half and gamma >= 0.5):
        allowed = "above 0 and below 1/2, as the theory needs it" if half else "above 0 and at most 1"
        raise DataError(f"the share of exploring rounds must be {allowed}; in the first round it is {gamma:g}")
    limits = {
        f"the radius must be above 0, not {learner.radius}": learner.radius > 0.0,
        f"a shortlist needs at least k = {learner.k} documents, not {learner.shortlist}": learner.shortlist == 0
        or learner.shortlist >= learner.k,
        f"the price of exploration must be at least 0 and at most 1, not {price}": 0.0 <= price <= 1.0,
        "a price and a floor of propensities cannot be combined: take one of them": price == 1.0
        or learner.floor == 0.0,
        f"the floor of propensities must be at least 0 and below 1, not {learner.floor}": 0.0 <= learner.floor < 1.0,
        f"the answered share must be above 0 and at most 1, not {learner.response_rate}": 0.0
        < learner.response_rate
        <= 1.0,
        f"the highest label must be above 0, not {learner.max_label}": learner.max_label > 0.0,
        f"the seed must be 0 or more, not {learner.seed}": learner.seed >= 0,
    }
    for complaint, holds in limits.items():
        if not holds:
            raise DataError(complaint)
