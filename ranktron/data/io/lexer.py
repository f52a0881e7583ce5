"""The kernels that know where a word and a line end."""

from ranktron.data.io.symbols import HASH, LINE_FEED, RETURN, SPACE, TAB, Bytes
from ranktron.kernels.jit import kernel


@kernel
def ends(data: Bytes, p: int) -> bool:
    """Says whether the line is over at p."""
    return bool(data[p] == LINE_FEED or (data[p] == RETURN and data[p + 1] == LINE_FEED))


@kernel
def stops(data: Bytes, p: int) -> bool:
    """Says whether a word is over at p."""
    return data[p] in (SPACE, LINE_FEED, TAB, HASH) or ends(data, p)


@kernel
def skip_blanks(data: Bytes, p: int) -> int:
    """Finds the next byte that is neither space nor tab."""
    while data[p] == SPACE or data[p] == TAB:
        p += 1
    return p


@kernel
def skip_line(data: Bytes, p: int) -> int:
    """Finds the start of the next line."""
    while data[p] != LINE_FEED:
        p += 1
    return p + 1
