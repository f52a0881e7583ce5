"""What docs/quality.md takes from docs/results: tables of `python -m benchmarks.defaults` and `benchmarks.trees`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
RESULTS = DOCS / "results" / "defaults.json"
TREES = DOCS / "results" / "trees.json"
PICTURE = DOCS / "pictures" / "quality.svg"
DEVELOPMENT = ("OHSUMED 3.0", "MQ2008")
DEVELOPMENT_SETS = ("OHSUMED", "MQ2008")
OTHERS = {"tune": "`tune`, two minutes", "best single feature": "best single feature"}
KINDS = {"default": "default", "command": "default of `train`", "printed": '`preset="paper"`', "grid": "best of a grid"}


def load() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found


def _cell(column: dict[str, Any], row: str) -> str:
    if row not in column["rows"]:
        return ""
    one = column["rows"][row]
    return f"{one['mean']:.3f}{' †' if one['behind'] else ''}"


def _developed(name: str) -> bool:
    return name.removesuffix("*") in DEVELOPMENT


def _seconds(columns: list[dict[str, Any]], row: str) -> str:
    known = [column["rows"][row]["seconds"] for column in columns if row in column["rows"]]
    if row.startswith(("grid", "best single")) or not known:
        return ""
    return _range(known)


def _range(seconds: list[float]) -> str:
    least, most = (f"{each:.0f}" if each >= 100.0 else f"{each:.2g}" for each in (min(seconds), max(seconds)))
    return least if least == most else f"{least} to {most}"


def _table(columns: dict[str, dict[str, Any]], rows: dict[str, str]) -> str:
    rows = {row: shown for row, shown in rows.items() if any(row in column["rows"] for column in columns.values())}
    heads = [f"{name}{' ‡' * _developed(name)} ({column['queries']})" for name, column in columns.items()]
    lines = ["| | " + " | ".join([*heads, "seconds"]) + " |", "|---|" + "---|" * (len(heads) + 1)]
    for row, shown in rows.items():
        cells = [_cell(column, row) for column in columns.values()]
        lines.append("| " + " | ".join([shown, *cells, _seconds(list(columns.values()), row)]) + " |")
    return "\n".join(lines)


def _learners(columns: dict[str, dict[str, Any]]) -> list[str]:
    rows = next(iter(columns.values()))["rows"]
    return [row.partition(" ")[2] for row in rows if row.startswith("default ")]


def _trees(columns: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {row: row for row in next(iter(columns.values()))["rows"] if row.endswith(", default")}


def side_by_side() -> str:
    """Everything on the sets as they come."""
    columns = {name: column for name, column in load().items() if not name.endswith("*")}
    learners = {f"{kind} {name}": f"`{name}`, {shown}" for name in _learners(columns) for kind, shown in KINDS.items()}
    return _table(columns, {**OTHERS, **_trees(columns), **learners})


def other_units() -> str:
    """The same sets with every feature in a unit of its own."""
    columns = {name: column for name, column in load().items() if name.endswith("*")}
    learners = {
        f"{kind} {name}": f"`{name}`, {KINDS[kind]}"
        for name in _learners(columns)
        for kind in ("default", "command", "printed")
    }
    return _table(columns, {**OTHERS, **_trees(columns), **learners})


def below_grid() -> str:
    """How far each default is below the best of its grid: mean and half-width of the paired 95 % interval."""
    columns = load()
    shown = {name: column["below_grid"] for name, column in columns.items() if column["below_grid"]}
    lines = ["| | " + " | ".join(shown) + " |", "|---|" + "---|" * len(shown)]
    for learner in _learners(columns):
        cells = [
            f"{each[learner][0]:+.3f} ± {each[learner][1]:.3f}" if learner in each else "" for each in shown.values()
        ]
        lines.append("| " + " | ".join([f"`{learner}`", *cells]) + " |")
    return "\n".join(lines)


def tune_ahead() -> str:
    """What `tune` gains over the rows that need no choice either: paired differences with their 95 % intervals."""
    columns = {name: column for name, column in load().items() if column.get("tune_ahead")}
    if not columns:
        return "Not measured yet: the results are those of an earlier run."
    rows = list(next(iter(columns.values()))["tune_ahead"])
    lines = ["| `tune` minus | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for row in rows:
        found = [column["tune_ahead"].get(row) for column in columns.values()]
        cells = ["" if each is None else f"{each[0]:+.3f} ± {each[1]:.3f}" for each in found]
        lines.append("| " + " | ".join([row, *cells]) + " |")
    return "\n".join(lines)


def variants() -> str:
    """How many settings each grid has, and how many `tune` came to try."""
    columns = load()
    lines = ["| | " + " | ".join(columns) + " |", "|---|" + "---|" * len(columns)]
    for row in ("tune", *(f"grid {name}" for name in _learners(columns))):
        cells = [_tried(column["rows"].get(row, {}).get("chosen", "")) for column in columns.values()]
        if any(cells):
            lines.append("| " + " | ".join([f"`{row.removeprefix('grid ')}`", *cells]) + " |")
    return "\n".join(lines)


def _tried(chosen: str) -> str:
    if chosen.startswith("{"):
        found = json.loads(chosen)
        return f"{found['tried']}{' (time)' * bool(found['stopped'])}" if "tried" in found else ""
    return chosen.rpartition("; ")[2].removesuffix(" variants")


def _load_trees() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(TREES.read_text(encoding="utf-8"))
    return found


def beside_trees() -> str:
    """`tune`, recommended rankers and tuned trees: means over all test queries, and seconds of processor time."""
    found = _load_trees()
    heads = [f"{name}{' ‡' * name.startswith(DEVELOPMENT_SETS)} ({n})" for name, n in found["queries"].items()]
    lines = ["| | " + " | ".join([*heads, "seconds", "seeds"]) + " |", "|---|" + "---|" * (len(heads) + 2)]
    for row, columns in found["rows"].items():
        cells = [f"{columns[name]['mean']:.3f}" if name in columns else "" for name in found["queries"]]
        seconds = [one["seconds"] for one in columns.values()]
        seeds = min(one["seeds"] for one in columns.values())
        lines.append("| " + " | ".join([row, *cells, _range(seconds), str(seeds)]) + " |")
    return "\n".join(lines)


def ahead_of_trees() -> str:
    """`tune` minus each kind of trees: paired differences on each set, and the mean over the sets."""
    found = _load_trees()
    names = list(found["queries"])
    lines = ["| `tune` minus | " + " | ".join([*names, "mean of the sets"]) + " |", "|---|" + "---|" * (len(names) + 1)]
    for row, one in found["ahead"].items():
        cells = []
        for name in names:
            each = one["sets"].get(name)
            star = "" if each is None or each["p"] >= 0.05 else " †" if each["difference"] < 0.0 else " *"
            cells.append("" if each is None else f"{each['difference']:+.3f} ± {each['half']:.3f}{star}")
        lines.append("| " + " | ".join([row, *cells, "{:+.3f} ± {:.3f}".format(*one["pooled"])]) + " |")
    return "\n".join(lines)


def _name_points(panel: Any, points: dict[str, tuple[float, float]]) -> None:
    """Writes a name beside each point, higher where it would cover another one, with a line to its point."""
    scale = 72.0 / panel.figure.dpi
    taken: list[tuple[float, float, float]] = []  # left, right and bottom of each name
    for label, point in sorted(points.items(), key=lambda each: (each[1][1], each[0])):
        x, y = panel.transData.transform(point) * scale
        left, right, bottom = x + 4.0, x + 6.0 + 3.9 * len(label), y - 2.0
        while any(left < b and a < right and abs(bottom - c) < 8.0 for a, b, c in taken):
            bottom += 1.0
        taken.append((left, right, bottom))
        line = {"arrowstyle": "-", "color": "#999999", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 2}
        panel.annotate(
            label, point, fontsize=7, xytext=(4.0, bottom - y), textcoords="offset points",
            arrowprops=line if bottom - y > 5.0 else None,
        )  # fmt: skip


def draw() -> None:
    """Draws quality beside training time: a panel for each set, a point for each default."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    columns = {name: column for name, column in load().items() if not name.endswith("*")}
    with pyplot.rc_context({"svg.fonttype": "none", "svg.hashsalt": "ranktron", "font.family": "sans-serif"}):
        figure, panels = pyplot.subplots(2, 3, figsize=(10.5, 7.6), layout="constrained")
        figure.get_layout_engine().set(h_pad=0.12, hspace=0.06)
        for panel, (name, column) in zip(panels.flat, columns.items(), strict=True):
            panel.axhline(column["rows"]["best single feature"]["mean"], color="#999999", linestyle=":", linewidth=1)
            points = {}
            for row, one in column["rows"].items():
                if row.startswith("default ") or row.endswith(", default") or row == "tune":
                    label = row.removeprefix("default ").removesuffix(", default")
                    colour = "#0072b2" if row.startswith("default ") else "#009e73" if row == "tune" else "#d55e00"
                    points[label] = max(one["seconds"], 1e-3), one["mean"]
                    panel.plot(*points[label], "o", color=colour, markersize=4)
            panel.set(title=name, xscale="log", xlabel="seconds of training", ylabel="NDCG@10")
            panel.set_xlim(min(x for x, _ in points.values()) / 2, max(x for x, _ in points.values()) * 8)
            bottom, top = panel.get_ylim()
            panel.set_ylim(bottom, top + 0.15 * (top - bottom))  # room for names
            panel.spines[["top", "right"]].set_visible(False)
            panel.grid(alpha=0.25)
            figure.draw_without_rendering()  # places are in points of the page from here on
            _name_points(panel, points)
        figure.suptitle(
            "Defaults, and tune, on queries that chose nothing; dotted: the best single feature", fontsize=11
        )
        figure.savefig(PICTURE, metadata={"Date": None})
        pyplot.close(figure)
