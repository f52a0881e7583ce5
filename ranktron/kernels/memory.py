"""What a kernel says about the memory of its arrays: that the caller keeps it, and what will be read next."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils

from ranktron.kernels.instructions import instructions_for

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


@instructions_for(borrow, lambda array: array(array))
def _borrow(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    kind, array = signature.args[0], values[0]
    if isinstance(kind, types.Array):
        return _uncounted(context, builder, kind, array)
    parts = zip(kind, _BUILD.unpack_tuple(builder, array), strict=True)
    return context.make_tuple(builder, kind, [_uncounted(context, builder, *part) for part in parts])


def _uncounted(context: Any, builder: Any, kind: Any, array: Any) -> Any:
    view = context.make_array(kind)(context, builder, array)
    view.meminfo = _BUILD.get_null_value(view.meminfo.type)
    view.parent = _BUILD.get_null_value(view.parent.type)
    return view._getvalue()


@instructions_for(prefetch, lambda array, start, stop: types.void(array, types.int64, types.int64))
def _prefetch(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    kind, (array, start, stop) = signature.args[0], values
    data, in_line = context.make_array(kind)(context, builder, array).data, _LINE // (kind.dtype.bitwidth // 8)
    byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
    fetch = builder.module.declare_intrinsic(
        "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, number, number, number])
    )
    how = number(0), number(3), number(1)  # to read, to keep in all caches, data and not code
    with _BUILD.for_range_slice(builder, start, stop, start.type(in_line)) as (index, _):
        builder.call(fetch, [builder.bitcast(builder.gep(data, [index]), byte), *how])
    return context.get_dummy_value()
