"""The benchmarks' memory: what became slower is told from noise; and the page that they write."""

import importlib.util
import inspect
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from ranktron.lazy import lazy_names

ROOT = Path(__file__).parent.parent


def load(name):
    spec = importlib.util.spec_from_file_location(f"benchmarks_{name}", ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def history():
    return load("history")


@pytest.fixture
def command(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    return load("__main__")


def rows(*ratios):
    return [{"what": "a pass", "ours": 1.0, "peer": ratio, "ratio": ratio, "bar": ""} for ratio in ratios]


def test_repeats_become_one_row_with_its_noise(history):
    joined = history.join([rows(2.0), rows(3.0), rows(2.5)])
    assert [row["ratio"] for row in joined] == [2.5]
    assert history.noise(joined[0]) == 3.0 / 2.0


def test_rows_without_a_peer_have_no_noise(history):
    row = history.join([rows(None), rows(None)])[0]
    assert row["ratio"] is None
    assert history.noise(row) == 1.0
    assert history.compare([row], rows(None)) == []


@pytest.mark.parametrize(("ratio", "told"), [(2.0, False), (1.75, False), (1.6, True), (2.3, False), (2.6, True)])
def test_a_change_is_told_only_beyond_the_noise(history, ratio, told):
    then = history.join([rows(2.0), rows(2.4)])  # a noise of 1.2
    now = history.join([rows(ratio), rows(ratio)])
    assert bool(history.compare(now, then)) is told


def test_the_last_run_of_each_benchmark_is_kept(history, tmp_path):
    for date, found in {"2026-01-01 10:00": {"a": 1, "b": 1}, "2026-01-02 09:00": {"a": 2}}.items():
        path = history.save({"date": date, "commit": "abc", "machine": "", "benchmarks": found}, tmp_path)
    assert path.name == "20260102-0900-abc.json"
    assert history.latest(history.earlier(tmp_path)) == {"a": 2, "b": 1}


def test_sections_that_were_not_measured_stay_as_they_are(command):
    c = "## c\n\nText. # no title\n\n### below c\n\n| kept |\n"
    page = f"# Old\n\nold machine\n\n## a\n\n| old |\n\n{c}"
    merged = command.merge("# New\n\nnew machine", page, {"b": "## b\n\n| new |", "a": "## a\n\n| new |"})
    assert merged == f"# New\n\nnew machine\n\n## a\n\n| new |\n\n## b\n\n| new |\n\n{c}"
    assert command.merge("# New", merged, {}).removeprefix("# New") == merged.removeprefix("# New\n\nnew machine")


def test_the_page_of_the_project_survives_a_merge(command):
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert command.merge(page.partition("\n\n## ")[0], page, {}) == page


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "benchmarks").glob("[a-z]*.py")))
def test_what_a_benchmark_imports_is_there(command, name):
    try:
        importlib.import_module(f"benchmarks.{name}")
    except ModuleNotFoundError as missing:
        if missing.name.partition(".")[0] in ("ranktron", "reproduction", "benchmarks"):
            raise
        return
    if name in command.names():
        inspect.signature(importlib.import_module(f"benchmarks.{name}").run).bind()  # as `make bench` calls it


def test_a_walk_counts_calls_of_threads_that_were_there_before():
    profile, go = load("walks").Profile(), threading.Event()

    def work():
        go.wait()
        lazy_names("module", {})

    with profile.installed():
        thread = threading.Thread(target=work)
        thread.start()
        lazy_names("module", {})
        with profile.counting():
            go.set()
            thread.join()
        lazy_names("module", {})
    assert profile.calls == {"lazy.py": 1}


@pytest.mark.parametrize("missing", [ModuleNotFoundError("no xgboost"), SystemExit("set RANKTRON_DATA")])
def test_a_benchmark_that_lacks_something_is_skipped_and_says_so(command, monkeypatch, capsys, missing):
    def run():
        raise missing

    monkeypatch.setattr(command, "import_module", lambda name: SimpleNamespace(run=run))
    assert command.measure("any", 2) == []
    assert f"skipped: {missing}" in capsys.readouterr().out
