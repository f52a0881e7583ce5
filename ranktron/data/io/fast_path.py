"""Kernels that parse usual lines fast: eight bytes at a time, without a branch for each digit.

They stop at anything that does not have the usual form, and leave it to `grammar`, which parses everything. Eight bytes
in one 64-bit word are processed at once (SWAR, SIMD within a register; Lamport, Multiple Byte Processing with Full-Word
Instructions, 1975).
"""

import numpy as np
import numpy.typing as npt

from ranktron.data.io.lexer import COLON, DOT, LARGEST, LETTER_E, MINUS, PLUS, POWERS, SLACK, SPACE, Bytes
from ranktron.kernels.jit import jit
from ranktron.types import Integers, Matrix

Word = np.uint64
Words = npt.NDArray[np.uint64]

REACH = 64
MOST_DIGITS = 18  # that an integer of 64 bits holds for certain
EXACT_WHOLE = Word(2**53)
REACHED, FAR = 200, 1000  # powers of ten that are computed here, and one that is not
MOST_TAGS = 100_000
ONE, SEVEN, EIGHT = Word(1), Word(7), Word(8)
ZEROS, HIGHS, ONES, ABOVE_NINE = (Word(c * 0x0101010101010101) for c in (0x30, 0x80, 0x01, 0x76))
PAIRS = Word(0x000000FF000000FF)
WHOLE_POWERS = np.array([10**k for k in range(8)], np.uint64)
HUNDREDS, UNITS = Word(0x000F424000000064), Word(0x0000271000000001)


@jit
def eight(data: Bytes, p: int) -> np.uint64:
    """The eight bytes from p on as one little-endian word. (With unsigned positions this compiles to one load.)"""
    q = Word(p)
    return (
        Word(data[q])
        | Word(data[q + Word(1)]) << Word(8)
        | Word(data[q + Word(2)]) << Word(16)
        | Word(data[q + Word(3)]) << Word(24)
        | Word(data[q + Word(4)]) << Word(32)
        | Word(data[q + Word(5)]) << Word(40)
        | Word(data[q + Word(6)]) << Word(48)
        | Word(data[q + Word(7)]) << Word(56)
    )


@jit
def leading_digits(eight_bytes: np.uint64) -> np.uint64:
    """Counts the digits before the first other byte; 7 also if all eight are digits."""
    # The high bit of each byte marks a non-digit; the lowest mark is found without a branch (Warren, Hacker's Delight,
    # section 6-1).
    digits = eight_bytes ^ ZEROS
    others = (digits | ((digits & ~HIGHS) + ABOVE_NINE)) & HIGHS
    upto = (others ^ (others - ONE)) & ONES
    return ((upto * ONES) >> Word(56)) - ONE


@jit
def parse_digits(eight_bytes: np.uint64, n: np.uint64) -> np.uint64:
    """The number that the first n < 8 bytes, all digits, represent."""
    # Three multiplications combine digits to pairs, pairs to fours, fours to eight (Lemire, Number Parsing at a
    # Gigabyte per Second, 2021).
    digits = ((eight_bytes ^ ZEROS) << (EIGHT * (SEVEN - n))) << EIGHT
    pairs = digits * Word(10) + (digits >> EIGHT)
    return ((pairs & PAIRS) * HUNDREDS + ((pairs >> Word(16)) & PAIRS) * UNITS) >> Word(32)


@jit
def usual(
    data: Bytes, p: int, last: int, first: int, row: Matrix, stamps: Integers, stamp: int, tags: Words
) -> tuple[int, int]:
    """Parses `index:value ` repeatedly while indices ascend and values look like 12, 0.25, -3.5 or 1.5e-05.

    Returns the last feature and the position after it. The loop calls no function that takes an array, because numba's
    reference counting of arrays would cost as much as parsing a number.
    """
    end = data.shape[0] - REACH
    while last + 1 < tags.shape[0] and p < end:
        column = last + 1
        index = eight(data, p)
        if index & tags[Word(column), ONE] == tags[Word(column), Word(0)]:
            q = p + np.int64(tags[Word(column), Word(2)])
        else:
            n = leading_digits(index)
            column = int(parse_digits(index, n)) - first
            q = p + np.int64(n) + 1
            if n == 0 or data[Word(q - 1)] != COLON or column <= last or column >= row.shape[0]:
                break
        negative = data[Word(q)] == MINUS
        q += negative
        high = eight(data, q)
        n = leading_digits(high)
        q += np.int64(n)
        dot = data[Word(q)] == DOT
        low = eight(data, q + 1)
        m = leading_digits(low) if dot else Word(0)
        q += np.int64(m) + dot
        if n == 0 or (m == 0 and dot):
            break
        mantissa = parse_digits(high, n) * WHOLE_POWERS[m] + parse_digits(low, m)
        if data[Word(q)] == SPACE:
            value = float(np.int64(mantissa)) / POWERS[m]  # at most 14 digits: exact factors, as in `decimals`
        else:
            power, room = -np.int64(m), MOST_DIGITS - np.int64(n) - np.int64(m)
            while m == SEVEN and room > 0:  # there may be more digits: a further word
                low = eight(data, q)
                m = leading_digits(low)
                mantissa = mantissa * WHOLE_POWERS[m] + parse_digits(low, m)
                more = np.int64(m)
                q, power, room = q + more, power - more, room - more
            if data[Word(q)] | 32 == LETTER_E:
                falling = data[Word(q + 1)] == MINUS
                q += 1 + (falling or data[Word(q + 1)] == PLUS)
                low = eight(data, q)
                m = leading_digits(low)
                tens = np.int64(parse_digits(low, m)) if 0 < m < 3 else FAR
                power += -tens if falling else tens
                q += np.int64(m)
            if data[Word(q)] != SPACE or room < 0 or abs(power) > REACHED:
                break
            value = float(np.int64(mantissa))
            value = value * POWERS[power] if power >= 0 else value / POWERS[-power]
            exact = mantissa <= EXACT_WHOLE and -22 <= power <= 22
            # Otherwise certain if both ends of the error interval round to the same 32-bit number, as in `decimals`.
            if value > LARGEST or not (exact or np.float32(value * (1.0 - SLACK)) == np.float32(value * (1.0 + SLACK))):
                break
        for j in range(last + 1, column):
            row[j] = 0.0
        row[Word(column)] = np.float32(-value if negative else value)
        stamps[Word(column)] = stamp
        last = column
        p = q + 1
    return last, p


def make_tags(first: int, width: int) -> Words:
    """For each feature: the bytes of `index:` as one word, the mask of these bytes, and their number."""
    tags = np.empty((min(width, MOST_TAGS), 3), np.uint64)
    for column in range(len(tags)):
        tag = b"%d:" % (first + column)
        tags[column] = int.from_bytes(tag, "little"), (1 << 8 * len(tag)) - 1, len(tag)
    return tags
