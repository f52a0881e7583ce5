"""Removal rules: what a kernel learner does when its budget is full."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ranktron.errors import DataError
from ranktron.learners.kernelized.support import Support
from ranktron.types import Features, Floats


class Removal(Protocol):
    """Adds new documents with their updates to a support that has no room for all of them.

    `steps` has a row for each row of the support's table and a column for each document; `time` is the current time.
    """

    def admit(self, support: Support, X: Features, steps: Floats, time: float, /) -> None:
        """Adds the new documents and makes room for them.

        Parameters
        ----------
        support : Support
            The documents that are kept.
        X : array
            The new ones.
        steps : array
            Their coefficients: a row for each row of the support's table, a column per document.
        time : float
            The current time.
        """


@dataclass(frozen=True)
class Oldest:
    """Removes the oldest documents: what remains is a sliding window on the stream.

    >>> from ranktron.learners.kernelized.budget import Budget
    >>> from ranktron.learners.kernelized.functions import LinearKernel
    >>> support = Support(1, LinearKernel(), Budget(2))
    >>> support.add(np.array([[1.0], [2.0]], np.float32), np.array([[9.0, 0.1], [0.0, 0.0]]))
    >>> Oldest().admit(support, np.array([[3.0]], np.float32), np.ones((2, 1)), 1.0)
    >>> sorted(support.documents.ravel().tolist())
    [2.0, 3.0]
    """

    def admit(self, support: Support, X: Features, steps: Floats, time: float) -> None:
        support.exchange(support.born, X, steps)


@dataclass(frozen=True)
class Random:
    """Removes random documents; the draw is a function of the seed and of the number of documents so far.

    Parameters
    ----------
    seed : int
        Seed of the draws.

    Examples
    --------
    >>> Random(seed=3)
    Random(seed=3)
    """

    seed: int = 0

    def admit(self, support: Support, X: Features, steps: Floats, time: float) -> None:
        rng = np.random.default_rng((self.seed, support.stored))
        support.exchange(rng.permutation(len(support)), X, steps)


@dataclass(frozen=True)
class Smallest:
    """Removes the documents with the smallest weights, and shrinks all coefficients as it does (as the Forgetron).

    Without shrinking, a document with a large coefficient would stay for ever. While as many documents are removed as
    the budget has, all coefficients shrink by e^(−fade); this does not change any ranking, since a
    positive factor keeps the order.

    Parameters
    ----------
    fade : float >= 0
        How much coefficients shrink while as many documents are removed as the budget has; 0: not at all.

    Examples
    --------
    >>> from ranktron.learners.kernelized.budget import Budget
    >>> from ranktron.learners.kernelized.functions import LinearKernel
    >>> support = Support(1, LinearKernel(), Budget(2))
    >>> support.add(np.array([[1.0], [2.0]], np.float32), np.array([[9.0, 0.1], [0.0, 0.0]]))
    >>> Smallest(fade=0.0).admit(support, np.array([[3.0]], np.float32), np.ones((2, 1)), 1.0)
    >>> sorted(support.documents.ravel().tolist())
    [1.0, 3.0]

    References
    ----------
    Dekel, Shalev-Shwartz and Singer, The Forgetron: A Kernel-Based Perceptron on a Budget (2008).
    """

    fade: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.fade < np.inf:
            raise DataError(f"fade must be 0 (off) or more, not {self.fade}")

    def admit(self, support: Support, X: Features, steps: Floats, time: float) -> None:
        gone = support.exchange(support.weights, X, steps)
        support.shrink(float(np.exp(-self.fade * gone / len(support))), time)


@dataclass(frozen=True)
class Projection:
    """Keeps the documents of a full budget and projects every further update onto their span (as the Projectron).

        min over β of |Σ_s β_s k(s, ·) − Σ_i δ_i k(x_i, ·)|²,    (K_SS + ridge) β = K_SX δ

    Only the part of an update outside the span is lost. The Cholesky factor of K_SS is computed once; an update costs
    O(budget²), where the other rules cost O(budget).

    Parameters
    ----------
    ridge : float > 0
        Added to the diagonal of K_SS, as a share of its mean.

    Examples
    --------
    >>> from ranktron.learners.kernelized.budget import Budget
    >>> from ranktron.learners.kernelized.functions import LinearKernel
    >>> support = Support(1, LinearKernel(), Budget(1))
    >>> support.add(np.array([[1.0]], np.float32), np.array([[1.0], [0.0]]))
    >>> Projection(1e-12).admit(support, np.array([[3.0]], np.float32), np.ones((2, 1)), 1.0)
    >>> support.documents.tolist(), support.alpha.round(6).tolist()  # 1·⟨1, x⟩ + 1·⟨3, x⟩ = 4·⟨1, x⟩
    ([[1.0]], [4.0])

    References
    ----------
    Orabona, Keshet and Caputo, Bounded Kernel-Based Online Learning (2009).
    """

    ridge: float = 1e-4

    def __post_init__(self) -> None:
        if not 0.0 < self.ridge < np.inf:
            raise DataError(f"the ridge must be a positive number, not {self.ridge}")

    def admit(self, support: Support, X: Features, steps: Floats, time: float) -> None:
        from scipy.linalg import cho_solve

        free = support.fitting(X)
        support.add(X[:free], steps[:, :free])
        rest = support.cross(X[free:], steps[:, free:])
        support.spread(cho_solve(support.factor(self.ridge), rest, check_finite=False).T)


RULES: dict[str, Removal] = {
    "oldest": Oldest(),
    "random": Random(),
    "smallest": Smallest(),
    "projection": Projection(),
}
