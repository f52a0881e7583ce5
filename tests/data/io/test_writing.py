import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ranktron.data import io
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError

NAMES = [".txt", ".letor", ".svm", ".txt.gz", ".txt.zst", ".parquet", ".rounds"]


def assert_equal(one, other):
    assert one.X.tobytes() == other.X.tobytes()
    assert one.X.shape == other.X.shape
    assert one.labels.tobytes() == other.labels.tobytes()
    assert one.offsets.tolist() == other.offsets.tolist()
    assert one.qids.tolist() == other.qids.tolist()
    assert (one.docids is None) == (other.docids is None)
    assert one.docids is None or one.docids.tolist() == other.docids.tolist()
    assert one.feature_names == other.feature_names
    assert one.first_index == other.first_index


@st.composite
def some_rounds(draw):
    n, width = draw(st.integers(1, 12)), draw(st.integers(1, 9))
    value = st.floats(width=32, allow_nan=False, allow_infinity=False)
    name = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="#"), min_size=1)
    X = draw(st.lists(st.lists(value, min_size=width, max_size=width), min_size=n, max_size=n))
    labels = draw(st.lists(st.floats(0, 1e300, allow_nan=False), min_size=n, max_size=n))
    qids = draw(st.lists(st.sampled_from(draw(st.lists(name, min_size=1, max_size=4))), min_size=n, max_size=n))
    docids = draw(st.none() | st.lists(name, min_size=n, max_size=n))
    return Rounds.from_arrays(
        np.array(X, np.float32), labels, np.array(qids), docids=docids, first_index=draw(st.sampled_from([0, 1]))
    )


@pytest.mark.parametrize("ending", NAMES)
@given(rounds=some_rounds())
def test_reading_gives_back_what_was_written(tmp_path_factory, ending, rounds):
    path = tmp_path_factory.getbasetemp() / f"round-trip{ending}"
    io.write(rounds, path)
    assert_equal(io.read(path), rounds)
    for streamed, round in zip(io.stream(path), rounds, strict=True):
        assert (streamed.qid, streamed.X.tobytes()) == (round.qid, round.X.tobytes())


def test_text_has_the_shortest_digits(tmp_path):
    X = np.array([[0.1, 1e-7, 835, 16777216, -0.0, 3.4028235e38]], np.float32)
    io.write(Rounds.from_arrays(X, [0.25], qid=["q"], docids=["d"]), tmp_path / "a.txt")
    expected = "0.25 qid:q 1:0.1 2:1e-07 3:835 4:1.6777216e+07 5:-0 6:3.4028235e+38 #docid = d\n"
    assert (tmp_path / "a.txt").read_text() == expected


RNG = np.random.default_rng(0)
NUMBERS = {
    "uniform": RNG.random(5000),
    "of any size": 10.0 ** RNG.uniform(-14, 9, 5000),
    "any bits": RNG.integers(-(2**31), 2**31, 5000).astype(np.int32).view(np.float32),
    "short": np.round(RNG.random(5000) * 1000, 2),
    "whole": RNG.integers(0, 2**25, 5000),
    "powers of two": 2.0 ** np.arange(-140, 100),
    "next to powers of two": np.nextafter(2.0 ** np.arange(-45, 25, dtype=np.float32), np.float32(0.0)),
    "halfway": (RNG.integers(0, 10**6, 5000) + 0.5) / 10.0 ** RNG.integers(0, 9, 5000),
    "few bits": RNG.integers(1, 2**12, 5000) * 2.0 ** -RNG.integers(0, 30, 5000),
}


@pytest.mark.parametrize("kind", NUMBERS)
def test_numbers_are_spelt_as_numpy_spells_them(tmp_path, monkeypatch, kind):
    values = NUMBERS[kind].astype(np.float32)
    values = values[np.isfinite(values)]
    values[::3] *= -1
    monkeypatch.setattr("ranktron.data.io.writing.NUMBERS", 1000)
    X = values[: len(values) // 5 * 5].reshape(-1, 5)
    io.write(Rounds.from_arrays(X, np.zeros(len(X))), tmp_path / "a.txt")
    lines = [" ".join(f"{j}:{str(x).removesuffix('.0')}" for j, x in enumerate(row, start=1)) for row in X]
    assert [line.split(" ", 2)[2] for line in (tmp_path / "a.txt").read_text().splitlines()] == lines


def test_the_same_rounds_give_the_same_bytes(tmp_path):
    rounds = Rounds.from_arrays([[0.5], [1.5]], [0, 1], qid=["a", "b"])
    for ending in [".txt", ".txt.gz", ".rounds"]:
        io.write(rounds, tmp_path / f"a{ending}")
        io.write(rounds, tmp_path / f"b{ending}")
        assert (tmp_path / f"a{ending}").read_bytes() == (tmp_path / f"b{ending}").read_bytes()
    assert gzip.decompress((tmp_path / "a.txt.gz").read_bytes()) == (tmp_path / "a.txt").read_bytes()


@pytest.mark.parametrize(
    ("rounds", "name", "message"),
    [
        (Rounds.from_arrays([[1.0]], [0], qid=["a b"]), "a.txt", "'a b' cannot be written"),
        (Rounds.from_arrays([[1.0]], [0], qid=["a#b"]), "a.txt", "'a#b' cannot be written"),
        (Rounds.from_arrays([[1.0]], [0], qid=["a"], docids=["x y"]), "a.txt", "'x y' cannot be written"),
        (Rounds.from_arrays([[1.0]], [0]), "a.xlsx", "cannot tell the format; end the name in"),
        (Rounds.from_arrays([[1.0]], [0]), "a", "cannot tell the format"),
        (Rounds.from_arrays([[1.0]], [0]), "a.parquet.gz", "cannot tell the format"),
        (Rounds.from_arrays([[1.0]], [0]), "nowhere/a.txt", "cannot be written: No such file"),
        (Rounds.from_arrays([[1.0]], [0], feature_names=["qid"]), "a.parquet", "feature names must differ"),
        (Rounds.from_arrays([[1.0]], [0])[:0], "a.txt", "there is nothing to write"),
        (
            Rounds(np.array([[np.nan]], np.float32), np.zeros(1), np.array([0, 1]), np.array(["a"])),
            "a.rounds",
            "must be finite",
        ),
    ],
)
def test_what_cannot_be_written_leaves_nothing_behind(tmp_path, rounds, name, message):
    with pytest.raises(DataError, match=message):
        io.write(rounds, tmp_path / name)
    assert list(tmp_path.iterdir()) == []
