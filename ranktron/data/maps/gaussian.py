"""Maps that add smooth nonlinear features: Gaussian kernels of the features that are most informative about the labels.

The original features stay in the row, so that the linear ranker remains a special case. For d features the nonlinear
part has length c √d, c times that of a standardised row; c is small for few queries, on which it would fit noise, and
approaches 1 as their number grows.

A Gaussian kernel with the same width for many features is nearly constant, because all documents are about equally far
from each other. So both maps weight features by how informative each alone is about the labels within queries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranktron.data.maps.protocols import check_input, sample_documents
from ranktron.data.maps.strengths import curve_weight, strength_shares
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.types import Floats, Matrix
from ranktron.types.validation import check_count

SAMPLE = 100_000
PART = 4096
FLOOR = 1e-6
"""Shares of strength, and of the largest eigenvalue, below this count as 0."""


def precisions(gamma: float, X: Matrix) -> Floats:
    """The precision of the kernel along each feature: γ for all, or 1 / variance if γ is 0."""
    if not 0.0 <= gamma < float("inf"):
        raise DataError(f"gamma must be a positive number, or 0 to take it from the data, not {gamma}")
    variance = X.astype(np.float64).var(axis=0)
    return np.full(X.shape[1], gamma) if gamma else 1.0 / np.where(variance > 0.0, variance, 1.0)


@dataclass(frozen=True)
class RandomFourier:
    """Random Fourier features: adds cosines of random direction and phase, each over a few features.

        z_k(x) = c √(2 d / n) cos(⟨ω_k, x⟩ + b_k),    ω_kj ~ N(0, 2γ) for s features j, 0 for the others;  b_k uniform

    The s features of a cosine are drawn in proportion to how informative they are about the labels. Inner products of
    rows approximate ⟨x, x'⟩ plus c² d times the mean of the Gaussian kernels exp(−γ |x − x'|²) of such s features:
    nonlinear functions of single features and of s features together.

    Parameters
    ----------
    features : int >= 1
        n, the number of cosines.
    gamma : float >= 0
        The precision of the kernels; 0: 1 / (s × variance) for each feature.
    seed : int
        Seed of the directions and phases.
    sees : int >= 1
        s, the number of features in each cosine.
    weight : float >= 0
        c, the length of the nonlinear part relative to that of a row; 0: queries / (queries + 1000).

    Examples
    --------
    >>> rounds = Rounds.from_arrays([[0.0], [1.0]], [0, 1])
    >>> Z = RandomFourier(5000, gamma=1.0, weight=1.0).fit(rounds)(rounds.X)
    >>> Z.shape, np.round((Z @ Z.T).astype(float), 1).tolist()  # e^(-1) = 0.37; 1 × 1 is added for the last one
    ((2, 5001), [[1.0, 0.4], [0.4, 2.0]])

    References
    ----------
    Rahimi and Recht, Random Features for Large-Scale Kernel Machines.
    """

    features: int = 500
    gamma: float = 0.0
    seed: int = 0
    sees: int = 2
    weight: float = 0.0

    def __post_init__(self) -> None:
        check_count(self.features, "the number of random features", 1)
        check_count(self.sees, "the number of features that a wave sees", 1)

    def fit(self, rounds: Rounds) -> FittedFourier:
        X = sample_documents(rounds, SAMPLE)
        rng = np.random.default_rng(self.seed)
        sees = min(self.sees, X.shape[1])
        waits = rng.exponential(size=(self.features, X.shape[1])) / np.maximum(strength_shares(rounds), FLOOR)
        seen = np.argpartition(waits, sees - 1, axis=1)[:, :sees]  # the shortest waiting times: drawn by their shares
        deviations = np.sqrt(2.0 * precisions(self.gamma, X) / (1.0 if self.gamma else sees))
        directions = np.zeros((X.shape[1], self.features), np.float32)
        directions[seen, np.arange(self.features)[:, None]] = rng.normal(size=seen.shape) * deviations[seen]
        phases = rng.uniform(0.0, 2.0 * np.pi, self.features)
        return FittedFourier(directions, phases.astype(np.float32), curve_weight(self.weight, rounds))


@dataclass(frozen=True, eq=False)
class FittedFourier:
    """Fitted random Fourier features: directions, phases and weight."""

    directions: Matrix
    phases: Matrix
    weight: float

    @property
    def name(self) -> str:
        return f"rff:{len(self.phases)}"

    @property
    def n_inputs(self) -> int:
        return int(self.directions.shape[0])

    @property
    def n_outputs(self) -> int:
        return self.n_inputs + len(self.phases)

    def __call__(self, X: Matrix) -> Matrix:
        X = check_input(X, self.n_inputs)
        mapped = np.empty((len(X), self.n_outputs), np.float32)
        mapped[:, : self.n_inputs] = X
        height = np.float32(self.weight * np.sqrt(2.0 * self.n_inputs / len(self.phases)))
        for start in range(0, len(X), PART):
            part = slice(start, start + PART)
            waves = X[part] @ self.directions
            waves += self.phases
            mapped[part, self.n_inputs :] = height * np.cos(waves, out=waves)
        return mapped

    def state(self) -> dict[str, Any]:
        return {"directions": self.directions, "phases": self.phases, "weight": self.weight}

    @classmethod
    def from_state(cls, name: str, state: Mapping[str, Any]) -> FittedFourier:
        directions, phases = (np.array(state[key], np.float32) for key in ("directions", "phases"))
        if directions.ndim != 2 or phases.shape != directions.shape[1:]:
            raise DataError("the model holds random features that do not fit together")
        return cls(directions, phases, float(state["weight"]))


@dataclass(frozen=True)
class Nystroem:
    """The Nyström method: adds features whose inner products approximate a Gaussian kernel, by means of landmarks.

        z(x) = c √d K_LL^(−½) k_L(x),    k_L(x) = (exp(−γ Σ_j d a_j (x_j − l_j)²))_l

    a_j is the share of feature j in the strengths of all features; if all are equally informative, this is the plain
    kernel. Inner products of z equal c² d times the kernel for landmarks, and approximate it elsewhere.

    Parameters
    ----------
    landmarks : int >= 1
        The number of documents, drawn at random from the training data.
    gamma : float >= 0
        The precision of the kernel; 0: 1 / (d × variance) for each feature.
    seed : int
        Seed of the draw.
    weight : float >= 0
        c, the length of the nonlinear part relative to that of a row; 0: queries / (queries + 1000).

    Examples
    --------
    >>> rounds = Rounds.from_arrays([[0.0], [1.0]], [0, 1])
    >>> Z = Nystroem(2, gamma=1.0, weight=1.0).fit(rounds)(rounds.X)
    >>> np.round((Z @ Z.T).astype(float), 4).tolist()  # 1 × 1 is added for the last one
    [[1.0, 0.3679], [0.3679, 2.0]]

    References
    ----------
    Williams and Seeger, Using the Nyström Method to Speed Up Kernel Machines.
    """

    landmarks: int = 200
    gamma: float = 0.0
    seed: int = 0
    weight: float = 0.0

    def __post_init__(self) -> None:
        check_count(self.landmarks, "the number of landmarks", 1)

    def fit(self, rounds: Rounds) -> FittedNystroem:
        X = sample_documents(rounds, SAMPLE)
        stretch = np.sqrt(precisions(self.gamma, X) * strength_shares(rounds) * (X.shape[1] if self.gamma else 1.0))
        distinct = np.unique(X, axis=0)
        drawn = np.random.default_rng(self.seed).permutation(len(distinct))[: self.landmarks]
        landmarks, factors = distinct[drawn] * stretch.astype(np.float32), stretch.astype(np.float32)
        values, vectors = np.linalg.eigh(gaussian(landmarks.astype(np.float64), landmarks.astype(np.float64), 1.0))
        kept = values > FLOOR * values[-1]
        root = curve_weight(self.weight, rounds) * np.sqrt(X.shape[1]) * vectors[:, kept] / np.sqrt(values[kept])
        return FittedNystroem(self.landmarks, factors, landmarks, np.ascontiguousarray(root, dtype=np.float32))


def gaussian(X: Any, S: Any, gamma: float) -> Any:
    """exp(−γ |x − s|²) for every row x of X and every row s of S, in the floating-point precision of the two."""
    K = X @ S.T
    K *= 2.0
    K -= np.einsum("ij,ij->i", X, X)[:, None]
    K -= np.einsum("ij,ij->i", S, S)
    np.minimum(K, 0.0, out=K)
    K *= gamma
    return np.exp(K, out=K)


@dataclass(frozen=True, eq=False)
class FittedNystroem:
    """A fitted Nyström map: landmarks, the factors of the features, and K_LL^(−½)."""

    count: int
    factors: Matrix
    landmarks: Matrix
    root: Matrix

    @property
    def name(self) -> str:
        return f"nystroem:{self.count}"

    @property
    def n_inputs(self) -> int:
        return int(self.landmarks.shape[1])

    @property
    def n_outputs(self) -> int:
        return self.n_inputs + int(self.root.shape[1])

    def __call__(self, X: Matrix) -> Matrix:
        X = check_input(X, self.n_inputs)
        mapped = np.empty((len(X), self.n_outputs), np.float32)
        mapped[:, : self.n_inputs] = X
        for start in range(0, len(X), PART):
            part = slice(start, start + PART)
            mapped[part, self.n_inputs :] = gaussian(X[part] * self.factors, self.landmarks, 1.0) @ self.root
        return mapped

    def state(self) -> dict[str, Any]:
        return {"count": self.count, "factors": self.factors, "landmarks": self.landmarks, "root": self.root}

    @classmethod
    def from_state(cls, name: str, state: Mapping[str, Any]) -> FittedNystroem:
        factors, landmarks, root = (np.array(state[key], np.float32) for key in ("factors", "landmarks", "root"))
        fits = landmarks.ndim == root.ndim == 2 and len(landmarks) == len(root)
        if not fits or factors.shape != landmarks.shape[1:]:
            raise DataError("the model holds landmarks that do not fit together")
        return cls(int(state["count"]), factors, landmarks, root)
