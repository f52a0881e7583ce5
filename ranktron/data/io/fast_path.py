"""Kernels that parse usual lines fast: eight bytes at a time, without a branch for each digit.

They stop at anything that does not have the usual form, and leave it to `grammar`, which parses everything. Eight bytes
in one 64-bit word are processed at once (SWAR, SIMD within a register; Lamport, Multiple Byte Processing with Full-Word
Instructions, 1975).
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ranktron.data.io.bit_masks import bytes_equal, lowest_bit, non_digits
from ranktron.data.io.lexer import COLON, DOT, LARGEST, LETTER_E, LINE_FEED, MINUS, PLUS, POWERS, SLACK, SPACE, Bytes
from ranktron.kernels.jit import jit
from ranktron.types import Integers, Matrix

Word = np.uint64
Words = npt.NDArray[np.uint64]

REACH = 64
MOST_DIGITS = 18  # that an integer of 64 bits holds for certain
EXACT_WHOLE = Word(2**53)
A_WORD = 7  # digits that are parsed at once
MOST_TAGS = 100_000
ONE, SEVEN, EIGHT = Word(1), Word(7), Word(8)
ZEROS, HIGHS, ONES, ABOVE_NINE = (Word(c * 0x0101010101010101) for c in (0x30, 0x80, 0x01, 0x76))
PAIRS = Word(0x000000FF000000FF)
WHOLE_POWERS = np.array([10**k for k in range(19)], np.uint64)
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
def append_digits(mantissa: np.uint64, m: int, one: np.uint64, two: np.uint64) -> np.uint64:
    """Appends m digits to a number: the first seven of one word, the others of the next."""
    some = min(m, A_WORD)
    mantissa = mantissa * WHOLE_POWERS[Word(some)] + parse_digits(one, Word(some))
    some = m - some
    return Word(mantissa * WHOLE_POWERS[Word(some)] + parse_digits(two, Word(some)))


@jit
def scale_certainly(mantissa: np.uint64, power: int) -> tuple[float, bool]:
    """Computes mantissa · 10^power and tells whether it is certainly right, rounded to 32 bits."""
    value = float(np.int64(mantissa)) * POWERS[max(power, 0)] / POWERS[max(-power, 0)]  # one of them is 1
    if mantissa <= EXACT_WHOLE and -22 <= power <= 22:
        return value, True
    # Otherwise certain if both ends of the error interval round to the same 32-bit number, as in `decimals`.
    return value, value <= LARGEST and np.float32(value * (1.0 - SLACK)) == np.float32(value * (1.0 + SLACK))


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
        column, index = last + 1, eight(data, p)
        if index & tags[Word(column), ONE] == tags[Word(column), Word(0)]:
            q = p + int(np.int64(tags[Word(column), Word(2)]))
        else:
            length = leading_digits(index)
            column = int(parse_digits(index, length)) - first
            q = p + int(np.int64(length)) + 1
            if length == 0 or data[Word(q - 1)] != COLON or column <= last or column >= row.shape[0]:
                break
        # One mask tells where the number ends: that is all that the next number has to wait for.
        negative = data[Word(q)] == MINUS
        others = Word(non_digits(data, q)) & ~Word(negative)
        ends = others & ~Word(bytes_equal(data, q, DOT))
        dots = others & ~ends & (ends - ONE)  # those before the end of the number
        stop, dot = lowest_bit(ends), dots != 0
        n = lowest_bit(others) - negative
        m = stop - negative - n - dot
        if n == 0 or n > A_WORD or m > 3 * A_WORD or (m == 0 and dot) or dots & (dots - ONE) != 0:
            break
        low, some = q + negative + n + 1, min(m, A_WORD)
        mantissa = parse_digits(eight(data, q + negative), Word(n)) * WHOLE_POWERS[Word(some)]
        mantissa += parse_digits(eight(data, low), Word(some))
        if m > A_WORD:
            if mantissa >= WHOLE_POWERS[Word(MOST_DIGITS + A_WORD - m)]:
                break
            mantissa = append_digits(mantissa, m - A_WORD, eight(data, low + A_WORD), eight(data, low + 2 * A_WORD))
        q += stop
        ended = data[Word(q)]
        if m <= A_WORD and (ended == SPACE) | (ended == LINE_FEED):
            value = float(np.int64(mantissa)) / POWERS[m]  # at most 14 digits: exact factors, as in `decimals`
        else:
            power = -m
            if ended | 32 == LETTER_E:
                others &= ~(ends ^ (ends - ONE))  # those after the letter
                signed = lowest_bit(others) == stop + 1
                others &= others - Word(signed)
                n = lowest_bit(others) - stop - 1 - signed
                falling = data[Word(q + 1)] == MINUS
                if n == 0 or n > 2 or signed != (falling | (data[Word(q + 1)] == PLUS)):
                    break
                tens = int(np.int64(parse_digits(eight(data, q + 1 + signed), Word(n))))
                power += tens * (1 - 2 * falling)  # without a branch that could not be predicted
                q += 1 + signed + n
                ended = data[Word(q)]
            value, certain = scale_certainly(mantissa, power)
            if not certain or (ended != SPACE) & (ended != LINE_FEED):
                break
        for j in range(last + 1, column):
            row[j] = 0.0
        row[Word(column)] = np.float32(-value if negative else value)
        stamps[Word(column)] = stamp
        if ended == LINE_FEED:
            return column, q
        last, p = column, q + 1
    return last, p


@lru_cache(4)
def make_tags(first: int, width: int) -> Words:
    """For each feature: the bytes of `index:` as one word, the mask of these bytes, and their number."""
    tags = np.empty((min(width, MOST_TAGS), 3), np.uint64)
    for column in range(len(tags)):
        tag = b"%d:" % (first + column)
        tags[column] = int.from_bytes(tag, "little"), (1 << 8 * len(tag)) - 1, len(tag)
    return tags
