import sys
from decimal import Decimal

import numpy as np
import pytest

from ranktron.data import io
from ranktron.data.io.columns import Columns
from ranktron.data.io.table_sources import ParquetFile
from ranktron.data.io.tables import table_roles
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def written(tmp_path):
    def write(**columns):
        parquet.write_table(arrow.table(columns), tmp_path / "a.parquet")
        return tmp_path / "a.parquet"

    return write


def test_named_columns_are_features_and_queries_are_put_together(written):
    path = written(label=[0, 1, 2], qid=[7, 8, 7], bm25=[0.1, 0.2, 0.3], clicks=[1, 2, 3], docid=["x", "y", "z"])
    rounds = io.read(path)
    assert rounds.feature_names == ("bm25", "clicks")
    assert rounds.X.tolist() == np.array([[0.1, 1], [0.3, 3], [0.2, 2]], np.float32).tolist()
    assert rounds.qids.tolist() == [7, 8]
    assert rounds.docids.tolist() == ["x", "z", "y"]
    assert rounds.rows.tolist() == [0, 2, 1]
    with pytest.raises(DataError, match="row 2: query 7 occurs again after other queries"):
        list(io.stream(path))


def test_the_index_of_a_data_frame_is_no_feature(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"label": [0, 1, 2], "qid": [7, 7, 8], "bm25": [0.1, 0.2, 0.3], "age": [1, 2, 3]})
    kept = frame[[True, False, True]]
    for saved in (kept, kept.rename_axis("row"), frame.set_index("qid"), frame.set_index(["qid", "label"])):
        saved.to_parquet(tmp_path / "a.parquet")
        rounds = io.read(tmp_path / "a.parquet")
        assert rounds.feature_names == ("bm25", "age")
        assert rounds.qids.tolist() == [7, 8]
        assert rounds.labels.tolist() == saved.reset_index()["label"].tolist()
        assert [round.X.shape[1] for round in io.stream(tmp_path / "a.parquet")] == [2, 2]


def test_features_are_found_by_the_names_that_are_expected(written):
    path = written(label=[0], qid=[1], bm25=[2.0], clicks=[3.0])
    assert io.read(path, feature_names=("clicks", "bm25")).X.tolist() == [[3.0, 2.0]]
    with pytest.raises(DataError, match=r"a\.parquet: the data has other features.*: age missing; clicks not known"):
        io.read(path, n_features=3, feature_names=("age", "bm25"))
    for how in (io.read, io.stream):
        with pytest.raises(DataError, match=r"a\.parquet: expected 3 features, found 2: bm25, clicks"):
            list(how(path, n_features=3))


def test_lists_to_be_scored_need_no_labels(written):
    path = written(qid=[7, 8, 7], f1=[1.0, 2.0, 3.0])
    rounds = io.read_documents(path)
    assert rounds.X[:, 0].tolist() == [1.0, 3.0, 2.0]
    assert np.isnan(rounds.labels).all()
    assert io.read_documents(written(qid=[7], f1=[1.0], label=[2])).labels.tolist() == [2.0]
    with pytest.raises(DataError, match="found no 'qid' or the like among the columns f1"):
        io.read_documents(written(f1=[1.0]))


@pytest.mark.parametrize(("null", "expected"), [("zero", 0), ("min", 2), ("mean", 3)])
def test_nulls(written, null, expected):
    path = written(label=[0, 1, 2], qid=["a", "a", "a"], f1=[2.0, None, 4.0])
    assert io.read(path, null=null).X[:, 0].tolist() == [2, expected, 4]
    assert next(io.stream(path, null=null)).X[:, 0].tolist() == [2, expected, 4]
    with pytest.raises(DataError, match="column 'f1' is NULL in row 1; choose how to replace it"):
        io.read(path)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"qid": [1], "f1": [1.0]}, "found no 'label'"),
        ({"label": [1], "f1": [1.0]}, "found no 'qid'"),
        ({"label": [1], "qid": [1]}, "there is no feature"),
        (
            {"label": arrow.array([], "int64"), "qid": arrow.array([], "int64"), "f1": arrow.array([], "float")},
            "no document",
        ),
        ({"label": [1], "qid": [1], "f1": ["x"]}, "expected numbers in column 'f1', found string"),
        ({"label": [-1], "qid": [1], "f1": [1.0]}, "expected a label >= 0, found -1.0 in row 0"),
        ({"label": [None, 1], "qid": [1, 1], "f1": [1.0, 2.0]}, "column 'label' is NULL in row 0"),
        ({"label": [1, 1], "qid": [1, None], "f1": [1.0, 2.0]}, "column 'qid' is NULL in row 1"),
        (
            {"label": [1, 1], "qid": [1, 1], "f1": [1.0, float("nan")]},
            "finite 32-bit number in column 'f1', found nan in row 1",
        ),
        (
            {"label": [1, 1], "qid": [1, 1], "f1": [1.0, 1e39]},
            "finite 32-bit number in column 'f1', found 1e.39 in row 1",
        ),
    ],
)
def test_what_cannot_be_read(written, columns, message):
    path = written(**columns)
    for how in (io.read, io.stream):
        with pytest.raises(DataError, match=message):
            list(how(path))


def test_damaged_files(written):
    path = written(label=[0] * 1000, qid=[1] * 1000, f1=np.random.default_rng(0).normal(size=1000))
    good = path.read_bytes()
    for damaged in (good[:100], good[:-20], good[:-3] + b"XXX"):
        path.write_bytes(damaged)
        with pytest.raises(DataError):
            io.read(path)


def test_flipped_bytes_of_the_pages_are_found(tmp_path):
    rng = np.random.default_rng(0)
    rounds = Rounds.from_arrays(rng.normal(size=(300, 4)), rng.integers(0, 3, 300), qid=np.arange(300) // 30)
    path = tmp_path / "a.parquet"
    io.write(rounds, path)
    good = path.read_bytes()
    pages = len(good) - 8 - int.from_bytes(good[-8:-4], "little")
    for _ in range(200):
        damaged = bytearray(good)
        damaged[rng.integers(4, pages)] ^= 1 << rng.integers(8)
        path.write_bytes(damaged)
        try:
            read = io.read(path)
        except DataError:
            continue
        assert read.X.tobytes() == rounds.X.tobytes()
        assert read.labels.tolist() == rounds.labels.tolist()


def test_more_rows_than_a_batch(tmp_path, monkeypatch):
    monkeypatch.setattr("ranktron.data.io.table_sources.ROWS", 64)
    rng = np.random.default_rng(1)
    rounds = Rounds.from_arrays(rng.normal(size=(1000, 3)), rng.integers(0, 3, 1000), qid=np.arange(1000) // 30)
    io.write(rounds, tmp_path / "a.parquet")
    assert io.read(tmp_path / "a.parquet").X.tobytes() == rounds.X.tobytes()
    assert io.read(tmp_path / "a.parquet").feature_names is None
    for streamed, round in zip(io.stream(tmp_path / "a.parquet"), rounds, strict=True):
        assert (streamed.qid, streamed.X.tolist()) == (round.qid, round.X.tolist())


@pytest.mark.parametrize("rows_of_a_group", [7, 64, 100, 1000])
def test_row_groups_of_any_size_are_read_a_few_at_a_time(tmp_path, monkeypatch, rows_of_a_group):
    monkeypatch.setattr("ranktron.data.io.table_sources.ROWS", 64)
    rng = np.random.default_rng(1)
    columns = {"label": rng.integers(0, 3, 1000), "qid": np.arange(1000) // 30, "f1": rng.normal(size=1000)}
    parquet.write_table(arrow.table(columns), tmp_path / "a.parquet", row_group_size=rows_of_a_group)
    rounds = io.read(tmp_path / "a.parquet")
    assert (rounds.X[:, 0] == columns["f1"].astype(np.float32)).all()
    source = ParquetFile(tmp_path / "a.parquet")
    asked = list(source._row_groups())
    assert [group for some in asked for group in some] == list(range(source.file.num_row_groups))
    assert {len(some) for some in asked[:-1]} <= {-(-64 // rows_of_a_group)}
    roles = table_roles(source, Columns())
    assert len(next(source.batches(roles))) == 64  # the rows in which rounding is looked for


def kinds_of_columns(n):
    rng = np.random.default_rng(2)
    large = rng.integers(2**53, 2**62, n)
    large[::2] = (2**60 + 2**36) + rng.integers(1, 99, len(large[::2]))  # at once, these would be rounded up
    return {
        "single": rng.normal(size=n).astype(np.float32), "double": rng.normal(size=n), "large": large,
        "small": rng.integers(-9, 9, n).astype(np.int8), "truth": rng.random(n) < 0.5, "zero": np.full(n, -0.0),
        "tiny": np.full(n, 1e-42),
    }  # fmt: skip


def test_columns_of_every_kind_are_rounded_to_64_bits_and_then_to_32(tmp_path, monkeypatch):
    monkeypatch.setattr("ranktron.data.io.table_sources.ROWS", 64)
    columns = kinds_of_columns(300)
    decimals = [Decimal(i) / 8 for i in range(300)]
    table = arrow.table({"label": [1] * 300, "qid": ["q"] * 300, **columns, "decimal": decimals})
    parquet.write_table(table, tmp_path / "a.parquet")
    rounded = [column.astype(np.float64).astype(np.float32) for column in [*columns.values(), np.array(decimals)]]
    assert (columns["large"].astype(np.float32) != rounded[2]).any()  # else the kinds would not show the difference
    assert io.read(tmp_path / "a.parquet").X.tobytes() == np.column_stack(rounded).tobytes()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("f1", None, "column 'f1' is NULL in row 200; choose how"),
        ("f1", float("nan"), "expected a finite 32-bit number in column 'f1', found nan in row 200"),
        ("f1", 1e39, r"expected a finite 32-bit number in column 'f1', found 1e\+39 in row 200"),
        ("label", -1.0, r"expected a label >= 0, found -1.0 in row 200"),
        ("qid", "", "column 'qid', the query id, is empty in row 200"),
        ("qid", None, "column 'qid' is NULL in row 200"),
    ],
)
def test_what_is_wrong_in_a_later_batch_is_said_with_its_row(written, monkeypatch, name, value, message):
    monkeypatch.setattr("ranktron.data.io.table_sources.ROWS", 64)
    columns = {"label": [1.0] * 300, "qid": ["a"] * 300, "f1": [0.5] * 300, "f2": [1.5] * 300}
    columns[name][200] = value
    path = written(**columns)
    for how in (io.read, io.stream):
        with pytest.raises(DataError, match=message):
            list(how(path))
    if name == "f1" and value != 1e39:
        filled = io.read(path, null="min")
        assert filled.X.tolist() == [[0.5, 1.5]] * 300
        assert np.flatnonzero(np.isnan(io.read(path, null="nan").X)).tolist() == [400]


def test_a_missing_extra_says_what_to_install(written, monkeypatch):
    path = written(label=[0], qid=[1], f1=[1.0])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'ranktron\[parquet\]'"):
        io.read(path)
