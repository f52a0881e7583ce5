"""The online learning loop: show a ranking, receive feedback, update the weights."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

from ranktron.errors import DataError
from ranktron.learners.feedback import full
from ranktron.metrics import Metric, metric
from ranktron.types import Feedback, FeedbackModel, Floats, Integers, Learner, Ranking, Round, Turn
from ranktron.types.validation import check_count


def play(
    learner: Learner,
    rounds: Iterable[Round],
    feedback: FeedbackModel,
    metrics: Sequence[Callable[[Floats], float] | str] | Callable[[Floats], float] | str = (),
    delay: int = 0,
) -> Iterator[Turn]:
    """Plays a stream: ranks each query, learns from its feedback, and yields one `Turn` per round.

    Round numbers continue from `learner.rounds`, so that a second pass continues step sizes and chance instead of
    repeating them. Metrics evaluate the ranking that was shown, before learning from it. With `delay`, the
    feedback of a round arrives only after that many later rounds have been ranked; feedback that is outstanding at the
    end of the stream arrives then.

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
        How many later rounds are ranked before the feedback of a round arrives.

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
    given = [metrics] if isinstance(metrics, str) or callable(metrics) else metrics
    named = [metric(each) if isinstance(each, str) else each for each in given]
    measures = [_measure(each) for each in named]
    play_turn = _compiled_turns(learner, feedback, named) if delay == 0 else None
    under_way: deque[tuple[Round, Ranking, tuple[float, ...]]] = deque()
    for number, round in enumerate(rounds, start=learner.rounds):
        turn = None if play_turn is None else play_turn(round, number)
        if turn is not None:
            yield turn
            continue
        ranking = learner.rank(round.X, number)
        values = tuple([measure(round.labels, ranking.order) for measure in measures]) if measures else ()
        if delay == 0:
            yield _settle(learner, feedback, round, ranking, values)
            continue
        under_way.append((round, ranking, values))
        if len(under_way) > delay:
            yield _settle(learner, feedback, *under_way.popleft())
    while under_way:
        yield _settle(learner, feedback, *under_way.popleft())


def _compiled_turns(
    learner: Learner, feedback: FeedbackModel, measures: Sequence[Callable[[Floats], float]]
) -> Callable[[Round, int], Turn | None] | None:
    """A function that plays a round in one compiled call, if this learner, feedback and these metrics allow it."""
    metrics = [each for each in measures if isinstance(each, Metric)]
    if feedback is not full or len(metrics) < len(measures):
        return None
    from ranktron.learners.fused import can_fuse, turn_player  # which not every learner needs

    if not can_fuse(learner):
        return None
    # A learner with a `rank` or `learn` of its own, such as one that is observed, is asked for each of them.
    return None if {"rank", "learn"} & vars(learner).keys() else turn_player(learner, metrics)


def _measure(measure: Callable[[Floats], float]) -> Callable[[Floats, Integers], float]:
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
