"""Kernels that parse decimal numbers and tell whether the result is certainly correctly rounded.

`parse_decimal` takes every decimal number, digit by digit. The others parse up to eight digits of one 64-bit word at
once (SWAR, SIMD within a register; Lamport, Multiple Byte Processing with Full-Word Instructions, 1975).
"""

import numpy as np
import numpy.typing as npt

from ranktron.kernels.jit import jit

Bytes = npt.NDArray[np.uint8]
Word = np.uint64

PLUS, MINUS, DOT, ZERO, LETTER_E = 43, 45, 46, 48, 101
MAX_MANTISSA = 10**17  # further digits are not added to an integer of 64 bits
POWERS = np.array([float(f"1e{k}") for k in range(301)])
WHOLE_POWERS = np.array([10**k for k in range(19)], np.uint64)
LARGEST = float(np.finfo(np.float32).max)

# Certainty of a parsed number: not a number, correct to the last bit of a double, off by a few bits, not computed.
NONE, EXACT, NEAR, UNKNOWN = 0, 1, 2, 3
SLACK = 2.0**-49  # relative error of a number that is NEAR

WORD_DIGITS = 7  # digits that are parsed at once
EXACT_WHOLE = Word(2**53)
ONE, SEVEN, EIGHT = Word(1), Word(7), Word(8)
ZEROS, HIGHS, ONES, ABOVE_NINE = (Word(c * 0x0101010101010101) for c in (0x30, 0x80, 0x01, 0x76))
PAIRS = Word(0x000000FF000000FF)
HUNDREDS, UNITS = Word(0x000F424000000064), Word(0x0000271000000001)


@jit
def parse_exponent(data: Bytes, p: int) -> tuple[int, int]:
    """Parses the digits after an `e`: (exponent, next position), position -1 if there are none."""
    negative = data[p] == MINUS
    if negative or data[p] == PLUS:
        p += 1
    start, exponent = p, 0
    while ZERO <= data[p] <= ZERO + 9:
        if exponent < 100_000:
            exponent = exponent * 10 + (int(data[p]) - ZERO)
        p += 1
    return (-exponent if negative else exponent), (p if p > start else -1)


@jit
def scale_decimal(mantissa: int, exponent: int, whole: bool) -> tuple[float, int]:
    """Computes mantissa · 10^exponent and its certainty; `whole` if the mantissa has all the digits."""
    if mantissa == 0:
        return 0.0, EXACT
    if exponent < -300 or exponent > 300:
        return 0.0, UNKNOWN
    value = float(mantissa)
    value = value * POWERS[exponent] if exponent >= 0 else value / POWERS[-exponent]
    # Up to 2^53 and 10^22 both factors are exact doubles, so that the only rounding is the correct one (Clinger, How to
    # Read Floating Point Numbers Accurately, 1990).
    sure = whole and mantissa <= 2**53 and -22 <= exponent <= 22
    return value, EXACT if sure else NEAR


@jit
def parse_decimal(data: Bytes, p: int) -> tuple[float, int, int]:
    """Parses a decimal number: (value, its certainty, next position)."""
    negative = data[p] == MINUS
    if negative or data[p] == PLUS:
        p += 1
    mantissa, exponent, start, whole = 0, 0, p, True
    while True:
        digit = int(data[p]) - ZERO
        if digit < 0 or digit > 9:
            break
        if mantissa < MAX_MANTISSA:
            mantissa = mantissa * 10 + digit
        else:
            exponent += 1
            whole = False
        p += 1
    digits = p - start
    if data[p] == DOT:
        p += 1
        start = p
        while True:
            digit = int(data[p]) - ZERO
            if digit < 0 or digit > 9:
                break
            if mantissa < MAX_MANTISSA:
                mantissa = mantissa * 10 + digit
                exponent -= 1
            else:
                whole = False
            p += 1
        digits += p - start
    if digits == 0:
        return 0.0, NONE, p
    if data[p] | 32 == LETTER_E:
        power, p = parse_exponent(data, p + 1)
        if p < 0:
            return 0.0, NONE, p
        exponent += power
    value, sure = scale_decimal(mantissa, exponent, whole)
    return (-value if negative else value), sure, p


@jit
def round_to_single(value: float, sure: int) -> tuple[np.float32, bool]:
    """Rounds a number to 32 bits and tells whether the result is certainly correct."""
    if sure == EXACT:
        return np.float32(value), True
    # If both ends of the error interval round to the same float32, so does the exact number.
    low, high = np.float32(value * (1.0 - SLACK)), np.float32(value * (1.0 + SLACK))
    return low, bool(sure == NEAR and low == high and abs(low) <= LARGEST)


@jit
def load_u64(data: Bytes, p: int) -> np.uint64:
    """The eight bytes from p on as one little-endian word; compiles to one load, because positions are unsigned."""
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
    """The value of the first n < 8 bytes, all of them digits."""
    # Three multiplications combine digits to pairs, pairs to fours, fours to eight (Lemire, Number Parsing at a
    # Gigabyte per Second, 2021).
    digits = ((eight_bytes ^ ZEROS) << (EIGHT * (SEVEN - n))) << EIGHT
    pairs = digits * Word(10) + (digits >> EIGHT)
    return ((pairs & PAIRS) * HUNDREDS + ((pairs >> Word(16)) & PAIRS) * UNITS) >> Word(32)


@jit
def append_digits(mantissa: np.uint64, m: int, one: np.uint64, two: np.uint64) -> np.uint64:
    """Appends m digits to a number: the first seven of word `one`, the others of word `two`."""
    n = min(m, WORD_DIGITS)
    mantissa = mantissa * WHOLE_POWERS[Word(n)] + parse_digits(one, Word(n))
    n = m - n
    return Word(mantissa * WHOLE_POWERS[Word(n)] + parse_digits(two, Word(n)))


@jit
def scale_certainly(mantissa: np.uint64, power: int) -> tuple[float, bool]:
    """Computes mantissa · 10^power and tells whether it is certainly right, rounded to 32 bits."""
    value = float(np.int64(mantissa)) * POWERS[max(power, 0)] / POWERS[max(-power, 0)]  # one of them is 1
    if mantissa <= EXACT_WHOLE and -22 <= power <= 22:
        return value, True
    # Otherwise certain if both ends of the error interval round to the same 32-bit number, as in `round_to_single`.
    return value, value <= LARGEST and np.float32(value * (1.0 - SLACK)) == np.float32(value * (1.0 + SLACK))
