"""The simulated sets of the comparisons: shaped like MSLR, endless, and the same for everyone who asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count

import numpy as np

from ranktron.data.synthetic import WebSearch
from ranktron.training.cross_validation import Fold
from ranktron.types import Round


@dataclass(frozen=True)
class Decisive(WebSearch):
    """Lists shaped like web search in which few features decide, each by a curve, and some only together.

    >>> lists = Decisive().rounds(5)
    >>> len(lists), lists.n_features, float(lists.labels.max())
    (5, 136, 4.0)
    """

    def __iter__(self) -> Iterator[Round]:
        rng = np.random.default_rng((self.seed, 7))
        share = 1.0 / np.sqrt(1.0 + np.arange(self.features))
        order = rng.permutation(self.features)
        linear, bends = (np.empty(self.features) for _ in range(2))
        linear[order], bends[order] = share * rng.normal(size=self.features), share * rng.normal(size=self.features)
        pairs = order[:12].reshape(6, 2)
        together = 0.5 * rng.normal(size=6)
        for number in count():
            rng = np.random.default_rng((self.seed, 8, number))
            m = max(2, int(rng.poisson(self.documents)))
            Z = rng.normal(size=(m, self.features)) + 0.5 * rng.normal(size=self.features)
            truth = Z @ linear + 1.5 * (np.abs(Z) - 0.8) @ bends
            truth += ((Z[:, pairs[:, 0]] > 0.0) * (Z[:, pairs[:, 1]] > 0.0)) @ together
            truth += 1.0 * rng.normal(size=m)
            labels = np.searchsorted([0.05, 0.99, 1.88, 2.33], truth / 2.2).astype(np.float64)
            yield Round(np.exp(Z).astype(np.float32), labels, str(number))


SIMULATIONS: Mapping[str, WebSearch] = {"web": WebSearch(seed=5), "decisive": Decisive(seed=5)}


def simulated_fold(name: str, queries: int = 600) -> Fold:
    """The first queries of a simulation: half of them train, a sixth validates, a third tests.

    >>> fold = simulated_fold("web", 12)
    >>> len(fold.train), len(fold.valid), fold.test.qids.tolist()
    (6, 2, ['8', '9', '10', '11'])
    """
    lists = SIMULATIONS[name].rounds(queries)
    learnt = 2 * queries // 3
    return Fold(name, lists[: queries // 2], lists[queries // 2 : learnt], lists[learnt:])
