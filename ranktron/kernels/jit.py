"""The decorators that compile kernels.

A kernel takes arrays and numbers and returns arrays and numbers. It calls only other module-level kernels, so that its
machine code can be cached on disk.
"""

import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

from ranktron.errors import RankingWarning

F = TypeVar("F", bound=Callable[..., Any])

internals: Any = None
try:
    from ranktron.kernels import numba_internals as internals

    internals.skip_scipy_linalg()
except ImportError as error:
    reason = f"numba {numba.__version__} is not as this version of Ranktron knows it ({error})"
    warnings.warn(f"{reason}: compiling on first runs takes half as long again", RankingWarning, stacklevel=2)


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
    options |= {"nogil": True, "error_model": "numpy", **(internals.OPTIONS if internals else {})}
    try:
        kernel = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # neither the package's folder nor the home is writable: every process compiles again
        kernel = numba.njit(**options)(function)
    if internals and kernel is not function:  # numba is not switched off
        internals.link_callers(kernel)
    return cast(F, kernel)
