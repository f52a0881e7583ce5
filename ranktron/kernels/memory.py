"""Arrays that kernels borrow from their caller or find by address, and what the processor should fetch next."""

# mypy: allow-untyped-calls

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.np.arrayobj import populate_array

from ranktron.kernels.instructions import instructions_for
from ranktron.types import Floats

_BUILD: Any = cgutils
_LINE = 64  # bytes of a cache line


def find_address(array: Floats) -> int:
    """The address of an array of 64-bit numbers without gaps, for `array_at`; 0 if it is of another kind.

    >>> array_at(find_address(np.array([[1.0, 2.0]])), 2)
    array([1., 2.])
    """
    if array.dtype != np.float64 or not array.flags.carray:
        return 0
    address: int = array.__array_interface__["data"][0]
    return address


def array_at(address: int, shape: int | tuple[int, ...]) -> Floats:
    """The array of 64-bit numbers at an address. The caller has to keep it: its references are not counted.

    A kernel takes 0.05 microseconds for each array among its arguments, and more if that is in no cache. One that is
    called in every round is given addresses instead.
    """
    numbers: Any = (ctypes.c_double * int(np.prod(shape))).from_address(int(address))
    return np.asarray(numbers, np.float64).reshape(shape)


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


def _of_numbers(address: Any, shape: Any) -> Any:
    dimensions = len(shape) if isinstance(shape, types.BaseTuple) else 1
    return types.Array(types.float64, dimensions, "C")(types.int64, shape)


@instructions_for(array_at, _of_numbers)
def _array_at(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    kind = signature.return_type
    shape, strides = _extent(context, builder, kind, signature.args[1], values[1])
    data = builder.inttoptr(values[0], context.get_data_type(kind.dtype).as_pointer())
    array = context.make_array(kind)(context, builder)
    populate_array(array, data, shape, strides[1:], strides[-1], None)
    return array._getvalue()


def _extent(context: Any, builder: Any, kind: Any, size: Any, value: Any) -> tuple[list[Any], list[Any]]:
    """The lengths of an array without gaps, and how many bytes all of it takes, then each step along an axis."""
    whole = types.intp
    several = isinstance(size, types.BaseTuple)
    lengths = zip(_BUILD.unpack_tuple(builder, value), size, strict=True) if several else [(value, size)]
    shape = [context.cast(builder, length, given, whole) for length, given in lengths]
    steps = [context.get_constant(whole, context.get_abi_sizeof(context.get_data_type(kind.dtype)))]
    for length in reversed(shape):
        steps.insert(0, builder.mul(steps[0], length))
    return shape, steps


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
