"""Checks that every prediction problem must pass, including your own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ranktron.learners.predtron.problem import PredictionProblem, similarity, surrogate, unit_surrogate
from ranktron.types import Floats

_CLOSE = 1e-9


def check_problem(
    problem: PredictionProblem, predictions: Sequence[Any], labels: Sequence[Any], *, seed: int = 0
) -> None:
    """Checks the methods of a problem against each other and against a search over all its predictions.

    Representations have length 1 and are inverted by pred; pred is the most similar prediction and breaks ties
    against the label; every label has a prediction without loss; the loss-augmented argmax and the best wrong
    prediction equal brute force; the surrogate bounds the loss, is convex, bounds its own gradient and is 0 at the
    margin. `predictions` must be all of them, so check a small instance of a large problem.

    Each failure is an `AssertionError` that names the property that does not hold.

    Parameters
    ----------
    problem : PredictionProblem
        Labels, predictions, their representation and the loss.
    predictions : sequence
        All predictions.
    labels : sequence
        Labels to check with.
    seed : int
        Seed of the random scores.

    Examples
    --------
    >>> from ranktron.learners.predtron import ordinal
    >>> check_problem(ordinal(4), range(4), range(4))
    """
    rng = np.random.default_rng(seed)
    reps = np.array([problem.rep(prediction) for prediction in predictions])
    assert np.allclose(np.linalg.norm(reps, axis=1), 1.0, atol=1e-6), "a representation does not have length 1"
    for prediction, rep in zip(predictions, reps, strict=True):
        found = problem.rep(problem.pred(rep.copy()))
        assert np.allclose(found, rep), f"pred does not invert rep: {prediction!r} is decoded as something else"
    for label in labels:
        label = problem.check(label)
        losses = np.array([problem.loss(prediction, label) for prediction in predictions])
        _check_losses(problem, losses, label)
        for scores in _random_scores(reps, rng):
            _check_pred(problem, reps, losses, scores, label)
            _check_argmaxes(problem, reps, losses, scores, label)
            _check_surrogate(problem, scores, label, rng)
            _check_unit_surrogate(problem, scores, label, rng)
        _check_margin(problem, reps, losses, label)


def _random_scores(reps: Floats, rng: np.random.Generator) -> list[Floats]:
    d = reps.shape[1]
    some = [scale * rng.normal(size=d) for scale in (0.1, 0.5, 1.0, 3.0, 10.0)]
    halves = [np.round(2.0 * rng.normal(size=d)) / 2.0 for _ in range(3)]  # with ties
    return [np.zeros(d), *some, *halves]


def _check_losses(problem: PredictionProblem, losses: Floats, label: Any) -> None:
    assert (losses >= 0.0).all(), "a loss is negative"
    assert (losses == 0.0).any(), f"label {label!r} has no prediction without loss"
    positive = losses[losses > 0.0]
    if len(positive):
        assert problem.smallest <= positive.min() * (1.0 + _CLOSE), "smallest is not the smallest loss above 0"
        assert problem.largest >= positive.max() * (1.0 - _CLOSE), "largest is not the largest loss"


def _check_pred(problem: PredictionProblem, reps: Floats, losses: Floats, scores: Floats, label: Any) -> None:
    values = reps @ scores
    slack = _CLOSE * (1.0 + np.abs(values).max())
    assert similarity(problem, problem.pred(scores), scores) >= values.max() - slack, "pred is not the most similar"
    shown = problem.pred(scores, label)
    assert similarity(problem, shown, scores) >= values.max() - slack, "pred against a label is not the most similar"
    worst = losses[values >= values.max() - slack].max()
    assert abs(problem.loss(shown, label) - worst) <= _CLOSE, "ties are not broken against the label"
    again = problem.pred(7.0 * scores)
    assert np.allclose(problem.rep(again), problem.rep(problem.pred(scores))), "pred changes with the scale of scores"


def _check_argmaxes(problem: PredictionProblem, reps: Floats, losses: Floats, scores: Floats, label: Any) -> None:
    values = reps @ scores
    slack = _CLOSE * (1.0 + np.abs(values).max() + losses.max())
    found = problem.augmented(scores, label)
    value = problem.loss(found, label) + similarity(problem, found, scores)
    assert abs(value - (losses + values).max()) <= slack, "the loss-augmented argmax is not the maximum"
    correct = problem.correct(scores, label)
    assert problem.loss(correct, label) == 0.0, f"the correct prediction of label {label!r} has a loss"
    rival = problem.rival(scores, label)
    assert (rival is None) == (losses == 0.0).all(), "there is a rival exactly where some prediction has a loss"
    if rival is not None:
        assert problem.loss(rival, label) > 0.0, "the rival has no loss"
        best = values[losses > 0.0].max()
        assert abs(similarity(problem, rival, scores) - best) <= slack, "the rival is not the best wrong prediction"


def _check_surrogate(problem: PredictionProblem, scores: Floats, label: Any, rng: np.random.Generator) -> None:
    correct = problem.correct(scores, label)
    value, gradient = surrogate(problem, scores, label, correct)
    loss = problem.loss(problem.pred(scores, label), label)
    slack = _CLOSE * (1.0 + abs(value))
    assert value >= loss - slack, "the surrogate does not bound the loss"
    if loss > 0.0:
        assert gradient @ gradient <= 4.0 / problem.smallest * loss + slack, "the gradient is not self-bounded"
    for scale in (0.1, 1.0, 10.0):
        other = scores + scale * rng.normal(size=scores.shape)
        above = surrogate(problem, other, label, correct)[0] - value - gradient @ (other - scores)
        assert above >= -slack * scale, "the surrogate is not convex: it falls below its tangent"


def _check_unit_surrogate(problem: PredictionProblem, scores: Floats, label: Any, rng: np.random.Generator) -> None:
    correct = problem.correct(scores, label)
    value, gradient = unit_surrogate(problem, scores, label, correct)
    slack = _CLOSE * (1.0 + abs(value))
    if problem.loss(problem.pred(scores, label), label) > 0.0:
        assert value >= 1.0 - slack, "the loss-driven surrogate is below 1 on a mistake"
    other = scores + rng.normal(size=scores.shape)
    above = unit_surrogate(problem, other, label, correct)[0] - value - gradient @ (other - scores)
    assert above >= -slack, "the loss-driven surrogate is not convex"


def _check_margin(problem: PredictionProblem, reps: Floats, losses: Floats, label: Any) -> None:
    """At the representation of a correct prediction its score leads all others; scaled up, the lead is the margin."""
    correct = problem.correct(np.zeros(reps.shape[1]), label)
    scores = problem.rep(correct).copy()
    wrong = losses > 0.0
    if not wrong.any():
        return
    lead = 1.0 - (reps[wrong] @ scores).max()
    slack = 1e-7 * problem.largest / lead
    at_margin = surrogate(problem, scores * (problem.largest / lead), label, correct)[0]
    assert abs(at_margin) <= slack, "the surrogate is not 0 at the margin"
    at_one = unit_surrogate(problem, scores / lead, label, correct)[0]
    assert abs(at_one) <= slack, "the loss-driven surrogate is not 0 at the margin"
