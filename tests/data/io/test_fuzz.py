import gzip
from functools import cache

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ranktron.data import io
from ranktron.errors import DataError


def agree(slow, path, content, **how):
    """Both readers read the same, or both refuse."""
    path.write_bytes(content)
    try:
        expected = slow.read(content, **how)
    except slow.Malformed:
        with pytest.raises(DataError):
            io.read(path, **how)
        with pytest.raises(DataError):
            list(io.stream(path, **how))
        return False
    rounds = io.read(path, **how)
    slow.assert_same(rounds, expected)
    if rounds.rows is None:
        streamed = list(io.stream(path, **how))
        assert [round.qid for round in streamed] == expected.qids
        assert b"".join(round.X.tobytes() for round in streamed) == expected.X.tobytes()
    return True


def spelt(number):
    """The ways in which people write a number."""
    return st.sampled_from(
        [repr(number), f"{number:.6f}", f"{number:.3g}", f"{number:+.12e}", f"{number:.25f}", str(int(number))]
    )


NUMBERS = st.floats(-1e6, 1e6, width=32) | st.floats(-1e37, 1e37) | st.integers(-20, 2000).map(float) | st.floats(-1, 1)
VALUES = st.one_of(
    NUMBERS.flatmap(spelt), st.from_regex(r"[+-]?[0-9]{0,22}\.?[0-9]{0,22}(e[+-]?[0-9]{1,3})?", fullmatch=True)
)
BLANKS = st.sampled_from([" ", " ", " ", "  ", "\t"])


@st.composite
def lines(draw):
    kind = draw(st.integers(0, 20))
    if kind == 0:
        return draw(st.sampled_from(["", "  ", "# words", "\t#", "1"]))
    indices = draw(st.lists(st.integers(0 if kind == 1 else 1, 12), unique=kind != 2, max_size=8))
    features = [f"{index}:{draw(VALUES)}" for index in (indices if kind < 5 else sorted(indices))]
    label = draw(st.sampled_from(["0", "1", "2", "0.07", "4.0", "1e0"]))
    comment = draw(st.sampled_from(["", "", " # docid = G-1", "#docid=7 inc = 1", " # 7"]))
    words = [label, f"qid:{draw(st.sampled_from('aabc'))}", *features]
    return "".join(word + draw(BLANKS) for word in words).rstrip() + draw(st.sampled_from(["", " "])) + comment


@settings(max_examples=300, deadline=None)
@given(st.lists(lines(), min_size=1, max_size=6), st.sampled_from(["\n", "\r\n"]), st.booleans())
@example(
    ["0 qid:a 1:1.00000017881393432617187499", "0 qid:a 1:-1.0000001788139343261718750000000000000001"], "\n", False
)
@example(["0 qid:a 1:1 2:1e-400 3:0." + "0" * 400 + "1 4:" + "1" * 30 + "e-400 5:." + "9" * 400], "\n", False)
def test_generated_files(slow, tmp_path_factory, written, separator, final):
    content = (separator.join(written) + (separator if final else "")).encode()
    agree(slow, tmp_path_factory.getbasetemp() / "generated.txt", content)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60) | st.text("01 .:eqidq#\n\t-+NUL", max_size=60).map(str.encode))
def test_any_bytes(slow, tmp_path_factory, content):
    if content[:2] != b"\x1f\x8b":
        agree(slow, tmp_path_factory.getbasetemp() / "any.txt", content)


@cache
def real_lines(folder):
    """Some real lines of every kind, or lines like them."""
    rng = np.random.default_rng(3)
    likeness = b"".join(
        b"%d qid:%d " % (i % 3, 80 + i // 10)
        + b" ".join(b"%d:%.6f" % (j + 1, v) for j, v in enumerate(rng.random(45)))
        + b" #docid = %d\n" % i
        for i in range(40)
    )
    if folder is None:
        return [likeness]
    names = ["ohsumed-letor3/Fold1/test.txt.gz", "mslr-sample/test.txt.gz", "yandex-imat2009-sample/learn.txt.gz"]
    return [likeness] + [b"".join(gzip.open(folder / name).readlines()[:40]) for name in names]


def flip_bytes(slow, tmp_path, folder, seed, times):
    rng = np.random.default_rng(seed)
    outcomes = set()
    for number in range(times):
        content = bytearray(real_lines(folder)[number % len(real_lines(folder))])
        for at in rng.integers(0, len(content), rng.integers(1, 4)):
            likely = rng.random() < 0.5
            content[at] = rng.choice(list(b"0123456789 .:#\n\r-eE+qidNUL")) if likely else rng.integers(256)
        outcomes.add(agree(slow, tmp_path / "flipped.txt", bytes(content)))
    assert outcomes == {True, False}


def test_flipped_bytes(slow, tmp_path):
    flip_bytes(slow, tmp_path, None, 0, 150)


@pytest.mark.data
def test_flipped_bytes_of_real_files(slow, tmp_path, data_dir):
    flip_bytes(slow, tmp_path, data_dir, 1, 300)


def test_flipped_bytes_of_a_compressed_file(slow, tmp_path):
    rng = np.random.default_rng(2)
    original = real_lines(None)[0]
    squeezed = gzip.compress(original, mtime=0)
    expected = slow.read(original)
    for _ in range(200):
        damaged = bytearray(squeezed)
        damaged[rng.integers(len(damaged))] ^= 1 << rng.integers(8)
        (tmp_path / "flipped.txt.gz").write_bytes(damaged)
        try:
            rounds = io.read(tmp_path / "flipped.txt.gz")
        except DataError:
            continue
        slow.assert_same(rounds, expected)
