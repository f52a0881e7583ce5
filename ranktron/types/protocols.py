"""What surrogates, mistake rules, step sizes, learners and feedback models have to be able to do."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ranktron.types.arrays import Floats, Matrix
from ranktron.types.rounds import Feedback, Ranking, Round


class Surrogate(Protocol):
    """A loss in score space, with its (sub)gradient: it knows scores and labels, not features.

    >>> import numpy as np
    >>> def squared(scores, labels):
    ...     return float(((scores - labels) ** 2).sum()), 2.0 * (scores - labels)
    >>> surrogate: Surrogate = squared
    >>> surrogate(np.array([1.0, 0.0]), np.array([1.0, 2.0]))
    (4.0, array([ 0., -4.]))
    """

    def __call__(self, scores: Floats, labels: Floats, /) -> tuple[float, Floats]: ...


class Mistake(Protocol):
    """Decides from scores and labels whether a round was a mistake, under the worst tie-breaking.

    >>> import numpy as np
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
    """Ranks and learns. `rank` changes nothing; `learn` is the only thing that does. This is all that `play` needs.

    `scores` are those of the current weights, which `rank` shows; `predict` gives those to serve after training (they
    differ where a learner averages). `simulated_feedback` is what the learner receives when its feedback is simulated
    from labels. `state` and `restore` carry everything learnt, `rounds` included.

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

    def scores(self, X: Matrix, /) -> Floats: ...

    def predict(self, X: Matrix, /) -> Floats: ...

    def rank(self, X: Matrix, number: int, /) -> Ranking: ...

    def learn(self, X: Matrix, ranking: Ranking, feedback: Feedback, /) -> float: ...

    def simulated_feedback(self, round: Round, ranking: Ranking, /) -> Feedback: ...

    def state(self) -> State: ...

    def restore(self, state: State, /) -> None: ...


FeedbackModel = Callable[[Round, Ranking], Feedback]
"""Who answers: takes the round and what was shown of it, and says what the learner receives."""
