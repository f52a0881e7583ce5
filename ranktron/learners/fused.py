"""Fused passes: whole passes of a learner, or of many learners at once, in compiled loops.

Private. It calls the same kernels as `play` in the same order, so that weights are equal to the bit (which tests
check), but without the overhead of Python in each round. `can_fuse` tells which learners it supports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import Sparse, check_features
from ranktron.kernels.dense import is_full
from ranktron.kernels.dispatch import FeatureArrays, as_arrays, as_features, dot_rows, slice_rows
from ranktron.kernels.jit import jit
from ranktron.kernels.memory import borrow, prefetch
from ranktron.kernels.sorting import argsort_top
from ranktron.learners.feedback import everyone
from ranktron.learners.fused_step import Specs, fused_step, fused_turn, label_plan
from ranktron.learners.linear import Linear, overflow
from ranktron.learners.steps import Constant
from ranktron.metrics import Metric, metric
from ranktron.metrics.compiled import MetricRecords, compute_ideals, depth_of, measure, metric_records
from ranktron.types import Feedback, Floats, Integers, Ranking, Round, Step, Turn


def can_fuse(learner: object) -> TypeGuard[Linear]:
    """Whether fused passes support a learner; otherwise `play` is used."""
    if type(learner) is not Linear or learner.fused is None:
        return False
    return learner.start is None or not learner.start.bounded  # compiled passes do not project


@jit
def _pass(
    X: FeatureArrays, labels: Floats, offsets: Integers, queries: Integers, etas: Floats, first: int, specs: Specs,
    metrics: MetricRecords, vectors: Floats, sums: Floats, losses: Floats, values: Floats,
) -> int:  # fmt: skip
    """Plays the queries one after the other; returns how many, fewer than all if a round has to be refused."""
    X, labels, values, metrics = borrow(X), borrow(labels), borrow(values), borrow(metrics)
    vectors, sums = borrow(vectors), borrow(sums)
    spec, longest = specs[0], 0
    for q in queries:
        longest = max(longest, offsets[q + 1] - offsets[q])
    items, gradient = np.arange(longest), np.empty(longest)
    for n in range(queries.shape[0]):
        a, b = offsets[queries[n]], offsets[queries[n] + 1]
        rows, own = slice_rows(X, a, b), labels[a:b]
        if not is_full(items[: b - a], own, b - a):
            return n
        following = offsets[queries[n + 1]] if n + 1 < queries.shape[0] else a
        prefetch(labels, following, following + b - a)
        scores = dot_rows(rows, vectors[0])
        depth = depth_of(metrics, b - a)
        if depth > 0:
            compute_ideals(own, metrics)
            measure(argsort_top(scores, depth), own, metrics)
            for c in range(metrics.shape[0]):
                values[n, c] = metrics[c]["value"]
                if values[n, c] != values[n, c]:
                    return n
        losses[n] = fused_step(
            rows, items[: b - a], own, scores, spec, label_plan(own, spec), etas[n], first + n + 1.0,
            vectors, sums, gradient[: b - a], following - a,
        )  # fmt: skip
        if losses[n] != losses[n]:
            return n
    return int(queries.shape[0])


@jit
def _many(
    X: FeatureArrays, labels: Floats, S: Floats, etas: Floats, first: Integers, specs: Specs,
    same: npt.NDArray[np.bool_], metrics: MetricRecords, vectors: Floats, sums: Floats, losses: Floats, values: Floats,
) -> int:  # fmt: skip
    """One query for many learners, whose scores are the rows of S; returns the first learner that refuses it, or -1.

    The labels of a learner that is the `same` as the one before it are not sorted again.
    """
    X, labels, S, vectors, sums, values = (
        borrow(X),
        borrow(labels),
        borrow(S),
        borrow(vectors),
        borrow(sums),
        borrow(values),
    )
    m = labels.shape[0]
    depth = depth_of(metrics, m)  # 0 without metrics
    items, gradient = np.arange(m), np.empty(m)
    plan = label_plan(labels, specs[0])
    compute_ideals(labels, metrics)
    for j in range(S.shape[0]):
        spec = specs[j]
        if not same[j]:
            plan = label_plan(labels, spec)
        if depth > 0:
            measure(argsort_top(S[j], depth), labels, metrics)
            for c in range(metrics.shape[0]):
                values[j, c] = metrics[c]["value"]
        losses[j] = fused_step(
            X, items, labels, S[j], spec, plan, etas[j], first[j] + 1.0, vectors[j], sums[j], gradient, 0
        )
        if np.isnan(losses[j]):
            return j
    return -1


def step_sizes(step: Step, first: int, count: int) -> Floats:
    """The step sizes of several rounds."""
    if isinstance(step, Constant):
        return np.full(count, step.eta)
    return np.array([step(number) for number in range(first, first + count)])


def play_pass(learner: Linear, rounds: Rounds, queries: Integers, metrics: tuple[Metric, ...]) -> tuple[Floats, Floats]:
    """Plays some queries with full feedback: (the loss of each, its metrics).

    An invalid round is an error, as in `play`; the learner is then as it was before that round.
    """
    check_features(rounds.X, learner.n_features)
    losses, values = np.empty(len(queries)), np.empty((len(queries), len(metrics)))
    etas = step_sizes(learner.step, learner.rounds, len(queries))
    assert learner.fused is not None
    done = _pass(
        as_arrays(rounds.X), rounds.labels, rounds.offsets, queries, etas, learner.rounds, learner.fused,
        metric_records(metrics), learner.vectors, learner.sums, losses, values,
    )  # fmt: skip
    learner.rounds += done
    learner.mistakes += int(np.count_nonzero(losses[:done] > 0.0))
    if done < len(queries):
        refused = rounds[int(queries[done])]
        _refuse_labels(refused)
        for each in metrics:
            each(refused.labels)  # says which label the metric is not defined for
        raise DataError(overflow(learner.rounds))
    return losses, values


def _refuse_labels(round: Round) -> None:
    if not is_full(np.arange(len(round.labels)), round.labels, len(round.X)):
        raise DataError(f"query {round.qid!r} needs a finite label of 0 or more for each of {len(round.X)} documents")


def play_compiled(
    learner: Linear, rounds: Iterable[Round], metrics: Sequence[Metric], play_round: Callable[[Round, int], Turn]
) -> Iterator[Turn]:
    """`play` with full feedback, each round in a single compiled call.

    `play_round` takes rounds that are invalid: there the metric, `rank` or `learn` says what is wrong.
    """
    assert learner.fused is not None
    records, spec = metric_records(metrics), learner.fused
    make: Any = tuple.__new__  # what the constructors of named tuples call, at half their cost
    # To look these up in every round would take as long as to use them.
    empty, integers, measured = np.empty, np.dtype(np.int64), records["value"].tolist
    for number, (X, labels, first, last) in enumerate(_lists(rounds, learner.n_features), start=learner.rounds):
        m, step, played = last - first, learner.step, learner.rounds
        order, scores = empty(m, integers), empty(m)
        loss = fused_turn(
            X, labels, first, last, spec, records, step(number), played, learner.vectors, learner.sums, order, scores
        )
        if loss != loss:
            features = as_features(slice_rows(X, first, last), learner.n_features)
            yield play_round(Round._make((features, labels[first:last], None)), number)
            continue
        learner.rounds = played + 1
        if loss > 0.0:
            learner.mistakes += 1
        ranking = make(Ranking, (order, scores, number, False, None))
        received = make(Feedback, (everyone(m), labels[first:last]))
        yield make(Turn, (number, ranking, received, loss, (*measured(),)))


def _lists(rounds: Iterable[Round], width: int) -> Iterator[tuple[FeatureArrays, Floats, int, int]]:
    """Features and labels, and which of their documents each list has: those of `Rounds` are not sliced."""
    if type(rounds) is not Rounds:
        return _single_lists(rounds, width)
    check_features(rounds.X, width)
    offsets = rounds.offsets.tolist()
    return zip(repeat(as_arrays(rounds.X)), repeat(rounds.labels), offsets, offsets[1:], strict=False)


def _single_lists(rounds: Iterable[Round], width: int) -> Iterator[tuple[FeatureArrays, Floats, int, int]]:
    for round in rounds:
        X, labels, _ = round
        check_features(X, width)
        if X.shape[0] != labels.shape[0]:
            Round(*round)  # says so
        yield as_arrays(X), labels, 0, X.shape[0]


def _steps(learners: Sequence[Linear]) -> Floats:
    return np.array([learner.step(learner.rounds) for learner in learners])


def play_many(
    learners: Sequence[Linear], rounds: Iterable[Round], metrics: Iterable[Metric | str] = ()
) -> Iterator[tuple[Floats, Floats]]:
    """Trains many linear learners on one stream with full feedback, with one matrix product per query.

    Yields after each round (the loss of every learner, the metrics as an array of learners × metrics). The result is
    the same as for each learner alone, except for the last bit of scores on dense features, which are added in another
    order.

    Parameters
    ----------
    learners : sequence of Linear
        SLAM, minimax, hinge or ListNet learners with the same number of features; they are changed.
    rounds : iterable of Round
        The stream, played once.
    metrics : iterable of str or Metric
        Computed for each ranking of each learner.

    Examples
    --------
    >>> from ranktron.learners import slam_perceptron
    >>> from ranktron.data.synthetic import Separable
    >>> learners = [slam_perceptron(20, eta=eta) for eta in (0.1, 1.0)]
    >>> losses = [losses for losses, _ in play_many(learners, Separable().rounds(30))]
    >>> [learner.rounds for learner in learners]
    [30, 30]
    """
    from threadpoolctl import threadpool_limits

    if not learners or not all(map(can_fuse, learners)) or len({learner.n_features for learner in learners}) > 1:
        raise DataError("play_many takes SLAM, minimax, hinge and ListNet learners with the same number of features")
    if len(set(map(id, learners))) < len(learners):
        raise DataError("play_many was given the same learner twice: each must be another object")
    measures = tuple(metric(each) for each in metrics)
    specs = np.concatenate([learner.fused for learner in learners if learner.fused is not None])
    same = np.array([j == 0 or specs[j] == specs[j - 1] for j in range(len(specs))])
    vectors, sums = (np.array(each) for each in zip(*((each.vectors, each.sums) for each in learners), strict=True))
    for j, learner in enumerate(learners):  # from here on the arrays of the learners are views of these tables
        learner.vectors, learner.sums = vectors[j], sums[j]
    W, records = vectors[:, 0], metric_records(measures)
    steady, etas = all(isinstance(learner.step, Constant) for learner in learners), _steps(learners)
    first = np.array([learner.rounds for learner in learners])
    # For matrices of this size a second thread costs far more than it gains.
    with threadpool_limits(1, user_api="blas"):
        for round in rounds:
            losses, values = np.empty(len(learners)), np.empty((len(learners), len(measures)))
            if not steady:
                etas = _steps(learners)
            X = round.X
            check_features(X, W.shape[1])
            _refuse_labels(round)
            for each in measures:
                each(round.labels)  # says which label the metric is not defined for
            S = np.array([X.score(w) for w in W]) if isinstance(X, Sparse) else W @ X.astype(np.float64).T
            refused = _many(
                as_arrays(X), round.labels, S, etas, first, specs, same, records, vectors, sums, losses, values,
            )  # fmt: skip
            done = refused if refused >= 0 else len(learners)
            for learner, loss in zip(learners[:done], losses[:done].tolist(), strict=True):
                learner.rounds += 1
                learner.mistakes += loss > 0.0
            if refused >= 0:
                raise DataError(f"learner {refused}: {overflow(learners[refused].rounds)}")
            first += 1
            yield losses, values
