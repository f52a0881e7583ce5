"""Counter-based random numbers, a function of (seed, round, stream, index): repeating a round repeats its choices.

Counters are mixed by the finaliser of SplitMix64 (Steele, Lea and Flood, Fast Splittable Pseudorandom Number
Generators, 2014). Learners and simulated users draw from separate streams, independent even if their seeds are equal.
"""

import numpy as np

from ranktron.kernels.jit import jit

EXPLORATION, PLACKETT_LUCE, CLICKS = 0, 1, 2
"""The streams, by what they are used for."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


@jit
def _mix(z: np.uint64) -> np.uint64:
    """Mixes 64 bits so that each depends on all (the finaliser of SplitMix64)."""
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@jit
def stream_origin(seed: int, number: int, stream: int) -> np.uint64:
    """Where the numbers of one round and one stream start; rounds, seeds and streams start far from each other."""
    origin = _mix(_mix(np.uint64(seed) + _GOLDEN) ^ (np.uint64(number) * _FIRST + _GOLDEN))
    return origin if stream == EXPLORATION else _mix(origin + np.uint64(stream) * _SECOND)


@jit
def uniform(origin: np.uint64, index: int) -> float:
    """The number of that index, from [0, 1).

    >>> start = np.uint64(stream_origin(0, 1, EXPLORATION))
    >>> [round(uniform(start, index), 3) for index in (1, 2, 3)]
    [0.135, 0.32, 0.299]
    """
    return float(_mix(origin + np.uint64(index + 1) * _GOLDEN) >> np.uint64(11)) * 2.0**-53
