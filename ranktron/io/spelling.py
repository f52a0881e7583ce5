"""The kernels that write numbers: the shortest decimal of a 32-bit number, wherever they are sure of it, and lines.

A decimal m / 10^q is tried for q = 0, 1, ... until it reads back as the number. Both m and 10^q are exact doubles, so
that one rounding decides. Where it could decide wrongly (halfway between two decimals or two 32-bit numbers, or at a
power of 2, below which numbers stand closer) the kernel says that it is not sure, as it does outside of its range.
"""

from math import copysign, floor, frexp

import numpy as np
import numpy.typing as npt

from ranktron.io.symbols import DOT, LETTER_E, MINUS, POWERS, ZERO, Bytes
from ranktron.kernels import kernel
from ranktron.types import Integers

WIDTH = 16
LOWEST, POSITIONAL, HIGHEST = 1e-12, 1e-4, 1e6
MOST_DECIMALS = 21
CLOSE = 1e-4


@kernel
def spell(values: npt.NDArray[np.float32], text: Bytes, lengths: Integers) -> None:
    """Writes each number into its row of `text`; its length is 0 where that is not sure."""
    for i in range(values.shape[0]):
        value = float(values[i])
        start = 0
        if copysign(1.0, value) < 0.0:
            text[i, 0] = MINUS
            start = 1
        m, q = decimal(abs(value))
        lengths[i] = 0 if q < 0 else write_decimal(m, q, abs(value) < POSITIONAL, text[i], start)


@kernel
def decimal(a: float) -> tuple[int, int]:
    """The shortest decimal m / 10^q that reads back as `a`, a 32-bit number; q is -1 where it is not sure."""
    if a == 0.0:
        return 0, 0
    if a < LOWEST or a >= HIGHEST:
        return 0, -1
    power_of_two = frexp(a)[0] == 0.5
    for q in range(MOST_DECIMALS + 1):
        product = a * POWERS[q]
        below = floor(product)
        m = below + (product - below > 0.5)
        read = m / POWERS[q]
        if power_of_two:
            if read == a:
                return int(m), q
            if q == 7:
                return 0, -1
            continue
        if abs(product - below - 0.5) < CLOSE and (
            reads_as(below / POWERS[q], a) or reads_as((below + 1.0) / POWERS[q], a)
        ):
            return 0, -1
        near = float(np.float32(read))
        twice = near + 2.0 * (read - near)
        if read != near and float(np.float32(twice)) == twice and abs(read - a) < 2.0 * abs(read - near):
            return 0, -1
        if near == a:
            return int(m), q
    return 0, -1


@kernel
def reads_as(read: float, a: float) -> bool:
    """Whether a double is `a` as a 32-bit number."""
    return float(np.float32(read)) == a


@kernel
def write_decimal(m: int, q: int, scientific: bool, text: Bytes, p: int) -> int:
    """Writes m / 10^q from place p on; returns the place after it."""
    digits = 1
    while m >= POWERS[digits]:
        digits += 1
    if m > 0 and scientific:
        p = write_digits(m, digits, 1 if digits > 1 else -1, text, p)
        exponent = q - digits + 1
        text[p], text[p + 1] = LETTER_E, MINUS
        return write_digits(exponent, 2, -1, text, p + 2)
    if q >= digits:
        digits = q + 1
    return write_digits(m, digits, digits - q if q > 0 else -1, text, p)


@kernel
def write_digits(m: int, digits: int, point: int, text: Bytes, p: int) -> int:
    """Writes m with so many digits, leading zeros among them, and a point after the first `point` of them, or none."""
    end = p + digits + (point > 0)
    at = end - 1
    for left in range(digits, 0, -1):
        if left == point:
            text[at] = DOT
            at -= 1
        text[at] = ZERO + m % 10
        m //= 10
        at -= 1
    return end


@kernel
def lay(
    heads: Bytes,
    head_starts: Integers,
    names: Bytes,
    name_starts: Integers,
    text: Bytes,
    lengths: Integers,
    tails: Bytes,
    tail_starts: Integers,
    out: Bytes,
) -> int:
    """Writes lines: a head, then a name and a number for each feature, then a tail; returns how many bytes."""
    p, width = 0, name_starts.shape[0] - 1
    for i in range(head_starts.shape[0] - 1):
        p = copied(heads, head_starts[i], head_starts[i + 1], out, p)
        for j in range(width):
            p = copied(names, name_starts[j], name_starts[j + 1], out, p)
            p = copied(text[i * width + j], 0, lengths[i * width + j], out, p)
        p = copied(tails, tail_starts[i], tail_starts[i + 1], out, p)
    return p


@kernel
def copied(source: Bytes, a: int, b: int, out: Bytes, p: int) -> int:
    """Copies the bytes from a to b to place p; returns the place after them."""
    for k in range(a, b):
        out[p] = source[k]
        p += 1
    return p
