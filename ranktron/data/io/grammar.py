"""Kernels that parse LETOR text.

One document is one line, `label qid:ID index:value index:value ... # comment`. Every kernel takes the bytes and a
position and relies on the last byte being a line feed, so that no loop has to check for the end of the buffer.
"""

import numpy as np
import numpy.typing as npt

from ranktron.data.io.bit_masks import REACH, bytes_above, bytes_equal, count_bits, lowest_bit, non_digits
from ranktron.data.io.decimals import parse_decimal, round_to_single
from ranktron.data.io.fast_path import Word, Words, usual
from ranktron.data.io.lexer import (
    BELOW,
    BEYOND,
    COLON,
    EQUALS,
    EXACT,
    FINE,
    HASH,
    ID_COMMENT,
    INDEX,
    LABEL,
    LARGEST_INDEX,
    LINE_FEED,
    MINUS,
    NEGATIVE,
    NONE,
    NULL,
    QID,
    SPACE,
    TAB,
    TWICE,
    VALUE,
    ZERO,
    Bytes,
    line_ends,
    skip_blanks,
    skip_line,
    stops,
)
from ranktron.kernels.jit import jit
from ranktron.types import Floats, Integers, Matrix


@jit
def is_null(data: Bytes, p: int) -> bool:
    """Whether the word NULL is at p."""
    null = data[p] == 78 and data[p + 1] == 85 and data[p + 2] == 76 and data[p + 3] == 76
    return bool(null) and stops(data, p + 4)


@jit
def starts_qid(data: Bytes, p: int) -> bool:
    """Whether `qid:` is at p."""
    return bool(data[p] == 113 and data[p + 1] == 105 and data[p + 2] == 100 and data[p + 3] == COLON)


@jit
def word(data: Bytes, p: int) -> int:
    """Finds the end of the word that starts at p."""
    while data[p] > SPACE and data[p] != HASH:
        p += 1
    return p


@jit
def comment_word(data: Bytes, p: int) -> tuple[int, int]:
    """Finds the only word of the comment that starts at p: (start, end), equal if there is not exactly one."""
    start = skip_blanks(data, p + 1)
    end = start
    while data[end] > SPACE:
        end += 1
    return start, end if line_ends(data, skip_blanks(data, end)) else start


@jit
def comment_docid(data: Bytes, p: int) -> tuple[int, int]:
    """Finds X of `docid = X` in the comment that starts at p: (start, end), equal if there is none."""
    while data[p] != LINE_FEED:
        if data[p] == 100 and data[p + 1] == 111 and data[p + 2] == 99 and data[p + 3] == 105 and data[p + 4] == 100:
            start = skip_blanks(data, p + 5)
            if data[start] == EQUALS:
                start = skip_blanks(data, start + 1)
                end = start
                while data[end] > SPACE:
                    end += 1
                return start, end
        p += 1
    return p, p


@jit
def name_by_comments(data: Bytes, spans: Integers) -> None:
    """Takes the first word of each row's comment as its document id, for texts without `docid =`."""
    for i in range(spans.shape[0]):
        p = spans[i, 1]
        while p < data.shape[0] and data[p] != HASH and data[p] != LINE_FEED:
            p += 1
        while p < data.shape[0] and (data[p] == HASH or data[p] == SPACE or data[p] == TAB):
            p += 1
        spans[i, 2] = p
        while p < data.shape[0] and data[p] > SPACE:
            p += 1
        spans[i, 3] = p


@jit
def index_at(data: Bytes, p: int) -> tuple[int, int]:
    """Parses a feature's index: (index, next position); -1 if there is none, and capped if it is too large."""
    index, start = 0, p
    while True:
        digit = int(data[p]) - ZERO
        if digit < 0 or digit > 9:
            break
        index = index * 10 + digit
        if index > LARGEST_INDEX:
            index = LARGEST_INDEX + 1
        p += 1
    return (index if p > start else -1), p


@jit
def place(row: Matrix, stamps: Integers, stamp: int, last: int, column: int) -> bool:
    """Prepares a row for a value: zeros for features that were left out; False if the feature has a value already."""
    if column <= last:
        if stamps[column] == stamp:
            return False
    else:
        for j in range(last + 1, column):
            row[j] = 0.0
    stamps[column] = stamp
    return True


@jit
def features(
    data: Bytes,
    p: int,
    first: int,
    null: float,
    row: Matrix,
    stamps: Integers,
    stamp: int,
    tags: Words,
    slow: Integers,
    n: int,
) -> tuple[int, int, int]:
    """Parses `index:value ...` into one row: (error code, its position or the end, numbers left to Python so far)."""
    last = -1
    while True:
        last, p = usual(data, skip_blanks(data, p), last, first, row, stamps, stamp, tags)
        p = skip_blanks(data, p)
        if data[p] == HASH or line_ends(data, p):
            break
        index, q = index_at(data, p)
        if index < 0 or index > LARGEST_INDEX or data[q] != COLON:
            return INDEX, p, n
        column = index - first
        if column < 0:
            return BELOW, p, n
        if column >= row.shape[0]:
            return BEYOND, p, n
        if not place(row, stamps, stamp, last, column):
            return TWICE, p, n
        last = max(last, column)
        p = q + 1
        value, sure, q = parse_decimal(data, p)
        if sure != NONE and stops(data, q):
            row[column], certain = round_to_single(value, sure)
            if not certain:
                slow[n, 0], slow[n, 1], slow[n, 2], slow[n, 3] = stamp, column, p, q
                n += 1
        elif is_null(data, p):
            if null < 0.0:
                return NULL, p, n
            row[column] = null
            q = p + 4
        else:
            return VALUE, p, n
        p = q
    for j in range(last + 1, row.shape[0]):
        row[j] = 0.0
    return FINE, p, n


@jit
def parse_document(
    data: Bytes, p: int, after_hash: bool, labels: Floats, spans: Integers, i: int, slow: Integers, n: int
) -> tuple[int, int, int]:
    """Parses `label qid:ID`, up to the features: (error code, its position or the end, numbers left to Python)."""
    value, sure, q = parse_decimal(data, p)
    if sure == NONE or not stops(data, q):
        return LABEL, p, n
    if value < 0.0 or (data[p] == MINUS and sure != EXACT):
        return NEGATIVE, p, n
    labels[i] = value
    if sure != EXACT:
        slow[n, 0], slow[n, 1], slow[n, 2], slow[n, 3] = i, -1, p, q
        n += 1
    p = skip_blanks(data, q)
    spans[i, 0] = spans[i, 1] = -1
    if starts_qid(data, p):
        q = word(data, p + 4)
        if q == p + 4 or after_hash or not stops(data, q):
            return QID, p, n
        spans[i, 0], spans[i, 1] = p + 4, q
        p = q
    elif not after_hash:
        return QID, p, n
    return FINE, p, n


@jit
def parse_lines(
    data: Bytes, p: int, end: int, i: int, first: int, after_hash: bool, null: float,
    X: Matrix, labels: Floats, spans: Integers, stamps: Integers, tags: Words, slow: Integers,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Parses the lines from p to end into the rows from i on: (error code, where it stopped, rows, slow numbers).

    `spans` gets the start and end of each query id and document id. `slow` gets the numbers left to Python (row,
    column or -1 for the label, start, end); when it is nearly full the kernel stops between two lines.
    """
    n = 0
    room = slow.shape[0] - X.shape[1] - 1
    while p < end and n <= room:
        p = skip_blanks(data, p)
        if data[p] != HASH and not line_ends(data, p):
            wrong, p, n = parse_document(data, p, after_hash, labels, spans, i, slow, n)
            if wrong != FINE:
                return wrong, p, i, n
            wrong, p, n = features(data, p, first, null, X[i], stamps, i, tags, slow, n)
            if wrong != FINE:
                return wrong, p, i, n
            if after_hash:
                spans[i, 0], spans[i, 1] = comment_word(data, p) if data[p] == HASH else (p, p)
                if spans[i, 0] == spans[i, 1]:
                    return ID_COMMENT, p, i, n
                spans[i, 2] = spans[i, 3] = 0
            else:
                spans[i, 2], spans[i, 3] = comment_docid(data, p) if data[p] == HASH else (0, 0)
            i += 1
        p = skip_line(data, p)
    return FINE, p, i, n


@jit
def count_lines(data: Bytes, start: int, end: int) -> int:
    """Counts the line feeds from start to end."""
    total, p = 0, start
    while p + REACH <= end:
        total += count_bits(bytes_equal(data, p, LINE_FEED))
        p += REACH
    while p < end:
        total += data[p] == LINE_FEED
        p += 1
    return total


@jit
def extent(data: Bytes, start: int, end: int) -> tuple[int, int]:
    """Finds the smallest and the largest feature index, the numbers before colons: (-1, -1) if there are none."""
    low, high, p, digits = -1, -1, start, 0
    while p < end:
        after = p + REACH
        if after <= end:
            found = Word(bytes_equal(data, p, COLON))
            if 0 <= low <= 1 and p - digits > start:
                found &= new_extremes(data, p, high, digits)
            found |= Word(bytes_equal(data, p, HASH))
        else:
            after, found = p + 1, Word(data[p] == COLON or data[p] == HASH)
        while found != 0:
            at = p + lowest_bit(found)
            if data[at] == HASH:
                after = skip_line(data, at)
                break
            index = index_before(data, start, at)
            if index >= 0:
                low = index if low < 0 else min(low, index)
                high = max(high, index)
                digits = max(digits, 1)
                while high >= 10**digits:
                    digits += 1
            found &= found - Word(1)
        p = after
    return low, high


@jit
def new_extremes(data: Bytes, p: int, high: int, digits: int) -> np.uint64:
    """Before which of the bytes from p on an index may be that is 0 or above `high`, which has so many digits."""
    whole, above, rest = ~Word(0), Word(0), high
    for k in range(1, digits + 1):
        digit = ZERO + rest % 10
        above = Word(bytes_above(data, p - k, digit)) | (Word(bytes_equal(data, p - k, digit)) & above)
        whole &= ~Word(non_digits(data, p - k))
        rest //= 10
    longer = ~Word(non_digits(data, p - digits - 1))
    zeros = Word(bytes_equal(data, p - 1, ZERO))
    before = Word(bytes_equal(data, p - 2, ZERO)) | Word(non_digits(data, p - 2))
    return Word((whole & (above | longer)) | (zeros & before))


@jit
def index_before(data: Bytes, start: int, colon: int) -> int:
    """The feature index before a colon, not before `start`; -1 if there is none, or if it is too large."""
    index, scale, p = 0, 1, colon - 1
    while p >= start and ZERO <= data[p] <= ZERO + 9:
        if index <= LARGEST_INDEX:
            index += (int(data[p]) - ZERO) * scale
            scale = min(scale * 10, 10 * LARGEST_INDEX)
        p -= 1
    found = p >= start and p < colon - 1 and data[p] in (SPACE, TAB) and index <= LARGEST_INDEX
    return index if found else -1


@jit
def heads(data: Bytes, spans: Integers) -> Integers:
    """Finds the rows whose query id differs from that of the previous row."""
    found = np.empty(spans.shape[0], np.int64)
    n = 0
    for i in range(spans.shape[0]):
        same = i > 0 and spans[i, 1] - spans[i, 0] == spans[i - 1, 1] - spans[i - 1, 0]
        if same:
            for k in range(spans[i, 1] - spans[i, 0]):
                if data[spans[i, 0] + k] != data[spans[i - 1, 0] + k]:
                    same = False
                    break
        if not same:
            found[n] = i
            n += 1
    return found[:n].copy()


@jit
def spell(data: Bytes, spans: Integers, letters: npt.NDArray[np.uint32]) -> bool:
    """Copies each document id into a row of characters; False if one is not ASCII."""
    for i in range(spans.shape[0]):
        for k in range(spans[i, 3] - spans[i, 2]):
            letters[i, k] = data[spans[i, 2] + k]
            if letters[i, k] > 127:
                return False
    return True
