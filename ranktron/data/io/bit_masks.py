"""Many bytes at once: masks with one bit for each byte that is, or is not, what is looked for.

Each mask is a handful of vector instructions (Langdale and Lemire, Parsing Gigabytes of JSON per Second, 2019). numba
has no words for them, so that kernels get them in those of LLVM; the Python says what they return.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from ranktron.data.io.lexer import ZERO, Bytes
from ranktron.kernels.numba_internals import instructions_for

REACH = 32  # of how many bytes the masks are
_VECTOR = ir.VectorType(ir.IntType(8), REACH)


def non_digits(data: Bytes, p: int) -> int:
    """Which of the 32 bytes from p on are not digits: bit i is that of the byte at p + i."""
    return sum(1 << i for i in range(REACH) if not ZERO <= data[p + i] <= ZERO + 9)


def bytes_equal(data: Bytes, p: int, byte: int) -> int:
    """Which of the 32 bytes from p on equal a given one: bit i is that of the byte at p + i."""
    return sum(1 << i for i in range(REACH) if data[p + i] == byte)


def bytes_above(data: Bytes, p: int, byte: int) -> int:
    """Which of the 32 bytes from p on are larger than a given one: bit i is that of the byte at p + i."""
    return sum(1 << i for i in range(REACH) if data[p + i] > byte)


def lowest_bit(mask: int | np.uint64) -> int:
    """The number of the lowest bit that is set, 64 if none is."""
    return (int(mask) & -int(mask)).bit_length() - 1 if mask else 64


def count_bits(mask: int | np.uint64) -> int:
    """How many bits are set."""
    return int(mask).bit_count()


def _load(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    """The bytes of an array from p on, as one vector."""
    array = context.make_array(signature.args[0])(context, builder, values[0])
    loaded = builder.load(builder.bitcast(builder.gep(array.data, [values[1]]), _VECTOR.as_pointer()))
    loaded.align = 1
    return loaded


def _as_mask(builder: Any, found: Any) -> Any:
    return builder.zext(builder.bitcast(found, ir.IntType(REACH)), ir.IntType(64))


@instructions_for(non_digits, lambda data, p: types.uint64(data, types.int64))
def _find_non_digits(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    zeros, nines = (ir.Constant(_VECTOR, [byte] * REACH) for byte in (ZERO, 9))
    digits = builder.sub(_load(context, builder, signature, values), zeros)
    return _as_mask(builder, builder.icmp_unsigned(">", digits, nines))


def _compare(relation: str) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        none, first = ir.Constant(_VECTOR, None), ir.Constant(ir.IntType(32), 0)
        one = builder.insert_element(none, builder.trunc(values[2], ir.IntType(8)), first)
        wanted = builder.shuffle_vector(one, none, ir.Constant(ir.VectorType(ir.IntType(32), REACH), None))
        return _as_mask(builder, builder.icmp_unsigned(relation, _load(context, builder, signature, values), wanted))

    return generate


def _of_comparison(data: Any, p: Any, byte: Any) -> Any:
    return types.uint64(data, types.int64, types.int64)


instructions_for(bytes_equal, _of_comparison)(_compare("=="))
instructions_for(bytes_above, _of_comparison)(_compare(">"))


@instructions_for(lowest_bit, lambda mask: types.int64(types.uint64))
def _find_lowest_bit(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
    return builder.cttz(values[0], ir.Constant(ir.IntType(1), 0))


@instructions_for(count_bits, lambda mask: types.int64(types.uint64))
def _count_bits(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
    return builder.ctpop(values[0])
