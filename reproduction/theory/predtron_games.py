"""The simulations of section 6: what the representation of places and the norm of the margin do to subset ranking.

The paper leaves some numbers open (lengths, dimensions, the means of the documents, the noise); the defaults here are
ours, and every function takes others. All runs are Algorithm 1, or 3 for the l1 norm, with η = 1, as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Protocol

import numpy as np

from ranktron.errors import DataError
from ranktron.learners.predtron.links import make_link
from ranktron.learners.predtron.loop import Predtron
from ranktron.learners.predtron.permutations import Permutations
from ranktron.learners.predtron.positions import Places
from ranktron.learners.predtron.variants import Standard
from ranktron.learners.steps import Constant
from ranktron.types import Floats

REPRESENTATIONS = ("1/i", "-i^1.1", "-i^2")

Example = tuple[Floats, Floats]


class Lists(Protocol):
    """A seeded source of lists: `draw` gives as many as asked for, of a part that shares nothing with the others."""

    @property
    def features(self) -> int: ...

    def draw(self, count: int, part: int) -> list[Example]: ...


@dataclass(frozen=True)
class GaussianLists:
    """Documents from spherical Gaussians, one mean per row, graded by thresholds that draw closer further down.

        y(i) = m − j    if    ζ_{j+1} <= <x_i, w*> <= ζ_j,    ζ_1 = ∞, ζ_j = 1/j, ζ_{m+1} = −∞

    Grades go from 0 to m − 1, and 2^y has to stay finite: at most 1,000 documents.

    Parameters
    ----------
    documents, features : int
        m and p_0.
    noise : float > 0
        The deviation of the Gaussians in every direction.
    wander : float >= 0
        How far the means stand off the line of w*, in every direction. Along it they lie between the thresholds.

    Examples
    --------
    >>> X, labels = GaussianLists(documents=6).draw(1, part=0)[0]
    >>> X.shape, labels
    ((6, 30), array([...]))
    """

    documents: int = 20
    features: int = 30
    noise: float = 0.25
    wander: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 2 <= self.documents <= 1000 or self.features < 2:
            raise DataError("these lists need 2 to 1,000 documents and at least 2 features")
        if not 0.0 < self.noise < float("inf") or not 0.0 <= self.wander < float("inf"):
            raise DataError("the noise must be above 0 and the wander at least 0")

    @property
    def ranker(self) -> Floats:
        """The unit vector w*."""
        w = np.random.default_rng((self.seed, 0)).normal(size=self.features)
        return w / np.linalg.norm(w)

    def draw(self, count: int, part: int) -> list[Example]:
        return list(islice(self._stream(part), count))

    def _stream(self, part: int) -> Iterator[Example]:
        rng = np.random.default_rng((self.seed, 1, part))
        w = self.ranker
        means = self.wander * np.random.default_rng((self.seed, 2)).normal(size=(self.documents, self.features))
        means += np.outer(1.0 / np.arange(1.5, self.documents + 1.0) - means @ w, w)
        while True:
            X = means + self.noise * rng.normal(size=means.shape)
            yield X, grade_by_thresholds(X @ w)


def grade_by_thresholds(scores: Floats) -> Floats:
    """Grades by the thresholds 1/2, 1/3, …, 1/m: m − 1 at the top, 0 at the bottom.

    >>> grade_by_thresholds(np.array([0.7, 0.4, 0.1]))
    array([2., 1., 0.])
    """
    m = len(scores)
    thresholds = 1.0 / np.arange(m, 1, -1)
    return np.searchsorted(thresholds, scores, side="right").astype(float)


@dataclass(frozen=True)
class SparseLists:
    """Documents from the cube [−1, 1]^p_0, graded by a w* with few entries other than 0.

    The same number of documents in every grade: the `grades` are cut at equal ranks of <x, w*>.

    >>> int(np.count_nonzero(SparseLists(features=100, relevant=5).ranker))
    5
    """

    documents: int = 10
    features: int = 100
    relevant: int = 5
    grades: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        if not (self.documents >= self.grades >= 2 and self.features >= self.relevant >= 1):
            raise DataError("these lists need documents >= grades >= 2 and features >= relevant >= 1")

    @property
    def ranker(self) -> Floats:
        """The sparse w*, of l1 norm 1."""
        rng = np.random.default_rng((self.seed, 0))
        w = np.zeros(self.features)
        w[rng.permutation(self.features)[: self.relevant]] = rng.choice([-1.0, 1.0], self.relevant) / self.relevant
        return w

    def draw(self, count: int, part: int) -> list[Example]:
        rng = np.random.default_rng((self.seed, 1, part))
        w = self.ranker
        lists = []
        for _ in range(count):
            X = rng.uniform(-1.0, 1.0, size=(self.documents, self.features))
            ranks = np.argsort(np.argsort(X @ w))
            lists.append((X, np.floor(ranks * self.grades / self.documents)))
        return lists


@dataclass(frozen=True, eq=False)
class Curves:
    """Losses on test lists: for each name a table (points of x, seeds)."""

    x: Sequence[int]
    losses: Mapping[str, Floats]

    def mean(self, name: str) -> Floats:
        """The mean over seeds at each point."""
        mean: Floats = self.losses[name].mean(axis=1)
        return mean

    def error(self, name: str) -> Floats:
        """Twice the standard error of the mean at each point."""
        table = self.losses[name]
        error: Floats = 2.0 * table.std(axis=1, ddof=1) / np.sqrt(table.shape[1])
        return error


def section_6_learner(features: int, representation: str, norm: str = "l2", eta: float = 1.0) -> Predtron:
    """The learner of section 6: NDCG loss, η = 1."""
    problem = Permutations(representation=Places(representation))
    return Predtron(problem, (features,), Constant(eta), Standard(), make_link(norm, (features,)))


def train_once(learner: Predtron, lists: Iterable[Example]) -> Predtron:
    """The learner after one pass over the lists."""
    for X, labels in lists:
        learner.learn(X, learner.scores(X), labels)
    return learner


def held_out_loss(learner: Predtron, lists: Sequence[Example]) -> float:
    """The mean NDCG loss of the current weights, ties broken against them."""
    problem = learner.problem
    losses = [problem.loss(problem.pred(learner.scores(X), labels), labels) for X, labels in lists]
    return float(np.mean(losses))


def as_seeds(seeds: int | Sequence[int]) -> Sequence[int]:
    """The seeds 0, 1, … if only their number is given, else the seeds themselves."""
    return range(seeds) if isinstance(seeds, int) else seeds


def varying_lists(
    counts: Sequence[int] = (5, 10, 20, 40, 60, 80, 100),
    *,
    data: GaussianLists | None = None,
    representations: Sequence[str] = REPRESENTATIONS,
    seeds: int | Sequence[int] = 20,
    held_out: int = 100,
) -> Curves:
    """Plot (a): the loss after n training lists, for each representation of places."""
    data = data or GaussianLists()
    numbers = as_seeds(seeds)
    losses = {name: np.zeros((len(counts), len(numbers))) for name in representations}
    for column, seed in enumerate(numbers):
        source = replace(data, seed=seed)
        lists, held = source.draw(max(counts), 0), source.draw(held_out, 1)
        for name in representations:
            learner, seen = section_6_learner(source.features, name), 0
            for i, count in enumerate(counts):
                train_once(learner, lists[seen:count])
                seen = count
                losses[name][i, column] = held_out_loss(learner, held)
    return Curves(counts, losses)


def varying_documents(
    documents: Sequence[int] = (3, 5, 10, 15, 20, 30, 40),
    *,
    data: GaussianLists | None = None,
    lists: int = 30,
    representations: Sequence[str] = REPRESENTATIONS,
    seeds: int | Sequence[int] = 20,
    held_out: int = 100,
) -> Curves:
    """Plot (b): the loss after n = 30 training lists of growing length."""
    data = data or GaussianLists()
    numbers = as_seeds(seeds)
    losses = {name: np.zeros((len(documents), len(numbers))) for name in representations}
    for column, seed in enumerate(numbers):
        for i, m in enumerate(documents):
            source = replace(data, documents=m, seed=seed)
            train, held = source.draw(lists, 0), source.draw(held_out, 1)
            for name in representations:
                losses[name][i, column] = held_out_loss(
                    train_once(section_6_learner(source.features, name), train), held
                )
    return Curves(documents, losses)


def varying_norm(
    x: Sequence[int],
    sources: Sequence[SparseLists],
    *,
    lists: int = 200,
    representation: str = "-i^1.1",
    eta: float = 1.0,
    seeds: int | Sequence[int] = 20,
    held_out: int = 100,
) -> Curves:
    """Plot (c): the loss of the l1 and the l2 margin on lists whose w* is sparse, for each source."""
    numbers = as_seeds(seeds)
    losses = {norm: np.zeros((len(x), len(numbers))) for norm in ("l1", "l2")}
    for column, seed in enumerate(numbers):
        for i, given in enumerate(sources):
            source = replace(given, seed=seed)
            train, held = source.draw(lists, 0), source.draw(held_out, 1)
            for norm, table in losses.items():
                learner = section_6_learner(source.features, representation, norm, eta)
                table[i, column] = held_out_loss(train_once(learner, train), held)
    return Curves(x, losses)


def varying_features(features: Sequence[int] = (10, 30, 100, 300, 1000), relevant: int = 5, **options: Any) -> Curves:
    """Plot (c) as its text has it: more and more features, of which `relevant` matter."""
    return varying_norm(features, [SparseLists(features=p, relevant=relevant) for p in features], **options)


def varying_sparsity(relevant: Sequence[int] = (1, 3, 10, 30, 100, 300), features: int = 300, **options: Any) -> Curves:
    """Plot (c) as its caption has it: a w* that is less and less sparse."""
    return varying_norm(relevant, [SparseLists(features=features, relevant=s) for s in relevant], **options)
