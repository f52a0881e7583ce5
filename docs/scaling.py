"""What docs/beyond-one-machine.md takes from docs/results/scaling.json, measured by `python -m benchmarks.scaling`."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean, stdev
from typing import Any

DOCS = Path(__file__).parent
RESULTS = DOCS / "results" / "scaling.json"
PICTURE = DOCS / "pictures" / "scaling.svg"
COLOURS = {"slam": "#0072b2", "hinge": "#d55e00", "listnet": "#009e73", "minimax": "#cc79a7", "predtron": "#999999"}
STATE_BYTES = 2 * 2 * 136 * 8
"""What the cost model counts for a shard in a mix: there and back, two vectors of 136 features."""


def load() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found


def _difference(values: list[float], one: list[float]) -> tuple[float, float]:
    apart = [a - b for a, b in zip(values, one, strict=True)]
    return mean(apart), stdev(apart) / len(apart) ** 0.5


def _compare(what: str, ways: list[str]) -> str:
    rows = ["| | learner | one | " + " | ".join(f"{way} shards" for way in ways) + " |"]
    rows.append("|---|---|---|" + "---|" * len(ways))
    for name, learners in load()[what].items():
        for learner, found in learners.items():
            cells = [
                "{:+.4f} ± {:.4f}".format(*_difference(found[way], found["1"])) if way in found else "" for way in ways
            ]
            rows.append(f"| {name} | {learner} | {mean(found['1']):.4f} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def quality() -> str:
    """Mixed shards beside one machine: paired differences of NDCG@10."""
    table = _compare("quality", ["2", "4", "8", "16", "64", "16, all passes mixed"])
    return table.replace("16, all passes mixed shards", "16 shards, all passes mixed")


def survivors() -> str:
    """Perceptrons of shards beside one machine: paired differences of NDCG@10."""
    return _compare("survivors", ["4", "16"])


def network() -> str:
    """What a mix costs a cluster if nobody plays anything."""
    head = ["shards", "processor time of client and scheduler", "for each task", "bytes", "the model says"]
    rows = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for row in load()["network"]:
        shards, used = row["shards"], row["processor"]
        cells = [f"{shards:,}", f"{used:.3f} s", f"{1e3 * used / shards:.1f} ms", f"{row['bytes']:,}"]
        rows.append(f"| {' | '.join([*cells, f'{shards * STATE_BYTES:,}'])} |")
    return "\n".join(rows)


def draw() -> None:
    """Draws what shards lose, and what a mix costs."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    found = load()
    with pyplot.rc_context({"svg.fonttype": "none", "svg.hashsalt": "ranktron", "font.family": "sans-serif"}):
        figure, (loss, mix) = pyplot.subplots(1, 2, figsize=(7.5, 3.6), layout="constrained")
        for learner, ways in found["quality"]["web"].items():
            shards = [int(way) for way in ways if way.isdigit()]
            apart = [_difference(ways[str(count)], ways["1"])[0] for count in shards]
            loss.plot(shards, apart, "o-", color=COLOURS[learner], label=learner)
        loss.axhline(-0.005, color="#555555", linestyle=":")
        loss.set(title="Quality of shards, web search", xlabel="shards", ylabel="NDCG@10 minus that of one")
        loss.set(xscale="log", xticks=shards, xticklabels=shards)
        counts, seconds = ([row[name] for row in found["network"]] for name in ("shards", "processor"))
        mix.plot(counts, seconds, "o-", color="#0072b2", label="client and scheduler")
        each = seconds[-1] / counts[-1]
        mix.plot(counts, [each * count for count in counts], ":", color="#555555", label=f"{1e3 * each:.2g} ms a shard")
        mix.set(
            title="A mix without learning",
            xlabel="shards",
            ylabel="seconds of processor time",
            xscale="log",
            yscale="log",
        )
        for panel in (loss, mix):
            panel.minorticks_off()
            panel.spines[["top", "right"]].set_visible(False)
            panel.grid(alpha=0.25)
            panel.legend(fontsize=7, frameon=False)
        figure.savefig(PICTURE, metadata={"Date": None})
        pyplot.close(figure)


TABLES = {each.__name__: each for each in (quality, survivors, network)}
