import json
import struct
import time
import zlib

import numpy as np
import pytest

import ranktron
from ranktron.data import io
from ranktron.data.io import store
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError


@pytest.fixture
def rounds():
    rng = np.random.default_rng(0)
    return Rounds.from_arrays(
        rng.normal(size=(60, 5)),
        rng.integers(0, 5, 60),
        qid=rng.integers(0, 7, 60).astype("U"),
        docids=np.arange(60).astype("U"),
        feature_names=list("abcde"),
    )


def test_a_store_is_mapped_and_its_file_never_written(rounds, tmp_path):
    io.write(rounds, tmp_path / "a.rounds")
    changed = io.read(tmp_path / "a.rounds")
    changed.X[:] = 7.0  # in this process alone
    opened = io.read(tmp_path / "a.rounds")
    assert not opened.X.flags.owndata
    assert opened.X.flags.writeable == rounds.X.flags.writeable  # one type for numba: nothing is compiled twice
    assert opened.X.ctypes.data % 64 == 0
    assert opened.feature_names == rounds.feature_names
    assert opened.rows.tolist() == rounds.rows.tolist()
    assert opened.X.tobytes() == rounds.X.tobytes()


def test_every_damaged_byte_is_found(rounds, tmp_path):
    io.write(rounds, tmp_path / "a.rounds")
    good = (tmp_path / "a.rounds").read_bytes()
    head = json.loads(good[16 : 16 + struct.unpack("<I", good[8:12])[0]])
    used = bytearray(len(good))
    used[: 16 + struct.unpack("<I", good[8:12])[0]] = b"\1" * len(used[: 16 + struct.unpack("<I", good[8:12])[0]])
    for array in head["arrays"].values():
        size = int(np.prod(array["shape"])) * np.dtype(array["dtype"]).itemsize
        used[array["at"] : array["at"] + size] = b"\1" * size
    for at in np.flatnonzero(np.frombuffer(bytes(used), np.uint8)).tolist():
        damaged = bytearray(good)
        damaged[at] ^= 1 << at % 8
        (tmp_path / "b.rounds").write_bytes(damaged)
        with pytest.raises(DataError):
            io.read(tmp_path / "b.rounds")


@pytest.mark.parametrize("size", [0, 7, 8, 12, 16, 100, -64, -1])
def test_a_store_that_is_cut_off(rounds, tmp_path, size):
    io.write(rounds, tmp_path / "a.rounds")
    (tmp_path / "a.rounds").write_bytes((tmp_path / "a.rounds").read_bytes()[:size])
    with pytest.raises(DataError):
        io.read(tmp_path / "a.rounds")
    with pytest.raises(DataError):
        list(io.stream(tmp_path / "a.rounds"))


def test_a_large_store_opens_without_being_read_and_verify_reads_it(rounds, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "WHOLE", 0)
    path = tmp_path / "a.rounds"
    io.write(rounds, path)
    io.verify(path)
    good = bytearray(path.read_bytes())
    places = {name: array["at"] for name, array in store.RoundsStore(path).head["arrays"].items()}
    for name, found_at_once in [("X", False), ("labels", False), ("offsets", True), ("qids", True)]:
        damaged = good.copy()
        damaged[places[name] + 3] ^= 1
        path.write_bytes(damaged)
        if found_at_once:
            with pytest.raises(DataError, match=f"its {name} do not match their checksum; convert"):
                io.read(path)
        else:
            io.read(path)
        with pytest.raises(DataError, match=f"its {name} do not match their checksum; convert"):
            io.verify(path)


@pytest.mark.parametrize(("content", "message"), [(b"1 qid:1 1:1", "not a store"), (b"", "the file is empty")])
def test_only_a_store_can_be_verified(tmp_path, content, message):
    (tmp_path / "a.txt").write_bytes(content)
    with pytest.raises(DataError, match=message):
        io.verify(tmp_path / "a.txt")


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (b'"format":9', f"written by ranktron {ranktron.__version__}, and ranktron .* cannot read its format"),
        (b'"earlier":1', "written by a ranktron before 0.3, and ranktron .* cannot read its format"),
    ],
)
def test_another_format_is_refused(rounds, tmp_path, written, words):
    path = tmp_path / "a.rounds"
    io.write(rounds, path)
    good = path.read_bytes()
    length = struct.unpack("<I", good[8:12])[0]
    header = good[16 : 16 + length].replace(b'"format":3', written)
    path.write_bytes(
        good[:8] + struct.pack("<I", len(header)) + struct.pack("<I", zlib.crc32(header)) + header + good[16 + length :]
    )
    with pytest.raises(DataError, match=words):
        io.read(path)


@pytest.mark.timed
def test_opening_takes_milliseconds(tmp_path):
    n = 600_000
    large = Rounds.from_arrays(np.zeros((n, 40), np.float32), np.zeros(n), group=np.full(n // 100, 100))
    io.write(large, tmp_path / "a.rounds")
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        io.read(tmp_path / "a.rounds")
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.05


def test_declared_features_fit_a_store_as_they_fit_text(tmp_path):
    io.write(Rounds.from_arrays([[1.0, 2.0]], [0], qid=["a"]), tmp_path / "a.rounds")
    io.write(Rounds.from_arrays([[1.0, 2.0]], [0], qid=["a"]), tmp_path / "a.txt")
    for name in ("a.rounds", "a.txt"):
        for how, expected in [
            ({"n_features": 3}, [1, 2, 0]),
            ({"n_features": 4, "first_index": 0}, [0, 1, 2, 0]),
            ({"first_index": 0}, [0, 1, 2]),
        ]:
            assert io.read(tmp_path / name, **how).X.tolist() == [expected]
            assert io.read(tmp_path / name, **how).first_index == how.get("first_index", 1)
            assert next(io.stream(tmp_path / name, **how)).X.tolist() == [expected]
        with pytest.raises(DataError, match="features"):
            io.read(tmp_path / name, n_features=1)


def test_a_store_has_no_nulls_to_fill(rounds, tmp_path):
    io.write(rounds, tmp_path / "a.rounds")
    assert io.read(tmp_path / "a.rounds", null="min").X.tobytes() == rounds.X.tobytes()
    assert sum(len(round.X) for round in io.stream(tmp_path / "a.rounds", null="min")) == 60


def test_several_stores_and_texts_together(tmp_path):
    io.write(Rounds.from_arrays([[1.0]], [0], qid=["a"]), tmp_path / "1.rounds")
    io.write(Rounds.from_arrays([[2.0]], [0], qid=["b"]), tmp_path / "2.txt")
    assert io.read(tmp_path).X.tolist() == [[1], [2]]
    assert [round.qid for round in io.stream(tmp_path)] == ["a", "b"]
