"""RankBoost: a weighted sum of thresholded features, chosen greedily to correct misordered pairs.

    H(x) = Σ_t α_t h_t(x),    h_t(x) = [x_{f_t} > θ_t],    α_t = ½ ln((1 + r_t)/(1 − r_t)),
    r_t = Σ_{(i, j)} D_t(i, j) (h_t(x_i) − h_t(x_j))

i has a higher grade than j for the same query; D_t(i, j) ∝ D_1(i, j) exp(H_{t−1}(x_j) − H_{t−1}(x_i)) factorises, so
that one number per document represents all of its pairs (Freund et al., 2003, section 3.2). D_1(i, j) ∝ u_i u_j if
documents have weights u.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.blocks import Blocks
from ranktron.kernels.csr_rows import as_dense
from ranktron.kernels.grades import grades, pair_weights
from ranktron.kernels.jit import jit
from ranktron.kernels.memory import zeros
from ranktron.kernels.sorting import argsort_descending
from ranktron.learners.base import BaseLearner
from ranktron.learners.batch.thresholds import add_step, find_thresholds, step_scores
from ranktron.learners.schedule import Fit
from ranktron.types import Features, Feedback, Floats, Integers, Ranking, State

_SURE = 1.0 - 1e-9
"""A threshold that orders every pair would weigh infinitely much: r is cut off here."""

_MENDED = 1e-12
"""A potential below this means that every pair is in order by a wide margin: nothing is left to choose."""


@jit
def fill_potentials(
    scores: Floats, labels: Floats, offsets: Integers, weights: Floats, parts: Floats, out: Floats, upper: Floats,
    first: int, last: int,
) -> None:  # fmt: skip
    """Fills for documents of some queries the weight of their pairs as the upper one, and that minus as the lower one.

    >>> (out, upper), labels = np.empty((2, 3)), np.array([2.0, 0.0, 1.0])
    >>> fill_potentials(np.zeros(3), labels, np.array([0, 3]), np.ones(1), np.ones(3), out, upper, 0, 1)
    >>> out, upper
    (array([ 2., -2.,  0.]), array([2., 0., 1.]))
    """
    for q in range(first, last):
        start, stop = offsets[q], offsets[q + 1]
        codes, count = grades(labels[start:stop])
        highest = lowest = scores[start]
        for i in range(start + 1, stop):
            highest, lowest = max(highest, scores[i]), min(lowest, scores[i])
        middle = 0.5 * (highest + lowest)
        down = zeros(count + 1)  # down[g]: Σ u exp(H) of the grades below g; up[g]: Σ u exp(−H) of those from g on
        up = zeros(count + 1)
        for i in range(start, stop):
            rising, falling = np.exp(scores[i] - middle), np.exp(middle - scores[i])
            out[i], upper[i] = rising, falling
            down[codes[i - start] + 1] += parts[i] * rising
            up[codes[i - start]] += parts[i] * falling
        for g in range(count):
            down[g + 1] += down[g]
            up[count - 1 - g] += up[count - g]
        for i in range(start, stop):
            weight = weights[q] * parts[i]
            above = weight * upper[i] * down[codes[i - start]]
            out[i], upper[i] = above - weight * out[i] * up[codes[i - start] + 1], above


@jit
def add_up(numbers: Floats) -> float:
    """The sum, from the first number to the last one.

    >>> add_up(np.array([1.0, 2.0]))
    3.0
    """
    total = 0.0
    for i in range(numbers.shape[0]):
        total += numbers[i]
    return total


@dataclass(eq=False)
class Stumps(BaseLearner):
    """Scores with a sum of thresholded features; does not learn online.

    >>> stumps = Stumps(1)
    >>> stumps.restore({"features": [0, 0], "thresholds": [0.5, 1.5], "alphas": [1.0, 2.0]})
    >>> stumps.predict(np.array([[0.0], [1.0], [2.0]], np.float32))
    array([0., 1., 3.])
    """

    n_features: int
    rounds: int = field(default=0, init=False)
    features: Integers = field(init=False, repr=False)
    thresholds: Floats = field(init=False, repr=False)
    alphas: Floats = field(init=False, repr=False)

    learns_online = False
    linear = False

    def __post_init__(self) -> None:
        self.features, self.thresholds, self.alphas = np.zeros(0, np.int64), np.zeros(0), np.zeros(0)

    def scores(self, X: Features) -> Floats:
        return step_scores(X, self.features, self.thresholds, self.alphas)

    predict = scores

    def contributions(self, X: Features) -> Floats:
        """Thresholds of one feature add up to a curve of that feature."""
        dense, found = as_dense(X), np.zeros(X.shape)
        for feature, threshold, alpha in zip(self.features, self.thresholds, self.alphas, strict=True):
            found[:, feature] += alpha * (dense[:, feature] > threshold)
        return found

    def rank(self, X: Features, number: int) -> Ranking:
        scores = self.scores(X)
        return Ranking(argsort_descending(scores), scores, number)

    def learn(self, X: Features, ranking: Ranking, feedback: Feedback) -> float:
        raise DataError("a RankBoost model is trained on a whole data set and cannot learn online: train it again")

    def state(self) -> State:
        return {"features": self.features, "thresholds": self.thresholds, "alphas": self.alphas}

    def restore(self, state: State) -> None:
        features = np.array(state["features"], np.int64)
        thresholds, alphas = np.array(state["thresholds"], float), np.array(state["alphas"], float)
        fits = features.shape == thresholds.shape == alphas.shape and features.ndim == 1
        fits = fits and bool(np.isfinite(thresholds).all() and np.isfinite(alphas).all())
        if not fits or (len(features) and not 0 <= features.min() <= features.max() < self.n_features):
            raise DataError(f"the state does not hold thresholds of {self.n_features} features")
        self.features, self.thresholds, self.alphas = features, thresholds, alphas


def pair_shares(rounds: Rounds, balance: str, parts: Floats | None = None) -> tuple[Floats, Floats]:
    """How much a pair of each query weighs, and the number of its pairs, or what `parts` of documents make of it.

    >>> pair_shares(Rounds.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 1]), "query")
    (array([0.5]), array([2.]))
    """
    counts = pair_weights(rounds.labels, rounds.offsets, np.ones(len(rounds.labels)) if parts is None else parts)
    shares = (counts > 0.0).astype(float)
    if balance == "query":
        shares /= np.where(counts > 0.0, counts, 1.0)
    return shares, counts


def weigh_threshold(gathered: float, potential: float) -> float | None:
    """The weight α of a threshold, from the sum of weights above it and the weight of all pairs; None if none helps.

    >>> round(weigh_threshold(0.5, 1.0), 4), weigh_threshold(0.0, 1.0)
    (0.5493, None)
    """
    if gathered == 0.0 or potential < _MENDED:
        return None
    r = min(max(gathered / potential, -_SURE), _SURE)
    return 0.5 * float(np.log((1.0 + r) / (1.0 - r)))


@dataclass(eq=False)
class Boosting:
    """The state of boosting: the scores so far; each `step` adds a threshold.

    `potential` is the mean of exp(H(x_j) − H(x_i)) over pairs, which bounds the share of misordered pairs and decreases
    with every step by a factor of at most √(1 − r²). `list_weights` has one number for each query: a query of weight 2
    counts like two queries. `document_weights` has one for each document: one of weight 2 counts like two documents.

    Examples
    --------
    >>> lists = Rounds.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 1])
    >>> boosting = Boosting(lists)
    >>> boosting.step()
    True
    >>> boosting.features, boosting.thresholds
    ([0], [1.5])
    """

    rounds: Rounds
    balance: str = "pair"
    list_weights: Floats | None = None
    document_weights: Floats | None = None
    features: list[int] = field(default_factory=list)
    thresholds: list[float] = field(default_factory=list)
    alphas: list[float] = field(default_factory=list)
    potential: float = 1.0

    def __post_init__(self) -> None:
        n = len(self.rounds.labels)
        self._parts = np.ones(n) if self.document_weights is None else self.document_weights
        weights, counts = pair_shares(self.rounds, self.balance, self._parts)
        self.idle = int(np.count_nonzero(counts == 0.0))
        if self.list_weights is not None:
            weights = weights * self.list_weights
        self._weights = weights / max(float(weights @ counts), 1e-300)
        self._thresholds = find_thresholds(self.rounds.X)
        self._pi, self._upper, self.scores = np.empty(n), np.empty(n), np.zeros(n)
        self._blocks = Blocks(8 * n)

    def step(self) -> bool:
        """Adds one more threshold; False if none would help."""
        rounds = self.rounds
        asked = self.scores, rounds.labels, rounds.offsets, self._weights, self._parts, self._pi, self._upper
        self._blocks(fill_potentials, len(rounds), *asked)
        self.potential = add_up(self._upper)
        feature, threshold, gathered = self._thresholds.best(self._pi)
        alpha = weigh_threshold(gathered, self.potential)
        if alpha is None:
            return False
        self.add(feature, threshold, alpha)
        return True

    def add(self, feature: int, threshold: float, alpha: float) -> None:
        """Adds a thresholded feature."""
        self.features.append(int(feature))
        self.thresholds.append(float(threshold))
        self.alphas.append(alpha)
        add_step(self.rounds.X, feature, threshold, alpha, self.scores)


class ThresholdSum(Protocol):
    """Thresholds that are found one after the other, on one machine or on several."""

    features: list[int]
    thresholds: list[float]
    alphas: list[float]
    idle: int

    def step(self) -> bool: ...

    def add(self, feature: int, threshold: float, alpha: float) -> None: ...


def fit_rank_boost(fit: Fit, parameters: Mapping[str, Any]) -> State:
    """Adds `n_rounds` thresholds to those of `start`; the validation set chooses how many are kept."""
    boosting = Boosting(fit.rounds, parameters["balance"], fit.weights, fit.document_weights)
    return boost(fit, parameters["n_rounds"], boosting)


def boost(fit: Fit, n_rounds: int, boosting: ThresholdSum) -> State:
    """Adds thresholds to those of the state to start from, and evaluates each sum on the validation set."""
    history, start = fit.history, fit.start
    scores = np.zeros(0 if fit.validation is None else len(fit.validation.rounds.labels))

    def add_to_scores(feature: int, threshold: float, alpha: float) -> None:
        if fit.validation is not None:
            add_step(fit.validation.rounds.X, feature, threshold, alpha, scores)

    if start:
        for stump in zip(start["features"], start["thresholds"], start["alphas"], strict=True):
            boosting.add(*stump)
            add_to_scores(*stump)
    history.first_epoch = history.epoch = len(boosting.alphas)
    last = history.epoch + n_rounds
    with fit.running():
        while history.epoch < last and not fit.finished and boosting.step():
            history.epoch, history.rounds = history.epoch + 1, history.rounds + fit.queries
            add_to_scores(boosting.features[-1], boosting.thresholds[-1], boosting.alphas[-1])
            fit.evaluate(lambda _valid: scores, lambda: history.epoch)
    history.remarks["queries of one grade"] = boosting.idle
    return stump_state(boosting, fit.best() or history.epoch)


def stump_state(boosting: ThresholdSum, steps: int) -> State:
    """The state of a scorer with the first thresholds.

    >>> stump_state(Boosting(Rounds.from_arrays([[1.0], [2.0]], [0, 1])), 0)["alphas"]
    array([], dtype=float64)
    """
    return {
        "features": np.array(boosting.features[:steps], np.int64),
        "thresholds": np.array(boosting.thresholds[:steps], float),
        "alphas": np.array(boosting.alphas[:steps], float),
    }
