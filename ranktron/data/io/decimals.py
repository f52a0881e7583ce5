"""Kernels that parse a decimal number and tell whether the result is certainly correctly rounded."""

import numpy as np

from ranktron.data.io.lexer import (
    DOT,
    EXACT,
    LARGEST,
    LETTER_E,
    MINUS,
    NEAR,
    NONE,
    PLUS,
    POWERS,
    ROOM,
    SLACK,
    UNKNOWN,
    ZERO,
    Bytes,
)
from ranktron.kernels.jit import jit


@jit
def exponent_at(data: Bytes, p: int) -> tuple[int, int]:
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
        if mantissa < ROOM:
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
            if mantissa < ROOM:
                mantissa = mantissa * 10 + digit
                exponent -= 1
            else:
                whole = False
            p += 1
        digits += p - start
    if digits == 0:
        return 0.0, NONE, p
    if data[p] | 32 == LETTER_E:
        power, p = exponent_at(data, p + 1)
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
