"""Cells that play Predtron's instances beside the perceptrons made for each problem, on separable streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ranktron.learners.predtron import Permutations, PlaceLoss, Places, Predtron, binary, ordinal
from ranktron.learners.predtron.problem import PredictionProblem
from ranktron.learners.predtron.variants import LossDriven
from ranktron.types import Floats
from reproduction.theory.predtron_bounds import corollary_7, theorem_14, weak_margin
from reproduction.theory.specialists import (
    MMP,
    PRank,
    UnevenPerceptron,
    mmp_bound,
    prank_bound,
    uneven_bound,
)

CLASSES, LABELS = 5, 6
COSTS = (1.0, 10.0)
"""What a mistake costs where the class is 0, and where it is 1."""
MARGINS = (0.0, 1.0)
DISTANCE = 0.02
"""No example of a stream lies closer than this to a threshold, or to a tie of its labels."""


def unit_sphere_rows(rng: np.random.Generator, count: int, features: int) -> Floats:
    """Rows drawn from the unit sphere."""
    X = rng.normal(size=(count, features))
    rows: Floats = X / np.linalg.norm(X, axis=1, keepdims=True)
    return rows


def predtron_loss(learner: Predtron, X: Floats, labels: Sequence[Any]) -> float:
    """What Predtron loses on a stream."""
    mistakes = (learner.learn(x, learner.scores(x), y) for x, y in zip(X, labels, strict=True))
    return sum(mistake.loss for mistake in mistakes if mistake)


def stream_loss(learn: Callable[[Floats, Any], float], X: Floats, labels: Sequence[Any]) -> float:
    """What one of the others loses."""
    return float(sum(learn(x, y) for x, y in zip(X, labels, strict=True)))


def stream_margin(problem: PredictionProblem, W: Floats, X: Floats, labels: Sequence[Any]) -> float:
    """The margin of a stream under W, of Frobenius norm 1, as Predtron's theorems need it."""
    scores = X @ (W / np.linalg.norm(W)).T
    found = (weak_margin(problem, t, y, problem.correct(t, y)) for t, y in zip(scores, labels, strict=True))
    return min(found)


def measure_ordered_classes(T: int, features: int, seed: int) -> Any:
    """Ordered classes: a line cut at four thresholds. Predtron sees a constant feature, where PRank has thresholds."""
    rng = np.random.default_rng((seed, 1))
    w, b = unit_sphere_rows(rng, 1, features)[0], np.linspace(-0.4, 0.4, CLASSES - 1)
    X = unit_sphere_rows(rng, 4 * T, features)
    X = X[np.min(np.abs((X @ w)[:, None] - b), axis=1) > DISTANCE][:T]
    labels = np.searchsorted(b, X @ w)
    extended = np.column_stack([X, np.ones(len(X))])
    steps = np.arange(CLASSES)
    W = np.column_stack([np.outer(steps, w), -np.concatenate(([0.0], np.cumsum(b)))])  # t_k − t_(k−1) = <w, x> − b_k
    gap = float(np.min(np.abs((X @ w)[:, None] - b))) / float(np.sqrt(1.0 + b @ b))
    problem, R = ordinal(CLASSES), float(np.linalg.norm(extended, axis=1).max())
    learner = Predtron(problem, W.shape, variant=LossDriven())
    margin = stream_margin(problem, W, extended, labels)
    return {
        "Predtron": {"loss": predtron_loss(learner, extended, labels), "bound": theorem_14(R, margin, CLASSES - 1.0)},
        "PRank": {
            "loss": stream_loss(PRank(CLASSES, features).learn, X, labels),
            "bound": prank_bound(1.0, gap, CLASSES),
        },
    }


def measure_label_ranking(T: int, features: int, seed: int) -> Any:
    """Multilabel ranking under NDCG: the labels above the widest gap of W* x are relevant."""
    rng = np.random.default_rng((seed, 2))
    W = rng.normal(size=(LABELS, features))
    W /= np.linalg.norm(W)
    X = unit_sphere_rows(rng, 2 * T, features)
    scores = -np.sort(-(X @ W.T), axis=1)
    gaps = scores[:, :-1] - scores[:, 1:]
    X, cut = X[gaps.max(axis=1) > DISTANCE][:T], gaps.argmax(axis=1)[gaps.max(axis=1) > DISTANCE][:T]
    ranks = np.argsort(np.argsort(-(X @ W.T), axis=1), axis=1)
    labels = (ranks <= cut[:, None]).astype(float)
    problem = Permutations(PlaceLoss("ndcg"), Places("-i^1.1"))
    gap = float(min(t[y > 0.0].min() - t[y == 0.0].max() for t, y in zip(X @ W.T, labels, strict=True)))
    learner = Predtron(problem, W.shape, variant=LossDriven())
    margin = stream_margin(problem, W, X, list(labels))
    return {
        "Predtron": {
            "loss": predtron_loss(learner, X, list(labels)),
            "bound": theorem_14(1.0, margin),
            "printed": corollary_7(1.0, margin, LABELS, 1),
        },
        "MMP": {
            "loss": stream_loss(MMP(problem, LABELS, features).learn, X, list(labels)),
            "bound": mmp_bound(1.0, gap),
        },
    }


def measure_unequal_costs(T: int, features: int, seed: int) -> Any:
    """Two classes, the second of them rare and ten times as costly; the weighted loss of each learner."""
    rng = np.random.default_rng((seed, 3))
    w = unit_sphere_rows(rng, 1, features)[0]
    X = unit_sphere_rows(rng, 6 * T, features)
    side = X @ w
    keep = (np.abs(side) > DISTANCE) & ((side < 0.0) | (rng.random(len(X)) < 0.1))
    X, labels = X[keep][:T], (X[keep][:T] @ w > 0.0).astype(int)
    uneven = UnevenPerceptron(features, MARGINS)
    lost = stream_loss(lambda x, y: COSTS[y] * uneven.learn(x, y), X, labels)
    problem, gap = binary(COSTS), float(np.abs(X @ w).min())
    learner = Predtron(problem, (1, features), variant=LossDriven())
    margin = stream_margin(problem, w[None, :], X, labels)
    return {
        "Predtron": {"loss": predtron_loss(learner, X, labels), "bound": theorem_14(1.0, margin, max(COSTS))},
        "Uneven margins": {"loss": lost, "bound": max(COSTS) * uneven_bound(1.0, gap, MARGINS)},
    }
