"""Operations on streams of rounds: iterable in, iterable out."""

from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.types import Integers, Round
from ranktron.types.validation import check_count


def shuffled(rounds: Rounds, seed: int, epoch: int = 0, start: int = 0) -> Iterator[Round]:
    """Yields all rounds in an order drawn from (seed, epoch), from position `start` on; rows keep their order.

    Parameters
    ----------
    rounds : Rounds
        The queries.
    seed, epoch : int
        The seed of the order, and the pass that it is for.
    start : int
        The position to start from, as when a pass is resumed.

    Examples
    --------
    >>> rounds = Rounds.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], qid=["a", "b", "c"])
    >>> [str(round.qid) for round in shuffled(rounds, seed=0)]
    ['c', 'a', 'b']
    """
    check_count(seed, "the seed", 0)
    check_count(epoch, "the epoch", 0)
    return each(rounds, np.random.default_rng((seed, epoch)).permutation(len(rounds))[start:])


def each(rounds: Rounds, queries: Integers) -> Iterator[Round]:
    """Yields some rounds, by their indices.

    Parameters
    ----------
    rounds : Rounds
        The queries.
    queries : array of int
        The indices, in the order to yield.

    Examples
    --------
    >>> rounds = Rounds.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], qid=["a", "b", "c"])
    >>> [str(round.qid) for round in each(rounds, np.array([2, 0]))]
    ['c', 'a']
    """
    for query in np.asarray(queries).tolist():
        yield rounds[query]


def repeat(rounds: Iterable[Round], times: int) -> Iterator[Round]:
    """Yields a finite stream several times.

    An iterator, which is exhausted after one pass, is refused.

    Parameters
    ----------
    rounds : iterable of Round
        A finite stream that can be iterated more than once.
    times : int
        The number of passes.

    Examples
    --------
    >>> rounds = Rounds.from_arrays([[1.0], [2.0]], [0, 1], qid=["a", "b"])
    >>> [str(round.qid) for round in repeat(rounds, 2)]
    ['a', 'b', 'a', 'b']
    """
    if iter(rounds) is rounds:
        raise DataError("an iterator cannot be repeated, it ends after one pass: give Rounds, or a list of its rounds")
    return (round for _ in range(check_count(times, "the number of passes", 0)) for round in rounds)


def take(rounds: Iterable[Round], count: int) -> Iterator[Round]:
    """Yields the first `count` rounds.

    Parameters
    ----------
    rounds : iterable of Round
        Any stream.
    count : int
        The maximum number of rounds.

    Examples
    --------
    >>> rounds = Rounds.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], qid=["a", "b", "c"])
    >>> [str(round.qid) for round in take(rounds, 2)]
    ['a', 'b']
    """
    return islice(rounds, check_count(count, "the number of rounds to take", 0))
