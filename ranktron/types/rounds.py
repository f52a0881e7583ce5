"""One round, from the query's documents to what was learnt from them: `Round`, `Ranking`, `Feedback`, `Turn`."""

from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ranktron.errors import DataError
from ranktron.types import validation
from ranktron.types.arrays import Features, Floats, Integers


class _List(NamedTuple):
    X: Features
    labels: Floats
    qid: Any


class Round(_List):
    """One query's list: a row of features and a label for each document.

    Features and labels may be lists or arrays of any kind of number; `Round._make` takes arrays that are known to be
    right as they are.

    Parameters
    ----------
    X : array of shape (documents, features), or Sparse
        The features, finite numbers; kept as float32.
    labels : array of shape (documents,)
        The grades, finite and >= 0.
    qid : any
        What the query is called; shown in messages only.

    Examples
    --------
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
                bad = "contain NaN, infinity or a number too large for 32 bits"
                raise DataError(f"{what}; those of query {qid!r} {bad}")
        grades = validation.floats(labels, "the labels of a round are one number for each document")
        if X.shape[0] != grades.shape[0]:
            raise DataError(f"query {qid!r} has {X.shape[0]} rows of features, but {grades.shape[0]} labels")
        return super().__new__(cls, X, grades, qid)


class Ranking(NamedTuple):
    """What was shown: document indices best first, and all that is needed to learn from it later.

    `propensities` says how likely the first documents were to be among the first, each alone or each two together; None
    unless the learner explores.

    Parameters
    ----------
    order : array of int
        The documents, the one shown first in front.
    scores : array of float
        The score of each document, in the order of the list (not in the order shown).
    number : int
        The number of the round, from 0.
    explored : bool
        Whether the order was drawn at random.
    propensities : array of float, or None
        For the documents shown first: the probability that they were shown there.

    Examples
    --------
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

    Parameters
    ----------
    items : array of int
        The documents that were observed, as places in the list from 0.
    labels : array of float
        The label of each of them.

    Examples
    --------
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

    Parameters
    ----------
    number : int
        The number of the round, from 0.
    ranking : Ranking
        What was shown.
    feedback : Feedback
        What came back.
    loss : float
        The loss that the learner reports for the round.
    values : tuple of float
        The metrics of the shown ranking, in the order in which they were asked for.

    Examples
    --------
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
