"""What a learner can do, as attributes of its type: nobody has to ask with `isinstance` or `getattr`."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.kernels.csr_rows import linear_scores
from ranktron.learners import feedback as feedbacks
from ranktron.learners.pending import PendingRound
from ranktron.metrics import Metric
from ranktron.types import Features, Feedback, FeedbackModel, Floats, Ranking, Round, State


class BaseLearner(ABC):
    """A learner that can be trained, stored, served and exported; `play` alone needs less (`ranktron.types.Learner`).

    The attributes hold the answers that most learners give. A learner that differs says so in its own class.

    Attributes
    ----------
    rounds : int
        The rounds learnt from so far.
    mistakes : int
        How many of them (for pairwise learners: how many pairs) were mistakes.
    learns_online : bool
        Whether `learn` learns; False for the results of batch solvers, which only rank.
    linear : bool
        Whether each of its members scores linearly, so that adding a constant to a feature changes no order.
    votes : bool
        Whether `predict` takes one list at a time, because its scores are votes among the documents of the list.
    labels_received : int or None
        Of how many documents shown first it receives the labels; None where it learns from any labels.
    constant : float
        What every score contains beside X · coef.
    kernel : KernelFunction or None
        What compares documents in place of the inner product, where there is such a kernel.
    rescales : bool
        Whether `rescale` keeps its scores when the scale of the features changes; it then takes a running scaling.

    Examples
    --------
    >>> from ranktron.learners import hinge_perceptron, top_k_ranker
    >>> learner = hinge_perceptron(n_features=2)
    >>> learner.learns_online, learner.linear, learner.votes, learner.labels_received
    (True, True, False, None)
    >>> top_k_ranker(n_features=2, k=3).labels_received
    3
    """

    learns_online: bool = True
    linear: bool = True
    constant: float = 0.0
    kernel: Any = None
    rescales: ClassVar[bool] = False
    renamed_attributes: ClassVar[Mapping[str, str]] = {}  # since 0.1, whose pickles are read until 0.3

    def __setstate__(self, pickled: dict[str, Any]) -> None:
        self.__dict__.update({self.renamed_attributes.get(name, name): value for name, value in pickled.items()})

    @property
    @abstractmethod
    def rounds(self) -> int: ...

    @property
    def mistakes(self) -> int:
        return 0

    @property
    def votes(self) -> bool:
        return False

    @property
    def labels_received(self) -> int | None:
        return None

    @property
    def coef(self) -> Floats | None:
        """The weights to serve; None where there are none."""
        return None

    @property
    def ranking_weights(self) -> Floats | None:
        """The weights whose scores `rank` orders by; None where there are none."""
        return None

    @abstractmethod
    def scores(self, X: Features) -> Floats:
        """The scores of the current weights, which `rank` shows."""

    @abstractmethod
    def predict(self, X: Features) -> Floats:
        """The scores to serve after training; they differ from `scores` where a learner averages."""

    @abstractmethod
    def rank(self, X: Features, number: int) -> Ranking:
        """What to show in round `number`; changes nothing."""

    @abstractmethod
    def learn(self, X: Features, ranking: Ranking, feedback: Feedback) -> float:
        """Updates the weights from the feedback on a shown ranking and returns the loss."""

    @abstractmethod
    def state(self) -> State:
        """Everything learnt, as numbers and arrays."""

    @abstractmethod
    def restore(self, state: State) -> None:
        """Takes over what `state` gave; a state that this learner cannot have reached is refused."""

    def rescale(self, factors: Floats) -> None:
        """Multiplies each weight by a factor of its own: the scale of its feature has changed by as much."""
        raise NotImplementedError

    def simulated_feedback(self, round: Round, ranking: Ranking) -> Feedback:
        """The feedback that the learner receives when it is simulated from labels: all of them, or the first k."""
        return feedbacks.full(round, ranking)

    @property
    def hears(self) -> FeedbackModel:
        """The name of `simulated_feedback` in 0.1; it goes with 0.3."""
        warnings.warn("hears is deprecated: use simulated_feedback", DeprecationWarning, stacklevel=2)
        return self.simulated_feedback

    def pending(self, X: Features, ranking: Ranking, k: int) -> PendingRound:
        """All that is kept of a round until labels of at most the first k shown documents come.

        >>> from ranktron.learners import hinge_perceptron
        >>> learner, X = hinge_perceptron(1), np.array([[1.0], [3.0], [2.0]], np.float32)
        >>> pending = learner.pending(X, learner.rank(X, 0), 2)
        >>> pending.rows.ravel()
        array([1., 3.], dtype=float32)
        >>> learner.learn_pending(pending, Feedback(np.array([0, 1]), np.array([0.0, 1.0])))
        1.0
        """
        first = ranking.order[:k]
        return PendingRound(X[first], ranking.scores[first], ranking.number, len(X))

    def learn_pending(self, pending: PendingRound, places: Feedback) -> float:
        """Learns from a pending round exactly what `learn` would learn from the whole list; items are places shown."""
        return self.learn(pending.rows, Ranking(np.arange(len(pending.rows)), pending.shown, pending.number), places)

    def weigh_members(self, valid: Rounds, metric: Metric) -> None:
        """Lets validation queries say what the members of a committee are worth, where the learner has one."""
        return


class WeightVectorLearner(BaseLearner):
    """A learner whose current ranker is one weight vector `w`, and that serves another one, `coef`.

    Examples
    --------
    >>> from ranktron.learners import hinge_perceptron
    >>> hinge_perceptron(n_features=2).ranking_weights
    array([0., 0.])
    """

    w: Floats

    @property
    @abstractmethod
    def coef(self) -> Floats: ...

    @property
    def ranking_weights(self) -> Floats:
        return self.w

    def scores(self, X: Features) -> Floats:
        return linear_scores(X, self.w)

    def predict(self, X: Features) -> Floats:
        return linear_scores(X, self.coef)
