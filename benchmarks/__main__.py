"""Runs all benchmarks, or those that are named, and writes docs/benchmarks.md."""

import json
import os
import platform
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
PAGE = HERE.parent / "docs" / "benchmarks.md"
PEERS = ("numpy", "numba", "xgboost-cpu", "lightgbm", "ranx", "river", "scikit-learn")
INTRODUCTION = """# Benchmarks

Written by `make bench`. Each row is ours beside a peer or the machine's limit *in the same run*: trust the ratios, not
the seconds. A ratio above 1 means that we are faster, unless the row says otherwise.
"""


def names():
    """The benchmarks that take times; others are run by themselves and write pages or pictures of their own."""
    return sorted(path.stem for path in HERE.glob("*.py") if "\ndef run(" in path.read_text(encoding="utf-8"))


def shown(value):
    if value is None:
        return "–"
    return value if isinstance(value, str) else f"{value:.4g}"


def section(name, rows):
    summary = (import_module(f"benchmarks.{name}").__doc__ or "").strip()
    lines = [f"## {name}", "", summary, "", "| what | ours | peer | ratio | goal |", "|---|---|---|---|---|"]
    for row in rows:
        goal = row["bar"] + {True: ": yes", False: ": **no**", None: ""}[row.get("holds")]
        cells = [row["what"], *(shown(row[key]) for key in ("ours", "peer", "ratio")), goal]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def machine():
    installed = []
    for peer in PEERS:
        try:
            installed.append(f"{peer} {version(peer)}")
        except PackageNotFoundError:
            continue
    return f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}; {', '.join(installed)}."


def main(chosen):
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in chosen or names():
        print(f"{name} …", flush=True)
        results[name] = import_module(f"benchmarks.{name}").run()
        for row in results[name]:
            print(f"  {row['what']}: {shown(row['ours'])} / {shown(row['peer'])} = {shown(row['ratio'])}  {row['bar']}")
        RESULTS.write_text(json.dumps(results, indent=1))
    pages = [section(name, results[name]) for name in names() if name in results]
    PAGE.write_text("\n\n".join([INTRODUCTION.strip(), machine(), *pages]) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
