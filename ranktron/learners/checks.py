"""Checks that every surrogate and every learner must pass, including your own.

Each raises an `AssertionError` that names the property that does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ranktron.data.rounds import Rounds, stack_rows
from ranktron.data.serialization import deserialize, same, serialize
from ranktron.errors import DataError
from ranktron.kernels.dispatch import as_arrays, is_matrix, with_layout
from ranktron.learners import feedback
from ranktron.learners.loop import play
from ranktron.types import Feedback, FeedbackModel, Floats, Learner, Ranking, Surrogate

Lists = Iterator[tuple[Floats, Floats]]


def check_surrogate(
    surrogate: Surrogate, *, margin: float | None = None, convex: bool = True, grades: int = 4, seed: int = 0
) -> None:
    """Checks a surrogate on random queries.

    The gradient is that of the loss; permuting documents permutes it; inputs are not changed. If `convex`, the
    subgradient inequality holds; if a `margin` is given, queries that are separated by it have no loss, nor do queries
    with a single grade or document.

    Parameters
    ----------
    surrogate : Surrogate
        A function of (scores, labels) that returns the loss and its gradient.
    margin : float, optional
        The distance in score between grades from which on there is no loss; None if there is no such margin.
    convex : bool
        Whether to check the subgradient inequality.
    grades : int
        How many different labels the random queries have.
    seed : int
        Seed of the random queries.

    Examples
    --------
    >>> from ranktron.surrogates import PairwiseHinge
    >>> check_surrogate(PairwiseHinge(), margin=1.0)
    """
    rng = np.random.default_rng(seed)
    for scores, labels in _random_lists(rng, grades):
        _check_slope(surrogate, scores, labels, rng)
        _check_permuted(surrogate, scores, labels, rng)
        if convex:
            _check_subgradient(surrogate, scores, labels, rng)
        if margin is not None:
            _check_costs_nothing(surrogate, 1.01 * margin * labels, labels, "separated by the margin")
            _check_costs_nothing(surrogate, scores, np.ones_like(labels), "of one grade")
            _check_costs_nothing(surrogate, scores[:1], labels[:1], "of one document")


def _random_lists(rng: np.random.Generator, grades: int) -> Lists:
    for m in (1, 2, 3, 5, 8, 13, 40):
        for _ in range(10):
            yield rng.normal(size=m), rng.integers(grades, size=m).astype(float)


def _check_slope(surrogate: Surrogate, scores: Floats, labels: Floats, rng: np.random.Generator) -> None:
    kept = scores.copy(), labels.copy()
    loss, gradient = surrogate(scores, labels)
    assert np.isfinite(loss), "the loss is not finite"
    assert gradient.shape == scores.shape, "the gradient must have one number per document"
    assert np.isfinite(gradient).all(), "the gradient is not finite"
    assert (scores == kept[0]).all(), "the surrogate changed the scores it was given"
    assert (labels == kept[1]).all(), "the surrogate changed the labels it was given"
    d = rng.normal(size=scores.shape)
    h = 1e-6
    slope = (surrogate(scores + h * d, labels)[0] - surrogate(scores - h * d, labels)[0]) / (2 * h)
    assert abs(slope - gradient @ d) <= 1e-4 * (1.0 + abs(slope)), "the gradient is not the slope of the loss"


def _check_permuted(surrogate: Surrogate, scores: Floats, labels: Floats, rng: np.random.Generator) -> None:
    p = rng.permutation(len(scores))
    loss, gradient = surrogate(scores, labels)
    loss_p, gradient_p = surrogate(scores[p], labels[p])
    assert abs(loss - loss_p) <= 1e-9 * (1.0 + abs(loss)), "the loss depends on the order of the documents"
    assert np.allclose(gradient[p], gradient_p), "permuting the documents does not permute the gradient"


def _check_subgradient(surrogate: Surrogate, scores: Floats, labels: Floats, rng: np.random.Generator) -> None:
    loss, gradient = surrogate(scores, labels)
    for scale in (0.1, 1.0, 10.0):
        other = scores + scale * rng.normal(size=scores.shape)
        above = surrogate(other, labels)[0] - loss - gradient @ (other - scores)
        assert above >= -1e-9 * (1.0 + abs(loss)), "the loss is not convex: it falls below its tangent"


def _check_costs_nothing(surrogate: Surrogate, scores: Floats, labels: Floats, which: str) -> None:
    loss, gradient = surrogate(scores, labels)
    assert loss == 0.0, f"a list {which} has loss {loss}"
    assert not gradient.any(), f"a list {which} has a gradient"


def check_learner(make: Callable[[], Learner], rounds: Rounds, hear: FeedbackModel = feedback.full) -> None:
    """Checks a learner on a stream.

    `rank` changes nothing; the same stream gives the same state; saving and restoring in the middle of a stream makes
    no difference; short queries, ties and late feedback are handled; refused input leaves the learner
    unchanged.

    Parameters
    ----------
    make : callable
        Returns a new learner each time it is called.
    rounds : Rounds
        The stream to play.
    hear : callable
        The feedback model, a function of (round, ranking).

    Examples
    --------
    >>> from ranktron.learners import hinge_perceptron
    >>> from ranktron.data.synthetic import Separable
    >>> check_learner(lambda: hinge_perceptron(20), Separable().rounds(30))
    """
    _check_rank_is_pure(make, rounds, hear)
    _check_repeatable(make, rounds, hear)
    _check_restored(make, rounds, hear)
    _check_odd_lists(make, rounds, hear)
    _check_refusals(make, rounds, hear)


def _after(learner: Learner, rounds: Rounds, hear: FeedbackModel, delay: int = 0) -> Learner:
    for _ in play(learner, rounds, hear, delay=delay):
        pass
    return learner


def _check_rank_is_pure(make: Callable[[], Learner], rounds: Rounds, hear: FeedbackModel) -> None:
    learner = _after(make(), rounds, hear)
    before = learner.state()
    first, again = (learner.rank(rounds[0].X, 7) for _ in range(2))
    assert sorted(first.order) == list(range(len(rounds[0].labels))), "a ranking must show every document once"
    assert (first.order == again.order).all(), "the same list and number must give the same ranking"
    assert same(before, learner.state()), "rank changed the learner"


def _check_repeatable(make: Callable[[], Learner], rounds: Rounds, hear: FeedbackModel) -> None:
    kept = rounds.X.copy(), rounds.labels.copy()
    one, two = (_after(make(), rounds, hear) for _ in range(2))
    assert one.rounds == len(rounds), f"{len(rounds)} rounds were played, the learner counted {one.rounds}"
    assert same(one.state(), two.state()), "the same stream gave two different states"
    assert (with_layout(kept[0], False) == with_layout(rounds.X, False)).all(), (
        "the learner changed the features it was given"
    )
    assert (rounds.labels == kept[1]).all(), "the learner changed the labels it was given"
    delayed = _after(make(), rounds, hear, delay=3)
    assert delayed.rounds == len(rounds), "late feedback was lost"


def _check_restored(make: Callable[[], Learner], rounds: Rounds, hear: FeedbackModel) -> None:
    half = len(rounds) // 2
    through = _after(make(), rounds, hear)
    restored = make()
    restored.restore(deserialize(serialize(_after(make(), rounds[:half], hear).state())))
    _after(restored, rounds[half:], hear)
    assert same(through.state(), restored.state()), "saving and restoring mid-stream changed what was learnt"


def _check_odd_lists(make: Callable[[], Learner], rounds: Rounds, hear: FeedbackModel) -> None:
    d = rounds.n_features
    X = stack_rows([rounds.X[:1], np.ones((3, d), np.float32), rounds.X[:2]])
    odd = Rounds.from_arrays(X, [1, 0, 1, 2, 1, 1], group=[1, 3, 2])  # one document; all features tied; one grade
    _after(make(), odd, hear)
    unwritable = replace(rounds, X=rounds.X.copy(), labels=rounds.labels.copy())
    X = as_arrays(unwritable.X)
    for array in (unwritable.labels, *((X,) if is_matrix(X) else X)):
        array.setflags(write=False)
    _after(make(), unwritable, hear)


def _check_refusals(make: Callable[[], Learner], rounds: Rounds, hear: FeedbackModel) -> None:
    learner = _after(make(), rounds, hear)
    X, m = rounds[0].X, len(rounds[0].labels)
    ranking = learner.rank(X, learner.rounds)
    wider = with_layout(np.ones((m, X.shape[1] + 1), np.float32), not is_matrix(as_arrays(X)))
    one = np.array([1.0])
    refused: dict[str, Callable[[], Any]] = {
        "a list of another width": lambda: learner.rank(wider, 0),
        "feedback for a document that does not exist": _learn_call(learner, rounds, ranking, [m], one),
        "feedback for the same document twice": _learn_call(learner, rounds, ranking, [0, 0], np.array([1.0, 1.0])),
        "a negative label": _learn_call(learner, rounds, ranking, [0], -one),
        "a label that is not a number": _learn_call(learner, rounds, ranking, [0], np.nan * one),
    }
    for what, act in refused.items():
        before = learner.state()
        try:
            act()
        except DataError:
            assert same(before, learner.state()), f"{what} was refused, but changed the learner"
        else:
            raise AssertionError(f"{what} was accepted")


def _learn_call(
    learner: Learner, rounds: Rounds, ranking: Ranking, items: list[int], labels: Floats
) -> Callable[[], Any]:
    return lambda: learner.learn(rounds[0].X, ranking, Feedback(np.array(items), labels))
