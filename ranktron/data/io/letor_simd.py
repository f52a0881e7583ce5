"""Vector instructions of the LETOR kernels: bit masks of 32 bytes at once.

Each mask is a handful of vector instructions (Langdale and Lemire, Parsing Gigabytes of JSON per Second, 2019). numba
cannot express them, so kernels get LLVM's through numba's extension API. Where a name of numba or llvmlite that this
takes is missing, the functions below are compiled instead: the same masks, and slower reading.
"""

# mypy: allow-untyped-calls

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ranktron.data.io.decimals import ZERO, Bytes
from ranktron.kernels.jit import jit

REACH = 32  # bytes of a mask
_ONE = np.uint64(1)


def non_digits(data: Bytes, p: int) -> np.uint64:
    """The mask of bytes that are not digits: bit i is that of the byte at p + i."""
    mask = np.uint64(0)
    for i in range(REACH):
        mask |= np.uint64(data[p + i] < ZERO or data[p + i] > ZERO + 9) << np.uint64(i)
    return mask


def bytes_equal(data: Bytes, p: int, byte: int) -> np.uint64:
    """The mask of bytes that equal a given one: bit i is that of the byte at p + i."""
    mask = np.uint64(0)
    for i in range(REACH):
        mask |= np.uint64(data[p + i] == byte) << np.uint64(i)
    return mask


def bytes_above(data: Bytes, p: int, byte: int) -> np.uint64:
    """The mask of bytes that are larger than a given one: bit i is that of the byte at p + i."""
    mask = np.uint64(0)
    for i in range(REACH):
        mask |= np.uint64(data[p + i] > byte) << np.uint64(i)
    return mask


def lowest_bit(mask: np.uint64) -> int:
    """The position of the lowest set bit; 64 for an empty mask."""
    rest, position = np.uint64(mask), 0
    while position < 64 and rest & _ONE == 0:
        rest >>= _ONE
        position += 1
    return position


def count_bits(mask: np.uint64) -> int:
    """The number of set bits."""
    rest, count = np.uint64(mask), 0
    while rest != 0:
        rest &= rest - _ONE
        count += 1
    return count


_BUILDER = (
    "bitcast", "cttz", "ctpop", "gep", "icmp_unsigned", "insert_element", "load", "shuffle_vector", "sub", "trunc",
    "zext",
)  # fmt: skip
VECTORS = True
"""Whether kernels have the instructions, or the functions as loops."""

try:
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba import types
    from numba.core.base import BaseContext
    from numba.extending import lower_builtin, type_callable

    _VECTOR = ir.VectorType(ir.IntType(8), REACH)
    _VECTOR_POINTER = _VECTOR.as_pointer()
    for _name in _BUILDER:
        getattr(ir.IRBuilder, _name)
    BaseContext.make_array  # noqa: B018 (used below)
except (ImportError, AttributeError) as _error:
    VECTORS = False
    warnings.warn(f"text is read without vector instructions, more slowly: {_error}", RuntimeWarning, stacklevel=2)
    non_digits, bytes_equal, bytes_above = jit(non_digits), jit(bytes_equal), jit(bytes_above)
    lowest_bit, count_bits = jit(lowest_bit), jit(count_bits)


def _load_bytes(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    """The bytes of an array from p on, as one vector."""
    array = context.make_array(signature.args[0])(context, builder, values[0])
    loaded = builder.load(builder.bitcast(builder.gep(array.data, [values[1]]), _VECTOR_POINTER))
    loaded.align = 1
    return loaded


def _as_mask(builder: Any, bits: Any) -> Any:
    return builder.zext(builder.bitcast(bits, ir.IntType(REACH)), ir.IntType(64))


def _generate_non_digits(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    zeros, nines = (ir.Constant(_VECTOR, [byte] * REACH) for byte in (ZERO, 9))
    digits = builder.sub(_load_bytes(context, builder, signature, values), zeros)
    return _as_mask(builder, builder.icmp_unsigned(">", digits, nines))


def _generate_comparison(relation: str) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        empty, first = ir.Constant(_VECTOR, None), ir.Constant(ir.IntType(32), 0)
        one = builder.insert_element(empty, builder.trunc(values[2], ir.IntType(8)), first)
        byte = builder.shuffle_vector(one, empty, ir.Constant(ir.VectorType(ir.IntType(32), REACH), None))
        loaded = _load_bytes(context, builder, signature, values)
        return _as_mask(builder, builder.icmp_unsigned(relation, loaded, byte))

    return generate


def _generate_lowest_bit(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
    return builder.cttz(values[0], ir.Constant(ir.IntType(1), 0))


def _generate_count_bits(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
    return builder.ctpop(values[0])


def _register(function: Any, signature_of: Any, generate: Any) -> None:
    """Lets kernels that call a function have these instructions instead."""
    type_callable(function)(lambda _context: signature_of)
    lower_builtin(function, types.VarArg(types.Any))(generate)


if VECTORS:
    _register(non_digits, lambda data, p: types.uint64(data, types.int64), _generate_non_digits)
    for _function, _relation in ((bytes_equal, "=="), (bytes_above, ">")):
        _register(
            _function,
            lambda data, p, byte: types.uint64(data, types.int64, types.int64),
            _generate_comparison(_relation),
        )
    _register(lowest_bit, lambda mask: types.int64(types.uint64), _generate_lowest_bit)
    _register(count_bits, lambda mask: types.int64(types.uint64), _generate_count_bits)
