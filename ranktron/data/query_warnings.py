"""Warnings about data that are probably not what was meant: queries with nothing to rank, and merged queries."""

from __future__ import annotations

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import warn
from ranktron.types import Integers


def count_idle(rounds: Rounds) -> tuple[int, int]:
    """How many queries have fewer than two documents, and how many have several, all with the same label.

    >>> count_idle(Rounds.from_arrays([[1.0]] * 6, [1, 0, 0, 2, 2, 1], group=[1, 2, 1, 2]))
    (2, 1)
    """
    sizes = np.diff(rounds.offsets)
    several = sizes > 1
    differs = np.concatenate(([0], np.cumsum(rounds.labels[1:] != rounds.labels[:-1]), [0]))
    last, first = rounds.offsets[1:][several] - 1, rounds.offsets[:-1][several]
    return int(np.count_nonzero(~several)), int(np.count_nonzero(differs[last] == differs[first]))


def warn_of_idle(rounds: Rounds, lost: str) -> None:
    """Warns if there is nothing to rank in more than half of the queries; `lost` is the consequence."""
    single, equal = count_idle(rounds)
    if 2 * (single + equal) <= len(rounds):
        return
    reasons = [f"{single:,} {'has' if single == 1 else 'have'} a single document"] if single else []
    reasons += [f"{equal:,} {'has' if equal == 1 else 'have'} the same label everywhere"] if equal else []
    warn(f"{lost} {single + equal:,} of {len(rounds):,} queries: {', '.join(reasons)}")


def warn_of_merged(rounds: Rounds) -> None:
    """Warns if rows of a query come in several blocks: different queries may have been given the same id.

    Shuffled rows are no reason to warn: there a query has nearly as many blocks as documents.
    """
    if rounds.rows is None:
        return
    runs = _runs(rounds.rows, rounds.offsets)
    again = runs > 1
    sizes = np.diff(rounds.offsets)
    if not again.any() or not 2 * runs[again].sum() <= min(6 * np.count_nonzero(again), sizes[again].sum()):
        return
    count, first = np.count_nonzero(again), rounds.qids[again].tolist()[0]
    warn(
        f"{count:,} of {len(rounds):,} query ids come back after other queries, first {first!r}: all rows of an id are "
        "taken as one list; if they are several, give each its own id"
    )


def _runs(rows: Integers, offsets: Integers) -> Integers:
    """In how many blocks the rows of each query came."""
    breaks = np.concatenate(([0], np.cumsum(np.diff(rows) != 1), [0]))
    last, first = np.maximum(offsets[1:] - 1, offsets[:-1]), offsets[:-1]
    return 1 + breaks[last] - breaks[first]
