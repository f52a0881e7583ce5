"""The online learning loop: show a ranking, receive feedback, update the weights."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import cast

from ranktron.errors import DataError
from ranktron.learners.feedback import full
from ranktron.metrics import Metric, metric
from ranktron.types import Feedback, FeedbackModel, Floats, Integers, Learner, Ranking, Round, Turn
from ranktron.types.validation import check_count

Measure = Callable[[Floats, Integers], float]
"""A metric of labels and the order in which they are shown."""


def play(
    learner: Learner,
    rounds: Iterable[Round],
    feedback: FeedbackModel,
    metrics: Sequence[Callable[[Floats], float] | str] | Callable[[Floats], float] | str = (),
    delay: int = 0,
) -> Iterator[Turn]:
    """Plays a stream: ranks each query, learns from its feedback, and yields one `Turn` per round.

    Round numbers continue from `learner.rounds`: a second pass continues step sizes and random choices instead of
    repeating them. Metrics evaluate each ranking as it is shown, before learning from it. With `delay`, the feedback of
    a round arrives after that many later rounds were ranked; outstanding feedback arrives at the end of the stream.

    Parameters
    ----------
    learner : Learner
        Ranks and learns; it is changed.
    rounds : iterable of Round
        The stream: `Rounds`, a generator, or a reader such as `ranktron.stream(path)`.
    feedback : callable
        A function (round, ranking) -> Feedback: `ranktron.feedback.full`, `ranktron.feedback.top(k)`, or your own.
    metrics : str, Metric, or several of them
        Computed for each ranking as it was shown.
    delay : int
        The number of later rounds that are ranked before the feedback of a round arrives.

    Examples
    --------
    >>> import numpy as np
    >>> import ranktron
    >>> rounds = ranktron.Rounds.from_arrays([[1.0], [3.0], [1.0], [2.0]], [0, 1, 0, 1], group=[2, 2])
    >>> learner = ranktron.learners.hinge_perceptron(n_features=1)
    >>> [turn.loss for turn in play(learner, rounds, ranktron.feedback.full)]
    [1.0, 0.0]
    """
    check_count(delay, "the delay, in rounds,", 0)
    several = [metrics] if isinstance(metrics, str) or callable(metrics) else metrics
    callables = [metric(each) if isinstance(each, str) else each for each in several]
    measures = [_measure(each) for each in callables]
    if delay == 0 and feedback is full and all(isinstance(each, Metric) for each in callables):
        from ranktron.learners.fused import can_fuse, play_compiled  # not every learner needs it

        # An instance with its own `rank` or `learn`, such as one under observation, plays in Python.
        if can_fuse(learner) and not {"rank", "learn"} & vars(learner).keys():
            play_round = partial(_play_round, learner, feedback, measures)
            return play_compiled(learner, rounds, cast(list[Metric], callables), play_round)
    return _play_in_python(learner, rounds, feedback, measures, delay)


def _play_in_python(
    learner: Learner, rounds: Iterable[Round], feedback: FeedbackModel, measures: Sequence[Measure], delay: int
) -> Iterator[Turn]:
    outstanding: deque[tuple[Round, Ranking, tuple[float, ...]]] = deque()
    for number, round in enumerate(rounds, start=learner.rounds):
        outstanding.append(_show(learner, measures, round, number))
        if len(outstanding) > delay:
            yield _settle(learner, feedback, *outstanding.popleft())
    while outstanding:
        yield _settle(learner, feedback, *outstanding.popleft())


def _play_round(
    learner: Learner, feedback: FeedbackModel, measures: Sequence[Measure], round: Round, number: int
) -> Turn:
    return _settle(learner, feedback, *_show(learner, measures, round, number))


def _show(
    learner: Learner, measures: Sequence[Measure], round: Round, number: int
) -> tuple[Round, Ranking, tuple[float, ...]]:
    ranking = learner.rank(round.X, number)
    return round, ranking, tuple([measure(round.labels, ranking.order) for measure in measures])


def _measure(measure: Callable[[Floats], float]) -> Measure:
    """A function of labels and the order in which they are shown."""
    return measure.shown if isinstance(measure, Metric) else lambda labels, order: measure(labels[order])


def _settle(
    learner: Learner, feedback: FeedbackModel, round: Round, ranking: Ranking, values: tuple[float, ...]
) -> Turn:
    received = feedback(round, ranking)
    if not isinstance(received, Feedback):
        raise DataError(f"a feedback model answers with Feedback(items, labels), not with {received!r}")
    loss = learner.learn(round.X, ranking, received)
    return Turn(ranking.number, ranking, received, loss, values)
