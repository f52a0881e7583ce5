import bz2
import gzip
import lzma
from pathlib import Path

import pytest

from ranktron.data.io.formats import detect_format
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
