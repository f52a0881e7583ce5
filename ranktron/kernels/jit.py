"""How a kernel is compiled.

A kernel takes arrays and numbers and gives arrays and numbers; it calls nothing but other module-level kernels, so
that its machine code is found on disk by the next process.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """Compiles a leaf kernel on first use and keeps its machine code on disk."""
    return _compile(function, fastmath=False)  # said aloud: left open, it would be that of whoever calls it first


def jit_dot(function: F) -> F:
    """Compiles a kernel whose sums may be added up in any order."""
    return _compile(function, fastmath={"reassoc", "contract", "nsz"})


def jit_rounding(function: F) -> F:
    """Compiles a kernel that may round once, instead of twice, where it multiplies and adds."""
    return _compile(function, fastmath={"contract"})


def _compile(function: F, **options: Any) -> F:
    options |= {"nogil": True, "error_model": "numpy"}
    try:
        return cast(F, numba.njit(cache=True, **options)(function))
    except RuntimeError:  # neither the package's folder nor the home can be written to: every process compiles anew
        return cast(F, numba.njit(**options)(function))
