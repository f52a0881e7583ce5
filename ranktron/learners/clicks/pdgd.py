"""PDGD: pairwise differentiable gradient descent, from the clicks on rankings that are drawn."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ranktron.errors import DataError
from ranktron.kernels.csr_rows import check_features
from ranktron.kernels.dispatch import FeatureArrays, as_arrays, sgd_step
from ranktron.kernels.exploration_price import affordable_shortlist
from ranktron.kernels.jit import jit
from ranktron.kernels.sorting import argsort_descending
from ranktron.learners.base import WeightVectorLearner
from ranktron.learners.clicks.plackett_luce import draw_ranking, log_sum_below, swap_weight
from ranktron.learners.linear import as_weights, overflow, stored_count
from ranktron.learners.pending_rounds import PendingRound
from ranktron.learners.start import Start, stored_start
from ranktron.types import Features, Feedback, Floats, Integers, Ranking, Round, State, Step
from ranktron.types.validation import check_count

_NOT_SHOWN, _TWICE, _NO_GAIN = 1, 2, 3
_NO_DOCUMENT, _NO_SCORE = 1, 2


@jit
def _outline(scores: Floats, order: Integers, k: int, price: float) -> tuple[Floats, float, int]:
    """The scores of the first k documents that were drawn, log Σ e^s of those below, and what is wrong with them."""
    m = scores.shape[0]
    drawn = m if price >= 1.0 else affordable_shortlist(scores, argsort_descending(scores), price, m)
    k = min(k, drawn)
    shown = np.empty(k)
    for place in range(m):
        if not 0 <= order[place] < m:
            return shown, 0.0, _NO_DOCUMENT
        if not np.isfinite(scores[order[place]]):
            return shown, 0.0, _NO_SCORE
        if place < k:
            shown[place] = scores[order[place]]
    return shown, log_sum_below(scores, order[:drawn], k), 0


@jit
def _by_place(order: Integers, k: int, items: Integers, gains: Floats) -> tuple[Floats, int, int]:
    """The gain of each place shown, not a number where none came; and what is wrong with which observation."""
    at_place = np.full(k, np.nan)
    for i in range(items.shape[0]):
        place = i
        if i >= k or order[i] != items[i]:
            place = 0
            while place < k and order[place] != items[i]:
                place += 1
            if place == k:
                return at_place, _NOT_SHOWN, i
        if at_place[place] == at_place[place]:
            return at_place, _TWICE, i
        if not 0.0 <= gains[i] < np.inf:
            return at_place, _NO_GAIN, i
        at_place[place] = gains[i]
    return at_place, 0, 0


@jit
def pdgd_gradient(shown: Floats, log_below: float, gains: Floats) -> tuple[float, Floats]:
    """The loss Σ ρ σ(s_j − s_i) over preferred pairs (i, j), and its gradient in the scores with ρ held fixed.

    `gains` are those of the places shown; above 0 is a click, not a number is not known. Every clicked document is
    preferred to every unclicked one from the top down to the one just below the last click. Places beyond those of
    `shown` were not drawn: swapping them gives a ranking that is never shown, so that ρ = 0.

    >>> loss, gradient = pdgd_gradient(np.zeros(3), -np.inf, np.array([0.0, 1.0, 0.0]))
    >>> loss, gradient.tolist()
    (0.5, [0.125, -0.25, 0.125])
    """
    k = shown.shape[0]
    last = k - 1
    while last >= 0 and not gains[last] > 0.0:
        last -= 1
    loss, gradient = 0.0, np.zeros(k)
    if last < 0:
        return loss, gradient
    for j in range(min(last + 2, k)):
        if gains[j] != 0.0:
            continue
        for i in range(last + 1):
            if gains[i] > 0.0:
                rho = swap_weight(shown, log_below, i, j)
                away = np.exp(-abs(shown[i] - shown[j]))
                inverted = (1.0 if shown[j] > shown[i] else away) / (1.0 + away)
                loss += rho * inverted
                weight = rho * away / (1.0 + away) ** 2
                gradient[i] -= weight
                gradient[j] += weight
    return loss, gradient


@jit
def _learnt(
    rows: FeatureArrays, items: Integers, shown: Floats, log_below: float, gains: Floats, eta: float, t: float,
    w: Floats, lagged_sum: Floats, sums: Floats, direction: Floats,
) -> tuple[float, bool]:  # fmt: skip
    """Takes the step of round t, or refuses to; the loss, and whether it was taken."""
    loss, gradient = pdgd_gradient(shown, log_below, gains)
    return loss, sgd_step(rows, items[: shown.shape[0]], gradient, loss, eta, t, w, lagged_sum, sums, direction, 0)


@dataclass(eq=False)
class PDGD(WeightVectorLearner):
    """Learns from clicks while it shows: pairwise differentiable gradient descent (PDGD).

        shown:     a ranking R drawn from the Plackett-Luce model of the scores s = X w; the user sees its first k
        w_{t+1} =  w_t + η_t Σ_{(i, j)} ρ_ij σ'(s_i − s_j) (x_i − x_j),   ρ_ij = P(R*) / (P(R) + P(R*))

    over the pairs of a clicked document i and an unclicked one j from the top down to the one just below the last
    click; R* is R with i and j swapped. The weight ρ undoes the bias of what stands higher being seen more often:
    the expected step is a sum of differences x_i − x_j whose signs are those of the users' preferences.

    `begin` sets w_1, which is 0 otherwise, and the ball around it that each step is projected onto, if any. The draws
    depend on the length of the weights: longer ones draw less.

    A label above 0 is a click, 0 is none. Of a shown document that is not in the feedback nothing is known: it takes
    part in no pair. Feedback may come late; it is learnt at the scores that the ranking was drawn by.

    Parameters
    ----------
    n_features : int
        The number of features.
    k : int
        How many documents the user sees.
    step : Step
        η_t.
    seed : int
        Of the draws, which are a function of seed and round number.
    average : bool
        Whether `coef` and `predict` are those of the mean of w_1 … w_T; `rank` draws by the current w.
    exploration_price : float
        Draw the order of as few of the best-scored documents as it takes that no list falls below the one by score by
        more than this share of its estimated reward (`ranktron.kernels.exploration_price`); the others follow by
        score, and nothing is learnt from their clicks. 1 draws all.

    Examples
    --------
    >>> from ranktron.learners.steps import Constant
    >>> learner = PDGD(1, k=2, step=Constant(0.5))
    >>> X = np.array([[1.0], [3.0], [2.0]], np.float32)
    >>> ranking = learner.rank(X, 0)
    >>> ranking.order
    array([2, 0, 1])
    >>> learner.learn(X, ranking, Feedback([2, 0], [1, 0]))  # of the two shown, the first was clicked
    0.25
    >>> learner.w
    array([0.0625])

    References
    ----------
    Oosterhuis and de Rijke, Differentiable Unbiased Online Learning to Rank (CIKM 2018).
    """

    n_features: int
    k: int
    step: Step
    seed: int = 0
    average: bool = False
    exploration_price: float = 1.0
    begins: ClassVar = True
    rounds: int = field(default=0, init=False)
    start: Start | None = field(default=None, init=False, repr=False)  # w_1, and the ball around it; None: w_1 = 0
    w: Floats = field(init=False, repr=False)
    lagged_sum: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        check_count(self.k, "the number of shown documents, k,", 1)
        check_count(self.seed, "the seed", 0)
        if not 0.0 <= self.exploration_price <= 1.0:
            raise DataError(f"the price of exploration must be at least 0 and at most 1, not {self.exploration_price}")
        self.w, self.lagged_sum, self._direction = (np.zeros(self.n_features) for _ in range(3))
        self._sums = np.zeros(3)  # what a certificate would need; there is none for this learner

    @property
    def coef(self) -> Floats:
        """The weights to serve."""
        if self.average and self.rounds:
            return self.w - self.lagged_sum / self.rounds
        return self.w

    @property
    def labels_received(self) -> int:
        return self.k

    def simulated_feedback(self, round: Round, ranking: Ranking) -> Feedback:
        """A user who sees the first k documents and clicks each that has a label above 0."""
        items = ranking.order[: self.k]
        return Feedback._make((items, (round.labels[items] > 0.0).astype(float)))

    def begin(self, start: Start) -> None:
        self.start, self.w = start.check(self.n_features), start.weights.copy()

    def rank(self, X: Features, number: int) -> Ranking:
        check_features(X, self.n_features)
        order, scores, explored = draw_ranking(as_arrays(X), self.w, self.seed, number, self.exploration_price)
        return Ranking(order, scores, number, explored)

    def learn(self, X: Features, ranking: Ranking, feedback: Feedback) -> float:
        """Learns from the clicks on the first k documents and returns Σ ρ σ(s_j − s_i) over the preferred pairs."""
        shown, log_below = self._shown(X, ranking)
        items = ranking.order[: self.k]
        return self._learn(X, items, shown, log_below, self._gains(items, feedback), ranking.number)

    def pending(self, X: Features, ranking: Ranking, k: int) -> PendingRound:
        """The rows of the k documents shown, its own k, their scores as far as drawn, and log Σ e^s of those below."""
        shown, log_below = self._shown(X, ranking)
        return PendingRound(X[ranking.order[: self.k]], shown, ranking.number, X.shape[0], constant=log_below)

    def learn_pending(self, pending: PendingRound, places: Feedback) -> float:
        """Learns from a pending round what `learn` learns from the whole list, to the bit; items are places shown."""
        items = np.arange(pending.rows.shape[0])
        gains = self._gains(items, places)
        return self._learn(pending.rows, items, pending.shown, pending.constant, gains, pending.number)

    def _learn(
        self, rows: Features, items: Integers, shown: Floats, log_below: float, gains: Floats, number: int
    ) -> float:
        state = self.w, self.lagged_sum, self._sums, self._direction
        eta, t = self.step(number), self.rounds + 1.0
        loss, taken = _learnt(as_arrays(rows), items, shown, log_below, gains, eta, t, *state)
        if not taken:
            raise DataError(overflow(number))
        self.rounds += 1
        if self.start is not None:
            self.start.keep(self.w, self.lagged_sum, t)
        return loss

    def _shown(self, X: Features, ranking: Ranking) -> tuple[Floats, float]:
        """The scores of the documents shown, and log Σ e^s of those below."""
        check_features(X, self.n_features)
        m = X.shape[0]
        if ranking.scores.shape[0] != m or ranking.order.shape[0] != m or ranking.number < 0:
            raise DataError(
                f"the ranking was not made for these {m} documents: pass to `learn` the ranking that `rank` returned"
            )
        shown, log_below, wrong = _outline(ranking.scores, ranking.order, self.k, self.exploration_price)
        if wrong == _NO_DOCUMENT:
            raise DataError(f"the ranking names documents that a query of {m} documents does not have")
        if wrong == _NO_SCORE:
            raise DataError(overflow(ranking.number))
        return shown, log_below

    def _gains(self, items: Integers, feedback: Feedback) -> Floats:
        """What came back for each place shown; feedback that cannot be is refused."""
        if len(feedback.items) != len(feedback.labels):
            raise DataError(f"feedback on {len(feedback.items)} documents with {len(feedback.labels)} labels")
        gains, wrong, where = _by_place(items, len(items), feedback.items, feedback.labels)
        if not wrong:
            return gains
        item, gain = feedback.items[where], feedback.labels[where]
        raise DataError(
            {
                _NOT_SHOWN: f"feedback for document {item}, which was not among the first {len(items)} shown "
                f"({', '.join(map(str, items))})",
                _TWICE: f"feedback names document {item} twice",
                _NO_GAIN: f"labels must be finite and >= 0; document {item} has {gain}",
            }[wrong]
        )

    def state(self) -> State:
        start = {} if self.start is None else self.start.state()
        return {"rounds": self.rounds, "w": self.w.copy(), "lag": self.lagged_sum.copy(), **start}

    def restore(self, state: State) -> None:
        w, lagged_sum = (as_weights(state[name], self.n_features) for name in ("w", "lag"))
        rounds, start = stored_count(state, "rounds"), stored_start(state, self.n_features)
        self.rounds, self.w, self.lagged_sum, self.start = rounds, w, lagged_sum, start
