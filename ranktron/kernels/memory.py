"""The memory of kernels: new arrays, arrays that the caller keeps, and what will be read next.

numba compiles `np.empty`, `np.zeros` and `view` as functions, for each type of number and in each process: a sixth of a
first run. What stands here are a few instructions.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.np.arrayobj import populate_array

from ranktron.kernels.instructions import instructions_for

_BUILD: Any = cgutils
_LINE = 64  # bytes of a cache line


def allocate(shape: int | tuple[int, ...], dtype: Any = np.float64) -> npt.NDArray[Any]:
    """A new array, as `np.empty` makes it; in kernels no size may be negative."""
    return np.empty(shape, dtype)


def zeros(shape: int | tuple[int, ...], dtype: Any = np.float64) -> npt.NDArray[Any]:
    """A new array of zeros, as `np.zeros` makes it; in kernels no size may be negative."""
    return np.zeros(shape, dtype)


def reinterpret(array: npt.NDArray[Any], dtype: Any) -> npt.NDArray[Any]:
    """The same memory as numbers of another type that has as many bytes."""
    return array.view(dtype)


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


def _of_new(shape: Any, dtype: Any = None) -> Any:
    given = (shape,) if dtype is None else (shape, dtype)
    return types.Array(_number(dtype), len(shape) if isinstance(shape, types.BaseTuple) else 1, "C")(*given)


def _of_reinterpreted(array: Any, dtype: Any) -> Any:
    return array.copy(dtype=_number(dtype))(array, dtype)


def _number(dtype: Any) -> Any:
    if dtype is None:
        return types.float64
    return dtype.dtype if isinstance(dtype, types.DType) else dtype.instance_type


@instructions_for(allocate, _of_new)
def _new(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return _reserve(context, builder, signature, values)._getvalue()


@instructions_for(zeros, _of_new)
def _new_zeros(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    array = _reserve(context, builder, signature, values)
    _BUILD.memset(builder, array.data, builder.mul(array.itemsize, array.nitems), 0)
    return array._getvalue()


def _reserve(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    kind, size, whole = signature.return_type, signature.args[0], types.intp
    several = isinstance(size, types.BaseTuple)
    lengths = zip(_BUILD.unpack_tuple(builder, values[0]), size, strict=True) if several else [(values[0], size)]
    shape = [context.cast(builder, length, given, whole) for length, given in lengths]
    number = context.get_data_type(kind.dtype)
    strides = [context.get_constant(whole, context.get_abi_sizeof(number))]
    for length in reversed(shape):
        strides.insert(0, builder.mul(strides[0], length))
    align = context.get_constant(types.uint32, context.get_preferred_array_alignment(kind.dtype))
    owner = context.nrt.meminfo_alloc_aligned(builder, strides[0], align)
    data = builder.bitcast(context.nrt.meminfo_data(builder, owner), number.as_pointer())
    array = context.make_array(kind)(context, builder)
    populate_array(array, data, shape, strides[1:], strides[-1], owner)
    return array


@instructions_for(reinterpret, _of_reinterpreted)
def _reinterpret(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    kind, given = signature.return_type, context.make_array(signature.args[0])(context, builder, values[0])
    array = context.make_array(kind)(context, builder)
    data = builder.bitcast(given.data, context.get_data_type(kind.dtype).as_pointer())
    populate_array(array, data, given.shape, given.strides, given.itemsize, given.meminfo, given.parent)
    return impl_ret_borrowed(context, builder, kind, array._getvalue())


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
