"""Weights of each user's own on top of everybody's: a linear learner over crossed features, without the columns."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ranktron.errors import DataError
from ranktron.kernels.csr_rows import linear_scores
from ranktron.learners.base import BaseLearner
from ranktron.learners.clicks.pdgd import PDGD
from ranktron.learners.linear import Linear
from ranktron.learners.pending_rounds import PendingRound
from ranktron.learners.start import Start
from ranktron.types import Features, Feedback, Floats, Ranking, Round, State
from ranktron.types.validation import check_count

MAX_USERS = 100_000
SHARE = 1.0


@dataclass(eq=False)
class PerUser(BaseLearner):
    """A learner with weights w for everybody and a deviation d_u for each user u who has given feedback.

        s = X (w + d_u),    w ← w − η z,    d_u ← d_u − share · η z

    It is the learner itself over the features (x, √share · x at the place of user u, 0 at all others), whose first
    weights are w: all users move w, and each moves d_u alone. So it learns as that learner does, and what holds for it
    holds here. A user without feedback has d_u = 0, and is ranked by w.

    `of(user)` is the learner of one user; without a user it ranks by w, and feedback moves w alone.

    Parameters
    ----------
    shared : Linear or PDGD
        The learner for everybody. Its `trust` is about w.
    max_users : int
        How many users are kept: beyond, the one whose last feedback is longest ago goes, and is ranked by w again.
    share : float
        How far feedback moves a user's own weights beside everybody's.

    Examples
    --------
    >>> from ranktron.learners import hinge_perceptron
    >>> learner = PerUser(hinge_perceptron(1), share=0.5)
    >>> X = np.array([[1.0], [3.0]], np.float32)
    >>> ann = learner.of("ann")
    >>> ann.learn(X, ann.rank(X, 0), Feedback(np.array([0, 1]), np.array([0.0, 1.0])))
    1.0
    >>> ann.ranking_weights, learner.of("bob").ranking_weights
    (array([3.]), array([2.]))

    References
    ----------
    Daumé, Frustratingly Easy Domain Adaptation (ACL 2007).
    """

    shared: Linear | PDGD
    max_users: int = MAX_USERS
    share: float = SHARE
    # of each user, by last feedback, the latest last: d_u, and what the mean of all d_u lacks if weights are averaged
    own: OrderedDict[str, Floats] = field(default_factory=OrderedDict, init=False, repr=False)
    begins: ClassVar = True
    forgotten: int = field(default=0, init=False)  # users who had to go

    def __post_init__(self) -> None:
        check_count(self.max_users, "the number of users who are kept", 1)
        if not 0.0 < self.share < float("inf"):
            raise DataError(f"the share of users' own weights must be a number above 0, not {self.share}")

    def of(self, user: str) -> BaseLearner:
        return OfUser(self, user) if user else self

    def learner_of(self, user: str) -> Linear | PDGD:
        """The shared learner with a user's weights: to rank with, not to teach."""
        learner, own = copy(self.shared), self.own.get(user)
        if own is not None:
            learner.w = self.shared.w + own[0]
        return learner

    def coef_of(self, user: str) -> Floats:
        """The weights by which a user is served."""
        own = self.own.get(user)
        if own is None:
            return self.shared.coef
        served: Floats = own[0] - own[1] / self.rounds if len(own) > 1 else own[0]
        return self.shared.coef + served

    def after(self, user: str, learn: Callable[[Linear | PDGD], float]) -> float:
        """The loss of an update of the shared weights, which the user's follow."""
        shared = self.shared
        before, start = shared.w.copy(), shared.start
        shared.start = None  # the projection onto the ball of the start is no step of the user's
        try:
            loss = learn(shared)
            step = shared.w - before
        finally:
            shared.start = start
        if start is not None:
            start.keep(shared.w, shared.lagged_sum, shared.rounds)
        if user in self.own:
            self.own.move_to_end(user)
        elif step.any():
            self.own[user] = np.zeros((2 if shared.average else 1, len(step)))
            if len(self.own) > self.max_users:
                self.own.popitem(last=False)
                self.forgotten += 1
        if step.any():
            self.own[user][0] += self.share * step
            self.own[user][1:] += self.share * shared.rounds * step
        return loss

    # As of the shared learner: what everybody without weights of their own gets.

    @property
    def rounds(self) -> int:
        return self.shared.rounds

    @property
    def mistakes(self) -> int:
        return self.shared.mistakes

    @property
    def labels_received(self) -> int | None:
        return self.shared.labels_received

    @property
    def coef(self) -> Floats:
        return self.shared.coef

    @property
    def ranking_weights(self) -> Floats:
        return self.shared.ranking_weights

    def scores(self, X: Features) -> Floats:
        return self.shared.scores(X)

    def predict(self, X: Features) -> Floats:
        return self.shared.predict(X)

    def rank(self, X: Features, number: int) -> Ranking:
        return self.shared.rank(X, number)

    def learn(self, X: Features, ranking: Ranking, feedback: Feedback) -> float:
        return self.shared.learn(X, ranking, feedback)

    def pending(self, X: Features, ranking: Ranking, k: int) -> PendingRound:
        return self.shared.pending(X, ranking, k)

    def learn_pending(self, pending: PendingRound, places: Feedback) -> float:
        return self.shared.learn_pending(pending, places)

    def simulated_feedback(self, round: Round, ranking: Ranking) -> Feedback:
        return self.shared.simulated_feedback(round, ranking)

    def begin(self, start: Start) -> None:
        self.shared.begin(start)

    def state(self) -> State:
        ids = [user.encode() for user in self.own]
        width = len(self.shared.w)
        own = np.array(list(self.own.values())) if ids else np.zeros((0, 2 if self.shared.average else 1, width))
        users = {"ids": np.frombuffer(b"".join(ids), np.uint8), "lengths": np.array([len(id) for id in ids], np.int64)}
        return {**self.shared.state(), "users": {**users, "own": own, "forgotten": self.forgotten}}

    def restore(self, state: State) -> None:
        users = state["users"]
        own, lengths = np.array(users["own"], float), np.array(users["lengths"], np.int64)
        shape = (len(lengths), 2 if self.shared.average else 1, len(self.shared.w))
        if own.shape != shape or not np.isfinite(own).all() or (lengths < 1).any() or len(lengths) > self.max_users:
            raise DataError("the state does not hold the weights of so many users")
        ends, joined = np.cumsum(lengths).tolist(), np.array(users["ids"], np.uint8).tobytes()
        ids = [joined[a:b].decode() for a, b in zip([0, *ends], ends, strict=False)]
        if len(set(ids)) < len(ids) or len(joined) != (ends[-1] if ends else 0):
            raise DataError("the state does not hold the ids of its users")
        self.shared.restore(state)
        self.own, self.forgotten = OrderedDict(zip(ids, own, strict=True)), int(users["forgotten"])


def per_user(shared: BaseLearner, max_users: int = MAX_USERS) -> PerUser:
    """The learner with weights of users' own on top of everybody's; refuses one that cannot have them.

    >>> from ranktron.learners import pdgd_ranker
    >>> per_user(pdgd_ranker(3)).max_users
    100000
    """
    if not isinstance(shared, Linear | PDGD):
        raise DataError(
            f"{type(shared).__name__} cannot have weights of users' own: take pdgd, hinge, slam, listnet or minimax"
        )
    return PerUser(shared, max_users)


class OfUser(BaseLearner):
    """The learner of one user: ranks by everybody's weights and the user's own, and its feedback moves both."""

    def __init__(self, everybody: PerUser, user: str) -> None:
        self.everybody, self.user = everybody, user

    @property
    def rounds(self) -> int:
        return self.everybody.rounds

    @property
    def labels_received(self) -> int | None:
        return self.everybody.labels_received

    @property
    def coef(self) -> Floats:
        return self.everybody.coef_of(self.user)

    @property
    def ranking_weights(self) -> Floats:
        return self._learner().ranking_weights

    def scores(self, X: Features) -> Floats:
        return self._learner().scores(X)

    def predict(self, X: Features) -> Floats:
        return linear_scores(X, self.coef)

    def rank(self, X: Features, number: int) -> Ranking:
        return self._learner().rank(X, number)

    def learn(self, X: Features, ranking: Ranking, feedback: Feedback) -> float:
        return self.everybody.after(self.user, lambda shared: shared.learn(X, ranking, feedback))

    def pending(self, X: Features, ranking: Ranking, k: int) -> PendingRound:
        return self._learner().pending(X, ranking, k)

    def learn_pending(self, pending: PendingRound, places: Feedback) -> float:
        return self.everybody.after(self.user, lambda shared: shared.learn_pending(pending, places))

    def simulated_feedback(self, round: Round, ranking: Ranking) -> Feedback:
        return self.everybody.simulated_feedback(round, ranking)

    def state(self) -> State:
        return self.everybody.state()

    def restore(self, state: State) -> None:
        self.everybody.restore(state)

    def _learner(self) -> Linear | PDGD:
        return self.everybody.learner_of(self.user)
