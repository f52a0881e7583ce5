"""What a kernel learner does when its budget is full: rules that let documents go, or none in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ranktron.errors import DataError
from ranktron.learners.kernel_support import Support
from ranktron.types import Floats, Integers, Matrix


class Removal(Protocol):
    """Takes new documents with their steps into a support that has no room for all of them.

    `delta` are their coefficients, `lagged` the same times the time of each step, `time` is the time now.
    """

    def admit(self, support: Support, X: Matrix, delta: Floats, lagged: Floats, time: float, /) -> None: ...


def _replace(support: Support, slots: Integers, X: Matrix, delta: Floats, lagged: Floats) -> None:
    """Fills what room there is, then the given slots."""
    free = support.room
    support.add(X[:free], delta[:free], lagged[:free])
    support.replace(slots, X[free:], delta[free:], lagged[free:])


@dataclass(frozen=True)
class Oldest:
    """Lets the documents go that came in first: what remains is a window on the stream.

    >>> from ranktron.learners.kernel_functions import LinearKernel
    >>> support = Support(1, LinearKernel(), most=2)
    >>> X, one = np.array([[1.0], [2.0]], np.float32), np.ones(1)
    >>> support.add(X, np.array([9.0, 0.1]), np.zeros(2))
    >>> Oldest().admit(support, np.array([[3.0]], np.float32), one, one, 1.0)
    >>> sorted(support.X.ravel().tolist())
    [2.0, 3.0]
    """

    def admit(self, support: Support, X: Matrix, delta: Floats, lagged: Floats, time: float) -> None:
        excess = len(X) - support.room
        oldest = np.argpartition(support.born, excess - 1)[:excess]
        _replace(support, oldest, X, delta, lagged)


@dataclass(frozen=True)
class Random:
    """Lets documents go at random; the draw is a function of the seed and of how many came in so far.

    >>> Random(seed=3)
    Random(seed=3)
    """

    seed: int = 0

    def admit(self, support: Support, X: Matrix, delta: Floats, lagged: Floats, time: float) -> None:
        rng = np.random.default_rng((self.seed, support.stored))
        drawn = rng.choice(len(support), len(X) - support.room, replace=False)
        _replace(support, drawn, X, delta, lagged)


@dataclass(frozen=True)
class Smallest:
    """Lets the documents go that weigh least, and lets all coefficients fade as documents go (as the Forgetron does).

    Without fading a document with a large coefficient would stay for ever. While as many documents go as the budget
    holds, coefficients shrink by e^(−fade).

    Parameters
    ----------
    fade : float >= 0

    Examples
    --------
    >>> from ranktron.learners.kernel_functions import LinearKernel
    >>> support = Support(1, LinearKernel(), most=2)
    >>> support.add(np.array([[1.0], [2.0]], np.float32), np.array([9.0, 0.1]), np.zeros(2))
    >>> Smallest(fade=0.0).admit(support, np.array([[3.0]], np.float32), np.ones(1), np.ones(1), 1.0)
    >>> sorted(support.X.ravel().tolist())
    [1.0, 3.0]
    """

    fade: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.fade < np.inf:
            raise DataError(f"fade must be 0 (off) or more, not {self.fade}")

    def admit(self, support: Support, X: Matrix, delta: Floats, lagged: Floats, time: float) -> None:
        excess = len(X) - support.room
        smallest = np.argpartition(np.abs(support.alpha), excess - 1)[:excess]
        _replace(support, smallest, X, delta, lagged)
        support.shrink(float(np.exp(-self.fade * excess / support.most)), time)


@dataclass(frozen=True)
class Projection:
    """Keeps the documents of a full budget and projects every further step onto their span (as the Projectron does).

        min over β of |Σ_s β_s k(s, ·) − Σ_i δ_i k(x_i, ·)|²,    (K_SS + ridge) β = K_SX δ

    Of a step only that is lost which the documents cannot express. The factor of K_SS is computed once; a step costs
    O(budget²), where the other rules cost O(budget).

    Parameters
    ----------
    ridge : float > 0
        Added to the diagonal of K_SS, as a share of its mean.

    Examples
    --------
    >>> from ranktron.learners.kernel_functions import LinearKernel
    >>> support = Support(1, LinearKernel(), most=1)
    >>> support.add(np.array([[1.0]], np.float32), np.ones(1), np.zeros(1))
    >>> Projection(1e-12).admit(support, np.array([[3.0]], np.float32), np.ones(1), np.ones(1), 1.0)
    >>> support.X.tolist(), support.alpha.round(6).tolist()  # 1·⟨1, x⟩ + 1·⟨3, x⟩ = 4·⟨1, x⟩
    ([[1.0]], [4.0])
    """

    ridge: float = 1e-4

    def __post_init__(self) -> None:
        if not 0.0 < self.ridge < np.inf:
            raise DataError(f"the ridge must be a positive number, not {self.ridge}")

    def admit(self, support: Support, X: Matrix, delta: Floats, lagged: Floats, time: float) -> None:
        free = support.room
        support.add(X[:free], delta[:free], lagged[:free])
        rest = slice(free, None)
        support.spread(self._onto(support, X[rest], delta[rest]), self._onto(support, X[rest], lagged[rest]))

    def _onto(self, support: Support, X: Matrix, steps: Floats) -> Floats:
        from scipy.linalg import cho_solve

        beta: Floats = cho_solve(support.factor(self.ridge), support.cross(X, steps), check_finite=False)
        return beta


RULES: dict[str, Removal] = {
    "oldest": Oldest(),
    "random": Random(),
    "smallest": Smallest(),
    "projection": Projection(),
}
