"""Constants of the text parser's kernels, and kernels that find the ends of words and lines."""

import numpy as np
import numpy.typing as npt

from ranktron.kernels.jit import jit

Bytes = npt.NDArray[np.uint8]

LINE_FEED, RETURN, TAB, SPACE, HASH, COLON = 10, 13, 9, 32, 35, 58
PLUS, MINUS, DOT, ZERO, EQUALS, LETTER_E = 43, 45, 46, 48, 61, 101
LARGEST_INDEX = 2**24
ROOM = 10**17
POWERS = np.array([float(f"1e{k}") for k in range(301)])
LARGEST = float(np.finfo(np.float32).max)

# How sure a number is: not one at all, correct to the last bit of a double, off by a few bits, or not computed.
NONE, EXACT, NEAR, UNKNOWN = 0, 1, 2, 3
SLACK = 2.0**-49

# What was wrong with a line.
FINE, LABEL, NEGATIVE, QID, ID_COMMENT, INDEX, VALUE, TOO_LARGE, TWICE, BEYOND, BELOW, NULL, NOT_TEXT = range(13)


@jit
def line_ends(data: Bytes, p: int) -> bool:
    """Whether the line ends at p."""
    return bool(data[p] == LINE_FEED or (data[p] == RETURN and data[p + 1] == LINE_FEED))


@jit
def stops(data: Bytes, p: int) -> bool:
    """Whether a word ends at p."""
    return data[p] in (SPACE, LINE_FEED, TAB, HASH) or line_ends(data, p)


@jit
def skip_blanks(data: Bytes, p: int) -> int:
    """Finds the next byte that is neither space nor tab."""
    while data[p] == SPACE or data[p] == TAB:
        p += 1
    return p


@jit
def skip_line(data: Bytes, p: int) -> int:
    """Finds the start of the next line."""
    while data[p] != LINE_FEED:
        p += 1
    return p + 1
