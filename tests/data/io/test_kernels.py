"""Each kernel equals its own Python."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktron.data.io import decimals, grouping, letor_kernels, writing
from ranktron.data.io.letor_simd import bytes_above, bytes_equal, count_bits, lowest_bit, non_digits
from ranktron.kernels.jit import jit

TEXT = (
    b"1 qid:a 1:0.5 2:-12.25 3:7 4:1e3 5:NULL # docid = D\r\n\n 0 qid:b 3:0.30000000000000004 1:2\t# \n2 qid:b 2:7 \n"
)
DATA = np.frombuffer(TEXT + b" " * 80 + b"\n", np.uint8)
EVERYWHERE = range(len(TEXT))


def same(kernel, *arguments):
    with np.errstate(over="ignore"):
        expected = kernel.py_func(*arguments)
    np.testing.assert_equal(kernel(*arguments), expected)


@pytest.mark.parametrize(
    "kernel",
    [
        letor_kernels.at_line_end,
        letor_kernels.at_word_end,
        letor_kernels.skip_blanks,
        letor_kernels.skip_line,
        decimals.parse_exponent,
        decimals.parse_decimal,
        letor_kernels.is_null,
        letor_kernels.starts_qid,
        letor_kernels.word_end,
        letor_kernels.comment_word,
        letor_kernels.comment_docid,
        letor_kernels.parse_index,
        decimals.load_u64,
    ],
)
def test_kernels_of_a_position(kernel):
    for p in EVERYWHERE:
        same(kernel, DATA, p)


def test_line_counts_and_index_ranges():
    for kernel in (letor_kernels.count_lines, letor_kernels.index_range):
        for start in EVERYWHERE[:20]:
            same(kernel, DATA, start, len(TEXT))


@given(
    st.lists(
        st.sampled_from([b"1", b"07", b"12", b"0", b"999", b":", b":1 ", b" ", b"\t", b"#", b"\n", b"q"]), max_size=99
    )
)
def test_the_index_range_is_that_of_the_numbers_before_colons(words):
    text = b"1 qid:1 1:1" + b"".join(words) + b"\n"
    found = [int(n) for line in text.splitlines() for n in re.findall(rb"(?<=[ \t])\d+(?=:)", line.partition(b"#")[0])]
    expected = [n for n in found if n <= letor_kernels.LARGEST_INDEX]
    data = np.frombuffer(text, np.uint8)
    for kernel in (letor_kernels.index_range, letor_kernels.index_range.py_func):
        assert kernel(data, 0, len(text)) == (min(expected), max(expected))
    assert letor_kernels.count_lines(data, 3, len(text)) == text.count(b"\n", 3)


@jit
def masks(data, p):
    found = non_digits(data, p)
    return found, bytes_equal(data, p, 58), bytes_above(data, p, 53), lowest_bit(found), count_bits(found)


@given(st.lists(st.sampled_from(b"0123456789:/.x"), min_size=40, max_size=40), st.integers(0, 8))
def test_masks_of_bytes(content, p):
    data = np.array(content, np.uint8)
    same(masks, data, p)
    others = [i for i in range(32) if not chr(content[p + i]).isdigit()]
    assert masks(data, p)[0] == sum(2**i for i in others)
    assert masks(data, p)[3:] == (others[0] if others else 64, len(others))


@given(st.binary(min_size=8, max_size=8) | st.from_regex(rb"[0-9]{0,8}[ .x]{8}", fullmatch=True))
def test_eight_digits_at_a_time(content):
    word = np.uint64(int.from_bytes(content[:8], "little"))
    same(decimals.leading_digits, word)
    digits = len(content[:8]) - len(content[:8].lstrip(b"0123456789"))
    assert decimals.leading_digits(word) == min(digits, 7)
    n = min(digits, 7)
    same(decimals.parse_digits, word, np.uint64(n))
    assert decimals.parse_digits(word, np.uint64(n)) == int(content[:n] or b"0")


@given(st.integers(0, 10**18), st.integers(-400, 400), st.booleans())
def test_scaling(mantissa, exponent, whole):
    same(decimals.scale_decimal, mantissa, exponent, whole)
    value, sure = decimals.scale_decimal(mantissa, exponent, whole)
    if sure == 1 and mantissa:
        assert value == float(f"{mantissa}e{exponent}")
    same(decimals.round_to_single, value, sure)


def parsed(kernel):
    table = {
        "X": np.full((4, 5), 9, np.float32),
        "labels": np.full(4, 9.0),
        "spans": np.zeros((4, 4), np.int64),
        "stamps": np.full(5, -1),
        "tags": letor_kernels.make_tags(1, 5),
        "slow": np.zeros((30, 4), np.int64),
    }
    result = kernel(DATA, 0, len(TEXT), 1, False, np.nan, *table.values())
    return result, table


def test_lines():
    (result, table), (expected, plain) = parsed(letor_kernels.parse_lines), parsed(letor_kernels.parse_lines.py_func)
    assert result == expected == (0, len(TEXT), 3, 0)
    for name, array in table.items():
        np.testing.assert_array_equal(array, plain[name])
    for kernel in (letor_kernels.copy_ids, letor_kernels.copy_ids.py_func):
        letters = np.zeros((3, 1), np.uint32)
        assert kernel(DATA, table["spans"][:3], letters)
        assert letters.view("U1").tolist() == [["D"], [""], [""]]
    for kernel in (letor_kernels.find_query_starts, letor_kernels.find_query_starts.py_func):
        starts = np.full(3, -1)
        assert kernel(DATA, table["spans"][:3], starts) == 2
        assert starts.tolist() == [0, 1, -1]


def test_parts_of_a_line():
    for p in EVERYWHERE:
        for kernel in (letor_kernels.parse_document, letor_kernels.parse_document.py_func):
            same_tables(kernel, p)


def same_tables(kernel, p):
    labels, spans, slow = np.zeros(1), np.zeros((1, 4), np.int64), np.zeros((9, 4), np.int64)
    result = kernel(DATA, p, False, labels, spans, 0, slow, 0)
    again = np.zeros(1), np.zeros((1, 4), np.int64), np.zeros((9, 4), np.int64)
    assert result == letor_kernels.parse_document(DATA, p, False, again[0], again[1], 0, again[2], 0)
    np.testing.assert_equal((labels, spans, slow), again)


@pytest.mark.parametrize("name", ["parse_features", "parse_common_pairs", "claim_column"])
def test_kernels_that_fill_a_row(name):
    outcomes = []
    for kernel in (ROW_KERNELS[name], ROW_KERNELS[name].py_func):
        for p in EVERYWHERE:
            row, stamps, slow = np.full(5, 9, np.float32), np.array([7, -1, -1, 7, -1]), np.zeros((9, 4), np.int64)
            tags = letor_kernels.make_tags(1, 5)
            arguments = {
                "parse_features": (DATA, p, 1, np.nan, row, stamps, 0, tags, slow, 0),
                "parse_common_pairs": (DATA, p, -1, 1, row, stamps, 0, tags),
                "claim_column": (row, stamps, 7, p % 3, p % 5),
            }
            with np.errstate(over="ignore"):
                outcomes.append((kernel(*arguments[name]), row, stamps, slow))
    half = len(outcomes) // 2
    np.testing.assert_equal(outcomes[:half], outcomes[half:])


ROW_KERNELS = {
    "parse_features": letor_kernels.parse_features,
    "parse_common_pairs": letor_kernels.parse_common_pairs,
    "claim_column": letor_kernels.claim_column,
}


@pytest.mark.parametrize("mean", [True, False])
def test_filling_nulls(mean):
    X = np.array([[1, np.nan], [np.nan, np.nan], [3, 4], [np.nan, 2]], np.float32)
    plain, offsets = X.copy(), np.array([0, 3, 4])
    grouping.fill_nulls(X, offsets, mean)
    grouping.fill_nulls.py_func(plain, offsets, mean)
    assert X.tolist() == plain.tolist() == [[1, 4], [2 if mean else 1, 4], [3, 4], [0, 2]]


@given(st.permutations(range(9)))
def test_rearranging_in_place(rows):
    X = np.arange(18, dtype=np.float32).reshape(9, 2)
    compiled, plain = X.copy(), X.copy()
    grouping.rearrange(compiled, np.array(rows))
    grouping.rearrange.py_func(plain, np.array(rows))
    assert compiled.tolist() == plain.tolist() == X[rows].tolist()


def test_lines_are_laid_out():
    rounds = writing.pack_words([b"0 qid:a", b"1 qid:bb"]), writing.pack_words([b" 1:", b" 2:"])
    tails = writing.pack_words([b" # x\n", b"\n"])
    values, words = np.array([0.5, 1.0, 1e9, -2.25], np.float32), writing.pack_words([b"1e+09"])
    for write in (writing.write_rows, writing.write_rows.py_func):
        out = np.zeros(60, np.uint8)
        end = write(*rounds[0], *rounds[1], values, np.array([2, -1]), *words, *tails, out)
        assert out[:end].tobytes() == b"0 qid:a 1:0.5 2:1 # x\n1 qid:bb 1:1e+09 2:-2.25\n"


def test_the_kernel_that_writes_numbers():
    """As plain Python; tests of writing compare it with numpy."""
    values = np.array([0.0, -0.0, 0.1, 1.5, -835.0, 0.00012345678, 999999.94, 2.0**-9, 1e-4, 1e6, np.nan], np.float32)
    usual = ~writing.needs_numpy(values, values.view(np.int32))
    same(writing.needs_numpy, values, values.view(np.int32))
    assert usual.tolist() == [True] * 7 + [False] * 4
    for value in values[usual]:
        for write in (writing.write_number, writing.write_number.py_func):
            out = np.empty(20, np.uint8)
            assert out[: write(value, out, 0)].tobytes().decode() == str(value).removesuffix(".0")


LONG = [
    "0.123456789", "-12.34567890123", "0.12345678901234567", "1234567.12345678901", "1e5", "1.5e-05", "-2.25E+3",
    "1.2345678e-38", "1e-45", "1e-46", "0.99999999999999999", "1.0e05", "0.1e-99",
]  # fmt: skip
LEFT = [
    "123456789.5", "0.1234567890123456789", "3.4028235e38", "16777217", "1.00000005960464478", "7e99", "1e", "1e+",
    "1e-", "1.000000059604644775390625", "1e100", "1.5.5", ".5",
]  # fmt: skip


@pytest.mark.parametrize("text", [*LONG, *LEFT])
def test_long_decimals_and_exponents_are_rounded_correctly_or_left_to_the_other_kernel(text):
    line = f"0 qid:1 1:1 2:{text} 3:{text} 4:2 5:1 \n".encode() + b" " * 70 + b"\n"
    data, row, stamps = np.frombuffer(line, np.uint8), np.full(5, 9.0, np.float32), np.full(5, -1)
    last, p = letor_kernels.parse_common_pairs(data, 8, -1, 1, row, stamps, 0, letor_kernels.make_tags(1, 5))
    if text in LEFT:
        assert (last, line[p : p + 2]) == (0, b"2:")
    else:
        assert (last, line[p : p + 1]) == (4, b"\n")
        assert row.tolist() == [1.0, np.float32(float(text)), np.float32(float(text)), 2.0, 1.0]
