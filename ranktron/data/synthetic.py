"""Synthetic data: the papers' separable data, and noisy data shaped like web search. Seeded, any size, streaming."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count, islice

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.types import Floats, Learner, Matrix, Round
from ranktron.types.validation import check_count

_LARGEST = float(np.finfo(np.float32).max) / 4.0
_LARGEST_RATIO = 1e5
"""The adversary's lists have as many features as the square of this; with more they fit in no memory."""


@dataclass(frozen=True)
class Separable:
    """An endless stream of queries that one unit vector ranks perfectly, with a margin (SLAM paper, section 8).

    Every grade has a Gaussian distribution. Along the ranker u it is truncated at two standard deviations, so that for
    any two documents of one query with R_i > R_j

        <u, x_i> − <u, x_j> ≥ margin.

    Parameters
    ----------
    documents : int
        Documents of each list.
    features : int
        The number of features.
    grades : int
        Labels are 0 to grades - 1.
    margin : float
        The smallest distance along the ranker between documents of different grade.
    seed : int
        Seed of the stream.

    Examples
    --------
    >>> data = Separable(margin=0.5)
    >>> first = next(iter(data))
    >>> first.X.shape, data.margin_of(first) >= 0.5
    ((20, 20), True)
    """

    documents: int = 20
    features: int = 20
    grades: int = 5
    margin: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("documents", "features", "grades"):
            check_count(getattr(self, name), f"the number of {name}", 2)
        check_count(self.seed, "the seed", 0)
        if not 0.0 < self.margin < _LARGEST / self.grades:
            raise DataError(f"the margin must be a positive number that 32 bits hold, not {self.margin}")

    @property
    def ranker(self) -> Floats:
        """The unit vector that ranks every query perfectly."""
        u = np.random.default_rng((self.seed, 0)).normal(size=self.features)
        return u / np.linalg.norm(u)

    def __iter__(self) -> Iterator[Round]:
        u = self.ranker
        means = np.random.default_rng((self.seed, 1)).normal(size=(self.grades, self.features)) / 4.0
        means -= np.outer(means @ u, u)
        for number in count():
            rng = np.random.default_rng((self.seed, 2, number))
            labels = rng.integers(self.grades, size=self.documents).astype(np.float64)
            yield Round(self._features(u, means, labels, rng), labels, str(number))

    def _features(self, u: Floats, means: Floats, labels: Floats, rng: np.random.Generator) -> Matrix:
        grades = labels.astype(int)
        X = means[grades] + rng.normal(size=(self.documents, self.features))
        spread = self.margin / 4.0
        gap = self.margin * (1.0 + 1e-5)  # slightly larger, because features are rounded to 32 bits
        along = (grades - (self.grades - 1) / 2.0) * (gap + 4.0 * spread)
        along += spread * np.clip(rng.normal(size=self.documents), -2.0, 2.0)
        features: Matrix = (X + np.outer(along - X @ u, u)).astype(np.float32)
        return features

    def margin_of(self, round: Round) -> float:
        """The smallest distance along the ranker between documents of different grade of one query.

        Parameters
        ----------
        round : Round
            A query of this stream.
        """
        s = round.X @ self.ranker
        better = round.labels[:, None] > round.labels[None, :]
        return float(np.min(np.where(better, s[:, None] - s[None, :], np.inf)))

    def rounds(self, queries: int, skip: int = 0) -> Rounds:
        """The first queries of the stream after `skip` others; their margin is verified.

        Parameters
        ----------
        queries : int
            The number of queries.
        skip : int
            The number of queries to skip.
        """
        lists = _slice(self, queries, skip)
        if not min(map(self.margin_of, lists)) >= self.margin:
            raise DataError("the margin is lost when features are rounded to 32 bits; choose a larger one")
        return _collect(lists)


@dataclass(frozen=True)
class WebSearch:
    """An endless stream of noisy queries shaped like web search: skewed grades, mixed scales, nonlinear relevance.

    136 features and some 120 documents per query; about 52, 32, 13, 2 and 1 percent of them have the grades 0 to 4.
    No linear ranker is perfect here: a third of the relevance is nonlinear, another third is noise.

    Parameters
    ----------
    features : int
        The number of features.
    documents : int
        The mean number of documents of a list.
    seed : int
        Seed of the stream.

    Examples
    --------
    >>> lists = WebSearch().rounds(5)
    >>> len(lists), lists.n_features, float(lists.labels.max())
    (5, 136, 4.0)
    """

    features: int = 136
    documents: int = 120
    seed: int = 0

    def __post_init__(self) -> None:
        check_count(self.features, "the number of features", 1)
        check_count(self.documents, "the number of documents", 1)
        check_count(self.seed, "the seed", 0)

    def __iter__(self) -> Iterator[Round]:
        rng = np.random.default_rng((self.seed, 0))
        linear = rng.normal(size=self.features) / np.sqrt(self.features)
        bends = rng.normal(size=self.features) / np.sqrt(self.features)
        scales = np.exp(rng.normal(size=self.features))
        thresholds = np.array([0.05, 0.99, 1.88, 2.33])  # deviations of the truth: 52 / 32 / 13 / 2 / 1 percent
        for number in count():
            rng = np.random.default_rng((self.seed, 1, number))
            m = max(2, int(rng.poisson(self.documents)))
            Z = rng.normal(size=(m, self.features)) + 0.5 * rng.normal(size=self.features)
            truth = Z @ linear + (np.abs(Z) - 0.8) @ bends + 0.7 * rng.normal(size=m)
            labels = np.searchsorted(thresholds, truth / 1.4).astype(np.float64)
            yield Round((Z * scales).astype(np.float32), labels, str(number))

    def rounds(self, queries: int, skip: int = 0) -> Rounds:
        """The first queries of the stream after `skip` others.

        Parameters
        ----------
        queries : int
            The number of queries.
        skip : int
            The number of queries to skip.
        """
        return _collect(_slice(self, queries, skip))


def _slice(stream: Iterable[Round], queries: int, skip: int) -> list[Round]:
    skip, queries = check_count(skip, "the number of lists to skip", 0), check_count(queries, "the number of lists", 1)
    return list(islice(stream, skip, skip + queries))


def _collect(lists: list[Round]) -> Rounds:
    return Rounds(
        np.concatenate([r.X for r in lists]),
        np.concatenate([r.labels for r in lists]),
        np.concatenate(([0], np.cumsum([len(r.labels) for r in lists]))).astype(np.int64),
        np.array([r.qid for r in lists]),
    )


@dataclass(frozen=True)
class Adversary:
    """The adversary of Theorem 9: it looks at the learner's ranking before it labels the documents.

    Every deterministic learner loses at least 1 − 1/log2(3) of NDCG (and 1/2 of AP) in each of ⌊R²/γ²⌋ − 1 rounds,
    although one vector ranks all queries perfectly with margin γ. Use it as `play(learner, adversary.against(learner),
    feedback.full)`; it can call `learner.rank`, because ranking changes nothing.

    Parameters
    ----------
    radius : float
        R, the largest length of a document's features.
    margin : float
        γ, by which one vector separates all lists.
    documents : int
        Documents of each list.

    Examples
    --------
    >>> Adversary(radius=1.0, margin=0.25, documents=3).rounds_to_come
    15
    """

    radius: float = 1.0
    margin: float = 0.1
    documents: int = 5

    def __post_init__(self) -> None:
        check_count(self.documents, "the number of documents", 2)
        if not 0.0 < self.margin < self.radius < _LARGEST or not self.radius / self.margin < _LARGEST_RATIO:
            raise DataError(
                f"the adversary needs 0 < margin < radius < {_LARGEST_RATIO:g} times the margin, which 32 bits hold, "
                f"not a margin of {self.margin} and a radius of {self.radius}"
            )

    @property
    def rounds_to_come(self) -> int:
        return int((self.radius / self.margin) ** 2 + 1e-9) - 1

    @property
    def features(self) -> int:
        return self.rounds_to_come + 1

    def against(self, learner: Learner) -> Iterator[Round]:
        """Yields queries that the learner gets wrong, one after the other.

        Parameters
        ----------
        learner : Learner
            It has to learn from each query before the next one is taken.
        """
        for i in range(self.rounds_to_come):
            X = np.zeros((self.documents, self.features), np.float32)
            X[2:, 0] = self.radius  # Eq. (25)
            X[0, i + 1], X[1, i + 1] = self.radius, -self.radius
            first = learner.rank(X, learner.rounds).order[0]
            labels = np.zeros(self.documents)
            labels[1 if first == 0 else 0] = 1.0
            yield Round(X, labels, str(i))

    def ranker(self, rounds: Iterable[Round]) -> Floats:
        """The vector from the proof of Theorem 9 that ranks these queries perfectly; its length is at most 1/2.

        Parameters
        ----------
        rounds : iterable of Round
            Queries that `against` yielded.
        """
        w = np.zeros(self.features)
        w[0] = -self.margin / (2.0 * self.radius)
        for i, round in enumerate(rounds):
            w[i + 1] = (1.0 if round.labels[0] > round.labels[1] else -1.0) * self.margin / (2.0 * self.radius)
        return w
