"""Large CSV files are parsed by a kernel, and come out to the bit as pyarrow parses them."""

import numpy as np
import pytest

from ranktron.data import io
from ranktron.data.io import plain_csv
from ranktron.data.io.plain_csv import count_plain_lines
from ranktron.errors import DataError, RankingWarning

pytest.importorskip("pyarrow")

HEAD = "label,qid,note,doc,a,b,c"
USUAL = ["0", "7", "-0", "0.25", "-3.5", "1234567.1234567", "000.50", "-1.5e-05", "2E3", "1e+2"]
LONG = ["12345678", "0.123456789012345678", "1.00000019", "33554431.5"]
ROUNDED = [
    "16777217.000000001",
    "1.00000017881393432617187499",
    "1.000000059604644775390625",
    "9007199254740993",
    "1.0000000596046447753906250000001",
    "0.1000000014901161194",
]


@pytest.fixture
def parsed(monkeypatch):
    """Of each block that the kernel was given, whether it took it."""
    taken, parse = [], plain_csv.PlainCsv.parse

    def spy(self, block, X):
        found = parse(self, block, X)
        taken.append(found is not None)
        return found

    monkeypatch.setattr(plain_csv.PlainCsv, "parse", spy)
    monkeypatch.setattr("ranktron.data.io.streaming.BLOCK", 2048)
    monkeypatch.setattr("ranktron.data.io.table_sources.LARGE_CSV", 0)
    return taken


@pytest.fixture
def both(tmp_path, monkeypatch, parsed):
    """Reads text as a large file and as a small one: the kernel's rounds and pyarrow's, or the errors of both."""

    def read(text, **options):
        path = tmp_path / "a.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        found = []
        for large in (0, 1 << 40):
            monkeypatch.setattr("ranktron.data.io.table_sources.LARGE_CSV", large)
            try:
                found.append(io.read(path, **options))
            except DataError as error:
                found.append(str(error))
        return found

    return read


def same(ours, theirs):
    assert ours.X.tobytes() == theirs.X.tobytes()
    assert ours.labels.tobytes() == theirs.labels.tobytes()
    assert (ours.qids.dtype, ours.qids.tolist()) == (theirs.qids.dtype, theirs.qids.tolist())
    assert ours.offsets.tolist() == theirs.offsets.tolist()
    assert (ours.docids is None) == (theirs.docids is None)
    if ours.docids is not None:
        assert (ours.docids.dtype, ours.docids.tolist()) == (theirs.docids.dtype, theirs.docids.tolist())
    return True


def lines(n=600, cells=("0.5", "-1", "2.25"), note="x"):
    return [f"{i % 3},q{i // 20},{note},d{i},{','.join(cells)}" for i in range(n)]


def text(rows, end="\n"):
    return end.join([HEAD, *rows]) + end


@pytest.mark.parametrize("number", USUAL + LONG)
def test_the_kernel_takes_every_usual_number_and_gives_the_bits_of_pyarrow(both, parsed, number):
    assert same(*both(text(lines(cells=(number, "1", number))), drop="note"))
    assert len(parsed) > 3
    assert all(parsed)


@pytest.mark.parametrize("number", [*ROUNDED, "1.", ".5", " 1", "1 ", "1e-320", "1e-46", "1e38", "123456789e-300"])
def test_what_the_kernel_is_not_sure_of_has_the_bits_of_pyarrow(both, parsed, number):
    rows = lines()
    rows[300:] = lines(cells=(number, "1", "2"))[300:]
    assert same(*both(text(rows), drop="note"))
    assert any(parsed)


def test_numbers_of_all_kinds_in_any_mixture(both, parsed):
    rng = np.random.default_rng(0)
    for scale in (1.0, 1e-6, 1e9):
        kinds = ("{!r}", "{:.4f}", "{:.9g}", "{:.3e}", "{:.0f}", "{:.17g}")
        numbers = [
            kinds[k].format(v)
            for k, v in zip(rng.integers(6, size=6000), rng.normal(0, scale, 6000).tolist(), strict=True)
        ]
        rows = [f"{i % 5},{i // 9},n,d{i},{','.join(numbers[3 * i : 3 * i + 3])}" for i in range(2000)]
        assert same(*both(text(rows), drop="note"))
    assert sum(parsed) > 0.9 * len(parsed)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators_and_ends_of_lines(both, parsed, separator, end):
    content = text(lines(), end).replace(",", separator)
    for given in (content, content.removesuffix(end)):
        assert same(*both(given, drop="note"))
    assert all(parsed)


@pytest.mark.parametrize("note", ["", "Größe", "a b", "'", "NULL"])
def test_columns_that_are_left_out_may_hold_anything(both, parsed, note):
    assert same(*both(text(lines(note=note)), drop="note"))
    assert all(parsed)


def test_columns_in_another_order_and_no_documents(both, parsed):
    assert same(*both(text(lines(cells=("1", "2", "3"))), features="c,a", drop=None))
    rows = [f"{i},{i % 2},q{i // 20},{i / 8}" for i in range(600)]
    assert same(*both("\n".join(["b,label,qid,a", *rows])))
    assert all(parsed)


@pytest.mark.parametrize("null", ["zero", "min", "mean", "nan"])
@pytest.mark.parametrize("empty", ["", "NULL", "nan"])
def test_empty_cells(both, parsed, null, empty):
    rows = lines(300) + lines(600, cells=("1", empty, empty))[300:]
    ours, theirs = both(text(rows), drop="note", null=null)
    assert same(ours, theirs)
    assert all(parsed) == (empty == "")


@pytest.mark.parametrize("at", [250, 599])
@pytest.mark.parametrize(
    "line",
    [
        "", "  ", "1,q12,x,d,1,2", "1,q12,x,d,1,2,3,4", "x,q12,x,d,1,2,3", "-1,q12,x,d,1,2,3", ",q12,x,d,1,2,3",
        "1,,x,d,1,2,3", "1,Größe,x,d,1,2,3", "1,q12,x,é,1,2,3", "1,q12,x,,1,2,3", "1,q12,x,d,1,,3",
        "1,q12,x,d,1,2,1e39", "1,q12,x,d,+1,2,3", "1,q12,x,d,0x1,2,3", "1,q12,x,d,1,nan,3", "1,q12,x,d,inf,2,3",
        "1,q12,x,d,1-,2,3", "1e400,q,x,d,1,2,3", "-,q,x,d,1,2,3",
        "1,q12,x,d,true,2,3", "1,q12,x,d,1.2.3,2,3", "0.1234567890123456789,q12,x,d,1,2,3", "1,q12,x\ry,d,1,2,3",
        "1,q12,x,d,1,2,3\r1,q12,x,d,4,5,6\r1,q12,x,d,7,8,9", '1,q12,"x,y",d,1,2,3', "1,q\x01,x,d,1,2,3",
    ],
)  # fmt: skip
def test_a_line_that_is_not_usual_is_read_or_refused_as_by_pyarrow(both, line, at):
    rows = lines()
    rows[at] = line
    for content in (text(rows), text(rows).encode("latin-1")):
        ours, theirs = both(content, drop="note")
        assert ours == theirs if isinstance(ours, str) or isinstance(theirs, str) else same(ours, theirs)


def test_a_column_of_words_for_true_and_false_is_left_to_pyarrow(both, parsed):
    rows = lines(cells=("true", "1", "2"))[:300] + lines(cells=("1", "1", "2"))[300:]
    assert same(*both(text(rows), drop="note"))
    assert not parsed


@pytest.mark.parametrize("width", [1, 60, 5000])
@pytest.mark.parametrize("last", [1, 100, 10_000])
def test_lines_and_blocks_of_any_length(both, parsed, monkeypatch, width, last):
    monkeypatch.setattr(plain_csv, "LAST", last)
    assert same(*both(text(lines(note="n" * width)), drop="note"))
    assert all(parsed)


def test_rounding_of_the_first_rows_is_warned_of(both):
    rows = [f"1,q,x,d{i},{17 * 10**11 + i},1,2" for i in range(600)]
    with pytest.warns(RankingWarning, match="'a' has values that differ and are equal in 32 bits"):
        assert same(*both(text(rows), drop="note"))


def test_line_feeds_are_counted_unless_there_are_quotes():
    rng = np.random.default_rng(0)
    for n in (0, 1, 31, 32, 33, 100, 1000):
        data = rng.choice(np.frombuffer(b"\n,0", np.uint8), n)
        assert count_plain_lines(data) == (data == 10).sum()
        if n:
            data[rng.integers(n)] = ord('"')
            assert count_plain_lines(data) == -1


def test_what_was_compiled_in_advance_is_what_a_large_file_needs(both, parsed):
    plain_csv.compile_parser()
    kernels = plain_csv.parse_plain_lines, plain_csv.count_plain_lines
    before = [list(kernel.signatures) for kernel in kernels]
    both(text(lines()), drop="note")
    assert len(parsed) > 3
    assert all(parsed)
    assert [kernel.signatures for kernel in kernels] == before
    assert len(before[0]) == 1  # nothing is compiled twice
