"""Arrays that kernels find by their address."""

# mypy: allow-untyped-calls

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.np.arrayobj import populate_array

from ranktron.kernels.numba_internals import instructions_for
from ranktron.types import Floats

_BUILD: Any = cgutils


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
