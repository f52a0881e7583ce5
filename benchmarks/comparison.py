"""The comparison of all learners, kept in docs/results: `python -m benchmarks.comparison DATA OUT`."""

import json
import sys
from pathlib import Path

from reproduction import comparison
from reproduction.harness.cache import CellCache, libraries
from reproduction.harness.comparison_cells import METRICS
from reproduction.harness.experiment import Plan
from reproduction.harness.reproduce import lay_out, prepare
from reproduction.harness.runner import run_cells

PAGE = Path(__file__).parent.parent / "docs" / "results" / "comparison.json"


def rows(results):
    """For each system, the best NDCG@10 first: the cells of the documentation, and the numbers behind them."""
    table = comparison.table(results)
    values = {metric: comparison.by_seed(metric)(results) for metric in METRICS}
    found = []
    for name, *cells, variants, seconds in table.rows:
        shown = [
            f"{values[m][name].mean():.4f}" + (" †" if "†" in cell else "")
            for m, cell in zip(values, cells[:2], strict=True)
        ]
        numbers = {m: [round(float(v), 6) for v in values[m][name]] for m in values}
        p_values = dict(zip(values, map(float, cells[2:]), strict=True))
        told = {"variants": variants, "seconds": seconds}
        found.append({"name": name, "shown": shown, **told, "by seed": numbers, "p": p_values})
    return found


def main(data, out):
    works = lay_out([comparison.PAPER], Plan(), data)
    found = run_cells((job for work in works for job in work.all_jobs()), CellCache(prepare(out) / "cells"))
    sets = {}
    for work in works:
        assert work.runs, f"{work.experiment.data} is not in {data}"
        results = {name: [[found[job.key].result for job in row] for row in jobs] for name, jobs in work.jobs.items()}
        sets[work.experiment.name] = rows(results)
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(json.dumps({"libraries": libraries(), "sets": sets}, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
