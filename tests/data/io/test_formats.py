import bz2
import gzip
import lzma
from pathlib import Path

import pytest

from ranktron.data import io
from ranktron.data.io import formats
from ranktron.data.io.formats import detect_format
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError


@pytest.mark.parametrize(
    ("content", "name", "format"),
    [
        (b"1 qid:7 1:0.5\n", "a.txt", "letor"),
        (b"1 qid:7 1:0.5\n", "a.csv", "letor"),
        (b"# head\n\n2.5\tqid:7 1:0.5\n", "a", "letor"),
        (b"\t# head\n2.5 qid:7 1:0.5\n", "a.txt", "letor"),
        (b"1 1:0.5 2:1 # 10\n", "a", "letor"),
        (b"rubbish\n", "a.txt", "letor"),
        (b"label,qid,a\n1,2,3\n", "a.txt", "csv"),
        (b"\xef\xbb\xbflabel;qid;a\n1;2;3\n", "a", "csv"),
        (b"label\tqid\ta\n1\t2\t3\n", "a.tsv", "tsv"),
        (b"1,2,3\n", "a.csv", "csv"),
        (b'{"label": 1}\n', "a.log", "jsonl"),
        (b'[{"label": 1}]', "a.json", "jsonl"),
        (b'{"took": 1, "hits": {"hits": []}}', "a.json", "ltrlog"),
        (b'{"_id": "1", "fields": {"_ltrlog": [{}]}}\n', "a.jsonl", "ltrlog"),
        (b"PAR1", "a.csv", "parquet"),
        (b"ARROW1\0\0", "a.csv", "arrow"),
        (b"RANKTRON", "a", "rounds"),
    ],
)
def test_first_bytes_decide_and_the_name_where_they_leave_it_open(tmp_path, content, name, format):
    path = tmp_path / name
    path.write_bytes(content)
    assert detect_format(path) == format
    if format not in ("parquet", "arrow", "rounds"):
        for ending, compress in ((".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)):
            squeezed = Path(f"{path}{ending}")
            squeezed.write_bytes(compress(content))
            assert detect_format(squeezed) == format


def test_the_caller_decides(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"label,qid,a\n")
    assert detect_format(path, "letor") == "letor"
    with pytest.raises(DataError, match="expected parquet, found text"):
        detect_format(path, "parquet")
    with pytest.raises(DataError, match="there is no format 'excel'; there are letor, csv"):
        detect_format(path, "excel")
    path.write_bytes(b"FEA1")
    with pytest.raises(DataError, match="Feather of version 1"):
        detect_format(path)


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.csv", "a.jsonl", "a.rounds"])
def test_a_format_is_detected_once(tmp_path, monkeypatch, name):
    path, starts = tmp_path / name, []
    io.write(Rounds.from_arrays([[1.0], [2.0]], [0, 1], qid=["a", "a"]), path)
    read_start = formats._read_start
    monkeypatch.setattr(formats, "_read_start", lambda *given: starts.append(given) or read_start(*given))
    assert io.read(path).X.tolist() == [[1.0], [2.0]]
    assert [round.X.tolist() for round in io.stream(path)] == [[[1.0], [2.0]]]
    assert len(starts) == 2


def test_a_detected_file_is_read_like_its_path(tmp_path):
    path = tmp_path / "a.data"
    path.write_text("label,qid,price\n1,7,0.5\n")
    file = formats.detect(path)
    assert (str(file), file.kind, file.format) == (str(path), "text", "csv")
    assert io.read(file).feature_names == io.read([file]).feature_names == ("price",)
    assert io.read_roles(file) == io.read_roles(path)
