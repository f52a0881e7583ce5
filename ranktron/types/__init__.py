"""The nouns that everything else is made of: read this file first.

A *round* is one query's list. A learner shows a *ranking* of it, hears *feedback*, and learns. Labels are seen by the
feedback and by the metrics, never by the learner's `rank`.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError
from ranktron.types import validation

Matrix = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Features = Any
"""A row of features for each document: a `Matrix`, or the rows of a `Sparse` where most of them are 0."""


class _List(NamedTuple):
    X: Features
    labels: Floats
    qid: Any


class Round(_List):
    """One query's list: a row of features and a label for each document.

    Features and labels may be lists or arrays of any kind of number; `Round._make` takes arrays that are known to be
    right as they are.

    >>> Round([[0.5, 1.0], [0.0, 3.0]], [2, 0], "7").labels
    array([2., 0.])
    """

    __slots__ = ()

    def __new__(cls, X: Features, labels: npt.ArrayLike, qid: Any) -> Self:
        if hasattr(X, "starts"):  # sparse rows know themselves what they may be
            X.check()
        else:
            what = "the features of a round are finite numbers, a row for each document (or Sparse.from_matrix(X))"
            X = validation.matrix(X, what)
            if not np.isfinite(X).all():
                raise DataError(f"{what}; those of query {qid!r} hold NaN, infinity or what is too large for 32 bits")
        grades = validation.floats(labels, "the labels of a round are one number for each document")
        if X.shape[0] != grades.shape[0]:
            raise DataError(f"query {qid!r} has {X.shape[0]} rows of features, but {grades.shape[0]} labels")
        return super().__new__(cls, X, grades, qid)


class Ranking(NamedTuple):
    """What was shown: document indices best first, and all that is needed to learn from it later.

    `propensities` says how likely the first documents were to be among the first, each alone or each two together; None
    unless the learner explores.

    >>> ranking = Ranking(order=np.array([1, 0]), scores=np.array([0.2, 0.9]), number=0)
    >>> ranking.scores[ranking.order]
    array([0.9, 0.2])
    """

    order: Integers
    scores: Floats
    number: int
    explored: bool = False
    propensities: Floats | None = None


class _Heard(NamedTuple):
    items: Integers
    labels: Floats


class Feedback(_Heard):
    """What came back: the labels of some documents of the list. A document not in `items` was not observed.

    Both may be lists or arrays of any kind of number; `Feedback._make` takes arrays that are known to be right as
    they are.

    >>> Feedback(items=[2], labels=[1])  # of three documents, one was judged
    Feedback(items=array([2]), labels=array([1.]))
    """

    __slots__ = ()

    def __new__(cls, items: npt.ArrayLike, labels: npt.ArrayLike) -> Self:
        which = validation.integers(items, "the documents of feedback are places in the list, counted from 0")
        grades = validation.floats(labels, "the labels of feedback are one number for each document")
        if which.shape != grades.shape:
            raise DataError(f"feedback on {len(which)} documents with {len(grades)} labels")
        return super().__new__(cls, which, grades)


class Turn(NamedTuple):
    """One round of play, from the ranking that was shown to the loss that was learnt from it.

    >>> import ranktron
    >>> learner = ranktron.learners.hinge_perceptron(n_features=20)
    >>> turns = ranktron.play(learner, ranktron.synthetic.Separable().rounds(5), ranktron.feedback.full, ["mrr"])
    >>> [turn.number for turn in turns]
    [0, 1, 2, 3, 4]
    """

    number: int
    ranking: Ranking
    feedback: Feedback
    loss: float
    values: tuple[float, ...]


class Surrogate(Protocol):
    """A loss in score space, with its (sub)gradient: it knows scores and labels, not features.

    >>> def squared(scores, labels):
    ...     return float(((scores - labels) ** 2).sum()), 2.0 * (scores - labels)
    >>> surrogate: Surrogate = squared
    >>> surrogate(np.array([1.0, 0.0]), np.array([1.0, 2.0]))
    (4.0, array([ 0., -4.]))
    """

    def __call__(self, scores: Floats, labels: Floats, /) -> tuple[float, Floats]: ...


class Mistake(Protocol):
    """Decides from scores and labels whether a round was a mistake, under the worst tie-breaking.

    >>> from ranktron.learners.mistakes import Misordered
    >>> rule: Mistake = Misordered()
    >>> rule(np.array([1.0, 1.0]), np.array([1.0, 0.0]))  # a tie is broken against the learner
    True
    """

    def __call__(self, scores: Floats, labels: Floats, /) -> bool: ...


class Step(Protocol):
    """The step size of round number `number` (from 0).

    >>> from ranktron.learners.steps import InversePower
    >>> step: Step = InversePower(1.0, 0.5)
    >>> step(0), step(3)
    (1.0, 0.5)
    """

    def __call__(self, number: int, /) -> float: ...


State = Mapping[str, Any]
"""All that a learner has learnt, as numbers, text and arrays."""


class Learner(Protocol):
    """Ranks and learns. `rank` changes nothing; `learn` is the only thing that does.

    `scores` are those of the current weights, which `rank` shows; `predict` gives those to serve after training (they
    differ where a learner averages). `hears` says what the learner gets to hear when its feedback is simulated from
    labels. `state` and `restore` carry everything learnt, `rounds` included.

    >>> import ranktron
    >>> learner: Learner = ranktron.learners.hinge_perceptron(n_features=2)
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)
    >>> ranking = learner.rank(X, learner.rounds)
    >>> learner.learn(X, ranking, Feedback(np.array([0, 1]), np.array([0.0, 1.0])))
    1.0
    >>> learner.rank(X, learner.rounds).order.tolist()
    [1, 0]
    """

    rounds: int

    def scores(self, X: Matrix, /) -> Floats: ...

    def predict(self, X: Matrix, /) -> Floats: ...

    def rank(self, X: Matrix, number: int, /) -> Ranking: ...

    def learn(self, X: Matrix, ranking: Ranking, feedback: Feedback, /) -> float: ...

    def hears(self, round: Round, ranking: Ranking, /) -> Feedback: ...

    def state(self) -> State: ...

    def restore(self, state: State, /) -> None: ...


FeedbackModel = Callable[[Round, Ranking], Feedback]
"""Who answers: takes the round and what was shown of it, and says what the learner gets to hear."""
