"""The linear learner: scores X w, and (sub)gradient steps on a surrogate."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import ClassVar

import numpy as np

from ranktron.errors import DataError
from ranktron.kernels.csr_rows import check_features
from ranktron.kernels.dense import gather_observed, is_full
from ranktron.kernels.dispatch import FeatureArrays, as_arrays, dot_rows, sgd_step
from ranktron.kernels.jit import jit
from ranktron.kernels.sorting import argsort_descending
from ranktron.learners.base import WeightVectorLearner
from ranktron.learners.fused_step import Specs, fused_round, fused_spec
from ranktron.learners.mixing import mix_states
from ranktron.learners.start import Start, stored_start
from ranktron.learners.steps import Constant
from ranktron.surrogates import WorstPair
from ranktron.types import Features, Feedback, Floats, Integers, Mistake, Ranking, State, Step, Surrogate

LARGEST_COUNT = 1 << 53  # of rounds, pairs or mistakes: float64 cannot represent all larger integers


@jit
def _rank(X: FeatureArrays, vectors: Floats) -> tuple[Integers, Floats]:
    scores = dot_rows(X, vectors[0])
    return argsort_descending(scores), scores


@dataclass(eq=False)
class Linear(WeightVectorLearner):
    """Online (sub)gradient descent on a surrogate, on mistakes only if `mistake` is given.

        w_{t+1} = w_t − η_t X_tᵀ ∇φ(s_t, R_t),    s_t = X_t w_t

    `begin` sets w_1, which is 0 otherwise, and the ball around it that each step is projected onto, if any.

    The gradient is taken at the scores *of the ranking that was shown*, so that feedback may come late. With `average`,
    `coef` and `predict` use the mean of w_1 … w_T; `rank` always uses the current w.

    Parameters
    ----------
    n_features : int
        The number of features.
    surrogate : Surrogate
        The loss in score space, with its gradient.
    step : Step
        The step size of each round.
    mistake : Mistake, optional
        Which rankings are mistakes; without it there is an update in every round.
    average : bool
        Serve the mean of all weight vectors instead of the last one.

    Examples
    --------
    >>> from ranktron.learners.steps import Constant
    >>> from ranktron.surrogates import PairwiseHinge
    >>> learner = Linear(1, PairwiseHinge(), Constant(0.5))
    >>> X = np.array([[1.0], [3.0]], np.float32)
    >>> learner.learn(X, learner.rank(X, 0), Feedback(np.array([0, 1]), np.array([0.0, 1.0])))
    1.0
    >>> learner.w
    array([1.])
    """

    n_features: int
    surrogate: Surrogate
    step: Step
    mistake: Mistake | None = None
    average: bool = False
    rescales: ClassVar = True
    mixes: ClassVar = True
    begins: ClassVar = True
    rounds: int = field(default=0, init=False)
    mistakes: int = field(default=0, init=False)
    # rows: w, Σ t δ_t of the steps δ_t, and a direction for kernels, which is 0 between rounds
    vectors: Floats = field(init=False, repr=False)
    sums: Floats = field(init=False, repr=False)  # Σ f_t(w_t), Σ η_t f_t(w_t), Σ η_t² |z_t|²: for certificates
    start: Start | None = field(default=None, init=False, repr=False)  # w_1, and the ball around it; None: w_1 = 0
    fused: Specs | None = field(init=False, repr=False)  # for compiled rounds; None where kernels do not know the loss

    def __post_init__(self) -> None:
        self.vectors, self.sums = np.zeros((3, self.n_features)), np.zeros(3)
        self.fused = fused_spec(self.surrogate, self.mistake)

    @property
    def w(self) -> Floats:
        """The current weights."""
        w: Floats = self.vectors[0]
        return w

    @w.setter
    def w(self, w: Floats) -> None:
        self._replace(0, w)

    @property
    def lagged_sum(self) -> Floats:
        """Σ t δ_t of the steps δ_t: the mean of w_1 … w_T is w_{T+1} − lagged_sum / T."""
        lagged_sum: Floats = self.vectors[1]
        return lagged_sum

    @lagged_sum.setter
    def lagged_sum(self, lagged_sum: Floats) -> None:
        self._replace(1, lagged_sum)

    def _replace(self, row: int, values: Floats) -> None:
        self.vectors = self.vectors.copy()  # arrays that were taken from it stay as they are
        self.vectors[row] = values

    @property
    def coef(self) -> Floats:
        """The weights to serve."""
        if self.average and self.rounds:
            return self.w - self.lagged_sum / self.rounds
        return self.w

    @property
    def scale_free(self) -> bool:
        """On mistakes only, and by as much however large the loss is: from 0, weights are proportional to the step."""
        steady = self.mistake is not None and self.start is None and isinstance(self.step, Constant)
        return steady and isinstance(self.surrogate, WorstPair)

    def begin(self, start: Start) -> None:
        self.start, self.w = start.check(self.n_features), start.weights

    def rank(self, X: Features, number: int) -> Ranking:
        check_features(X, self.n_features)
        order, scores = _rank(as_arrays(X), self.vectors)
        return Ranking(order, scores, number)

    def learn(self, X: Features, ranking: Ranking, feedback: Feedback) -> float:
        """Learns from the observed labels and returns the surrogate's loss (0 if there was no mistake)."""
        m, width = X.shape
        if width != self.n_features:
            check_features(X, self.n_features)
        if self.fused is not None:
            eta, t = self.step(ranking.number), self.rounds + 1.0
            loss: float = fused_round(
                as_arrays(X), m, ranking.scores, feedback.items, feedback.labels, self.fused, eta, t,
                self.vectors, self.sums, 0,
            )  # fmt: skip
            if loss == loss:
                self._count(loss)
                return loss
        return self._learn_step_by_step(X, ranking, feedback)

    def _learn_step_by_step(self, X: Features, ranking: Ranking, feedback: Feedback) -> float:
        """`learn` for any surrogate, also with feedback on some documents; raises the errors for invalid rounds."""
        scores = observed_scores(X, ranking, feedback)
        if self.mistake is not None and not self.mistake(scores, feedback.labels):
            self.rounds += 1
            return 0.0
        loss, gradient = self.surrogate(scores, feedback.labels)
        eta = self.step(ranking.number)
        t = self.rounds + 1.0
        w, lagged_sum, direction = self.vectors
        step = gradient, loss, eta, t, w, lagged_sum, self.sums, direction, 0
        if not sgd_step(as_arrays(X), feedback.items, *step):
            raise DataError(overflow(ranking.number))
        self._count(loss)
        return loss

    def _count(self, loss: float) -> None:
        """Counts a round whose step was taken, and projects the weights onto the ball around the start."""
        self.rounds += 1
        self.mistakes += loss > 0.0
        if self.start is not None:
            self.start.keep(self.w, self.lagged_sum, self.rounds)

    def rescale(self, factors: Floats) -> None:
        """Multiplies each weight by a factor of its own: the scale of its feature has changed by as much."""
        if self.start is not None:
            raise DataError("a learner that started from given weights has the scaling of its start, which is fixed")
        self.vectors[:2] *= factors

    def mix(self, start: State, states: Sequence[State], weights: Floats) -> State:
        return mix_states(start, states, weights)

    def state(self) -> State:
        arrays = {"w": self.w.copy(), "lag": self.lagged_sum.copy(), "sums": self.sums.copy()}
        start = {} if self.start is None else self.start.state()
        return {"rounds": self.rounds, "mistakes": self.mistakes, **arrays, **start}

    def restore(self, state: State) -> None:
        w, lagged_sum = (as_weights(state[name], self.n_features) for name in ("w", "lag"))
        sums, start = as_weights(state["sums"], 3), stored_start(state, self.n_features)
        rounds, mistakes = stored_count(state, "rounds"), stored_count(state, "mistakes")
        self.rounds, self.mistakes, self.start = rounds, mistakes, start
        self.w, self.lagged_sum, self.sums = w, lagged_sum, sums


def as_weights(kept: Floats, n_features: int) -> Floats:
    """The weights of a state, as a copy; anything but one finite number per feature is refused."""
    weights = np.array(kept, float)
    if weights.shape != (n_features,) or not np.isfinite(weights).all():
        raise DataError(f"the state does not hold one finite weight for each of {n_features} features")
    return weights


def stored_count(state: State, name: str) -> int:
    """A count of a state; an impossible one is refused."""
    count = int(state[name])
    if not 0 <= count <= LARGEST_COUNT:
        raise DataError(f"the state does not hold a number from 0 to {LARGEST_COUNT} under {name!r}, but {count}")
    return count


def stored_number(state: State, name: str) -> float:
    """A finite number of a state."""
    number = float(state[name])
    if not isfinite(number):
        raise DataError(f"the state does not hold a finite number under {name!r}, but {number}")
    return number


def overflow(number: int) -> str:
    """The error message for a round whose scores or weights overflow."""
    return (
        f"numbers overflow in round {number}: choose a smaller step, scale the features, or use smaller labels; "
        "NaN or infinity among the features does it, too"
    )


def observed_scores(X: Features, ranking: Ranking, feedback: Feedback) -> Floats:
    """The scores of the observed documents as they were shown; invalid feedback is refused."""
    if ranking.scores.shape[0] == X.shape[0]:
        if is_full(feedback.items, feedback.labels, X.shape[0]):
            return ranking.scores
        scores, bad = gather_observed(ranking.scores, feedback.items, feedback.labels)
        if bad < 0:
            return scores
    else:
        bad = -1
    raise DataError(why_refused(ranking, feedback, bad))


def why_refused(ranking: Ranking, feedback: Feedback, bad: int) -> str:
    """The error message for the observation at `bad` that `gather_observed` found invalid."""
    m = ranking.scores.shape[0]
    if bad < 0:
        return f"the ranking was made for a list of {m} documents, this list has another length"
    if len(feedback.items) != len(feedback.labels):
        return f"feedback on {len(feedback.items)} documents with {len(feedback.labels)} labels"
    item, label = feedback.items[bad], feedback.labels[bad]
    if not 0 <= item < m:
        return f"feedback for document {item}, but the list has documents 0 to {m - 1}"
    if item in feedback.items[:bad]:
        return f"feedback names document {item} twice"
    return f"labels must be finite and >= 0; document {item} has {label}"
