"""Cells are computed once, on all cores, and never lost."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from reproduction.harness import cache
from reproduction.harness.cache import CellCache, Kept, cell_key
from reproduction.harness.experiment import Cell, Plan, Series
from reproduction.harness.runner import CellJob, Failed, run_cells

HERE = Path(__file__).parent


@pytest.fixture
def store(tmp_path):
    (tmp_path / "cells").mkdir()
    return CellCache(tmp_path / "cells")


@pytest.fixture
def cells(monkeypatch):
    """The module `cells` of this folder, importable here and in worker processes."""
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    import cells

    return cells


def jobs_of(name, count, **arguments):
    cells = [Cell(f"cells:{name}", {"x": x, **arguments}, seed=1) for x in range(count)]
    return [CellJob(cell_key(cell, None), cell, None) for cell in cells]


def test_a_second_run_computes_nothing(store, cells, monkeypatch):
    jobs = jobs_of("square", 3)
    first = run_cells(jobs, store, workers=0)
    assert [first[job.key].result["value"] for job in jobs] == [1, 2, 5]
    monkeypatch.setattr(cells, "square", cells.broken)
    told = []
    again = run_cells(jobs, store, workers=0, watch=told.append)
    assert [again[job.key] for job in jobs] == [first[job.key] for job in jobs]
    assert told == [1.0, 1.0, 1.0]


def test_a_failed_cell_fails_alone_and_is_tried_again(store, cells):
    jobs = [*jobs_of("square", 1), *jobs_of("broken", 1)]
    found = run_cells(jobs, store, workers=0)
    assert isinstance(found[jobs[0].key], Kept)
    assert found[jobs[1].key] == Failed("broken, seed 1: ValueError: x is 0 and that is wrong")
    assert store.get(jobs[1].key) is None
    nan = CellJob("k", Cell("cells:not_json", {}, 0), None)
    assert "not JSON compliant" in run_cells([nan], store, workers=0)["k"].why


def test_a_damaged_file_is_computed_again(store, cells):
    (job,) = jobs_of("square", 1)
    before = run_cells([job], store, workers=0)[job.key]
    (store.folder / f"{job.key}.json").write_text('{"result": ')
    assert run_cells([job], store, workers=0)[job.key].result == before.result


@pytest.mark.slow
def test_processes_have_one_thread_each(store, cells):
    jobs = jobs_of("square", 4)
    before, others = os.environ.get("NUMBA_NUM_THREADS"), set(multiprocessing.active_children())
    found = [kept.result for kept in run_cells(jobs, store, workers=2).values()]
    assert {row["threads"] for row in found} == {"1"}
    assert os.getpid() not in {row["process"] for row in found}
    assert os.environ.get("NUMBA_NUM_THREADS") == before
    assert set(multiprocessing.active_children()) <= others


def test_keys_depend_on_everything(cells, tmp_path, monkeypatch):
    cell = Cell("cells:square", {"x": 1}, 0)
    data = tmp_path / "data"
    data.mkdir()
    (data / "train.txt").write_text("1")
    keys = {
        cell_key(cell, None),
        cell_key(replace(cell, seed=1), None),
        cell_key(replace(cell, arguments={"x": 2}), None),
        cell_key(replace(cell, function="cells:slow"), None),
        cell_key(cell, data),
    }
    (data / "train.txt").write_text("2")
    cache.checksum_folder.cache_clear()
    keys.add(cell_key(cell, data))
    monkeypatch.setattr(cache, "libraries", lambda: {"numpy": "0"})
    keys.add(cell_key(cell, None))
    monkeypatch.setattr(cache, "code_version", lambda module: "another")
    keys.add(cell_key(cell, None))
    assert len(keys) == 8
    assert cell_key(replace(cell, cost=9.0), None) == cell_key(cell, None)  # a guess changes no result


def test_the_code_of_a_cell_is_the_library_and_its_own_file():
    online = cache.code_version("reproduction.harness.online_cells")
    assert online != cache.code_version("reproduction.harness.pairwise_cells")
    assert len(online) == 64


def test_code_that_moves_makes_cells_new(tmp_path, monkeypatch):
    """Also those of an older version, whose modules stood elsewhere: they are computed again rather than mistaken."""
    monkeypatch.setattr(cache, "_ROOT", tmp_path)
    for name in cache._COUNTS:
        place = tmp_path / name
        (place.parent if place.suffix else place).mkdir(parents=True, exist_ok=True)
        if place.suffix:
            place.write_text("")
    versions = set()
    for name in ("ranktron/types/steps.py", "ranktron/learners/steps.py", "ranktron/learners/sizes.py"):
        (tmp_path / name).write_text("eta = 1.0")
        versions.add(cache.code_version.__wrapped__("json"))
        (tmp_path / name).unlink()
    (tmp_path / "ranktron" / "cli").mkdir()
    (tmp_path / "ranktron" / "cli" / "steps.py").write_text("eta = 1.0")  # what only looks on counts for nothing
    versions.add(cache.code_version.__wrapped__("json"))
    (tmp_path / "ranktron" / "cli" / "steps.py").write_text("eta = 2.0")
    versions.add(cache.code_version.__wrapped__("json"))
    assert len(versions) == 4


def test_results_pass_through_json(store, cells, tmp_path):
    (tmp_path / "train.txt").write_text("a\nb\n")
    job = CellJob("key", Cell("cells:lines", {}, 0, "data"), tmp_path)
    assert run_cells([job], store, workers=0)["key"].result == 2
    assert json.loads((store.folder / "key.json").read_text())["cell"]["data"] == "data"


def test_series_have_a_row_for_each_seed_and_a_cell_for_each_part():
    series = Series("s", sorted, {"T": 9}, {"T": 3}, parts=({"a": 1}, {"a": 2}), seeds=4, quick_seeds=2)
    assert [[cell.seed for cell in row] for row in series.cells(Plan(quick=True), None)] == [[0, 0], [1, 1]]
    assert {cell.arguments["T"] for row in series.cells(Plan(quick=True), None) for cell in row} == {3}
    assert len(series.cells(Plan(seeds=7), None)) == 7
    assert len(replace(series, seeds=1).cells(Plan(seeds=7), None)) == 1  # nothing is left to chance


INTERRUPTED = """
import sys
from pathlib import Path
sys.path.insert(0, {here!r})
from reproduction.harness.experiment import Cell
from reproduction.harness.cache import CellCache
from reproduction.harness.runner import CellJob, run_cells

if __name__ == "__main__":
    jobs = [CellJob(str(x), Cell("cells:slow", {{"x": x}}, 0), None) for x in range(400)]
    run_cells(jobs, CellCache(Path({folder!r})), workers=2)
"""


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_done_and_ends_at_once(store, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(INTERRUPTED.format(here=str(HERE), folder=str(store.folder)))
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    process = subprocess.Popen(
        [sys.executable, program], env=environment, stderr=subprocess.PIPE, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # tests in a shell's background ignore it
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while len(list(store.folder.glob("*.json"))) < 5 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes
    _, complaint = process.communicate(timeout=20)
    done = len(list(store.folder.glob("*.json")))
    assert b"KeyboardInterrupt" in complaint
    assert 5 <= done < 400
    assert all(store.get(path.stem) is not None for path in store.folder.glob("*.json"))


@pytest.mark.slow
def test_workers_leave_when_their_parent_is_killed(store, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(INTERRUPTED.format(here=str(HERE), folder=str(store.folder)))
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    process = subprocess.Popen(
        [sys.executable, program], env=environment, stderr=subprocess.PIPE, start_new_session=True
    )
    deadline = time.monotonic() + 60
    while not list(store.folder.glob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.kill()
    process.communicate(timeout=20)  # the pipe is closed when the last worker has gone
