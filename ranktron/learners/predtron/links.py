"""Links: how the weights W are computed from the sum Θ of all steps, and the norms in which margins are measured.

    W = (∇ψ)^-1(Θ),    ψ(W) = ½‖W‖²

For the Euclidean norm the link is the identity. For the l1 norm and its variants ψ uses an r-norm close to it, with
r = log p/(log p − 1) over p coordinates (natural logarithm) and the dual exponent q = log p: then

    W = ∇ ½‖Θ‖_q²,    ½‖·‖_r² is (r − 1)-strongly convex,    ‖·‖_r <= ‖·‖_1 <= 3‖·‖_r.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Protocol

import numpy as np

from ranktron.errors import DataError
from ranktron.kernels.jit import jit
from ranktron.types import Floats

NORMS = ("l2", "l1", "group", "trace")


class Link(Protocol):
    """A link with the norms that its loss bound needs.

    `alpha` is the strong convexity of ψ; `norm` the norm ‖W‖ of ψ, `dual` the norm of Θ dual to it; `sparse` the norm
    that the paper states margins in (‖·‖ <= sparse); `radius` the |||X||| with ‖∇‖_* <= ‖u‖_2 |||X||| for a gradient
    u Xᵀ (or Xᵀu).
    """

    @property
    def alpha(self) -> float: ...

    def __call__(self, theta: Floats, /) -> Floats: ...

    def norm(self, W: Floats, /) -> float:
        """Returns ‖W‖, the norm of ψ.

        Parameters
        ----------
        W : array
            Weights.
        """

    def dual(self, theta: Floats, /) -> float:
        """Returns the norm of Θ dual to `norm`.

        Parameters
        ----------
        theta : array
            A sum of gradients.
        """

    def sparse(self, W: Floats, /) -> float:
        """Returns the norm that the paper states margins in.

        Parameters
        ----------
        W : array
            Weights.
        """

    def radius(self, X: Floats, /) -> float:
        """The operator norm of X, |||X|||; bounds the gradient.

        Parameters
        ----------
        X : array
            An example, or the documents of a query.
        """


@jit
def _power_norm(values: Floats, q: float) -> float:
    """‖v‖_q without overflow of the powers."""
    largest = 0.0
    for j in range(values.shape[0]):
        largest = max(largest, abs(values[j]))
    if largest == 0.0:
        return 0.0
    total = 0.0
    for j in range(values.shape[0]):
        total += (abs(values[j]) / largest) ** q
    return float(largest * total ** (1.0 / q))


@jit
def _half_square_slope(theta: Floats, q: float) -> Floats:
    """The gradient of ½‖θ‖_q²: sign(θ_j) |θ_j|^(q−1) / ‖θ‖_q^(q−2)."""
    norm = _power_norm(theta, q)
    w = np.zeros(theta.shape[0])
    if norm > 0.0:
        for j in range(theta.shape[0]):
            w[j] = np.sign(theta[j]) * norm * (abs(theta[j]) / norm) ** (q - 1.0)
    return w


@dataclass(frozen=True)
class Euclidean:
    """W = Θ: margins in the Euclidean (Frobenius) norm.

    Parameters
    ----------
    alpha : float
        The strong convexity of ψ; do not change it.

    Examples
    --------
    >>> Euclidean()(np.array([3.0, 4.0])), Euclidean().norm(np.array([3.0, 4.0]))
    (array([3., 4.]), 5.0)
    """

    alpha: float = 1.0

    def __call__(self, theta: Floats) -> Floats:
        return theta

    def norm(self, W: Floats) -> float:
        """‖W‖_2, which is its own dual.

        Parameters
        ----------
        W : array
            Weights, or a sum of gradients.
        """
        return float(np.sqrt(np.sum(W * W)))

    dual = norm
    sparse = norm

    def radius(self, X: Floats) -> float:
        """‖x‖_2 of an example, ‖X‖_op of a query."""
        return float(np.linalg.norm(np.asarray(X, float), 2))


@dataclass(frozen=True)
class L1Link:
    """Margins in the l1 norm of all weights, vector or matrix (entrywise): W = ∇ ½‖Θ‖_q².

    Parameters
    ----------
    size : int >= 8
        The number p of weights.

    Examples
    --------
    >>> link = L1Link(100)
    >>> w = link(np.array([2.0] + [1.0] * 99))
    >>> round(float(w[0] / w[1]), 2), round(2.0 ** (log(100) - 1), 2)
    (12.17, 12.17)
    """

    size: int

    def __post_init__(self) -> None:
        dual_exponent(self.size)

    @property
    def alpha(self) -> float:
        return 1.0 / (log(self.size) - 1.0)  # r − 1

    def __call__(self, theta: Floats) -> Floats:
        return _half_square_slope(theta.ravel(), dual_exponent(self.size)).reshape(theta.shape)

    def norm(self, W: Floats) -> float:
        return float(_power_norm(W.ravel(), 1.0 + self.alpha))

    def dual(self, theta: Floats) -> float:
        return float(_power_norm(theta.ravel(), dual_exponent(self.size)))

    def sparse(self, W: Floats) -> float:
        return float(np.abs(W).sum())

    def radius(self, X: Floats) -> float:
        """3 ‖x‖_∞ of an example, 3 max_j ‖X_j‖_2 over the columns of a query."""
        return 3.0 * _largest_column(X)


@dataclass(frozen=True)
class GroupLink:
    """Margins in the group norm ‖W‖_{2,1} = Σ_j ‖W_j‖_2 over the columns: few features matter, the same for all scores.

    Parameters
    ----------
    size : int >= 8
        The number p of columns.

    Examples
    --------
    >>> GroupLink(8).sparse(np.array([[3.0] + [0.0] * 7, [4.0] + [0.0] * 7]))
    5.0
    """

    size: int

    def __post_init__(self) -> None:
        dual_exponent(self.size)

    @property
    def alpha(self) -> float:
        return 1.0 / (log(self.size) - 1.0)

    def __call__(self, theta: Floats) -> Floats:
        lengths = np.linalg.norm(theta, axis=0)
        slopes = _half_square_slope(lengths, dual_exponent(self.size))
        W: Floats = theta * np.divide(slopes, lengths, out=np.zeros_like(lengths), where=lengths > 0.0)
        return W

    def norm(self, W: Floats) -> float:
        return float(_power_norm(np.linalg.norm(W, axis=0), 1.0 + self.alpha))

    def dual(self, theta: Floats) -> float:
        return float(_power_norm(np.linalg.norm(theta, axis=0), dual_exponent(self.size)))

    def sparse(self, W: Floats) -> float:
        return float(np.linalg.norm(W, axis=0).sum())

    def radius(self, X: Floats) -> float:
        """3 ‖x‖_∞."""
        return 3.0 * _largest_column(X)


@dataclass(frozen=True)
class Trace:
    """Margins in the trace norm, the sum of the singular values: scores depend on few directions.

    Parameters
    ----------
    size : int >= 8
        The number of singular values, the smaller side of W.

    Examples
    --------
    >>> Trace(8).sparse(2.0 * np.eye(8))
    16.0
    """

    size: int

    def __post_init__(self) -> None:
        dual_exponent(self.size)

    @property
    def alpha(self) -> float:
        return 1.0 / (log(self.size) - 1.0)

    def __call__(self, theta: Floats) -> Floats:
        left, values, right = np.linalg.svd(theta, full_matrices=False)
        W: Floats = (left * _half_square_slope(values, dual_exponent(self.size))) @ right
        return W

    def norm(self, W: Floats) -> float:
        return float(_power_norm(_singular(W), 1.0 + self.alpha))

    def dual(self, theta: Floats) -> float:
        return float(_power_norm(_singular(theta), dual_exponent(self.size)))

    def sparse(self, W: Floats) -> float:
        return float(_singular(W).sum())

    def radius(self, X: Floats) -> float:
        """‖x‖_2: a matrix of rank one has one singular value."""
        return float(np.linalg.norm(np.asarray(X, float)))


def make_link(norm: str, shape: tuple[int, ...]) -> Link:
    """The link of that name for weights of that shape: `l2`, `l1`, `group` or `trace`.

    Parameters
    ----------
    norm : {"l2", "l1", "group", "trace"}
        The norm in which margins are measured.
    shape : tuple of int
        The shape of the weights.

    Examples
    --------
    >>> make_link("l1", (3, 20))
    L1Link(size=60)
    """
    if norm not in NORMS:
        raise DataError(f"there is no norm {norm!r}; choose from {', '.join(NORMS)}")
    if norm == "l2":
        return Euclidean()
    if norm == "l1":
        return L1Link(int(np.prod(shape)))
    if len(shape) == 1:
        raise DataError(f"the {norm} norm is one of matrices; a weight vector has l2 and l1")
    return GroupLink(shape[1]) if norm == "group" else Trace(min(shape))


def dual_exponent(size: int) -> float:
    """Q = log p; below 8 coordinates it would fall under 2, where ψ is no longer strongly convex."""
    if size < 8:
        raise DataError(
            f"the l1, group and trace norms need at least 8 coordinates (features, or singular values), not {size}: "
            "use the norm l2"
        )
    return log(size)


def _largest_column(X: Floats) -> float:
    table = np.atleast_2d(np.asarray(X, float))
    return float(np.sqrt(np.max(np.sum(table * table, axis=0))))


def _singular(W: Floats) -> Floats:
    return np.asarray(np.linalg.svd(W, compute_uv=False), float)
