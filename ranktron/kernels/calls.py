"""Kernels that are called by their address.

A kernel that takes another kernel as an argument is compiled once for each of them, and numba cannot cache it on disk;
one with a branch for each of them compiles all of them before it computes anything. An address is a number: the caller
is compiled once, cached, and what it calls is compiled when it is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Any

from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError

from ranktron.kernels.numba_internals import instructions_for

Code = Callable[..., Any]
_BUILD: Any = cgutils
_KERNELS: dict[int, Code] = {}
_ADDRESSES: dict[Code, int] = {}


def address_of(kernel: Any, signature: Any) -> int:
    """The address of a kernel for one signature; it is compiled, or read from the cache, at first use."""
    address = _ADDRESSES.get(kernel)
    if address is None:
        if hasattr(kernel, "compile"):
            kernel.compile(signature.args)
            compiled = kernel.overloads[signature.args]
            address = int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))
        else:  # numba is switched off
            address = id(kernel)
        _ADDRESSES[kernel], _KERNELS[address] = address, kernel
    return address


def caller(signature: Any) -> Code:
    """A function (address, *arguments) for kernels, and for Python: it calls the kernel of that signature there."""

    def call(address: int, *arguments: Any) -> Any:
        return _KERNELS[address](*arguments)

    def signature_of(*given: Any) -> Any:
        for each, wanted in zip(given[1:], signature.args, strict=True):
            if not _fits(each, wanted):
                raise TypingError(f"a kernel that is called by its address takes {wanted}, not {each}")
        return signature.return_type(types.int64, *map(_as_passed, given[1:], signature.args))

    # numba asks for the number of arguments, which `*given` does not tell.
    names = ["address", *(f"argument_{n}" for n in range(len(signature.args)))]
    vars(signature_of)["__signature__"] = Signature([Parameter(name, Parameter.POSITIONAL_ONLY) for name in names])

    @instructions_for(call, signature_of)
    def generate(context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        kind = context.call_conv.get_function_type(signature.return_type, signature.args)
        kernel = builder.inttoptr(values[0], kind.as_pointer())
        status, result = context.call_conv.call_function(
            builder, kernel, signature.return_type, signature.args, values[1:]
        )
        with _BUILD.if_unlikely(builder, status.is_error):
            context.call_conv.return_status_propagate(builder, status)
        return result

    return call


def _as_passed(given: Any, wanted: Any) -> Any:
    """Numbers are converted; arrays stay what they are, which may be read-only."""
    return given if isinstance(wanted, types.Array) else wanted


def _fits(given: Any, wanted: Any) -> bool:
    """Arrays have to have the same layout; whether they may be written is the kernel's own business."""
    if not isinstance(wanted, types.Array):
        return not isinstance(given, types.Array)
    return (given.dtype, given.ndim, given.layout) == (wanted.dtype, wanted.ndim, wanted.layout)
