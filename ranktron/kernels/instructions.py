"""Functions of Python that kernels get as instructions of LLVM, for what numba has no words for.

numba's own way, an `intrinsic` that an `overload` calls, compiles one more function for each: a tenth of a first run.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import types
from numba.extending import lower_builtin, type_callable

Code = Callable[..., Any]


def instructions_for(function: Code, signature_of: Code) -> Callable[[Code], Code]:
    """Registers what generates the instructions that kernels get for a function, as `numba.extending.lower_builtin`.

    Parameters
    ----------
    function : callable
        What kernels call, and Python as well: the instructions must do the same.
    signature_of : callable
        From the types of the arguments the signature to which they are converted; it has the function's parameters.
    """

    def register(generate: Code) -> Code:
        type_callable(function)(lambda _context: signature_of)
        lower_builtin(function, types.VarArg(types.Any))(generate)
        return generate

    return register
