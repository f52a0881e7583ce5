"""The decorators that compile kernels.

A kernel takes arrays and numbers and returns arrays and numbers; it calls only other module-level kernels, so that
its machine code can be cached on disk.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar, cast

import numba
from numba import types

from ranktron.kernels.linking import callee

F = TypeVar("F", bound=Callable[..., Any])


def _import_arraymath() -> None:
    """Imports the functions of numba without scipy.linalg, which would take a sixth of the start of a command.

    numba imports it only to see whether it is there, and it is: scipy is required. Kernels that use it import it.
    """
    try:
        from numba.np import linalg
    except ImportError:  # another version of numba
        return
    if "numba.np.arraymath" in sys.modules or not hasattr(linalg, "ensure_blas"):
        return
    check = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        arraymath: Any = import_module("numba.np.arraymath")
        arraymath.ensure_blas = check
    finally:
        linalg.ensure_blas = check


_import_arraymath()


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
    # No kernel is passed to C: the wrapper for that would take a tenth of the time to compile.
    options |= {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    try:
        kernel = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # neither the package's folder nor the home is writable: every process compiles again
        kernel = numba.njit(**options)(function)
    if hasattr(kernel, "get_call_template"):  # else numba is switched off
        _let_kernels_call(kernel)
    return cast(F, kernel)


def _let_kernels_call(kernel: Any) -> None:
    """Gives other kernels the twin to call, with numbers of any value.

    A variable that starts as 0 has the type "the number 0" until numba has seen the loop that changes it: what it is
    passed to would be compiled for that, and then again for any number.
    """
    kind = type(kernel)
    kernel.get_call_template = lambda args, kws: kind.get_call_template(
        callee(kernel), tuple(map(types.unliteral, args)), kws
    )
    kernel.get_overload = lambda signature: kind.get_overload(callee(kernel), signature)
