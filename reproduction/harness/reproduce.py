"""Runs the experiments of some papers, judges every claim, and writes rows, figures and the report."""

from __future__ import annotations

import csv
import io
import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ranktron import __version__
from ranktron.data.files import atomically
from ranktron.errors import DataError
from reproduction import PAPERS
from reproduction.harness.cache import CellCache, Kept, cell_key, libraries
from reproduction.harness.data import folder_if_complete, where
from reproduction.harness.experiment import Claim, Experiment, Paper, Plan, Results
from reproduction.harness.runner import CellJob, Failed, Watch, run_cells
from reproduction.harness.verdicts import FAILED, MISSING, RULES, Rule, judge_few
from reproduction.report.charts import Figure, svg_file
from reproduction.report.page import Page, Part, Row, Section, html

COLUMNS = ("paper", "item", "published", "ours", "spread", "difference", "verdict", "seeds", "data", "statement",
           "detail", "note", "setting", "stand_in", "experiment", "quick", "values")  # fmt: skip


@dataclass(frozen=True)
class Work:
    """An experiment of a paper, the folder of its data, and the jobs of each of its series: seeds × parts."""

    paper: Paper
    experiment: Experiment
    folder: Path | None
    jobs: Mapping[str, Sequence[Sequence[CellJob]]]

    @property
    def runs(self) -> bool:
        return self.experiment.data is None or self.folder is not None

    def all_jobs(self) -> Iterator[CellJob]:
        for rows in self.jobs.values():
            for row in rows:
                yield from row


@dataclass(frozen=True)
class Reproduction:
    """All rows, and where the report was written."""

    rows: Sequence[Row]
    report: Path


def select_papers(name: str) -> list[Paper]:
    """The paper of that name, or all.

    >>> [paper.name for paper in select_papers("slam")]
    ['slam']
    """
    names = list(PAPERS) if name == "all" else [name]
    unknown = [n for n in names if n not in PAPERS]
    if unknown:
        raise DataError(f"there is no experiment called {unknown[0]}; choose from {', '.join(PAPERS)} and all")
    return [import_module(PAPERS[n]).PAPER for n in names]


def lay_out(papers: Sequence[Paper], plan: Plan, data: str | os.PathLike[str] | None) -> list[Work]:
    """What there is to do: all jobs of all experiments whose data are there."""
    root = None if data is None else Path(data)
    works = []
    for paper in papers:
        for experiment in paper.experiments:
            folder = None if experiment.data is None else folder_if_complete(root, experiment.data)
            runs = experiment.data is None or folder is not None
            jobs = {
                series.name: [
                    [CellJob(cell_key(cell, folder), cell, folder) for cell in row]
                    for row in series.cells(plan, experiment.data)
                ]
                for series in experiment.series
                if runs
            }
            works.append(Work(paper, experiment, folder, jobs))
    return works


def reproduce(
    papers: Sequence[Paper],
    out: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
    plan: Plan | None = None,
    workers: int | Executor | None = None,
    watch: Watch | None = None,
    works: Sequence[Work] | None = None,
) -> Reproduction:
    """Computes, judges and writes: `report.html`, `rows.json`, `rows.csv`, and the figures as SVG and CSV.

    Finished cells are kept in `out/cells`; a second run takes them from there. `workers` is the number of processes, or
    an executor.
    """
    plan = plan or Plan()
    folder = prepare(out)
    works = works if works is not None else lay_out(papers, plan, data)
    found = run_cells((job for work in works for job in work.all_jobs()), CellCache(folder / "cells"), workers, watch)
    parts = [_part(work, found, plan, data) for work in works]
    rows = [row for part in parts for row in part.rows]
    sections = [
        Section(
            paper.name, paper.title, paper.authors, [p for p, w in zip(parts, works, strict=True) if w.paper is paper]
        )
        for paper in papers
    ]
    page = Page(_settings(plan, works, found), list(RULES.values()), sections)
    _write(folder, rows, [figure for part in parts for figure in part.figures], html(page))
    return Reproduction(rows, folder / "report.html")


def prepare(out: str | os.PathLike[str]) -> Path:
    """Makes the folders of the result; says so in one sentence where that cannot be."""
    folder = Path(out)
    try:
        for path in (folder, folder / "cells", folder / "figures"):
            path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{folder}: cannot write the report there: {error.strerror or error}") from None
    return folder


def command(name: str, plan: Plan, data: object) -> str:
    """The command that makes one paper's part of the report again."""
    quick = " --quick" if plan.quick else ""
    seeds = f" --seeds {plan.seeds}" if plan.seeds else ""
    return f"python -m reproduction {name}{quick}{seeds}{' --data DATA' if data else ''} --out OUT"


def _part(work: Work, found: Mapping[str, Kept | Failed], plan: Plan, data: object) -> Part:
    experiment = work.experiment
    outcomes = [found[job.key] for job in work.all_jobs()] if work.runs else []
    failures = [outcome.why for outcome in outcomes if isinstance(outcome, Failed)]
    name = f"{work.paper.name}-{experiment.name}"
    known = {"title": experiment.title, "about": experiment.about, "command": command(work.paper.name, plan, data)}
    settings = (series.settings(plan) for series in experiment.series if series.cells(plan, None)[0])
    known["settings"] = "; ".join(dict.fromkeys(text for text in settings if text))
    if not work.runs or failures:
        verdict = FAILED if failures else MISSING
        why = failures[0] if failures else where(str(experiment.data))
        rows = [_not_run(work, claim, verdict, why) for claim in experiment.claims]
        return Part(name, **known, trouble=why, rows=rows, figures=[], tables=[])
    results: Results = {
        series: [[_result(found[job.key]) for job in row] for row in rows] for series, rows in work.jobs.items()
    }
    return Part(
        name,
        **known,
        trouble="",
        rows=[_judge(work, claim, results, plan) for claim in experiment.claims],
        figures=[figure(results) for figure in experiment.figures],
        tables=[(t.title, t.columns, t.rows) for t in (table(results) for table in experiment.tables)],
    )


def _result(outcome: Kept | Failed) -> Any:
    assert isinstance(outcome, Kept)
    return outcome.result


def _row(work: Work, claim: Claim) -> Row:
    return {
        **dict.fromkeys(COLUMNS),
        "paper": work.paper.name,
        "item": claim.item,
        "published": claim.rule.published,
        "data": work.experiment.data or "simulated",
        "statement": claim.statement,
        "note": claim.note,
        "setting": claim.setting,
        "stand_in": work.experiment.stand_in,
        "experiment": f"{work.paper.name}-{work.experiment.name}",
        "quick": False,
    }


def _not_run(work: Work, claim: Claim, verdict: str, why: str) -> Row:
    return {**_row(work, claim), "verdict": verdict, "detail": why}


def _judge(work: Work, claim: Claim, results: Results, plan: Plan) -> Row:
    found = claim.values(results)
    names = [name for name in found if not claim.rule.reads or name in claim.rule.reads]
    values = {name: [float(f"{value:.9g}") for value in found[name]] for name in names}
    series = work.experiment.series
    same_runs = all(each.is_full(plan) for each in series)
    quick = not same_runs or any(each.count(plan) < each.seeds for each in series)
    judged = judge(claim.rule, values, same_runs if quick else None)
    return {**_row(work, claim), **judged, "quick": quick, "values": values}


def judge(rule: Rule, values: Mapping[str, Sequence[float]], same_runs: bool | None = None) -> dict[str, Any]:
    """What follows from the values of a row: everything in it that is not a word of the paper or of ours.

    Of fewer runs than the full ones `same_runs` says whether only seeds are missing.
    """
    arrays = {name: np.array(row) for name, row in values.items()}
    found = rule(arrays) if same_runs is None else judge_few(rule, arrays, same_runs)
    return {
        "ours": found.ours,
        "spread": found.spread,
        "difference": None if rule.published is None else found.ours - rule.published,
        "seeds": found.seeds,
        "verdict": found.verdict,
        "detail": found.detail,
    }


def _settings(plan: Plan, works: Sequence[Work], found: Mapping[str, Kept | Failed]) -> dict[str, str]:
    seconds = sum(outcome.seconds for outcome in found.values() if isinstance(outcome, Kept))
    kind = "quick: fewer rounds, passes and seeds than the full run" if plan.quick else "full"
    return {
        "run": kind,
        "seeds": f"0 to {plan.seeds - 1}" if plan.seeds else "as many as stand with each row, from 0 on",
        "computed": f"{len(found):,} cells, {seconds / 60:.1f} minutes of one core in all",
        "ranktron": __version__,
        **libraries(),
        "Python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
    }


def _write(folder: Path, rows: Sequence[Row], figures: Sequence[Figure], page: str) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS[:-1], lineterminator="\n", extrasaction="ignore")  # a table has no values
    writer.writeheader()
    writer.writerows(rows)
    files = {
        "report.html": page,
        "rows.csv": text.getvalue(),
        "rows.json": json.dumps({"rows": list(rows)}, indent=1, allow_nan=False) + "\n",
    }
    for figure in figures:
        files[f"figures/{figure.name}.svg"] = svg_file(figure)
        files[f"figures/{figure.name}.csv"] = _numbers(figure)
    for name, content in files.items():
        with atomically(folder / name) as file:
            file.write(content.encode("utf-8"))


def _numbers(figure: Figure) -> str:
    """The numbers behind a figure."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("panel", "name", "x", "y", "band"))
    for panel in figure.panels:
        for line in panel.lines:
            bands: Sequence[object] = line.band or [""] * len(line.y)
            writer.writerows((panel.title, line.name, x, y, e) for x, y, e in zip(line.x, line.y, bands, strict=True))
        writer.writerows((panel.title, dot.name, "", dot.value, dot.band) for dot in panel.dots)
    return text.getvalue()
