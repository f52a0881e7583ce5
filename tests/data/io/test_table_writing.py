import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktron.data import io
from ranktron.data.rounds import Rounds

pytest.importorskip("pyarrow")

FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=32)
WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=5) | st.sampled_from(
    ['a,"b', "1;2", "x\ty", "null", "NaN", "007"]
)


@st.composite
def rounds_of_any_kind(draw):
    n, d = draw(st.integers(1, 6)), draw(st.integers(1, 3))
    X = draw(st.lists(st.lists(FLOATS, min_size=d, max_size=d), min_size=n, max_size=n))
    labels = draw(st.lists(st.floats(0, 1e6) | st.integers(0, 4), min_size=n, max_size=n))
    names = draw(st.lists(WORDS.filter(lambda w: w.strip()), min_size=d, max_size=d, unique=True))
    names = [f"x {name}" for name in names]
    qids, docids = (draw(st.lists(WORDS, min_size=n, max_size=n)) for _ in range(2))
    return Rounds.from_arrays(X, labels, qids, docids=docids, feature_names=names)


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet", "arrow", "csv.gz", "jsonl.xz", "rounds"])
@settings(max_examples=20, deadline=None)
@given(rounds=rounds_of_any_kind())
def test_what_is_written_is_read_back(ending, rounds, tmp_path_factory):
    path = tmp_path_factory.mktemp("tables") / f"a.{ending}"
    io.write(rounds, path)
    back = io.read(path)
    assert back.X.tolist() == rounds.X.tolist()  # by value: JSON has no -0
    assert back.labels.tolist() == rounds.labels.tolist()
    assert back.offsets.tolist() == rounds.offsets.tolist()
    assert back.qids.tolist() == rounds.qids.tolist()
    assert back.docids.tolist() == rounds.docids.tolist()
    assert back.feature_names == rounds.feature_names


@pytest.mark.parametrize("ending", ["csv", "tsv", "jsonl", "parquet", "arrow", "csv.bz2", "txt.xz", "txt.zst"])
def test_numbered_features_and_more_rows_than_a_batch(tmp_path, monkeypatch, ending):
    monkeypatch.setattr("ranktron.data.io.writing.NUMBERS", 64)
    monkeypatch.setattr("ranktron.data.io.writing.BATCH", 16)
    monkeypatch.setattr("ranktron.data.io.table_sources.ROWS", 16)
    monkeypatch.setattr("ranktron.data.io.table_sources.CSV_BLOCK", 512)
    monkeypatch.setattr("ranktron.data.io.table_sources.JSON_BLOCK", 512)
    rng = np.random.default_rng(1)
    qid = [f"q{i // 7}" for i in range(100)]
    rounds = Rounds.from_arrays(rng.normal(size=(100, 3)), rng.integers(0, 3, 100), qid)
    path = tmp_path / f"a.{ending}"
    io.write(rounds, path)
    back = io.read(path)
    assert back.X.tobytes() == rounds.X.tobytes()
    assert (back.feature_names, back.docids, back.first_index) == (None, None, 1)
    for streamed, round in zip(io.stream(path), rounds, strict=True):
        assert (streamed.qid, streamed.X.tolist(), streamed.labels.tolist()) == (
            round.qid,
            round.X.tolist(),
            round.labels.tolist(),
        )
