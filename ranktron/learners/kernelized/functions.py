"""Kernel functions: similarities of documents that are inner products in some feature space."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError
from ranktron.learners.kernelized.rows import Documents, products, squares


class KernelFunction(Protocol):
    """k(x, s) for every document x of X and every document s of S; dense documents have the precision `dtype`."""

    @property
    def dtype(self) -> type[Any]: ...

    def __call__(self, X: Documents, S: Documents, /) -> npt.NDArray[Any]: ...


@dataclass(frozen=True)
class LinearKernel:
    """⟨x, s⟩: with this kernel a kernel learner equals the linear learner.

    Parameters
    ----------
    dtype : type
        The precision in which documents are kept.

    Examples
    --------
    >>> LinearKernel()(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    dtype: type[Any] = np.float64

    def __call__(self, X: Documents, S: Documents) -> npt.NDArray[Any]:
        return products(X, S)


@dataclass(frozen=True)
class Polynomial:
    """(γ ⟨x, s⟩ + constant)^degree: all products of up to `degree` features.

    Parameters
    ----------
    degree : int
        The largest number of features in a product.
    gamma : float
        Scales the inner product.
    constant : float
        Added to it; with 0 only products of exactly `degree` features remain.
    dtype : type
        The precision in which documents are kept.

    Examples
    --------
    >>> Polynomial(degree=2, gamma=1.0)(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[144.]])
    """

    degree: int = 2
    gamma: float = 1.0
    constant: float = 1.0
    dtype: type[Any] = np.float64

    def __post_init__(self) -> None:
        if self.degree < 1 or not 0.0 < self.gamma < np.inf or not 0.0 <= self.constant < np.inf:
            raise DataError("a polynomial kernel needs a degree of at least 1, gamma > 0 and a constant >= 0")

    def __call__(self, X: Documents, S: Documents) -> npt.NDArray[Any]:
        K = products(X, S)
        K *= self.gamma
        K += self.constant
        return K**self.degree


@dataclass(frozen=True)
class Gaussian:
    """exp(−γ |x − s|²), the RBF kernel; in 32 bits, with errors of about 1e-6 and twice as fast.

    Parameters
    ----------
    gamma : float
        One over twice the squared width.
    dtype : type
        The precision in which documents are kept.

    Examples
    --------
    >>> Gaussian(gamma=1.0)(np.array([[1.0, 2.0]]), np.array([[1.0, 3.0]])).round(4)
    array([[0.3679]])
    """

    gamma: float = 1.0
    dtype: type[Any] = np.float32

    def __post_init__(self) -> None:
        if not 0.0 < self.gamma < np.inf:
            raise DataError(f"the width gamma of a Gaussian kernel must be a positive number, not {self.gamma}")

    def __call__(self, X: Documents, S: Documents) -> npt.NDArray[Any]:
        K = products(X, S)
        K *= 2.0
        K -= squares(X)[:, None]
        K -= squares(S)
        np.minimum(K, 0.0, out=K)
        K *= self.gamma
        np.exp(K, out=K)
        return K


KERNELS = ("linear", "poly", "rbf")


def make_kernel(name: str, n_features: int, gamma: float, degree: int, constant: float) -> KernelFunction:
    """The kernel of that name; γ = 0 means 1 / features.

    >>> make_kernel("rbf", 4, 0.0, 2, 1.0).gamma
    0.25
    """
    gamma = gamma or 1.0 / max(n_features, 1)
    if name == "linear":
        return LinearKernel()
    if name == "poly":
        return Polynomial(degree, gamma, constant)
    if name == "rbf":
        return Gaussian(gamma)
    raise DataError(f"there is no kernel {name!r}; there are: {', '.join(KERNELS)}")
