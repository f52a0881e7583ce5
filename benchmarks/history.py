"""What every run of the benchmarks measured: a file a run, and what became slower since the last one.

A row is compared by its ratio to a peer or to the machine's limit, which both runs measured on the machine they had.
Every benchmark is run several times: what its ratios differ by within a run is the noise, and a row is slower only if
it lost more than the noise of either run.
"""

import json
import os
import platform
import statistics
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

FOLDER = Path(__file__).parent / "results"
PEERS = ("numpy", "numba", "xgboost-cpu", "lightgbm", "ranx", "river", "scikit-learn", "vowpalwabbit")
LEAST_NOISE = 1.05
"""Runs of a quiet machine differ by that much, whatever two of them happen to show."""


def machine():
    """The machine and the peers, as the page prints them."""
    installed = []
    for peer in PEERS:
        try:
            installed.append(f"{peer} {version(peer)}")
        except PackageNotFoundError:
            continue
    return f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}; {', '.join(installed)}."


def commit():
    """The commit that is measured, marked where files differ from it."""
    asked = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(asked, cwd=FOLDER.parent, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def begin():
    """A new run: when, where, of what."""
    now = datetime.now(UTC)
    return {"date": f"{now:%Y-%m-%d %H:%M}", "commit": commit(), "machine": machine(), "benchmarks": {}}


def save(run, folder=FOLDER):
    """Writes a run, and returns its file."""
    folder.mkdir(exist_ok=True)
    stamp = run["date"].translate(str.maketrans(" ", "-", "-:"))
    path = folder / f"{stamp}-{run['commit']}.json"
    path.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
    return path


def earlier(folder=FOLDER):
    """All stored runs, the oldest first."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]


def latest(runs):
    """{benchmark: its rows in the last run that had it}."""
    return {name: rows for run in runs for name, rows in run["benchmarks"].items()}


def join(repeats):
    """The rows of several runs of one benchmark as one: the repeat with the middle ratio, and all ratios."""
    joined = []
    for rows in zip(*repeats, strict=True):
        ratios = [row["ratio"] for row in rows if row["ratio"] is not None]
        middle = statistics.median_low(ratios) if ratios else None
        joined.append({**next(row for row in rows if row["ratio"] == middle), "ratios": ratios})
    return joined


def noise(row):
    """The factor by which the ratios of a row differ within a run."""
    ratios = [ratio for ratio in row.get("ratios", ()) if ratio > 0.0]
    return max(ratios) / min(ratios) if ratios else 1.0


def compare(now, then):
    """Rows of a benchmark whose ratio changed by more than the noise: (what, then, now, noise), as factors."""
    before = {row["what"]: row for row in then}
    changed = []
    for row in now:
        old = before.get(row["what"])
        if old is None or not row["ratio"] or not old["ratio"]:
            continue
        limit = max(noise(row), noise(old), LEAST_NOISE)
        if not 1.0 / limit <= row["ratio"] / old["ratio"] <= limit:
            changed.append((row["what"], old["ratio"], row["ratio"], limit))
    return changed
