"""From cells to the report: rows, files, words for what was not run, and the command."""

import csv
import json
import re
from dataclasses import replace
from importlib import import_module
from xml.etree import ElementTree

import numpy as np
import pytest

from ranktron import DataError
from ranktron.cli import main
from reproduction import PAPERS
from reproduction.__main__ import cli
from reproduction.harness.experiment import Claim, Experiment, Paper, Plan, ReportTable, Series
from reproduction.harness.reproduce import COLUMNS, lay_out, reproduce, select_papers
from reproduction.harness.verdicts import DIFFERS, FAILED, MISSING, REPRODUCED, VERDICTS, Near
from reproduction.report.charts import ChartLine, Dot, Figure, Panel

KEYS = {"paper", "item", "published", "ours", "spread", "verdict"}


def tenth(seed):
    return 0.1 * seed


def wrong(seed):
    raise ValueError("no <luck>")


def values(results):
    return {"a": np.array([row[0] for row in results["tenths"]])}


def drawn(results):
    lines = [
        ChartLine("ours & theirs", [1, 10, 100], [0.1, 0.2, 0.3], [0.01] * 3),
        ChartLine("paper", [100], [0.25], marks=True),
    ]
    dots = [Dot("one", 0.5, 0.1, 0.45), Dot("two <", 0.4)]
    return Figure(
        "small", "A <small> figure", [Panel("l", "x", "y", lines, log_x=True), Panel("d", "", "z", dots=dots)]
    )


GOOD = Experiment(
    "good",
    "A title",
    "About <it>.",
    [Series("tenths", tenth, seeds=3)],
    [
        Claim("Table 1", "it is 0.1", Near("a", {"a": 0.1}, 0.01), values, "a note"),
        Claim("Table 2", "it is 9", Near("a", {"a": 9.0}, 0.01), values),
    ],
    [drawn],
    [lambda results: ReportTable("All", ("seed", "value"), [(0, "0.0")])],
)
SMALL = Paper("small", "A <paper>", "Nobody", [GOOD])


@pytest.fixture
def report(tmp_path):
    return reproduce([SMALL], tmp_path / "out", workers=0)


def test_rows_say_what_was_printed_and_what_came_out(report):
    first, second = report.rows
    assert KEYS < set(first) == set(COLUMNS)
    assert (first["published"], first["ours"], first["spread"]) == (0.1, pytest.approx(0.1), pytest.approx(0.1))
    assert (first["verdict"], second["verdict"]) == (REPRODUCED, DIFFERS)
    assert second["difference"] == pytest.approx(-8.9)
    assert first["data"] == "simulated"


def test_files_hold_the_same_rows(report):
    folder = report.report.parent
    assert json.loads((folder / "rows.json").read_text())["rows"] == list(report.rows)
    with (folder / "rows.csv").open() as file:
        found = list(csv.DictReader(file))
    assert [row["verdict"] for row in found] == [row["verdict"] for row in report.rows]
    assert float(found[0]["ours"]) == report.rows[0]["ours"]
    ElementTree.parse(folder / "figures" / "small.svg")
    with (folder / "figures" / "small.csv").open() as file:
        points = list(csv.DictReader(file))
    assert [point["name"] for point in points] == ["ours & theirs"] * 3 + ["paper", "one", "two <"]


def test_the_page_is_complete_and_asks_for_nothing_from_elsewhere(report):
    page = report.report.read_text()
    assert "<script" not in page
    assert not re.search(r"(src|href)=['\"](?!#|data:)", page)
    assert page.count("<figure") == 1
    assert "A &lt;paper&gt;" in page
    assert "About &lt;it&gt;." in page
    assert "<code>python -m reproduction small --out OUT</code>" in page
    ids = re.findall(r"\bid='([^']+)'", page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"href='#([^']+)'", page)) <= set(ids)


def test_the_same_seeds_give_the_same_bytes(report, tmp_path):
    again = reproduce([SMALL], tmp_path / "again", workers=0)
    for name in ("rows.json", "rows.csv", "figures/small.svg"):
        assert (again.report.parent / name).read_bytes() == (report.report.parent / name).read_bytes()


def test_a_failed_cell_is_a_row_and_not_a_crash(tmp_path):
    paper = replace(SMALL, experiments=[replace(GOOD, name="bad", series=[Series("tenths", wrong, seeds=2)]), GOOD])
    found = reproduce([paper], tmp_path, workers=0)
    assert [row["verdict"] for row in found.rows] == [FAILED, FAILED, REPRODUCED, DIFFERS]
    assert found.rows[0]["detail"] == "wrong, seed 0: ValueError: no <luck>"
    assert "ValueError: no &lt;luck&gt;" in found.report.read_text()


def test_missing_data_are_named_with_the_place_to_get_them(tmp_path):
    paper = replace(SMALL, experiments=[replace(GOOD, data="mslr-web10k")])
    for data in (None, tmp_path):
        (row, _) = reproduce([paper], tmp_path / "out", data=data, workers=0).rows
        assert row["verdict"] == MISSING
        assert row["ours"] is None
        assert "MSLR-WEB10K was not found" in row["detail"]
        assert "Microsoft" in row["detail"]


def test_an_unknown_paper_is_an_error():
    with pytest.raises(DataError, match="no experiment called x; choose from slam"):
        select_papers("x")


@pytest.mark.parametrize("name", PAPERS)
def test_papers_are_whole(name):
    paper = import_module(PAPERS[name]).PAPER
    assert paper.name == name
    names = [experiment.name for experiment in paper.experiments]
    items = [claim.item for experiment in paper.experiments for claim in experiment.claims]
    assert len(set(names)) == len(names)
    assert len(set(items)) == len(items)
    for experiment in paper.experiments:
        assert experiment.claims or experiment.tables
        for plan in (Plan(), Plan(quick=True)):
            for series in experiment.series:
                assert series.function.__module__.startswith("reproduction.")
                assert series.count(plan) >= 1
                json.dumps([cell.arguments for row in series.cells(plan, None) for cell in row])


def test_simulations_need_no_data():
    works = lay_out(select_papers("all"), Plan(quick=True), None)
    ran = {f"{work.paper.name}: {work.experiment.name}" for work in works if work.runs}
    assert {"slam: figure-1", "slam: theorem-9", "topk: regret", "topk: impossibility"} < ran
    assert {"predtron: figure-1a", "predtron: figure-1b", "predtron: figure-1c"} < ran


def test_the_printed_tables_are_the_papers():
    from reproduction.committee_tables import FACTOR, TABLE_5
    from reproduction.rank_mm import PUBLISHED

    assert np.mean(TABLE_5["committee of 20"]) == pytest.approx(453.76, abs=0.005)  # printed averages
    assert np.mean(TABLE_5["RankSVM"]) == pytest.approx(21238.05, abs=0.005)
    assert pytest.approx(46.8, abs=0.05) == FACTOR
    assert {len(row) for row in PUBLISHED.values()} == {21}


# --- the command


def command(*arguments):
    with pytest.raises(SystemExit) as exit:
        main([*map(str, arguments)], command=cli)
    return exit.value.code


def test_an_unknown_name_is_a_usage_error(capsys, tmp_path):
    assert command("nothing", "--out", tmp_path) == 2
    assert "nothing" in capsys.readouterr().err
    assert command("slam") == 2  # --out is missing


def test_a_folder_that_cannot_be_is_one_line(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    assert command("slam", "--quick", "--out", tmp_path / "file" / "out") == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "cannot write the report there" in error


def test_json_has_the_rows(capsys, tmp_path, monkeypatch):
    monkeypatch.delenv("RANKTRON_DATA", raising=False)
    monkeypatch.setattr("reproduction.harness.reproduce.select_papers", lambda name: [replace(SMALL, name=name)])
    monkeypatch.setattr("reproduction.harness.runner._cores", lambda: 1)
    monkeypatch.setattr("reproduction.harness.runner._in_processes", lambda jobs, workers: _here(jobs))
    assert command("slam", "--out", tmp_path, "--seeds", 2, "--json") == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [set(row) >= KEYS for row in rows] == [True, True]
    assert {row["verdict"] for row in rows} <= set(VERDICTS)
    assert rows[0]["seeds"] == 2
    assert command("slam", "--out", tmp_path) == 0
    assert "report.html" in capsys.readouterr().out


def _here(jobs):
    from reproduction.harness.runner import _here as here

    return here(jobs)


@pytest.mark.slow
def test_the_quick_run_of_everything(tmp_path, capsys):
    """All papers, with all data that are there: in minutes, and without a failure."""
    import os

    assert command("all", "--quick", "--out", tmp_path, "--json") == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {row["paper"] for row in rows} >= set(PAPERS)
    assert FAILED not in {row["verdict"] for row in rows}
    seconds = [json.loads(path.read_text())["seconds"] for path in (tmp_path / "cells").glob("*.json")]
    assert sum(seconds) < 600.0  # of one core, compiling included: below 5 minutes on two
    simulated = [row for row in rows if row["data"] == "simulated"]
    assert {row["verdict"] for row in simulated if row["item"].startswith("Theorem 9")} == {"holds"}
    ran = {row["data"] for row in rows if row["ours"] is not None}
    assert not os.environ.get("RANKTRON_DATA") or {"ohsumed-letor2", "ohsumed-letor3", "mq2008"} <= ran
