"""Which positions a log can compare: those that documents moved between, or those whose documents look alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ranktron.data.impressions import Impressions
from ranktron.kernels.csr_rows import Sparse
from ranktron.types import Features, Floats, Integers

Joined = npt.NDArray[np.bool_]  # by position and position

REMEDY = "let a second ranker show other orders, or draw some pages at random"
CENTRAL = (1.0, 99.0)  # percentiles: positions overlap if these ranges do
_ROWS = 2000  # of a position that are looked at for overlap
_FEW = 10  # rows that say nothing of overlap
_RIDGE = 1e-6


class Swaps:
    """Documents of a query that stood at several positions: what tells examination from relevance without a model.

    Parameters
    ----------
    log : Impressions
        With `query` and `item`.

    Examples
    --------
    >>> log = Impressions.from_arrays([1, 0, 0], list("abc"), [1, 2, 3], query="q", item=[7, 7, 8])
    >>> Swaps(log).documents
    1
    >>> islands(Swaps(log).joined)
    [[1, 2], [3]]
    """

    def __init__(self, log: Impressions) -> None:
        self.size = log.n_positions
        self._of, self._clicks = log.impression_of_rows, log.clicks
        cells, self._cell_of = np.unique(log.documents() * self.size + log.position - 1, return_inverse=True)
        self._cells = len(cells)
        self._first, self._second = _pairs_within(cells // self.size)
        self._one, self._other = cells[self._first] % self.size, cells[self._second] % self.size
        self.documents = len(np.unique(cells[self._first] // self.size))

    def wins(self, weights: Floats | None = None) -> Floats:
        """C[k, k'] = Σ c_k n_k' / (n_k + n_k') over the documents that stood at both, of weighted impressions.

        Parameters
        ----------
        weights : array, optional
            How often each impression counts.
        """
        own = np.ones(len(self._of)) if weights is None else weights[self._of]
        shown = np.bincount(self._cell_of, own, minlength=self._cells)
        clicked = np.bincount(self._cell_of, own * self._clicks, minlength=self._cells)
        both = np.maximum(shown[self._first] + shown[self._second], 1e-300)
        won = np.zeros((self.size, self.size))
        np.add.at(won, (self._one, self._other), clicked[self._first] * shown[self._second] / both)
        np.add.at(won, (self._other, self._one), clicked[self._second] * shown[self._first] / both)
        return won

    @property
    def joined(self) -> Joined:
        """The pairs of positions that a clicked document stood at."""
        won = self.wins()
        return (won + won.T) > 0.0


def _pairs_within(groups: Integers) -> tuple[Integers, Integers]:
    """All pairs of places that belong to the same group, of groups that stand together."""
    starts = np.flatnonzero(np.concatenate(([True], groups[1:] != groups[:-1])))
    sizes = np.diff(np.append(starts, len(groups)))
    firsts, seconds = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for size in np.unique(sizes[sizes > 1]).tolist():
        i, j = np.triu_indices(size, 1)
        where = starts[sizes == size]
        firsts.append((where[:, None] + i).ravel())
        seconds.append((where[:, None] + j).ravel())
    return np.concatenate(firsts), np.concatenate(seconds)


def reached(arrows: Joined) -> Joined:
    """Which positions lead to which others, in any number of steps.

    Parameters
    ----------
    arrows : array of bool, (positions, positions)
        Which lead to which in one step.
    """
    found = arrows | np.eye(len(arrows), dtype=bool)
    for _ in range(max(len(arrows) - 1, 1).bit_length()):
        found = found @ found
    return found


def compared_with_first(won: Floats) -> Joined:
    """The positions whose examination relative to the first is finite and above 0: clicks lead there and back.

    Parameters
    ----------
    won : array, (positions, positions)
        Clicks at one position on documents that stood at the other, too.

    Examples
    --------
    >>> compared_with_first(np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0], [0.0, 0.0, 0.0]]))
    array([ True,  True, False])
    """
    there = reached(won > 0.0)
    both: Joined = there[0] & there[:, 0]
    return both


def islands(joined: Joined) -> list[list[int]]:
    """The positions, from 1 on, in groups that nothing joins; that of position 1 comes first.

    Parameters
    ----------
    joined : array of bool, (positions, positions)
        Which pairs of positions can be compared.
    """
    together = reached(joined | joined.T)
    return [(np.flatnonzero(row) + 1).tolist() for k, row in enumerate(together) if not row[:k].any()]


def name_islands(groups: Sequence[Sequence[int]]) -> str:
    """Islands in words.

    Parameters
    ----------
    groups : list of lists of positions
        What `islands` returned.

    Examples
    --------
    >>> name_islands([[1, 2, 3], [4, 6], [5]])
    'positions 1 to 3 | 4, 6 | 5'
    """
    return "positions " + " | ".join(map(_name_positions, groups))


def _name_positions(group: Sequence[int]) -> str:
    whole = len(group) > 2 and group[-1] - group[0] == len(group) - 1
    return f"{group[0]} to {group[-1]}" if whole else ", ".join(map(str, group))


def unconnected(groups: Sequence[Sequence[int]]) -> str:
    """Why positions in several islands cannot be compared.

    Parameters
    ----------
    groups : list of lists of positions
        What `islands` returned.
    """
    return (
        f"no clicked document stood, for the same query, on both sides of {name_islands(groups)}: there is nothing to "
        f"harvest that compares them with position 1; {REMEDY}"
    )


def overlaps(log: Impressions, X: Features) -> Joined:
    """The pairs of positions whose documents have similar features: no linear function of them tells the two apart.

    Along the direction that separates two positions best (Fisher's discriminant of half of their rows), the central
    98 % of their other rows must overlap. Where they do, a model of relevance compares the positions; it cannot be
    checked there. Positions with a few rows count as overlapping.

    Parameters
    ----------
    log : Impressions
        What was shown.
    X : table of numbers
        The features of each row of the log.

    References
    ----------
    Hager, Zoeter and de Rijke, *Unidentified and confounded? Understanding two-tower models for unbiased learning to
    rank*, ICTIR 2025.
    """
    rng = np.random.default_rng(0)
    rows = [rng.permutation(np.flatnonzero(log.position == k + 1))[:_ROWS] for k in range(log.n_positions)]
    dense = np.asarray(X.dense() if isinstance(X, Sparse) else X, float)
    every = dense[np.concatenate(rows)]
    scale = np.where(every.std(axis=0) > 0.0, every.std(axis=0), 1.0)
    fitted, held = ([(dense[half] - every.mean(axis=0)) / scale for half in halves] for halves in _halve(rows))
    means = [part.mean(axis=0) if len(part) else np.zeros(every.shape[1]) for part in fitted]
    around = np.concatenate([part - mean for part, mean in zip(fitted, means, strict=True)])
    inverse = np.linalg.inv(around.T @ around / max(len(around), 1) + _RIDGE * np.eye(every.shape[1]))
    joined = np.ones((len(rows), len(rows)), bool)
    for k, one in enumerate(held):
        for j, other in enumerate(held[:k]):
            if min(len(one), len(other)) >= _FEW:
                direction = inverse @ (means[k] - means[j])
                a, b = (np.percentile(part @ direction, CENTRAL) for part in (one, other))
                joined[k, j] = joined[j, k] = a[0] <= b[1] and b[0] <= a[1]
    return joined


def _halve(rows: Sequence[Integers]) -> tuple[list[Integers], list[Integers]]:
    """Half of the rows of each position, which find the direction, and the others, which are looked at along it."""
    return [each[: len(each) // 2] for each in rows], [each[len(each) // 2 :] for each in rows]
