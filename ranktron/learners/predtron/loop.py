"""The learning loop: predict, receive the label, and on a mistake make an update of rank one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from ranktron.errors import DataError
from ranktron.kernels.csr import pull_back_rows
from ranktron.kernels.csr_rows import Sparse, linear_scores
from ranktron.kernels.dense import first_non_finite
from ranktron.kernels.jit import jit, jit_dot
from ranktron.learners.linear import stored_count
from ranktron.learners.predtron.links import Euclidean, Link
from ranktron.learners.predtron.problem import UNIT, PredictionProblem
from ranktron.learners.predtron.variants import Standard, Variant
from ranktron.learners.steps import Constant
from ranktron.types import Floats, State, Step


class MistakeRound(NamedTuple):
    """One round with a loss: everything that the bounds refer to. `correct` is σ_y of this round.

    Parameters
    ----------
    number : int
        The number of the round, from 0.
    X : array
        The input.
    label : any
        The label.
    scores : array
        The scores that were shown.
    shown, rival, correct : any
        The prediction that was shown, the one that the update lowers, and the one that it raises.
    loss : float
        The loss of the prediction shown.

    Examples
    --------
    >>> from ranktron.learners.predtron import multiclass
    >>> learner = Predtron(multiclass(3), shape=(3, 2))
    >>> x = np.array([1.0, 2.0])
    >>> mistake = learner.learn(x, learner.scores(x), label=1)
    >>> mistake.number, mistake.loss, mistake.correct
    (0, 1.0, 1)
    """

    number: int
    X: Floats
    label: Any
    scores: Floats
    shown: Any
    rival: Any
    correct: Any
    loss: float


@jit_dot
def _matrix_scores(W: Floats, x: Floats) -> Floats:
    scores = np.empty(W.shape[0])
    for i in range(W.shape[0]):
        total = 0.0
        for j in range(W.shape[1]):
            total += W[i, j] * x[j]
        scores[i] = total
    return scores


@jit
def _matrix_step(theta: Floats, g: Floats, x: Floats, eta: float) -> float:
    """Θ −= η g xᵀ, in place. Returns the sum of the changed entries, to detect an overflow."""
    moved = 0.0
    for i in range(theta.shape[0]):
        if g[i] != 0.0:
            for j in range(theta.shape[1]):
                theta[i, j] -= eta * g[i] * x[j]
                moved += abs(theta[i, j])
    return moved


@jit
def _vector_step(theta: Floats, g: Floats, X: Floats, eta: float) -> float:
    """θ −= η Xᵀ g, in place. Returns the sum of the changed entries, to detect an overflow."""
    for i in range(X.shape[0]):
        step = eta * g[i]  # read once: inside the loop it would prevent vectorisation
        if step != 0.0:
            for j in range(theta.shape[0]):
                theta[j] -= step * X[i, j]
    moved = 0.0
    for j in range(theta.shape[0]):
        moved += abs(theta[j])
    return moved


def _sparse_step(theta: Floats, g: Floats, X: Sparse, eta: float) -> float:
    """The same for sparse features."""
    direction = np.empty(len(theta))
    pull_back_rows(X.starts, X.columns, X.values, np.arange(len(X)), g, direction)
    theta -= eta * direction
    return float(np.abs(theta).sum())


@dataclass(eq=False)
class Predtron:
    """The mistake-driven learner for any prediction problem.

        on L(σ_τ, y_τ) > 0:    Θ_{τ+1} = Θ_τ − η (rep(σ~_τ) − rep(σ_y)) X_τᵀ,    W_{τ+1} = link(Θ_{τ+1})

    Weights of shape (d, p) score one example, t = W x; weights of shape (p,) score the documents of a query, t = X w,
    and are updated by Xᵀ(rep(σ~) − rep(σ_y)).

    Parameters
    ----------
    problem : PredictionProblem
        Labels, predictions, their representation and the loss.
    shape : (d, p) or (p,)
        The shape of the weights.
    step : Step
        The paper's η; `theoretical_step` computes that of the theorems.
    variant : Variant
        `Standard()` (Algorithms 1 and 3) or `LossDriven()` (Algorithm 2).
    link : Link
        `Euclidean()`, or a norm for sparse weights (Algorithm 3).
    average : bool
        Serve the mean of W_1 … W_T.

    Examples
    --------
    >>> from ranktron.learners.predtron import multiclass
    >>> learner = Predtron(multiclass(3), (3, 2))
    >>> x = np.array([1.0, 2.0])
    >>> learner.learn(x, learner.scores(x), 1).loss
    1.0
    >>> learner.scores(x)
    array([-5.,  5.,  0.])

    References
    ----------
    Jain, Natarajan, Tewari: Predtron. NIPS 2015, Algorithms 1 to 3.
    """

    problem: PredictionProblem
    shape: tuple[int, ...]
    step: Step = Constant(1.0)  # noqa: RUF009 (it is frozen)
    variant: Variant = Standard()  # noqa: RUF009 (it is frozen)
    link: Link = Euclidean()  # noqa: RUF009 (it is frozen)
    average: bool = False
    rounds: int = field(default=0, init=False)
    mistakes: int = field(default=0, init=False)
    theta: Floats = field(init=False, repr=False)
    W: Floats = field(init=False, repr=False)
    lagged_sum: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.theta = np.zeros(self.shape)
        self.W = self.link(self.theta)
        # Σ t δ_t of the steps δ_t, so that the mean of W_1 … W_T is W_{T+1} − lagged_sum / T
        self.lagged_sum = np.zeros(self.shape)

    @property
    def coef(self) -> Floats:
        """The weights to serve."""
        if self.average and self.rounds:
            return self.W - self.lagged_sum / self.rounds
        return self.W

    def scores(self, X: Any) -> Floats:
        """The scores t = W x of an example, or t = X w of a query, with the current weights.

        Parameters
        ----------
        X : array
            An example, or the documents of a query.
        """
        return _score(self.W, X)

    def predict(self, X: Any) -> Floats:
        """The same with `coef`."""
        return _score(self.coef, X)

    def learn(self, X: Any, scores: Floats, label: Any, number: int | None = None) -> MistakeRound | None:
        """Learns the label of an input that was predicted with these scores; returns the mistake, if it was one.

        Parameters
        ----------
        X : array
            The input.
        scores : array
            Its scores, as `scores` returned them.
        label : label
            The right answer, as `check` of the problem returns it.
        number : int, optional
            The number of the round, where one is counted outside.
        """
        problem, number = self.problem, self.rounds if number is None else number
        label = problem.check(label)
        if first_non_finite(scores) >= 0:
            raise DataError(f"the scores of round {number} are not finite: its features contain NaN or infinity")
        shown = problem.pred(scores, label)
        loss = problem.loss(shown, label)
        if loss > 0.0:
            rival = self.variant.rival(problem, scores, label, shown)
            correct = problem.correct(scores, label)
            away, towards = problem.rep(rival), problem.rep(correct)
            self._check_parts(away, towards, problem.loss(correct, label), label)
            self._move(X, self.variant.weight(loss) * (away - towards), self.step(number), number)
            return MistakeRound(number, X, label, scores, shown, rival, correct, loss)
        self.rounds += 1
        return None

    def _check_parts(self, away: Floats, towards: Floats, remaining: float, label: Any) -> None:
        for vector in (away, towards):
            squared = float(vector @ vector)
            if not abs(squared - 1.0) <= 2.0 * UNIT:
                raise DataError(f"representations must have length 1; one of this problem has {squared**0.5:g}")
        if remaining != 0.0:
            raise DataError(f"every label needs a prediction without loss; that of {label!r} has {remaining:g}")

    def _move(self, X: Any, g: Floats, eta: float, number: int) -> None:
        theta = self.theta.copy()
        step = _sparse_step if isinstance(X, Sparse) else _matrix_step if theta.ndim == 2 else _vector_step
        moved = step(theta, g, X, eta)
        W = self.link(theta) if isfinite(moved) else theta
        if first_non_finite(W.ravel()) >= 0:
            raise DataError(
                f"scores or weights overflow in round {number}: choose a smaller step or scale the features"
            )
        self.rounds += 1
        self.mistakes += 1
        self.lagged_sum += self.rounds * (W - self.W)
        self.theta, self.W = theta, W

    def state(self) -> State:
        arrays = {"theta": self.theta.copy(), "lag": self.lagged_sum.copy()}
        return {"rounds": self.rounds, "mistakes": self.mistakes, **arrays}

    def restore(self, state: State) -> None:
        theta, lagged_sum = (np.array(state[name], float) for name in ("theta", "lag"))
        if theta.shape != self.shape or lagged_sum.shape != self.shape or not np.isfinite(theta + lagged_sum).all():
            raise DataError(f"the state does not hold finite weights of shape {self.shape}")
        rounds, mistakes = stored_count(state, "rounds"), stored_count(state, "mistakes")
        self.rounds, self.mistakes, self.theta, self.lagged_sum = rounds, mistakes, theta, lagged_sum
        self.W = self.link(theta)


def _score(W: Floats, X: Any) -> Floats:
    if X.ndim != 3 - W.ndim or X.shape[-1] != W.shape[-1]:
        what = "an example" if W.ndim == 2 else "a list of documents"
        raise DataError(f"{what} with {W.shape[-1]} features was expected, not an array of shape {X.shape}")
    return _matrix_scores(W, X) if W.ndim == 2 else linear_scores(X, W)


def theoretical_step(problem: PredictionProblem, variant: Variant, link: Link, radius: float) -> Constant:
    """The step size of Theorems 1, 14 and 15 for inputs whose |||X||| is at most `radius`.

    Parameters
    ----------
    problem : PredictionProblem
        Labels, predictions, their representation and the loss.
    variant : Variant
        Which prediction an update lowers.
    link : Link
        The norm in which margins are measured.
    radius : float
        The largest |||X||| of the inputs, in that norm.

    Examples
    --------
    >>> from ranktron.learners.predtron import binary
    >>> theoretical_step(binary(), Standard(), Euclidean(), radius=1.0)
    Constant(eta=0.25)
    """
    if not 0.0 < radius < float("inf"):
        raise DataError(f"the radius of the inputs must be a positive number, not {radius}")
    return Constant(variant.eta(problem, link.alpha, radius))


def walk(learner: Predtron, examples: Iterable[tuple[Any, Any]]) -> Iterator[MistakeRound | None]:
    """Plays a stream of (input, label): yields one result per round, None if there was no mistake.

    Parameters
    ----------
    learner : Predtron
        The learner; it is changed.
    examples : iterable of (input, label)
        The stream.

    Examples
    --------
    >>> from ranktron.learners.predtron import binary
    >>> stream = [(np.array([1.0, 0.0]), 1), (np.array([0.0, 1.0]), 0), (np.array([2.0, -1.0]), 1)]
    >>> [mistake is not None for mistake in walk(Predtron(binary(), (1, 2)), stream)]
    [True, True, False]
    """
    for X, label in examples:
        yield learner.learn(X, learner.scores(X), label)
