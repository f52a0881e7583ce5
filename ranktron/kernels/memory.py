"""Memory in kernels: copies, arrays whose references are not counted, and prefetching."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from numba.extending import register_jitable

from ranktron.kernels.jit import internals, jit


def borrow(array: Any) -> Any:
    """The same array without counting references to it; also for the tuple of sparse rows.

    Counting takes an atomic instruction for every slice and every call, a tenth of a short round. Only for arguments,
    which the caller keeps alive: an array of the kernel itself would be freed too early. It must not be returned.
    """
    return array


def prefetch(array: npt.NDArray[Any], start: int, stop: int) -> None:
    """Has the processor fetch elements, counted in one dimension, into its cache, while the kernel goes on.

    They need not exist: fetching never fails.
    """


if internals:
    internals.use_instructions(borrow, prefetch)
else:
    borrow, prefetch = register_jitable(borrow), register_jitable(prefetch)


@jit
def copy_into(target: npt.NDArray[Any], source: npt.NDArray[Any]) -> None:
    """Writes all of an array into another one of the same length, or longer.

    For `target[a:b] = source` numba compiles the text of an error for arrays of different lengths, which takes two
    seconds for every kernel with such a line.

    >>> import numpy as np
    >>> target = np.zeros(3)
    >>> copy_into(target[1:], np.array([5.0, 6.0]))
    >>> target
    array([0., 5., 6.])
    """
    for i in range(source.shape[0]):
        target[i] = source[i]
