import gzip

import numpy as np
import pytest

from ranktron.data import io
from ranktron.errors import DataError


@pytest.fixture
def written(tmp_path):
    def write(content, name="train.txt"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


GOOD = {
    "plain": b"2 qid:1 1:0.5 2:1\n0 qid:1 1:3 2:-4.25\n1 qid:2 1:1 2:1e-3\n",
    "no final line feed": b"2 qid:1 1:0.5 2:1\n0 qid:1 1:3 2:4",
    "carriage returns": b"2 qid:1 1:0.5 2:1\r\n0 qid:1 1:3 2:4 \r\n",
    "carriage return at the very end": b"2 qid:1 1:0.5 2:1\r\n0 qid:1 1:3 2:4\r",
    "blank and comment lines": b"# head\n\n2 qid:1 1:0.5\n   \n\t# middle\n0 qid:1 1:3\n\r\n#end",
    "document ids": b"2 qid:1 1:0.5 #docid = GX-1 inc = 1 prob = 0.08\n0 qid:1 1:3 # docid=B\n1 qid:2 1:1\n",
    "document ids beyond ASCII": "2 qid:1 1:0.5 # docid = größe\n1 qid:1 1:1 #docid=a\n".encode(),
    "bytes that are no text in a comment": b"2 qid:1 1:0.5 # \xff\xfe docid = \xff\n",
    "ids after the hash": b"1.5 1:0.5 3:1 # 10\n0 2:1 # 10\r\n0.07 1:1 # 11",
    "left out features": b"1 qid:1 5:1\n0 qid:1\n0 qid:1 2:1 # docid = x\n",
    "from zero": b"1 qid:1 1:1\n0 qid:1 0:2 2:1\n",
    "any order": b"1 qid:1 3:3 1:1\n0 qid:1 2:2 3:3 1:1\n",
    "interleaved": b"1 qid:a 1:1\n0 qid:b 1:2\n2 qid:a 1:3\n1 qid:c 1:4\n0 qid:b 1:5\n",
    "words as ids": "1 qid:größe:1 1:1\n1 qid:x-y 1:1\n".encode(),
    "tabs and many blanks": b"  1\tqid:1   1:1\t 2:2  \t#docid = 1\n",
    "all forms of numbers": b"+1.0e0 qid:1 1:.5 2:5. 3:+5 4:1E3 5:1e+3 6:0005 7:-0 8:0000000000000000001 9:1e-999\n",
    "many digits": b"1 qid:1 1:0.30000000000000004 2:12345678901234567890 3:0.12345678901234567890 4:16777217.000001\n",
    "halfway between two numbers": b"0 qid:1 1:1.00000017881393432617187499 2:1.000000178813934326171875 3:16777217\n",
    "the largest and the smallest": b"1 qid:1 1:3.4028234e38 3:1e-45 4:1.1754943e-38 5:7e-46\n",
    "a wider line later": b"1 qid:1 1:1\n" * 3 + b"0 qid:2 9:1\n",
    "exact labels": b"0.30000000000000004 qid:1 1:1\n1e-300 qid:1 1:1\n123456789012345678 qid:1 1:1\n1e308 qid:1 1:1\n",
}


@pytest.mark.parametrize("content", GOOD.values(), ids=GOOD.keys())
def test_reads_what_the_slow_reader_reads(slow, written, content):
    path = written(content)
    rounds = io.read(path)
    slow.assert_same(rounds, slow.read(content))
    if rounds.rows is None:
        streamed = list(io.stream(path))
        assert [round.qid for round in streamed] == rounds.qids.tolist()
        assert b"".join(round.X.tobytes() for round in streamed) == rounds.X.tobytes()
        assert [label for round in streamed for label in round.labels.tolist()] == rounds.labels.tolist()
    else:
        with pytest.raises(DataError, match=r"line 3: query 'a' occurs again after other queries; .*ranktron convert"):
            list(io.stream(path))


@pytest.mark.parametrize("null", ["zero", "min", "mean"])
def test_null_is_zero_or_the_smallest_or_mean_value_of_the_same_list(slow, written, null):
    content = b"1 qid:1 1:2 2:NULL\n0 qid:1 1:NULL 2:NULL\n0 qid:2 1:7 2:1\n0 qid:1 1:5 2:NULL\n1 qid:2 1:NULL 2:3\n"
    path = written(content)
    slow.assert_same(io.read(path, null=null), slow.read(content, null))
    expected = {"zero": [0, 0], "min": [2, 7], "mean": [3.5, 7]}[null]
    assert io.read(path, null=null).X[[1, 4], 0].tolist() == expected


BAD = {
    b"x qid:1 1:1\n": "line 1, column 1: expected a label (a finite number >= 0), found 'x'",
    b"1 qid:1 1:1\n-1 qid:1 1:1\n": "line 2, column 1: expected a label >= 0, found '-1'",
    b"nan qid:1 1:1\n": "line 1, column 1: expected a label (a finite number >= 0), found 'nan'",
    b"1e999 qid:1 1:1\n": "line 1, column 1: expected a label (a finite number >= 0), found '1e999'",
    b"1 1:1\n": "line 1, column 3: expected 'qid:' and a query id after the label, found '1:1'",
    b"1 qid: 1:1\n": "line 1, column 3: expected 'qid:' and a query id after the label, found 'qid:'",
    b"1\n": "line 1, column 2: expected 'qid:' and a query id after the label, found the end of the line",
    b"\n\n1 qid:1 5:abc\n": "line 3, column 11: expected a number after '5:', found 'abc'",
    b"1 qid:1 5:\n": "line 1, column 11: expected a number after '5:', found the end of the line",
    b"1 qid:1 5:1.5x\r\n": "line 1, column 11: expected a number after '5:', found '1.5x'",
    b"1 qid:1 5:nan\n": "line 1, column 11: expected a finite number after '5:', found 'nan'",
    b"1 qid:1 5:-inf\n": "line 1, column 11: expected a finite number after '5:', found '-inf'",
    b"1 qid:1 1:1e39\n": "line 1, column 11: expected a number that fits into 32 bits, found '1e39'",
    b"1 qid:1 1:1e9999\n": "line 1, column 11: expected a number that fits into 32 bits, found '1e9999'",
    b"1 qid:1 1:3.4028235677973366e38\n": "line 1, column 11: expected a number that fits into 32 bits",
    b"1 qid:1 -1:1\n": "line 1, column 9: expected index:value with an index from 1 to 16777216, found '-1:1'",
    b"1 qid:1 1\n": "line 1, column 9: expected index:value with an index from 1 to 16777216, found '1'",
    b"1 qid:1 1:1 1:2\n": "line 1, column 13: expected each feature once, found '1' again",
    b"1 qid:1 2:1 1:1 2:2\n": "line 1, column 17: expected each feature once, found '2' again",
    b"1 qid:1 1:NULL\n": "line 1, column 11: found NULL; say what to make of it: null='zero', 'min'",
    b"1 1:1 # 5\n1 1:1\n": "line 2, column 6: expected '#' and a query id (one word) at the end of the line, found the",
    b"1 1:1 # 5\n1 1:1 # two words\n": "line 2, column 7: expected '#' and a query id (one word) at the end",
    b"1 1:1 # 5\n1 qid:5 1:1\n": "line 2, column 3: found 'qid:', but the first document has its query id after '#'",
    b"1 qid:\xff 1:1\n": "line 1, column 7: expected a query id in UTF-8",
    b"1 qid:1 1:1\rx\n": "line 1, column 11: expected a number after '1:'",
    b"": "the file is empty",
    b"# only\n\n": "there is no document in it",
    b"1 qid:1\n": "there is no feature in it",
    b"1 qid:1 1:1_000\n": "line 1, column 11: expected a number after '1:', found '1_000'",
    b"1 qid:1 99999999999999999999:1\n": "line 1, column 9: expected index:value with an index from 1 to 16777216",
    b"1 qid:1 16777216:1\n" * 20_000: "more than this machine has",
}


@pytest.mark.parametrize(("content", "message"), BAD.items(), ids=[content[:40] for content in BAD])
@pytest.mark.parametrize("how", ["read", "stream"])
def test_what_cannot_be_read_is_said_with_file_line_and_column(written, content, message, how):
    path = written(content)
    dense = {"sparse": False} if "machine" in message else {}  # sparse rows would fit
    with pytest.raises(DataError) as caught:
        list(getattr(io, how)(path, **dense))
    assert str(caught.value).startswith(str(path)) or "machine" in message
    assert message in str(caught.value)


def test_the_caller_may_say_how_many_features_there_are(slow, written):
    content = b"1 qid:1 2:1\n0 qid:1 1:1\n"
    path = written(content)
    assert io.read(path, n_features=4).X.tolist() == [[0, 1, 0, 0], [1, 0, 0, 0]]
    assert io.read(path, n_features=4, first_index=0).X.tolist() == [[0, 0, 1, 0], [0, 1, 0, 0]]
    assert next(io.stream(path, n_features=4, first_index=0)).X.tolist() == [[0, 0, 1, 0], [0, 1, 0, 0]]
    for read in (io.read, io.stream):
        with pytest.raises(
            DataError, match=r"line 1, column 9: expected at most 1 features .from 1 on., found feature '2'"
        ):
            list(read(path, n_features=1))
    with pytest.raises(DataError, match="column 9: expected an index >= 1, found '0'"):
        io.read(written(b"1 qid:1 0:1\n"), first_index=1)


@pytest.mark.parametrize("bad", [{"n_features": 0}, {"first_index": 2}, {"null": "maximum"}])
@pytest.mark.parametrize("how", ["read", "stream"])
def test_arguments_are_checked(written, bad, how):
    with pytest.raises(DataError, match=next(iter(bad))):
        getattr(io, how)(written(b"1 qid:1 1:1\n"), **bad)


def test_several_files_and_a_directory_of_parts_are_one_set(written, tmp_path):
    (tmp_path / "parts").mkdir()
    written(b"1 qid:2 1:3\n", "parts/b.txt")
    written(gzip.compress(b"1 qid:1 2:1\n2 qid:1 1:2"), "parts/a.txt.gz")
    written(b"", "parts/_SUCCESS")
    for source in (tmp_path / "parts", [tmp_path / "parts/a.txt.gz", str(tmp_path / "parts/b.txt")]):
        rounds = io.read(source)
        assert rounds.X.tolist() == [[0, 1], [2, 0], [3, 0]]
        assert rounds.qids.tolist() == ["1", "2"]
        assert [round.X.tolist() for round in io.stream(source)] == [[[0, 1], [2, 0]], [[3, 0]]]


def test_a_query_split_over_parts_is_an_error(written):
    parts = [written(b"1 qid:1 1:1\n1 qid:2 1:1\n", "a.txt"), written(b"1 qid:2 1:1\n", "b.txt")]
    with pytest.raises(DataError, match=r"query '2' is split over .*a\.txt and .*b\.txt; put its rows into one file"):
        io.read(parts)
    with pytest.raises(DataError, match=r"query '2' is split over .*a\.txt and .*b\.txt; put its rows into one file"):
        list(io.stream(parts))


def test_files_that_are_not_there_or_damaged(written, tmp_path):
    content = gzip.compress(b"1 qid:1 1:0.123\n" * 5000)
    for name, damaged, message in [
        ("cut.gz", content[:-20], "cut off before its end"),
        ("flipped.gz", content[:40] + bytes([content[40] ^ 255]) + content[41:], "the compressed file is damaged"),
        ("wrong.gz", content[:-6] + b"\0" * 6, "the compressed file is damaged"),
        ("empty.gz", gzip.compress(b""), "empty"),
    ]:
        for how in (io.read, io.stream):
            with pytest.raises(DataError, match=message):
                list(how(written(damaged, name)))
    with pytest.raises(DataError, match="there is no such file"):
        io.read(tmp_path / "nowhere.txt")
    (tmp_path / "hollow").mkdir()
    with pytest.raises(DataError, match="no file to read"):
        io.read(tmp_path / "hollow")
    with pytest.raises(DataError, match="list of paths is empty"):
        io.read([])


USUAL = [f"{i % 3} qid:{i // 7} 1:{i}.5 2:-{i} 3:{i / 7:.17g} # docid = D{i}\n".encode() for i in range(60)]


@pytest.mark.parametrize("ahead", [1, 8])
@pytest.mark.parametrize(
    "lines",
    [
        USUAL,
        [*USUAL[:-1], USUAL[-1][:-1]],
        [b"# a comment\n", *USUAL[:9], b"\n \n", *USUAL[9:]],
        [b"# a comment\n"] * 40 + USUAL,
        [*USUAL, b"1 qid:8 1:1 9:1\n"],
        [*USUAL, b"1 qid:8 0:1\n"],
        [*USUAL, b"1 qid:0 1:1\n"],
        [*USUAL[:30], b"1 qid:8 1:x\n", *USUAL[30:], b"1 qid:9 1:y\n"],
        [*USUAL[:30], b"1 qid:8 1:NULL\n", *USUAL[30:]],
        [b"\n"] * 900,
    ],
)
def test_text_is_parsed_while_it_is_decompressed_with_the_same_result(written, monkeypatch, lines, ahead):
    monkeypatch.setattr("ranktron.data.io.formats.PIECE", 300)
    monkeypatch.setattr("ranktron.data.io.letor.SAMPLE", 100)
    monkeypatch.setattr("ranktron.data.io.letor.MAX_AHEAD", ahead)
    plain, squeezed = written(b"".join(lines), "a.txt"), written(gzip.compress(b"".join(lines)), "a.txt.gz")
    rounds, expected = read_or_refused(squeezed), read_or_refused(plain)
    if isinstance(expected, str):
        assert rounds == expected.replace("a.txt", "a.txt.gz")
        return
    for name in ("X", "labels", "offsets", "qids", "docids", "first_index"):
        np.testing.assert_array_equal(getattr(rounds, name), getattr(expected, name))


def read_or_refused(path):
    try:
        return io.read(path)
    except DataError as error:
        return str(error)


def test_gzip_may_have_several_members_and_zeros_after_them(written):
    one, two = gzip.compress(b"1 qid:1 1:0.5\n"), gzip.compress(b"1 qid:2 1:0.25\n")
    for content in (one + two, one + b"\0" * 9 + two + b"\0" * 300_000):
        path = written(content, "a.txt.gz")
        assert io.read(path).X.tolist() == [[0.5], [0.25]]
        assert [round.qid for round in io.stream(path)] == ["1", "2"]
    for content in (one + b"x", one + two[:-3]):
        with pytest.raises(DataError, match=r"the compressed file is (damaged|cut off)"):
            io.read(written(content, "a.txt.gz"))


def test_zstd(written):
    zstandard = pytest.importorskip("zstandard")
    squeezed = zstandard.compress(b"1 qid:1 1:0.5\n") + zstandard.compress(b"1 qid:2 1:0.25\n")
    path = written(squeezed, "a.txt.zst")
    assert io.read(path).X.tolist() == [[0.5], [0.25]]
    assert [round.qid for round in io.stream(path)] == ["1", "2"]
    for damaged in (squeezed[:-3], squeezed[:10] + b"\xff" * 10 + squeezed[20:]):
        with pytest.raises(DataError):
            io.read(written(damaged, "b.txt.zst"))


def test_a_missing_extra_says_what_to_install(written, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ImportError, match=r"pip install 'ranktron\[zstd\]'"):
        io.read(written(b"\x28\xb5\x2f\xfd" + b"\0" * 20, "a.txt.zst"))


def test_many_pieces_with_blank_lines_between(slow, written, monkeypatch):
    monkeypatch.setattr("ranktron.data.io.letor.CHUNK", 100)
    monkeypatch.setattr("ranktron.data.io.letor.SAMPLE", 50)
    rng = np.random.default_rng(0)
    lines = [
        b"%d qid:%d 1:%d 2:0.30000000000000004 %d:%.9f"
        % (rng.integers(5), i // 7, i, rng.integers(3, 20), rng.normal())
        for i in range(400)
    ]
    for at in rng.integers(0, 400, 60):
        lines.insert(at, rng.choice([b"", b"# note", b"  \r"]))
    content = b"\n".join(lines)
    slow.assert_same(io.read(written(content)), slow.read(content))


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("ohsumed-letor3/Fold1/test.txt.gz", (22, 3383, 45)),
        ("mq2008/Fold1/test.txt.gz", (156, 2874, 46)),
        ("mslr-sample/test.txt.gz", (18, 1900, 136)),
        ("yandex-imat2009-sample/learn.txt.gz", (104, 1000, 245)),
        ("ohsumed-letor2/Fold1/test.txt.gz", (22, 3383, 25)),
    ],
)
def test_real_files(slow, data_dir, name, shape):
    rounds = io.read(data_dir / name)
    assert (len(rounds), *rounds.X.shape) == shape
    slow.assert_same(rounds, slow.read(gzip.decompress((data_dir / name).read_bytes())))
    for streamed, round in zip(io.stream(data_dir / name), rounds, strict=True):
        assert streamed.qid == round.qid
        assert streamed.X.tobytes() == round.X.tobytes()
        assert streamed.labels.tolist() == round.labels.tolist()


@pytest.mark.data
@pytest.mark.parametrize("null", ["zero", "min", "mean"])
def test_real_nulls(slow, data_dir, null):
    path = data_dir / "ohsumed-letor3-null/Fold1/test.txt.gz"
    with pytest.raises(DataError, match="line 2, column 126: found NULL"):
        io.read(path)
    rounds = io.read(path, null=null)
    slow.assert_same(rounds, slow.read(gzip.decompress(path.read_bytes()), null))
    assert b"".join(r.X.tobytes() for r in io.stream(path, null=null)) == rounds.X.tobytes()


@pytest.mark.parametrize(
    ("lines", "docids"),
    [
        (["2 qid:1 1:1 # A", "0 qid:1 1:2 # B"], ["A", "B"]),
        (["2 qid:1 1:1 #A", "0 qid:1 1:2 #B"], ["A", "B"]),
        (["2 qid:1 1:1 # 7555 Rambo", "0 qid:1 1:2 # 1370\tRambo III", "1 qid:2 1:1 # 7555"], ["7555", "1370", "7555"]),
        (["2 qid:1 1:1 #docid = GX0-1 inc = 1 prob = 0.08", "0 qid:1 1:2 #docid = GX0-2 inc = 1"], ["GX0-1", "GX0-2"]),
        (["2 qid:1 1:1 # docid = A", "0 qid:1 1:2 # other"], ["A", ""]),
        (["2 qid:1 1:1 # made by hand", "0 qid:1 1:2 # made by hand"], None),
        (["2 qid:1 1:1", "0 qid:1 1:2 # B"], None),
        (["2 qid:1 1:1 #", "0 qid:1 1:2 #"], None),
    ],
)
def test_document_ids_in_comments_in_their_usual_forms(tmp_path, lines, docids):
    for end in ("\n", ""):
        (tmp_path / "a.txt").write_text("\n".join(lines) + end)
        for sparse in (False, True):
            rounds = io.read(tmp_path / "a.txt", sparse=sparse)
            assert (None if rounds.docids is None else rounds.docids.tolist()) == docids
