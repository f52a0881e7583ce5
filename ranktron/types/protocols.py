"""The protocols of surrogates, mistake rules, step sizes, learners and feedback models."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ranktron.types.arrays import Floats, Matrix
from ranktron.types.rounds import Feedback, Ranking, Round


class Surrogate(Protocol):
    """A loss in score space, with its (sub)gradient: it knows scores and labels, not features.

    Parameters
    ----------
    scores : array of shape (documents,)
        The scores of a query's documents.
    labels : array of shape (documents,)
        Their labels.

    Returns
    -------
    loss : float
    gradient : array of shape (documents,)
        The (sub)gradient of the loss with respect to the scores.

    Examples
    --------
    >>> import numpy as np
    >>> def squared(scores, labels):
    ...     return float(((scores - labels) ** 2).sum()), 2.0 * (scores - labels)
    >>> surrogate: Surrogate = squared
    >>> surrogate(np.array([1.0, 0.0]), np.array([1.0, 2.0]))
    (4.0, array([ 0., -4.]))
    """

    def __call__(self, scores: Floats, labels: Floats, /) -> tuple[float, Floats]: ...


class Mistake(Protocol):
    """Decides from scores and labels whether a ranking was a mistake, with ties broken in the worst way.

    Parameters
    ----------
    scores : array of shape (documents,)
        The scores of a query's documents.
    labels : array of shape (documents,)
        Their labels.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktron.learners.mistakes import Misordered
    >>> rule: Mistake = Misordered()
    >>> rule(np.array([1.0, 1.0]), np.array([1.0, 0.0]))  # a tie is broken against the learner
    True
    """

    def __call__(self, scores: Floats, labels: Floats, /) -> bool: ...


class Step(Protocol):
    """A step size, as a function of the round number.

    Parameters
    ----------
    number : int
        The number of the round, from 0.

    Examples
    --------
    >>> from ranktron.learners.steps import InversePower
    >>> step: Step = InversePower(1.0, 0.5)
    >>> step(0), step(3)
    (1.0, 0.5)
    """

    def __call__(self, number: int, /) -> float: ...


State = Mapping[str, Any]
"""Everything that a learner has learnt, as numbers, text and arrays."""


class Learner(Protocol):
    """Ranks documents and learns from feedback. Only `learn` changes its state. This is all that `play` needs.

    `rank` orders documents by `scores`, those of the current weights. `predict` returns the scores to use after
    training; they differ from `scores` if the learner averages its weights. `simulated_feedback` is what the learner
    receives when feedback is simulated from labels. `state` and `restore` save and load everything learnt, including
    the number of `rounds` so far.

    Examples
    --------
    >>> import numpy as np
    >>> import ranktron
    >>> learner: Learner = ranktron.learners.hinge_perceptron(n_features=2)
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0]], np.float32)
    >>> ranking = learner.rank(X, learner.rounds)
    >>> learner.learn(X, ranking, Feedback(np.array([0, 1]), np.array([0.0, 1.0])))
    1.0
    >>> learner.rank(X, learner.rounds).order.tolist()
    [1, 0]
    """

    @property
    def rounds(self) -> int: ...

    def scores(self, X: Matrix, /) -> Floats:
        """Returns the scores of the current weights, by which `rank` orders documents.

        Parameters
        ----------
        X : array of shape (documents, features)
            One query.
        """

    def predict(self, X: Matrix, /) -> Floats:
        """Returns the scores to use after training.

        Parameters
        ----------
        X : array of shape (documents, features)
            One query.
        """

    def rank(self, X: Matrix, number: int, /) -> Ranking:
        """Returns the ranking to show; changes no state.

        Parameters
        ----------
        X : array of shape (documents, features)
            One query.
        number : int
            The number of the round, from 0: what is drawn at random depends on it and on nothing else.
        """

    def learn(self, X: Matrix, ranking: Ranking, feedback: Feedback, /) -> float:
        """Updates the weights from the feedback on a shown ranking and returns the loss.

        Parameters
        ----------
        X : array of shape (documents, features)
            One query.
        ranking : Ranking
            What was shown.
        feedback : Feedback
            The labels that became known.
        """

    def simulated_feedback(self, round: Round, ranking: Ranking, /) -> Feedback:
        """Returns the feedback to simulate from labels.

        Parameters
        ----------
        round : Round
            A query with its labels.
        ranking : Ranking
            What was shown.
        """

    def state(self) -> State: ...

    def restore(self, state: State, /) -> None:
        """Goes on from a stored state; an impossible one is refused.

        Parameters
        ----------
        state : dict
            What `state` returned.
        """


FeedbackModel = Callable[[Round, Ranking], Feedback]
"""A function that takes a round and the ranking shown, and returns what the learner receives."""
