"""What kernels tell about memory: arrays that outlive them, and elements that they will need."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from numba.extending import register_jitable

from ranktron.kernels.jit import internals


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
