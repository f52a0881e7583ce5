import numpy as np
import pytest

from ranktron import DataError, Rounds
from ranktron.data.io import write
from ranktron.data.io.parts import FilePart, divide_files, find_files, hash_queries, query_start, shared_query

RNG = np.random.default_rng(0)
SIZES = [3, 1, 40, 2, 7, 1, 1, 60, 5]
LISTS = Rounds.from_arrays(
    RNG.integers(0, 9, (sum(SIZES), 3)) + np.array([0.0, 0.5, 1.0]),
    RNG.integers(0, 3, sum(SIZES)),
    qid=np.repeat([f"q{i}" for i in range(len(SIZES))], SIZES),
)


def together(parts):
    """What the parts hold, one after the other."""
    found = [part.read() for part in parts]
    return Rounds.concat([rounds for rounds in found if len(rounds)])


def assert_same(one, two):
    assert one.qids.tolist() == two.qids.tolist()
    assert np.array_equal(one.offsets, two.offsets)
    assert np.array_equal(one.X, two.X)
    assert np.array_equal(one.labels, two.labels)


@pytest.mark.parametrize("size", [1, 17, 100, 500, 10**6])
@pytest.mark.parametrize("name", ["a.txt", "a.rounds"])
def test_parts_hold_every_query_whole_and_once(tmp_path, name, size):
    write(LISTS, tmp_path / name)
    parts = divide_files(tmp_path / name, size=size)
    assert len(parts) > 1 or size >= 10**5
    assert_same(together(parts), LISTS)


@pytest.mark.parametrize("rows", [1, 4, 13, 1000])
def test_row_groups_that_cut_queries_are_read_to_the_end_of_the_query(tmp_path, rows):
    import pyarrow.parquet

    write(LISTS, tmp_path / "whole.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "whole.parquet")
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet", row_group_size=rows)
    parts = divide_files(tmp_path / "a.parquet", size=300)
    assert len(parts) > 1 or rows == 1000
    assert {part.unit for part in parts} == {"row groups"}
    assert_same(together(parts), LISTS)


@pytest.mark.parametrize("name", ["a.csv", "a.txt.gz", "a.jsonl"])
def test_other_formats_are_one_part_for_each_file(tmp_path, name):
    write(LISTS, tmp_path / name)
    parts = divide_files(tmp_path / name, size=10)
    assert [part.unit for part in parts] == ["whole"]
    assert_same(together(parts), LISTS)


def test_comments_and_blank_lines_belong_to_no_query():
    text = b"# head\n1 qid:1 1:1\n\n# more\n0 qid:1 1:2\n  \n2 qid:2 1:1\n# end\n"
    second = text.index(b"2 qid:2")
    assert [query_start(text, at) for at in (0, 1, 8, 30, second, second + 1, len(text))] == [
        0, 7, second, second, second, len(text), len(text),
    ]  # fmt: skip


def test_a_last_line_without_a_line_feed_is_read(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"1 qid:1 1:1\n0 qid:2 1:2\n0 qid:2 1:3")
    assert_same(together(divide_files(path, size=12)), FilePart(str(path)).read())


def test_query_ids_in_comments_are_not_divided(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1 1:1 # 17\n0 1:2 # 17\n1 1:3 # 18\n")
    assert [part.unit for part in divide_files(path, size=5)] == ["whole"]


def test_an_error_names_the_part(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1 qid:1 1:1\n0 qid:2 1:oops\n")
    with pytest.raises(DataError, match=r"a\.txt \(bytes 12 to 27\)"):
        FilePart(str(path), "bytes", 12, 27).read()


def test_patterns_and_folders(tmp_path):
    for name in ("part-1.txt", "part-0.txt", "other.txt"):
        (tmp_path / name).write_text("1 qid:1 1:1\n")
    assert [path.name for path in find_files(f"{tmp_path}/part-*.txt")] == ["part-0.txt", "part-1.txt"]
    assert len(find_files(tmp_path)) == 3
    with pytest.raises(DataError, match="there is no file"):
        find_files(f"{tmp_path}/none-*.txt")


def test_a_query_in_two_parts_is_found():
    hashes = [hash_queries(["a", "b", 3]), hash_queries(["c"]), hash_queries(["d", "3"])]
    assert shared_query(hashes) == (0, 2, 2)
    assert shared_query(hashes[:2]) is None
    assert shared_query([hash_queries(["a", "a"])]) is None  # in one part it is one query
