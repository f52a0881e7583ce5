import subprocess
import sys
import textwrap

import numpy as np
import pytest

linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is measured in /proc")


def run(script, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_importing_imports_nothing_heavy():
    loaded = run("import sys, ranktron.data.io; print(*sys.modules)")
    assert not {"numba", "scipy", "pyarrow", "zstandard", "sklearn"} & set(loaded)


def test_reading_text_does_not_import_the_extras(tmp_path):
    (tmp_path / "a.txt").write_text("1 qid:1 1:1\n")
    loaded = run("import sys, ranktron.data.io; ranktron.io.read(sys.argv[1]); print(*sys.modules)", tmp_path / "a.txt")
    assert not {"pyarrow", "zstandard", "sklearn"} & set(loaded)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A file of 350 MB: one block again and again, under new query ids."""
    path = tmp_path_factory.mktemp("large") / "large.txt"
    rng = np.random.default_rng(0)
    tails = [" ".join(f"{j + 1}:{v:.6f}" for j, v in enumerate(row)).encode() for row in rng.random((100, 136))]
    with open(path, "wb") as file:
        query = 0
        while file.tell() < 350e6:
            file.write(b"".join(b"%d qid:%d %s\n" % (i % 5, query, tail) for i, tail in enumerate(tails)))
            query += 1
    yield path, query
    path.unlink()


STREAM = """
    import sys, ranktron.data.io
    rounds = labels = total = 0
    for round in ranktron.io.stream(sys.argv[1]):
        rounds += 1
        labels += round.labels.sum()
        total += float(round.X[0, 0])
    with open("/proc/self/status") as file:
        peak = next(int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM"))
    print(rounds, labels, total, peak)
"""


@pytest.mark.slow
@linux
def test_a_stream_of_a_large_file_stays_under_300_megabytes(large, tmp_path):
    path, queries = large
    first = run(STREAM, path)
    assert first[:2] == [str(queries), str(200.0 * queries)]
    assert float(first[3]) < 300
    store = tmp_path / "large.rounds"
    run(
        "import sys, ranktron.data.io; ranktron.io.write(ranktron.io.read(sys.argv[1]), sys.argv[2])",
        path,
        store,
    )
    second = run(STREAM, store)
    assert second[:3] == first[:3]
    assert float(second[3]) < 300


@pytest.mark.slow
@linux
def test_reading_takes_little_more_memory_than_the_arrays(large, tmp_path):
    (tmp_path / "small.txt").write_text("1 qid:1 1:1 2:0.5\n")
    peak, size = run(PEAK, tmp_path / "small.txt", large[0])
    assert float(peak) <= 1.6 * float(size)


PEAK = """
    import sys, threading, time, ranktron.data.io

    def anonymous():
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith("RssAnon"))

    ranktron.io.read(sys.argv[1])
    before, peak, done = anonymous(), 0, threading.Event()

    def watch():
        global peak
        while not done.wait(0.005):
            peak = max(peak, anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    rounds = ranktron.io.read(sys.argv[2])
    done.set()
    watcher.join()
    print(max(peak, anonymous()) - before, rounds.X.nbytes + rounds.labels.nbytes + rounds.offsets.nbytes)
"""
