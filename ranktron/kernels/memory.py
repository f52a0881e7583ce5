"""What a kernel says about the memory of its arrays: that the caller keeps it, and what will be read next."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

_BUILD: Any = cgutils
_LINE = 64  # bytes of a cache line


def borrow(array: Any) -> Any:
    """The same array, whose references a kernel does not count; also for the tuple of sparse rows.

    Counting takes an atomic instruction for every slice and every call, a tenth of a short round. Only for arguments,
    which the caller keeps alive; what a kernel allocates itself would be freed too early. It must not be returned.
    """
    return array


def prefetch(array: npt.NDArray[Any], start: int, stop: int) -> None:
    """Lets the processor fetch elements, counted in one dimension, into its cache, while the kernel goes on.

    They need not exist: fetching never fails.
    """


def _borrow(_typing: Any, array: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, values[0])
        view.meminfo = _BUILD.get_null_value(view.meminfo.type)
        view.parent = _BUILD.get_null_value(view.parent.type)
        return view._getvalue()

    return array(array), generate


def _prefetch(_typing: Any, array: Any, index: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        view = context.make_array(signature.args[0])(context, builder, values[0])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        fetch = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        at = builder.bitcast(builder.gep(view.data, [values[1]]), byte)
        builder.call(fetch, [at, number(0), number(3), number(1)])  # to read, to keep in all caches, data and not code
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


_borrowed: Any = intrinsic(_borrow)
_prefetched: Any = intrinsic(_prefetch)


def _of_either_kind(array):  # type: ignore[no-untyped-def]  # numba compares the names with those of what it returns
    if isinstance(array, types.BaseTuple):
        return lambda array: (_borrowed(array[0]), _borrowed(array[1]), _borrowed(array[2]))
    return lambda array: _borrowed(array)


def _line_by_line(array, start, stop):  # type: ignore[no-untyped-def]
    step = _LINE // (array.dtype.bitwidth // 8)

    def fetch(array, start, stop):  # type: ignore[no-untyped-def]
        for index in range(start, stop, step):
            _prefetched(array, index)

    return fetch


overload(prefetch, strict=False, inline="always")(_line_by_line)
overload(borrow, strict=False, inline="always")(_of_either_kind)
