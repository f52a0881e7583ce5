"""The base classes of learners, whose attributes say what a learner can do, without `isinstance` or `getattr`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import as_dense, linear_scores
from ranktron.learners import feedback as feedbacks
from ranktron.learners.pending_rounds import PendingRound
from ranktron.learners.start import Start
from ranktron.metrics import Metric
from ranktron.types import Features, Feedback, Floats, Integers, Ranking, State

CompiledPass = Callable[[Rounds, Integers, tuple[Metric, ...]], tuple[Floats, Floats]]
"""A function (rounds, queries, metrics) -> (the loss of each query, its metrics)."""


class BaseLearner(ABC):
    """A learner that can be trained, stored, served and exported; `play` alone needs less (`ranktron.types.Learner`).

    The attributes have the values of most learners; a class that differs overrides them.

    Attributes
    ----------
    rounds : int
        The number of rounds so far.
    mistakes : int
        How many of them (for pairwise learners: how many pairs) were mistakes.
    learns_online : bool
        Whether `learn` is supported; False for the results of batch solvers, which only rank.
    linear : bool
        Whether all its members are linear, so that adding a constant to a feature does not change the ranking.
    votes : bool
        Whether `predict` takes one query at a time, because scores are votes that depend on its other documents.
    labels_received : int or None
        How many labels it receives, those of the documents shown first; None if it learns from any labels.
    constant : float
        The constant that is added to X · coef.
    kernel : KernelFunction or None
        The kernel function, if it has one.
    rescales : bool
        Whether it supports `rescale`, and so scale="running-standard".
    mixes : bool
        Whether it supports `mix`, and so training on several shards at once.
    begins : bool
        Whether it supports `begin`, and so starting from given weights.
    scale_free : bool
        Whether no step size changes a ranking. No step can then be chosen small enough that the last weights are not
        as noisy as its steps: shards that begin after a pass of one learner begin with the mean of its weights.

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
    mixes: ClassVar[bool] = False
    begins: ClassVar[bool] = False

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
    def scale_free(self) -> bool:
        return False

    @property
    def coef(self) -> Floats | None:
        """The weights of `predict`; None if there are none."""
        return None

    @property
    def ranking_weights(self) -> Floats | None:
        """The weights of `scores`, by which `rank` orders documents; None if there are none."""
        return None

    @abstractmethod
    def scores(self, X: Features) -> Floats:
        """The scores of the current weights, by which `rank` orders documents."""

    @abstractmethod
    def predict(self, X: Features) -> Floats:
        """The scores to use after training; they differ from `scores` if the learner averages its weights."""

    def contributions(self, X: Features) -> Floats | None:
        """What each feature adds to the scores of `predict`, a row for each document; None if they are no such sums.

        Parameters
        ----------
        X : Features
            The documents of a query.

        Examples
        --------
        >>> from ranktron.learners import hinge_perceptron
        >>> learner = hinge_perceptron(2)
        >>> learner.w[:] = 1.0, -1.0
        >>> learner.contributions(np.array([[1.0, 2.0]], np.float32))
        array([[ 1., -2.]])
        """
        return None if self.coef is None else as_dense(X) * self.coef

    @abstractmethod
    def rank(self, X: Features, number: int) -> Ranking:
        """The ranking to show in round `number`; changes no state."""

    @abstractmethod
    def learn(self, X: Features, ranking: Ranking, feedback: Feedback) -> float:
        """Updates the weights from the feedback on a shown ranking and returns the loss."""

    @abstractmethod
    def state(self) -> State:
        """Everything learnt, as numbers and arrays."""

    @abstractmethod
    def restore(self, state: State) -> None:
        """Restores what `state` returned; an impossible state is refused."""

    def begin(self, start: Start) -> None:
        """Starts from given weights instead of 0, before the first round.

        Parameters
        ----------
        start : Start
            The weights, and how far from them the learner may go.

        Examples
        --------
        >>> from ranktron.learners import pdgd_ranker
        >>> from ranktron.learners.start import Start
        >>> learner = pdgd_ranker(2)
        >>> learner.begin(Start(np.array([1.0, -1.0]), trust=0.5))
        >>> learner.w
        array([ 1., -1.])
        """
        raise DataError(f"{type(self).__name__} cannot start from given weights")

    def of(self, user: str) -> BaseLearner:
        """The learner of one user: this one, unless users have weights of their own (`PerUser`).

        Parameters
        ----------
        user : str
            The user's id; an empty one is nobody in particular.

        Examples
        --------
        >>> from ranktron.learners import hinge_perceptron
        >>> learner = hinge_perceptron(2)
        >>> learner.of("ann") is learner
        True
        """
        return self

    def rescale(self, factors: Floats) -> None:
        """Multiplies each weight by a factor, after the scale of its feature has changed by that factor.

        Parameters
        ----------
        factors : array of shape (features,)
            A factor for each weight.
        """
        raise NotImplementedError

    def mix(self, start: State, states: Sequence[State], weights: Floats) -> State:
        """The state that mixes those of several shards; changes nothing.

        Parameters
        ----------
        start : State
            The state from which all shards began.
        states : sequence of State
            The state of each shard.
        weights : array
            How much each shard counts.
        """
        raise NotImplementedError

    simulated_feedback = staticmethod(feedbacks.full)
    """The feedback to simulate from labels: all of them, or those of the first k documents shown."""

    def compiled_pass(self, rounds: Rounds) -> CompiledPass | None:
        """A function that plays queries as `play` does with `simulated_feedback`, to the bit, in one compiled loop.

        It takes `rounds`, the queries to play and metrics, and returns the loss of each query and its metrics. None if
        there is no such loop for this learner or these rounds.

        Parameters
        ----------
        rounds : Rounds
            The queries with their features.

        Examples
        --------
        >>> from ranktron.data.synthetic import Separable
        >>> from ranktron.learners import top_k_ranker
        >>> learner, rounds = top_k_ranker(20), Separable().rounds(5)
        >>> losses, values = learner.compiled_pass(rounds)(rounds, np.arange(5), ())
        >>> learner.rounds
        5
        """
        return None

    def pending(self, X: Features, ranking: Ranking, k: int) -> PendingRound:
        """What has to be kept of a round until the labels of at most the first k documents arrive.

        Parameters
        ----------
        X : array of shape (documents, features)
            One query.
        ranking : Ranking
            What was shown.
        k : int
            At most so many labels arrive, those of the first documents.

        Examples
        --------
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
        """Learns from a pending round exactly as `learn` from all documents; items are positions in the ranking.

        Parameters
        ----------
        pending : PendingRound
            What `pending` kept.
        places : Feedback
            The labels by position: item 0 is the document shown first.
        """
        return self.learn(pending.rows, Ranking(np.arange(len(pending.rows)), pending.shown, pending.number), places)

    def weigh_members(self, valid: Rounds, metric: Metric) -> None:
        """Weights the members of a committee on a validation set, if the learner has one.

        Parameters
        ----------
        valid : Rounds
            The validation set.
        metric : Metric
            What makes a member weigh more.
        """
        return


class WeightVectorLearner(BaseLearner):
    """A learner with a current weight vector `w` and possibly another one for `predict`, `coef`.

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
