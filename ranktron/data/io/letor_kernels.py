"""Kernels that parse LETOR text.

One document is one line, `label qid:ID index:value index:value ... # comment`. Every kernel takes the bytes and a
position and relies on the last byte being a line feed, so that no loop has to check for the end of the buffer.

`parse_common_pairs` parses common lines fast, eight bytes at a time, and stops at anything that does not have the
common form, which `parse_features` then parses byte by byte.
"""

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ranktron.data.io.decimals import (
    DOT,
    EXACT,
    LETTER_E,
    MINUS,
    NONE,
    ONE,
    PLUS,
    POWERS,
    WHOLE_POWERS,
    WORD_DIGITS,
    ZERO,
    Bytes,
    Word,
    append_digits,
    leading_digits,
    load_u64,
    parse_decimal,
    parse_digits,
    round_to_single,
    scale_certainly,
)
from ranktron.data.io.letor_simd import REACH, bytes_above, bytes_equal, count_bits, lowest_bit, non_digits
from ranktron.kernels.csr import Columns, Values
from ranktron.kernels.jit import jit
from ranktron.types import Floats, Integers, Matrix

Words = npt.NDArray[np.uint64]

LINE_FEED, RETURN, TAB, SPACE, HASH, COLON, EQUALS = 10, 13, 9, 32, 35, 58, 61
LARGEST_INDEX = 2**24

# Error codes of a line.
FINE, LABEL, NEGATIVE, QID, ID_COMMENT, INDEX, VALUE, TOO_LARGE, TWICE, BEYOND, BELOW, NULL, NOT_TEXT = range(13)

LOOKAHEAD = 64  # bytes of a pair `index:value`, or fewer
MAX_DIGITS = 18  # that an integer of 64 bits holds for certain
MAX_TAGS = 100_000


@jit
def at_line_end(data: Bytes, p: int) -> bool:
    """Whether the line ends at p."""
    return bool(data[p] == LINE_FEED or (data[p] == RETURN and data[p + 1] == LINE_FEED))


@jit
def at_word_end(data: Bytes, p: int) -> bool:
    """Whether a word ends at p."""
    return data[p] in (SPACE, LINE_FEED, TAB, HASH) or at_line_end(data, p)


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


@jit
def is_null(data: Bytes, p: int) -> bool:
    """Whether the word NULL is at p."""
    null = data[p] == 78 and data[p + 1] == 85 and data[p + 2] == 76 and data[p + 3] == 76
    return bool(null) and at_word_end(data, p + 4)


@jit
def starts_qid(data: Bytes, p: int) -> bool:
    """Whether `qid:` is at p."""
    return bool(data[p] == 113 and data[p + 1] == 105 and data[p + 2] == 100 and data[p + 3] == COLON)


@jit
def word_end(data: Bytes, p: int) -> int:
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
    return start, end if at_line_end(data, skip_blanks(data, end)) else start


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
def parse_index(data: Bytes, p: int) -> tuple[int, int]:
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
def claim_column(row: Matrix, stamps: Integers, stamp: int, last: int, column: int) -> bool:
    """Prepares a row for a value, with zeros for omitted features; False if the feature has a value already."""
    if column <= last:
        if stamps[column] == stamp:
            return False
    else:
        for j in range(last + 1, column):
            row[j] = 0.0
    stamps[column] = stamp
    return True


@jit
def parse_common_pairs(
    data: Bytes, p: int, last: int, first: int, row: Matrix, stamps: Integers, stamp: int, tags: Words
) -> tuple[int, int]:
    """Parses `index:value ` repeatedly while indices ascend and values look like 12, 0.25, -3.5 or 1.5e-05.

    Returns the last feature and the position after it. The loop calls no kernel that takes an array, because numba's
    reference counting of arrays would cost as much as parsing a number.
    """
    end = data.shape[0] - LOOKAHEAD
    while last + 1 < tags.shape[0] and p < end:
        column, index = last + 1, load_u64(data, p)
        if index & tags[Word(column), ONE] == tags[Word(column), Word(0)]:
            q = p + int(np.int64(tags[Word(column), Word(2)]))
        else:
            length = leading_digits(index)
            column = int(parse_digits(index, length)) - first
            q = p + int(np.int64(length)) + 1
            if length == 0 or data[Word(q - 1)] != COLON or column <= last or column >= row.shape[0]:
                break
        # The next number depends only on where this one ends, which one mask tells.
        negative = data[Word(q)] == MINUS
        others = Word(non_digits(data, q)) & ~Word(negative)
        ends = others & ~Word(bytes_equal(data, q, DOT))
        dots = others & ~ends & (ends - ONE)  # those before the end of the number
        stop, dot, n = lowest_bit(ends), dots != 0, lowest_bit(others) - negative
        m = stop - negative - n - dot
        if n == 0 or n > WORD_DIGITS or m > 3 * WORD_DIGITS or (m == 0 and dot) or dots & (dots - ONE) != 0:
            break
        low, k = q + negative + n + 1, min(m, WORD_DIGITS)
        mantissa = parse_digits(load_u64(data, q + negative), Word(n)) * WHOLE_POWERS[Word(k)]
        mantissa += parse_digits(load_u64(data, low), Word(k))
        if m > WORD_DIGITS:
            if mantissa >= WHOLE_POWERS[Word(MAX_DIGITS + WORD_DIGITS - m)]:
                break
            one, two = load_u64(data, low + WORD_DIGITS), load_u64(data, low + 2 * WORD_DIGITS)
            mantissa = append_digits(mantissa, m - WORD_DIGITS, one, two)
        q += stop
        ended = data[Word(q)]
        if m <= WORD_DIGITS and (ended == SPACE) | (ended == LINE_FEED):
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
                tens = int(np.int64(parse_digits(load_u64(data, q + 1 + signed), Word(n))))
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
    tags = np.empty((min(width, MAX_TAGS), 3), np.uint64)
    for column in range(len(tags)):
        tag = b"%d:" % (first + column)
        tags[column] = int.from_bytes(tag, "little"), (1 << 8 * len(tag)) - 1, len(tag)
    return tags


@jit
def parse_features(
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
    """Parses `index:value ...` into one row: (error code, its position or the end, slow numbers)."""
    last = -1
    while True:
        last, p = parse_common_pairs(data, skip_blanks(data, p), last, first, row, stamps, stamp, tags)
        p = skip_blanks(data, p)
        if data[p] == HASH or at_line_end(data, p):
            break
        index, q = parse_index(data, p)
        if index < 0 or index > LARGEST_INDEX or data[q] != COLON:
            return INDEX, p, n
        column = index - first
        if column < 0:
            return BELOW, p, n
        if column >= row.shape[0]:
            return BEYOND, p, n
        if not claim_column(row, stamps, stamp, last, column):
            return TWICE, p, n
        last = max(last, column)
        p = q + 1
        value, sure, q = parse_decimal(data, p)
        if sure != NONE and at_word_end(data, q):
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
    """Parses `label qid:ID`, up to the features: (error code, its position or the end, slow numbers)."""
    value, sure, q = parse_decimal(data, p)
    if sure == NONE or not at_word_end(data, q):
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
        q = word_end(data, p + 4)
        if q == p + 4 or after_hash or not at_word_end(data, q):
            return QID, p, n
        spans[i, 0], spans[i, 1] = p + 4, q
        p = q
    elif not after_hash:
        return QID, p, n
    return FINE, p, n


@jit
def parse_comment(data: Bytes, p: int, after_hash: bool, spans: Integers, i: int) -> int:
    """Finds the document id, or the query id if it is after the hash, in the comment at p: an error code."""
    if after_hash:
        spans[i, 0], spans[i, 1] = comment_word(data, p) if data[p] == HASH else (p, p)
        if spans[i, 0] == spans[i, 1]:
            return ID_COMMENT
        spans[i, 2] = spans[i, 3] = 0
    else:
        spans[i, 2], spans[i, 3] = comment_docid(data, p) if data[p] == HASH else (0, 0)
    return FINE


@jit
def parse_lines(
    data: Bytes, p: int, end: int, first: int, after_hash: bool, null: float,
    X: Matrix, labels: Floats, spans: Integers, stamps: Integers, tags: Words, slow: Integers,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Parses the lines from p to end into the rows of X: (error code, position, rows, slow numbers).

    `spans` gets the start and end of each query id and document id. `stamps`, -1 at first, has for each feature the
    last row with a value. `slow` gets the numbers left to Python (row, column or -1 for the label, start, end); when it
    is nearly full the kernel stops between two lines.
    """
    i, n = 0, 0
    room = slow.shape[0] - X.shape[1] - 1
    while p < end and n <= room:
        p = skip_blanks(data, p)
        if data[p] != HASH and not at_line_end(data, p):
            code, p, n = parse_document(data, p, after_hash, labels, spans, i, slow, n)
            if code == FINE:
                code, p, n = parse_features(data, p, first, null, X[i], stamps, i, tags, slow, n)
            if code == FINE:
                code = parse_comment(data, p, after_hash, spans, i)
            if code != FINE:
                return code, p, i, n
            i += 1
        p = skip_line(data, p)
    return FINE, p, i, n


@jit
def parse_entries(
    data: Bytes, p: int, first: int, width: int, null: float, columns: Columns, values: Values, at: int,
    stamps: Columns, stamp: int, slow: Integers, n: int,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Parses `index:value ...` of one line: (error code, its position or the end, the next entry, slow numbers)."""
    while True:
        p = skip_blanks(data, p)
        if data[p] == HASH or at_line_end(data, p):
            return FINE, p, at, n
        index, q = parse_index(data, p)
        if index < 0 or index > LARGEST_INDEX or data[q] != COLON:
            return INDEX, p, at, n
        column = index - first
        if column < 0 or column >= width or stamps[column] == stamp:
            return (BELOW if column < 0 else BEYOND if column >= width else TWICE), p, at, n
        stamps[column] = stamp
        p = q + 1
        value, sure, q = parse_decimal(data, p)
        columns[at] = column
        if sure != NONE and at_word_end(data, q):
            values[at], certain = round_to_single(value, sure)
            if not certain:
                slow[n, 0], slow[n, 1], slow[n, 2], slow[n, 3] = stamp, at, p, q
                n += 1
        elif is_null(data, p):
            if null < 0.0:
                return NULL, p, at, n
            values[at] = null
            q = p + 4
        else:
            return VALUE, p, at, n
        at += 1
        p = q


@jit
def parse_sparse_lines(
    data: Bytes, p: int, end: int, first: int, width: int, after_hash: bool, null: float,
    rows: tuple[Integers, Columns, Values], labels: Floats, spans: Integers, stamps: Columns, slow: Integers,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Parses the lines from p to end into sparse rows: (error code, position, rows, slow numbers)."""
    starts, columns, values = rows
    i, at, n = 0, 0, 0
    while p < end:
        p = skip_blanks(data, p)
        if data[p] != HASH and not at_line_end(data, p):
            code, p, n = parse_document(data, p, after_hash, labels, spans, i, slow, n)
            if code == FINE:
                code, p, at, n = parse_entries(data, p, first, width, null, columns, values, at, stamps, i, slow, n)
            if code == FINE:
                code = parse_comment(data, p, after_hash, spans, i)
            if code != FINE:
                return code, p, i, n
            i += 1
            starts[i] = at
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
def index_range(data: Bytes, start: int, end: int) -> tuple[int, int]:
    """The smallest and the largest feature index, the numbers before colons: (-1, -1) if there are none."""
    low, high, p, digits = -1, -1, start, 0
    while p < end:
        after = p + REACH
        if after <= end:
            colons = Word(bytes_equal(data, p, COLON))
            if 0 <= low <= 1 and p - digits > start:
                colons &= new_extremes(data, p, high, digits)
            colons |= Word(bytes_equal(data, p, HASH))
        else:
            after, colons = p + 1, Word(data[p] == COLON or data[p] == HASH)
        while colons != 0:
            at = p + lowest_bit(colons)
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
            colons &= colons - Word(1)
        p = after
    return low, high


@jit
def new_extremes(data: Bytes, p: int, high: int, digits: int) -> np.uint64:
    """Candidates for new extremes: bit i is set if the index before byte p + i may be 0 or above `high`."""
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
    """The feature index before a colon, at `start` or later; -1 if it is missing or too large."""
    index, scale, p = 0, 1, colon - 1
    while p >= start and ZERO <= data[p] <= ZERO + 9:
        if index <= LARGEST_INDEX:
            index += (int(data[p]) - ZERO) * scale
            scale = min(scale * 10, 10 * LARGEST_INDEX)
        p -= 1
    valid = p >= start and p < colon - 1 and data[p] in (SPACE, TAB) and index <= LARGEST_INDEX
    return index if valid else -1


@jit
def find_query_starts(data: Bytes, spans: Integers, starts: Integers) -> int:
    """Finds the rows whose query id differs from that of the previous row; returns their number."""
    n = 0
    for i in range(spans.shape[0]):
        same = i > 0 and spans[i, 1] - spans[i, 0] == spans[i - 1, 1] - spans[i - 1, 0]
        if same:
            for k in range(spans[i, 1] - spans[i, 0]):
                if data[spans[i, 0] + k] != data[spans[i - 1, 0] + k]:
                    same = False
                    break
        if not same:
            starts[n] = i
            n += 1
    return n


@jit
def copy_ids(data: Bytes, spans: Integers, letters: npt.NDArray[np.uint32]) -> bool:
    """Copies each document id into a row of characters; False if one is not ASCII."""
    for i in range(spans.shape[0]):
        for k in range(spans[i, 3] - spans[i, 2]):
            letters[i, k] = data[spans[i, 2] + k]
            if letters[i, k] > 127:
                return False
    return True


@jit
def count_entries(data: Bytes, start: int, end: int) -> int:
    """Counts the colons from start to end, an upper bound on the number of entries."""
    total = 0
    for p in range(start, end):
        total += data[p] == COLON
    return total
