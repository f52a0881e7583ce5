"""Sparse rows in text, stores and streams: the very numbers of the written-out rows, and files that cannot hurt."""

import json
import struct
import subprocess
import sys
import textwrap
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktron.data import io
from ranktron.data.io import store
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.csr import ONES
from ranktron.kernels.csr_rows import Sparse


def random_rounds(rng, d, ones=False, density=0.2):
    """Lists of one to four documents, some of them without a feature."""
    group = rng.integers(1, 5, size=rng.integers(1, 6))
    X = (rng.random((group.sum(), d)) < density).astype(np.float32)
    X = X if ones else X * rng.normal(size=X.shape).astype(np.float32)
    rows = Sparse.from_matrix(X)
    rows = Sparse(rows.starts, rows.columns, ONES, d) if ones else rows
    return X, Rounds.from_arrays(rows, rng.integers(0, 5, len(X)), group=group)


def assert_same(one, two):
    assert one.X.shape == two.X.shape
    assert (one.X.dense() == two.X.dense()).all()
    assert one.labels.tolist() == two.labels.tolist()
    assert one.offsets.tolist() == two.offsets.tolist()
    assert list(map(str, one.qids)) == list(map(str, two.qids))
    assert one.first_index == two.first_index


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    d=st.sampled_from([1, 7, 3000]),
    density=st.sampled_from([0.0, 0.001, 0.4]),
    ones=st.booleans(),
)
def test_text_store_and_streams_give_the_numbers_back(tmp_path_factory, seed, d, density, ones):
    folder = tmp_path_factory.mktemp("sparse")
    X, rounds = random_rounds(np.random.default_rng(seed), d, ones, density)
    for name in ("a.txt", "a.rounds"):
        io.write(rounds, folder / name)
        read = io.read(folder / name, sparse=True)
        assert_same(read, rounds)
        assert (io.read(folder / name, sparse=False).X == X).all()
        streamed = list(io.stream(folder / name, sparse=True))
        assert (np.concatenate([round.X.dense() for round in streamed]) == X).all()
        assert [len(round.labels) for round in streamed] == np.diff(rounds.offsets).tolist()
        again = np.concatenate([round.X for round in io.stream(folder / name, sparse=False)])
        assert (again == X).all()
    assert isinstance(io.read(folder / "a.rounds").X, Sparse)  # a store remembers


@pytest.mark.filterwarnings("ignore:nothing can be learnt")
def test_a_store_of_sparse_rows_is_mapped_and_learnt_from(tmp_path):
    from ranktron.training.fit import TrainingPlan, train

    _, rounds = random_rounds(np.random.default_rng(0), 50)
    io.write(rounds[1:], tmp_path / "part.rounds")  # a slice writes its own entries alone
    assert_same(io.read(tmp_path / "part.rounds"), rounds[1:])
    io.write(rounds, tmp_path / "a.rounds")
    opened = io.read(tmp_path / "a.rounds")
    for array in (opened.X.starts, opened.X.columns, opened.X.values):
        assert array.flags.writeable  # read-only arrays are another type, for which numba would compile again
        assert not array.flags.owndata
        assert array.ctypes.data % 64 == 0
    for name in ("slam", "topk", "pairwise", "ranksvm", "rankmm", "rankboost"):
        models = [train(TrainingPlan(name, scaling="none"), lists).model for lists in (rounds, opened)]
        assert models[0].to_bytes() == models[1].to_bytes()
    io.verify(tmp_path / "a.rounds")


def test_padding_and_numbering(tmp_path):
    X, rounds = random_rounds(np.random.default_rng(1), 9)
    io.write(rounds, tmp_path / "a.rounds")
    for how in (io.read, io.stream):
        wide = list(how(tmp_path / "a.rounds", n_features=12, first_index=0))
        assert (np.concatenate([round.X.dense() for round in wide]) == np.pad(X, ((0, 0), (1, 2)))).all()
        with pytest.raises(DataError, match="expected 5 features, found 9"):
            list(how(tmp_path / "a.rounds", n_features=5))


def test_a_store_of_a_matrix_is_as_it_was(tmp_path):
    rounds = Rounds.from_arrays([[0.0, 1.0], [2.0, 0.0]], [0, 1])
    io.write(rounds, tmp_path / "a.rounds")
    raw = (tmp_path / "a.rounds").read_bytes()
    head = json.loads(raw[16 : 16 + struct.unpack("<I", raw[8:12])[0]])
    assert head["version"] == 1
    assert "width" not in head
    assert io.read(tmp_path / "a.rounds", sparse=True).X.columns.tolist() == [1, 0]
    assert next(io.stream(tmp_path / "a.rounds", sparse=True)).X.columns.tolist() == [1, 0]


def tampered(path, name, change):
    """Rewrites one array of a store, with checksums that fit."""
    raw = bytearray(path.read_bytes())
    length = struct.unpack("<I", raw[8:12])[0]
    head = json.loads(bytes(raw[16 : 16 + length]))
    array = head["arrays"][name]
    size = int(np.prod(array["shape"])) * np.dtype(array["dtype"]).itemsize
    values = np.frombuffer(bytes(raw[array["at"] : array["at"] + size]), array["dtype"]).copy()
    change(values)
    raw[array["at"] : array["at"] + size] = values.tobytes()
    array["crc32"] = zlib.crc32(values.tobytes())
    header = json.dumps(head, separators=(",", ":")).encode().ljust(length)
    raw[8:16] = struct.pack("<II", length, zlib.crc32(header))
    raw[16 : 16 + length] = header
    path.write_bytes(bytes(raw))


@pytest.mark.parametrize(
    ("name", "at", "value"), [("columns", 3, 50), ("columns", 0, -1), ("starts", -1, 10**6), ("starts", 2, -5)]
)
def test_columns_that_would_lead_out_of_memory_are_refused(tmp_path, name, at, value):
    path = tmp_path / "a.rounds"
    io.write(random_rounds(np.random.default_rng(2), 50)[1], path)
    tampered(path, name, lambda values: values.__setitem__(at, value))
    for how in (io.read, io.stream):
        with pytest.raises(DataError, match="this store is damaged"):
            list(how(path))


def test_every_damaged_byte_is_found(tmp_path):
    path = tmp_path / "a.rounds"
    io.write(random_rounds(np.random.default_rng(3), 20)[1], path)
    good = path.read_bytes()
    opened = store.RoundsStore(path)
    for name in store.ROWS:
        at, size = opened.head["arrays"][name]["at"], len(opened.bytes_of(name))
        for byte in range(at, at + size):
            damaged = bytearray(good)
            damaged[byte] ^= 1 << byte % 8
            (tmp_path / "b.rounds").write_bytes(damaged)
            with pytest.raises(DataError, match="damaged"):
                io.read(tmp_path / "b.rounds")


def test_a_large_store_is_streamed_in_pieces(tmp_path, monkeypatch):
    X, rounds = random_rounds(np.random.default_rng(4), 40)
    io.write(rounds, tmp_path / "a.rounds")
    monkeypatch.setattr(store, "BLOCK", 64)
    streamed = list(io.stream(tmp_path / "a.rounds"))
    assert (np.concatenate([round.X.dense() for round in streamed]) == X).all()
    assert len({id(round.X.columns) for round in streamed}) > 1


@pytest.mark.parametrize("how", ["read", "stream"])
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("1 qid:b 5:1 5:2", "line 3, column 13: .*5.* again"),
        ("1 qid:b 9000:1", "line 3, column 9: expected at most 5000 features"),
        ("1 qid:b 5:NULL", "line 3, column 11: .*NULL"),
    ],
)
def test_both_ways_name_the_line(tmp_path, monkeypatch, how, line, words):
    monkeypatch.setattr("ranktron.data.io.streaming.BLOCK", 16)  # each line a block of its own
    path = tmp_path / "wide.txt"
    path.write_text("0 qid:a 5000:1\n\n" + line + "\n")
    with pytest.raises(DataError, match=words):
        list(getattr(io, how)(path, n_features=5000, first_index=1, sparse=True))


def test_a_stream_does_not_put_scattered_rows_together(tmp_path):
    path = tmp_path / "wide.txt"
    path.write_text("1 qid:a 5:1\n1 qid:c 1:1\n1 qid:a 2000:1\n")
    assert np.diff(io.read(path).offsets).tolist() == [2, 1]
    with pytest.raises(DataError, match="line 3: query 'a' occurs again"):
        list(io.stream(path))


def test_streaming_decides_as_reading_does(tmp_path):
    wide, narrow = tmp_path / "wide.txt", tmp_path / "narrow.txt"
    wide.write_text("1 qid:a 3:1\n0 qid:a 4000:2\n1 qid:b 1:1\n")
    narrow.write_text("1 qid:a 3:1\n0 qid:a 400:2\n1 qid:b 1:1\n")
    for path, sparse in ((wide, True), (narrow, False)):
        assert isinstance(io.read(path).X, Sparse) == sparse
        assert [isinstance(round.X, Sparse) for round in io.stream(path)] == [sparse] * 2
    for how in (io.read, io.stream):
        with pytest.raises(DataError, match="null='mean' needs every value"):
            list(how(wide, null="mean"))
    assert [len(round.X.trimmed().columns) for round in io.stream(wide, null="zero")] == [2, 1]
    (tmp_path / "empty.txt").write_text("\n# nothing\n")
    with pytest.raises(DataError, match="there is no document in it"):
        list(io.stream(tmp_path / "empty.txt"))


def test_a_query_that_spans_blocks_is_one_list(tmp_path, monkeypatch):
    monkeypatch.setattr("ranktron.data.io.streaming.BLOCK", 32)
    X, rounds = random_rounds(np.random.default_rng(5), 3000, density=0.002)
    io.write(rounds, tmp_path / "a.txt")
    streamed = list(io.stream(tmp_path / "a.txt", sparse=True))
    assert [len(round.X) for round in streamed] == np.diff(rounds.offsets).tolist()
    assert (np.concatenate([round.X.dense() for round in streamed]) == X).all()


def test_parquet_says_what_to_do_instead(tmp_path):
    _, rounds = random_rounds(np.random.default_rng(6), 5)
    with pytest.raises(DataError, match=r"a column for every feature.*end the name in .rounds"):
        io.write(rounds, tmp_path / "a.parquet")
    pytest.importorskip("pyarrow")
    dense = Rounds.from_arrays(rounds.X.dense(), rounds.labels, group=np.diff(rounds.offsets))
    io.write(dense, tmp_path / "a.parquet")
    assert (io.read(tmp_path / "a.parquet", sparse=True).X.dense() == dense.X).all()
    assert all(isinstance(round.X, Sparse) for round in io.stream(tmp_path / "a.parquet", sparse=True))


STREAM = """
    import sys, ranktron.data.io
    rounds = entries = 0
    for round in ranktron.io.stream(sys.argv[1]):
        rounds += 1
        entries += len(round.X.trimmed().columns)
    with open("/proc/self/status") as file:
        peak = next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM"))
    print(rounds, entries, peak)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured in /proc")
def test_a_stream_of_wide_text_stays_under_300_megabytes(tmp_path):
    """200 MB of text with a million features; written out, one list of it would take 400 MB."""
    rng = np.random.default_rng(0)
    tails = [
        b" ".join(b"%d:%.4f" % (j, rng.random()) for j in np.unique(rng.integers(1, 10**6, 60))) for _ in range(100)
    ]
    text, query = tmp_path / "wide.txt", 0
    with open(text, "wb") as file:
        while file.tell() < 200e6:
            file.write(b"".join(b"%d qid:%d %s\n" % (i % 5, query, tail) for i, tail in enumerate(tails)))
            query += 1
    io.write(io.read(text), tmp_path / "wide.rounds")
    for path in (text, tmp_path / "wide.rounds"):
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(STREAM), str(path)], capture_output=True, text=True, check=True
        )
        rounds, entries, peak = done.stdout.split()
        assert int(rounds) == query
        assert int(entries) == query * sum(tail.count(b":") for tail in tails)
        assert float(peak) < 300
    text.unlink()
