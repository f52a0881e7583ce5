"""Positions in rankings: their representation, and losses that depend on them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ranktron.errors import DataError
from ranktron.metrics.gain import exponential_gains, log_discounts
from ranktron.types import Floats

_HIGHEST = 1000.0  # so that sums of 2^y stay finite


@dataclass(frozen=True)
class Places:
    """A strictly decreasing f of the positions i = 1, 2, …: rep(σ) = f(σ)/Z, Z² = Σ f²(i).

    `-i`, `-i^1.1`, `-i^2` (any exponent), `1/i`, or `discount`: NDCG's own 1/log2(1 + i).

    Parameters
    ----------
    name : str
        `-i`, `-i^p` for a power p, `1/i` or `discount`.

    Examples
    --------
    >>> Places("-i")(3) * np.sqrt(14)
    array([-1., -2., -3.])
    """

    name: str = "-i^1.1"

    def __post_init__(self) -> None:
        if _power(self.name) is None and self.name not in ("1/i", "discount"):
            raise DataError(f"there is no representation {self.name!r}; choose -i, -i^1.1, -i^2, 1/i or discount")

    def __call__(self, m: int) -> Floats:
        """f(i)/Z for the positions of m documents."""
        return _unit_places(self.name, m)

    def raw(self, m: int) -> Floats:
        """f(i) for the positions of m documents.

        Parameters
        ----------
        m : int
            The number of documents.
        """
        i = np.arange(1, m + 1, dtype=float)
        power = _power(self.name)
        if power is not None:
            return -(i**power)
        return 1.0 / i if self.name == "1/i" else log_discounts(m)


def _power(name: str) -> float | None:
    found = re.fullmatch(r"-i(?:\^(\d+(?:\.\d+)?))?", name)
    power = float(found[1] or 1.0) if found else 0.0
    return power if power > 0.0 else None


@lru_cache(maxsize=256)
def _unit_places(name: str, m: int) -> Floats:
    f = Places(name).raw(m)
    f /= np.linalg.norm(f)
    f.setflags(write=False)
    return f


class PlaceWeights(NamedTuple):
    """The weights of a loss for one label: gains per document, discounts per position, and the best possible sum."""

    gains: Floats
    discounts: Floats
    best: float


@dataclass(frozen=True)
class PlaceLoss:
    """One minus a normalised sum of gains that are discounted by position.

        L(σ, y) = 1 − 1/N(y) Σ_i F(y_i) D(σ(i))

    `ndcg`: F = 2^y − 1, D = 1/log2(1 + place); `ndcg@k` cuts D off after place k; `p@k`: F = [y > 0],
    D = [place <= k], so that 0 is reached as soon as the first places hold all the relevant documents they can.

    Parameters
    ----------
    name : str
        `ndcg`, `ndcg@k` or `p@k`.

    Examples
    --------
    >>> PlaceLoss("p@2").weights(np.array([0.0, 2.0, 1.0, 1.0])).best
    2.0
    """

    name: str = "ndcg"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"ndcg|(ndcg|p)@[1-9]\d*", self.name):
            raise DataError(f"there is no loss {self.name!r}; choose ndcg, ndcg@k or p@k, such as ndcg@10")

    @property
    def cut(self) -> int:
        """The last position that counts; 0: all."""
        return int(self.name.partition("@")[2] or 0)

    def gain(self, labels: Floats) -> Floats:
        """F(y).

        Parameters
        ----------
        labels : array
            The grades y.
        """
        if self.name[0] == "p":
            return (labels > 0.0).astype(float)
        if labels.max(initial=0.0) > _HIGHEST:
            raise DataError(f"the gain 2^y - 1 of label {labels.max():g} is too large; labels go up to {_HIGHEST:g}")
        return exponential_gains(np.asarray(labels, np.float64))

    def discount(self, m: int) -> Floats:
        """D(1), …, D(m).

        Parameters
        ----------
        m : int
            The number of documents.
        """
        return _discounts(self.name, m)

    def weights(self, labels: Floats) -> PlaceWeights:
        """Gains, discounts and N(y) of one label.

        Parameters
        ----------
        labels : array
            The grades y.
        """
        gains, discounts = self.gain(labels), self.discount(len(labels))
        return PlaceWeights(gains, discounts, float(np.sort(gains)[::-1] @ discounts))

    def smallest(self, documents: int, highest: int) -> float:
        """The smallest loss above 0 for that many documents with integer grades up to `highest`.

        It occurs when two neighbours of grades a > b are swapped: all documents above them have the highest grade,
        those below them grade b.

        Parameters
        ----------
        documents : int
            How many documents a query has.
        highest : int
            The highest grade.

        Examples
        --------
        >>> PlaceLoss("ndcg").smallest(2, 1), 1.0 - 1.0 / float(np.log2(3.0))
        (0.36907..., 0.36907...)
        """
        if documents < 2 or highest < 1:
            raise DataError("the smallest loss needs at least 2 documents and a highest grade of at least 1")
        gains, D = self.gain(np.arange(highest + 1.0)), self.discount(documents)
        above = np.concatenate(([0.0], np.cumsum(D)))
        losses = [
            (gains[a] - gains[b])
            * (D[j] - D[j + 1])
            / (gains[-1] * above[j] + gains[a] * D[j] + gains[b] * (above[-1] - above[j + 1]))
            for j in range(documents - 1)
            for a in range(1, highest + 1)
            for b in range(a)
        ]
        return float(min((loss for loss in losses if loss > 0.0), default=1.0))


@lru_cache(maxsize=256)
def _discounts(name: str, m: int) -> Floats:
    measure, _, cut = name.partition("@")
    discounts = np.ones(m) if measure == "p" else log_discounts(m)
    discounts[int(cut or m) :] = 0.0
    discounts.setflags(write=False)
    return discounts
