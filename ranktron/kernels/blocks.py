"""Kernels on blocks of a range, by several threads at once.

A block is computed by one thread from its first number to its last one, so that the number of threads changes no bit.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

LARGE = 1 << 18
"""With fewer operations than that, threads cost more than they gain."""


class Blocks:
    """Calls a kernel `(..., first, last)` on blocks of a range, each in a thread of its own.

    Parameters
    ----------
    work : int
        How many operations a call takes, roughly: a small one is not divided.

    Examples
    --------
    >>> found = []
    >>> Blocks(work=10)(lambda name, first, last: found.append((name, first, last)), 4, "columns")
    >>> found
    [('columns', 0, 4)]
    """

    def __init__(self, work: int) -> None:
        self.count = (os.cpu_count() or 1) if work >= LARGE else 1
        self._pool = ThreadPoolExecutor(self.count) if self.count > 1 else None

    def __call__(self, kernel: Callable[..., None], stop: int, *arguments: Any) -> None:
        """Calls the kernel for all of 0 to `stop`."""
        if self._pool is None:
            kernel(*arguments, 0, stop)
            return
        borders = [stop * k // self.count for k in range(self.count + 1)]
        for done in [self._pool.submit(kernel, *arguments, *block) for block in itertools.pairwise(borders)]:
            done.result()
