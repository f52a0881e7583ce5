import gzip
import json
import sys

import numpy as np
import pytest

import ranktron
from ranktron.data import io
from ranktron.data.io.table_sources import CsvFile
from ranktron.errors import DataError, MissingExtra

arrow = pytest.importorskip("pyarrow")

CSV = "relevance,query_id,doc_id,price,age\n1,007,a,0.5,3\n0,007,b,1.5,4\n2,8,c,2,5\n"


def check(rounds):
    assert rounds.X.tolist() == [[0.5, 3], [1.5, 4], [2, 5]]
    assert rounds.labels.tolist() == [1, 0, 2]
    assert np.diff(rounds.offsets).tolist() == [2, 1]
    assert rounds.docids.tolist() == ["a", "b", "c"]
    assert rounds.feature_names == ("price", "age")


@pytest.fixture
def file(tmp_path):
    def write(content, name="a.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv(file, separator, end):
    content = CSV.replace(",", separator).replace("\n", end)
    for given in (content, "\ufeff" + content, content.rstrip()):
        rounds = io.read(file(given))
        check(rounds)
        assert rounds.qids.tolist() == ["007", "8"]  # text, as in LETOR: 007 is not 7
    assert [(round.qid, round.X.tolist()) for round in io.stream(file(content))] == [
        ("007", [[0.5, 3], [1.5, 4]]),
        ("8", [[2, 5]]),
    ]
    check(io.read(file(gzip.compress(content.encode()), "a.csv.gz")))


def test_quotes_and_line_feeds_in_values(file):
    rounds = io.read(file('label,query,a\n1,"red, or ""crimson""\nshoes",2\n0,"red, or ""crimson""\nshoes",3\n'))
    assert rounds.qids.tolist() == ['red, or "crimson"\nshoes']


def test_json_lines(file):
    lines = [
        {"relevance": 1, "query_id": 7, "doc_id": "a", "price": 0.5, "age": 3},
        {"relevance": 0, "query_id": 7, "doc_id": "b", "price": 1.5, "age": 4},
        {"relevance": 2, "query_id": 8, "doc_id": "c", "price": 2, "age": 5},
    ]
    text = "\n".join(map(json.dumps, lines))
    nested = [{**line, "f": {"price": line["price"], "age": line["age"]}} for line in lines]
    for line in nested:
        del line["price"], line["age"]
    for content in (text, text + "\n\n", json.dumps(lines), "\n".join(map(json.dumps, nested))):
        rounds = io.read(file(content, "a.jsonl"))
        check(rounds)
        assert rounds.qids.tolist() == [7, 8]
    assert [round.qid for round in io.stream(file(text, "a.jsonl"))] == [7, 8]


def test_a_number_may_become_a_fraction_and_a_key_may_be_missing_later_in_the_file(file, monkeypatch):
    monkeypatch.setattr("ranktron.data.io.table_sources.JSON_BLOCK", 64)
    lines = ['{"label": 1, "qid": 1, "a": 1}'] * 10 + ['{"label": 0, "qid": 1, "a": 0.5}', '{"label": 0, "qid": 1}']
    path = file("\n".join(lines), "a.jsonl")
    for how in (lambda: io.read(path, null="zero").X, lambda: next(io.stream(path, null="zero")).X):
        assert how()[:, 0].tolist() == [1] * 10 + [0.5, 0]
    path = file("\n".join([*lines, '{"label": 0, "qid": 1, "a": 1, "b": 2}']), "a.jsonl")
    assert io.read(path, null="zero").feature_names == ("a", "b")
    with pytest.raises(DataError, match=r"'b' is not among the keys .* `ranktron convert`"):
        list(io.stream(path, null="zero"))


def test_whole_numbers_in_the_first_block_of_csv_may_become_fractions(file):
    rows = ["1,1,3"] * 200_000 + ["0,1,0.25"]
    assert io.read(file("label,qid,a\n" + "\n".join(rows))).X[-1, 0] == 0.25


@pytest.mark.parametrize("suffix", ["arrow", "feather", "parquet"])
def test_arrow_files_of_others(tmp_path, suffix):
    polars = pytest.importorskip("polars")
    frame = polars.read_csv(CSV.encode())
    path = tmp_path / f"a.{suffix}"
    (frame.write_parquet if suffix == "parquet" else frame.write_ipc)(path)
    check(io.read(path))
    assert [round.qid for round in io.stream(path)] == [7, 8]


def test_frames(file):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = pandas.read_csv(file(CSV))
    lazy = polars.from_pandas(frame).lazy()
    for given in (frame, polars.from_pandas(frame), lazy, arrow.Table.from_pandas(frame), frame.set_index("query_id")):
        rounds = ranktron.read(given)
        check(rounds)
        assert rounds.qids.tolist() == [7, 8]
    shuffled = ranktron.read(frame.iloc[[2, 0, 1]])
    assert shuffled.qids.tolist() == [8, 7]
    text = frame.astype({"query_id": "category"})
    assert ranktron.read(text).qids.tolist() == [7, 8]
    with pytest.raises(DataError, match="expected numbers in column 'age', found dictionary"):
        ranktron.read(frame.astype({"age": "category"}))
    frame.loc[1, "price"] = None
    with pytest.raises(DataError, match="the pandas table: column 'price' is NULL in row 1"):
        ranktron.read(frame)
    assert ranktron.read(frame, null="mean").X[1, 0] == 0.5


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "label,qid,a,title\n1,1,2,red\n",
            "numbers in column 'title', found 'red' in line 2; .*--categorical auto.*--drop title",
        ),
        ("label,qid,a,b\n1,1,2,\n0,1,x,y\n", r"found 'x' in line 3 \(and not only numbers in b\);.*--drop a,b"),
        ("label,qid,a\n" + "1,1,2\n" * 200_000 + "1,1,red\n", "numbers in column 'a', found 'red' in line 200002"),
        ('label,qid,doc,a\n\n1,1,"two\nlines",2\n\n-1,1,b,2\n', "found -1.0 in line 6"),
        ("label;qid;a\n1;1;1,5\n", r"found '1,5' in line 2 \(decimals need a point, not a comma\)"),
        ("label,qid,a\nbad,1,2\n", "expected numbers in column 'label', the label, found 'bad' in line 2"),
        ("label,qid,a\n1,1,2\n0,1\n", "the first line names 3 columns, but line 3 has 2 values: is one left out"),
        ("label,qid,a\n1,,2\n", "column 'qid', the query id, is empty in line 2"),
        ("label,qid,a\n1,1,\n", "column 'a' is NULL in line 2"),
        ("label,qid,a\n1,1,1e39\n", "finite 32-bit number in column 'a', found 1e.39 in line 2"),
        ("label,qid,a\n-1,1,1\n", "expected a label >= 0, found -1.0 in line 2"),
        ("1,2,3\n4,5,6\n", "expected the names of the columns in the first line, found '1,2,3': is that line missing"),
        ("q blue,P1,14.18\nq red,P1,3\n", r"columns q blue, P1, 14\.18: .*'14.18' is a number: is the line with the"),
        (
            "q1,2,2\nq1,3,4\n",
            "two columns are called '2'.*is a number: is the line with the names",
        ),
        ("label,qid,a\n", "there is no document in it"),
    ],
)
def test_what_is_wrong_with_a_csv_file_is_said(file, content, message):
    path = file(content)
    for how in (io.read, io.stream):
        with pytest.raises(DataError, match=rf"(?s)a\.csv: .*{message}"):
            list(how(path))


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_blocks_of_lines_that_are_parsed_beside_each_other_are_the_file(file, monkeypatch, ending):
    monkeypatch.setattr("ranktron.data.io.streaming.BLOCK", 64)
    monkeypatch.setattr("ranktron.data.io.streaming._LEAVE", 1 << 16)
    lines = [f"{i % 3},q{i // 7:04},d{i},{i / 7!r},{-i}" for i in range(3000)]
    lines.insert(1500, "")
    blocks = file(ending.join(["label,qid,doc,a,b", *lines]))
    quoted = file(ending.join(["label,qid,doc,a,b", *lines, '0,"last",x,0,0']), "b.csv")
    whole, serial = io.read(blocks), io.read(quoted)[:-1]
    assert CsvFile(blocks)._first_row() is not None
    assert CsvFile(quoted)._first_row() is None
    assert whole.X.tobytes() == serial.X.tobytes()
    assert [*zip(whole.qids, whole.docids, strict=False)] == [*zip(serial.qids, serial.docids, strict=False)]
    assert whole.labels.tolist() == serial.labels.tolist()
    assert [round.qid for round in io.stream(blocks)] == whole.qids.tolist()
    for wrong, message in (
        ("1,q,d,x,1", "found 'x' in line 3003"),
        ("1,q,d,1", "names 5 columns, but line 3003 has 4 values"),
    ):
        with pytest.raises(DataError, match=message):
            io.read(file(ending.join(["label,qid,doc,a,b", *lines, wrong])))


@pytest.mark.parametrize(("name", "text"), [("a.csv", "label,qid,a\n1,1,2\n"), ("a.txt", "1 qid:1 1:2\n")])
def test_text_that_a_spreadsheet_saved_as_utf_16_is_refused(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, encoding="utf-16")
    with pytest.raises(DataError, match=rf"{name}: the text is UTF-16, .*: save it as UTF-8"):
        io.read(path)


def test_a_spreadsheet_is_not_read(file):
    with pytest.raises(DataError, match=r"a\.xlsx: this is a zip archive or a spreadsheet: .* save the sheet as CSV"):
        io.read(file(b"PK\x03\x04and so on", "a.xlsx"))


@pytest.mark.parametrize("text", ["label,qid,docid,Preis in €\n1,1,a,2\n", "label,qid,docid,a\n1,1,für,2\n"])
def test_text_in_another_encoding_is_refused(tmp_path, text):
    path = tmp_path / "a.csv"
    path.write_text(text, encoding="cp1252")
    with pytest.raises(DataError, match=r"a\.csv: the text is not UTF-8, .*: save it as UTF-8"):
        io.read(path)


def test_every_object_of_an_array_may_bring_a_key(file):
    objects = [{"qid": 1, "label": 1, "a": 1.0}, {"qid": 1, "label": 0, "b": 5.0, "a": 2.0}]
    read = io.read(file(json.dumps(objects), "a.json"), null="zero")
    assert read.feature_names == ("a", "b")
    assert read.X.tolist() == [[1.0, 0.0], [2.0, 5.0]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1, 2]", "expected an array of objects, one for each document"),
        ('{"label": 1, "qid": 1, "a": 1}\n{"label": 1', "not JSON lines that can be read"),
        ('{"label": 1, "qid": 1, "a": "red"}\n', "expected numbers in column 'a', found string"),
        ('{"label": 1, "qid": 1, "a": 1}\n{"label": 1, "qid": 1, "a": "red"}\n', "changed from number to string"),
        ('{"label": 1, "qid": 1, "a": [1, 2]}\n', "expected numbers in column 'a', found list"),
        ('[{"label": 1', "not JSON that can be read"),
    ],
)
def test_what_is_wrong_with_json_lines_is_said(file, content, message):
    with pytest.raises(DataError, match=rf"a\.jsonl: .*{message}"):
        io.read(file(content, "a.jsonl"))


@pytest.mark.parametrize("cut", [20, 60])
def test_a_compressed_table_that_is_cut_off(file, cut):
    with pytest.raises(DataError, match="cut off before its end"):
        io.read(file(gzip.compress((CSV * 3).encode())[:cut], "a.csv.gz"))


def test_a_missing_extra_says_what_to_install(file, monkeypatch):
    path = file(CSV)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"reading CSV needs .* pip install 'ranktron\[tables\]'"):
        io.read(path)
