"""Worst-case streams, on which the bounds are nearly reached: tests on easy streams say little about a bound.

Two kinds are enough. With *orthogonal lists* no query says anything about another, and every ranking is a mistake; this
is the worst case for the perceptrons whose bounds do not depend on the step size. Algorithm 2 with small steps can be
made to lose far more: the *spiral* leads its weights around the best ranker. One of two relevant documents is always
just short of the margin, and its loss pulls the weights along, while the other one is misranked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.learners.linear import Linear
from ranktron.metrics import Metric, metric
from ranktron.types import Floats, Learner, Matrix, Round
from ranktron.types.validation import check_count


def orthogonal_lists(count: int, documents: int = 2, R: float = 1.0) -> Rounds:
    """Queries with an axis each, the relevant document at +R and all others at −R; their margin is 2R/√count.

    The relevant one is last: as long as all scores tie, it is shown last.

    Parameters
    ----------
    count : int
        The number of queries, and of features.
    documents : int
        The number of documents of each query.
    R : float
        The length of every row.

    Examples
    --------
    >>> lists = orthogonal_lists(4, documents=3)
    >>> len(lists), lists.X[:3, 0].tolist()
    (4, [-1.0, -1.0, 1.0])
    """
    check_count(count, "the number of lists", 1)
    check_count(documents, "the number of documents", 2)
    X = np.zeros((count * documents, count), np.float32)
    X[np.arange(count * documents), np.repeat(np.arange(count), documents)] = -R
    X[np.arange(count) * documents + documents - 1, np.arange(count)] = R
    labels = np.zeros(count * documents)
    labels[documents - 1 :: documents] = 1.0
    return Rounds.from_arrays(X, labels, group=[documents] * count)


@dataclass(frozen=True)
class Spiral:
    """Queries with two features that Algorithm 2 gets wrong about 1/(η γ²) times, although (1, 0) separates them by γ.

    At weights (a, b) both relevant documents lead the others by γ in the first feature. The second feature is chosen
    so that one of them leads by just under 1 in score, which incurs surrogate loss but no metric loss, and the other
    by just under 0. If the two have weights v and 1 − v, an update changes (a, b²) by η (γ, 2(v − γ a)): a parabola in
    b² that returns to the axis after 2v/(η γ²) rounds.

    Parameters
    ----------
    measure : Metric or str
        "map" or "ndcg@k" with k ≥ 2.
    gamma, R : float
        The margin and the longest row, gamma well below R.
    documents : int
        The number of documents of a query.

    Examples
    --------
    >>> from ranktron.learners import feedback, slam_perceptron
    >>> from ranktron.learners.loop import play
    >>> learner = slam_perceptron(2, metric="ndcg@2", eta=0.1)
    >>> spiral = Spiral("ndcg@2", gamma=0.2)
    >>> turns = list(play(learner, spiral.against(learner), feedback.full, [metric("ndcg@2")]))
    >>> round(sum(1.0 - turn.values[0] for turn in turns) * 0.1 * 0.2**2, 2)  # in units of 1/(η γ²)
    0.47
    """

    measure: Metric | str = "map"
    gamma: float = 0.1
    R: float = 1.0
    documents: int = 4

    def __post_init__(self) -> None:
        check_count(self.documents, "the number of documents", 3)
        if not 0.0 < 4.0 * self.gamma <= self.R < float("inf"):
            raise DataError(f"the spiral needs a margin of at most a quarter of R, not {self.gamma} and {self.R}")

    @property
    def labels(self) -> Floats:
        """Two relevant documents, then the others."""
        return np.concatenate((np.ones(2), np.zeros(self.documents - 2)))

    def against(self, learner: Linear) -> Iterator[Round]:
        """Yields the queries until the learner's weights have returned to the axis.

        They depend on the weights; as the learner is deterministic, a stored copy of the stream is just as bad for it.

        Parameters
        ----------
        learner : Linear
            It has to learn from each query before the next one is taken.
        """
        if metric(self.measure).name not in ("map", "ndcg"):
            raise DataError(f"the spiral is for map and ndcg, not for {self.measure}")
        widest = 2.0 * np.sqrt(self.R**2 - self.gamma**2 / 4.0) * (1.0 - 1e-6)  # a little less: features are rounded
        while True:
            a, b = (float(x) for x in learner.w)
            if b == 0.0 and a == 0.0:
                high = low = widest
            elif b > 0.0:
                low = -(_SHORT + (1.0 + _SHORT) * self.gamma * a) / b  # misranked
                high = min((1.0 - _SHORT - self.gamma * a) / b, widest + min(low, 0.0))  # just short of 1, or less
            if b < 0.0 or max(high, 0.0) - min(high, low, 0.0) > widest * (1.0 + 1e-9):
                return
            yield Round(self._features(high, low), self.labels, "spiral")

    def _features(self, high: float, low: float) -> Matrix:
        """Rows whose differences to the irrelevant ones are (γ, high) and (γ, low), around 0 as closely as may be."""
        middle = (max(high, low, 0.0) + min(high, low, 0.0)) / 2.0
        X = np.empty((self.documents, 2), np.float32)
        X[:] = -self.gamma / 2.0, -middle
        X[0], X[1] = (self.gamma / 2.0, high - middle), (self.gamma / 2.0, low - middle)
        return X


_SHORT = 1e-4
"""By how much leads miss 1 and 0: far more than the rounding of 32 bits."""


def misleading_average(rounds: int) -> Rounds:
    """Queries of two documents on which the mean of Algorithm 2's weights errs in two of three rounds, however many.

    The weights themselves err twice: on the first query, and on the one after a quarter of the rounds. From there on
    they are right; but their mean still contains the earlier weights, and misranks the queries that follow.

    Parameters
    ----------
    rounds : int
        How many queries, at least 8.

    Examples
    --------
    >>> len(misleading_average(40))
    40
    """
    check_count(rounds, "the number of rounds", 8)
    first, second, third = (1.0, 0.0), (-0.1, 1.0), (-0.5, 0.6)
    differences = np.array([*[first] * (rounds // 4), second, *[third] * (rounds - rounds // 4 - 1)])
    X = np.repeat(differences / 2.0, 2, axis=0)
    X[1::2] *= -1.0
    return Rounds.from_arrays(X, [1, 0] * rounds, group=[2] * rounds)


def growing_loss(alpha: float, rounds: int, lists: Rounds) -> Iterator[Round]:
    """Repeats separable queries with reversed labels in ⌊T^α⌋ of the first T rounds (section 5.1.1).

    No ranker is right about both kinds: the loss of the best one, and so that of the learner, grows like T^α.

    Parameters
    ----------
    alpha : float
        The exponent, between 0 and 1.
    rounds : int
        The length of the stream.
    lists : Rounds
        The separable queries.

    Examples
    --------
    >>> from ranktron.data.synthetic import Separable
    >>> lists = Separable(documents=3, grades=2).rounds(4)
    >>> stream = list(growing_loss(0.5, 100, lists))
    >>> sum(bool((round.labels != lists[t % 4].labels).any()) for t, round in enumerate(stream)) <= 10
    True
    """
    if not 0.0 < alpha < 1.0:
        raise DataError(f"alpha must lie between 0 and 1, not {alpha}")
    kept = list(lists)
    for t in range(rounds):
        round = kept[t % len(kept)]
        if int((t + 1) ** alpha + 1e-9) > int(t**alpha + 1e-9):
            round = Round(round.X, round.labels.max() - round.labels, round.qid)
        yield round


def forgotten_lists(learner: Learner, count: int, rounds: int) -> Iterator[Round]:
    """Yields, of some orthogonal queries, always the one that a learner remembers least.

    All together they are separable, with margin 2/√count.

    Parameters
    ----------
    learner : Learner
        The learner, with `count` features; its scores choose the next query.
    count : int
        The number of different queries.
    rounds : int
        The length of the stream.

    Examples
    --------
    >>> from ranktron.learners import kernel_perceptron
    >>> learner = kernel_perceptron(3, kernel="linear", budget=4)
    >>> [int(round.X[1].argmax()) for round in forgotten_lists(learner, 3, 2)]
    [0, 0]
    """
    lists = list(orthogonal_lists(count))
    for _ in range(rounds):
        yield min(lists, key=lambda round: float(np.abs(learner.scores(round.X)).max()))
