"""Runs all benchmarks, or those that are named, keeps what they measured, and puts it into docs/benchmarks.md."""

import argparse
from importlib import import_module
from pathlib import Path

from benchmarks import history
from ranktron.errors import MissingExtra

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "benchmarks.md"
INTRODUCTION = """# Benchmarks

Written by `make bench`. Each row is ours beside a peer or the machine's limit *in the same run*: trust the ratios, not
the seconds. A ratio above 1 means that we are faster, unless the row says otherwise. "Noise" is the factor by which the
ratios of {repeats} runs of the row differ. Every run is kept in `benchmarks/results`; the next one says what became
slower by more than the noise of both.
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
    lines = [
        f"## {name}",
        "",
        summary,
        "",
        "| what | ours | peer | ratio | noise | goal |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        goal = row["bar"] and row["bar"] + {True: ": yes", False: ": **no**", None: ""}[row.get("holds")]
        noise = f"{history.noise(row):.2f}" if len(row.get("ratios", ())) > 1 else "–"
        cells = [row["what"], *(shown(row[key]) for key in ("ours", "peer", "ratio")), noise, goal]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def merge(head, page, measured):
    """The page with its sections {name: text} that were measured anew; the others stay as they are."""
    kept = {text.partition("\n")[0].strip(): f"## {text.strip()}" for text in f"\n{page}".split("\n## ")[1:]}
    sections = {**kept, **measured}
    return "\n\n".join([head, *(sections[name] for name in sorted(sections))]) + "\n"


def measure(name, repeats):
    """The rows of a benchmark; none, and the reason, where something it needs is missing."""
    try:
        return history.join([import_module(f"benchmarks.{name}").run() for _ in range(repeats)])
    except (ModuleNotFoundError, MissingExtra, SystemExit) as missing:
        print(f"  skipped: {missing}")
        return []


def report(name, rows, before):
    for row in rows:
        print(f"  {row['what']}: {shown(row['ours'])} / {shown(row['peer'])} = {shown(row['ratio'])}  {row['bar']}")
    for what, then, now, noise in history.compare(rows, before.get(name, [])):
        word = "SLOWER" if now < then else "faster"
        print(f"  {word} than last time: {what}: ratio {shown(then)} became {shown(now)} (noise {noise:.2f})")


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="benchmarks to run; all unless given")
    parser.add_argument("--repeats", type=int, default=2, help="how often to run each, to know the noise")
    asked = parser.parse_args()
    runs, run = history.earlier(), history.begin()
    before = history.latest(runs)
    for name in asked.names or names():
        print(f"{name} …", flush=True)
        rows = measure(name, asked.repeats)
        if rows:
            report(name, rows, before)
            run["benchmarks"][name] = rows
            history.save(run)
    measured = {name: section(name, rows) for name, rows in run["benchmarks"].items()}
    head = f"{INTRODUCTION.format(repeats=asked.repeats).strip()}\n\n{run['machine']}"
    page = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    if measured:
        PAGE.write_text(merge(head, page, measured), encoding="utf-8")


if __name__ == "__main__":
    main()
