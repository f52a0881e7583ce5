"""Maps whose products of rows come near the Gaussian kernel d · exp(−γ |x − x'|²).

The factor d, the number of features, lets a mapped row be about as long as a standardised one: a learner's step means
the same with and without the map.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranktron.errors import DataError
from ranktron.maps.protocols import check_count, check_input, sample_of
from ranktron.rounds import Rounds
from ranktron.types import Matrix

SAMPLE = 100_000
FLOOR = 1e-6
"""Directions in which the landmarks differ by less than this share of the largest are left out."""


def gamma_of(gamma: float, X: Matrix) -> float:
    """The width of the kernel: the given one, or 1 / (features × their variance) for 0."""
    if not 0.0 <= gamma < float("inf"):
        raise DataError(f"gamma must be a positive number, or 0 to take it from the data, not {gamma}")
    variance = float(X.astype(np.float64).var(axis=0).mean())
    return gamma or (1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0)


@dataclass(frozen=True)
class RandomFourier:
    """Waves of random direction and phase: their products come near a Gaussian kernel as their number grows.

        z_k(x) = √(2 d / n) cos(⟨ω_k, x⟩ + b_k),    ω_k ~ N(0, 2γ I),  b_k uniform

    Parameters
    ----------
    features : int >= 1
        n, the number of waves.
    gamma : float >= 0
        The width of the kernel; 0 takes it from the data: 1 / (features × their variance).
    seed : int
        Of the directions and phases.

    Examples
    --------
    >>> rounds = Rounds.from_arrays([[0.0], [1.0]], [0, 1])
    >>> Z = RandomFourier(5000, gamma=1.0).fit(rounds)(rounds.X)
    >>> Z.shape, np.round((Z @ Z.T).astype(float), 1).tolist()  # e^(-1) = 0.37
    ((2, 5000), [[1.0, 0.4], [0.4, 1.0]])

    References
    ----------
    Rahimi and Recht, Random Features for Large-Scale Kernel Machines.
    """

    features: int = 500
    gamma: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_count(self.features, "the number of random features", 1)

    def fit(self, rounds: Rounds) -> FittedFourier:
        X = sample_of(rounds, SAMPLE)
        rng = np.random.default_rng(self.seed)
        directions = rng.normal(0.0, np.sqrt(2.0 * gamma_of(self.gamma, X)), (X.shape[1], self.features))
        phases = rng.uniform(0.0, 2.0 * np.pi, self.features)
        return FittedFourier(directions.astype(np.float32), phases.astype(np.float32))


@dataclass(frozen=True, eq=False)
class FittedFourier:
    """Waves with their directions and phases."""

    directions: Matrix
    phases: Matrix

    @property
    def name(self) -> str:
        return f"rff:{self.n_outputs}"

    @property
    def n_inputs(self) -> int:
        return int(self.directions.shape[0])

    @property
    def n_outputs(self) -> int:
        return int(self.directions.shape[1])

    def __call__(self, X: Matrix) -> Matrix:
        mapped: Matrix = check_input(X, self.n_inputs) @ self.directions
        mapped += self.phases
        np.cos(mapped, out=mapped)
        mapped *= np.float32(np.sqrt(2.0 * self.n_inputs / self.n_outputs))
        return mapped

    def state(self) -> dict[str, Any]:
        return {"directions": self.directions, "phases": self.phases}

    @classmethod
    def from_state(cls, name: str, state: Mapping[str, Any]) -> FittedFourier:
        directions, phases = (np.array(state[key], np.float32) for key in ("directions", "phases"))
        if directions.ndim != 2 or phases.shape != directions.shape[1:]:
            raise DataError("the model holds random features that do not fit together")
        return cls(directions, phases)


@dataclass(frozen=True)
class Nystroem:
    """The Gaussian kernel's own best features on the span of some documents, the landmarks.

        z(x) = √d K_LL^(−½) k_L(x),    k_L(x) = (exp(−γ |x − l|²))_l

    Products of mapped rows equal the kernel between landmarks, and come near it elsewhere.

    Parameters
    ----------
    landmarks : int >= 1
        How many documents, drawn at random from the lists to learn from.
    gamma : float >= 0
        The width of the kernel; 0 takes it from the data: 1 / (features × their variance).
    seed : int
        Of the draw.

    Examples
    --------
    >>> rounds = Rounds.from_arrays([[0.0], [1.0]], [0, 1])
    >>> Z = Nystroem(2, gamma=1.0).fit(rounds)(rounds.X)
    >>> np.round((Z @ Z.T).astype(float), 4).tolist()
    [[1.0, 0.3679], [0.3679, 1.0]]

    References
    ----------
    Williams and Seeger, Using the Nyström Method to Speed Up Kernel Machines.
    """

    landmarks: int = 200
    gamma: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_count(self.landmarks, "the number of landmarks", 1)

    def fit(self, rounds: Rounds) -> FittedNystroem:
        X = sample_of(rounds, SAMPLE)
        distinct = np.unique(X, axis=0)
        drawn = np.random.default_rng(self.seed).permutation(len(distinct))[: self.landmarks]
        landmarks, gamma = np.ascontiguousarray(distinct[drawn]), gamma_of(self.gamma, X)
        K = gaussian(landmarks.astype(np.float64), landmarks.astype(np.float64), gamma)
        values, vectors = np.linalg.eigh(K)
        kept = values > FLOOR * values[-1]
        root = np.sqrt(X.shape[1]) * vectors[:, kept] / np.sqrt(values[kept])
        return FittedNystroem(self.landmarks, landmarks, np.ascontiguousarray(root, dtype=np.float32), gamma)


def gaussian(X: Any, S: Any, gamma: float) -> Any:
    """exp(−γ |x − s|²) for every row x of X and every row s of S, in the precision of the two."""
    K = X @ S.T
    K *= 2.0
    K -= np.einsum("ij,ij->i", X, X)[:, None]
    K -= np.einsum("ij,ij->i", S, S)
    np.minimum(K, 0.0, out=K)
    K *= gamma
    return np.exp(K, out=K)


@dataclass(frozen=True, eq=False)
class FittedNystroem:
    """Landmarks, and the root that turns kernel values into features."""

    count: int
    landmarks: Matrix
    root: Matrix
    gamma: float

    @property
    def name(self) -> str:
        return f"nystroem:{self.count}"

    @property
    def n_inputs(self) -> int:
        return int(self.landmarks.shape[1])

    @property
    def n_outputs(self) -> int:
        return int(self.root.shape[1])

    def __call__(self, X: Matrix) -> Matrix:
        X = check_input(X, self.n_inputs)
        mapped = np.empty((len(X), self.n_outputs), np.float32)
        for start in range(0, len(X), 4096):
            part = slice(start, start + 4096)
            mapped[part] = gaussian(X[part], self.landmarks, self.gamma) @ self.root
        return mapped

    def state(self) -> dict[str, Any]:
        return {"count": self.count, "landmarks": self.landmarks, "root": self.root, "gamma": self.gamma}

    @classmethod
    def from_state(cls, name: str, state: Mapping[str, Any]) -> FittedNystroem:
        landmarks, root = (np.array(state[key], np.float32) for key in ("landmarks", "root"))
        if landmarks.ndim != 2 or root.ndim != 2 or len(landmarks) != len(root):
            raise DataError("the model holds landmarks that do not fit together")
        return cls(int(state["count"]), landmarks, root, float(state["gamma"]))
