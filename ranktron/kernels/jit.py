"""The decorators that compile kernels.

A kernel takes arrays and numbers and returns arrays and numbers; it calls only other module-level kernels, so that
its machine code can be cached on disk.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compiles a kernel on first use and caches its machine code on disk."""
    # Explicit, because without it a kernel would inherit the setting of the kernel that calls it first.
    return _compile(function, fastmath=False)


def jit_dot(function: F) -> F:
    """Compiles a kernel whose sums may be added up in any order."""
    return _compile(function, fastmath={"reassoc", "contract", "nsz"})


def jit_rounding(function: F) -> F:
    """Compiles a kernel that may use fused multiply-add, which rounds once instead of twice."""
    return _compile(function, fastmath={"contract"})


def _compile(function: F, **options: Any) -> F:
    options |= {"nogil": True, "error_model": "numpy"}
    try:
        return cast(F, numba.njit(cache=True, **options)(function))
    except RuntimeError:  # neither the package's folder nor the home is writable: every process compiles again
        return cast(F, numba.njit(**options)(function))
