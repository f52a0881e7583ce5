"""Estimates with their intervals as a picture."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ranktron.training.figures.curves import COLOURS, _pyplot, _save

Interval = tuple[float, float, float]


def intervals(
    path: str | os.PathLike[str],
    groups: Mapping[str, Mapping[str, Interval]],
    levels: Mapping[str, float],
    *,
    title: str,
    x: str,
) -> None:
    """Draws a dot with its interval for each name of each group, and levels as dashed lines.

    >>> path = getfixture("tmp_path") / "intervals.svg"
    >>> intervals(path, {"ours": {"ips": (0.5, 0.4, 0.6)}}, {"shown": 0.45}, title="Estimates", x="gain")
    >>> path.stat().st_size > 1000
    True
    """
    pyplot = _pyplot()
    rows = [(group, name, value) for group, names in groups.items() for name, value in names.items()]
    figure, axes = pyplot.subplots(figsize=(7.2, 1.1 + 0.32 * (len(rows) + len(groups))), layout="constrained")
    colours = dict(zip(groups, COLOURS * (1 + len(groups) // len(COLOURS)), strict=False))
    at, ticks, last = 0.0, list[float](), None
    for group, _, (value, low, high) in rows:
        at -= 1.0 if group == last else 1.8
        axes.plot([low, high], [at, at], color=colours[group], linewidth=1.8)
        axes.plot([value], [at], "o", color=colours[group], markersize=5, label=None if group == last else group)
        ticks.append(at)
        last = group
    for (name, level), style in zip(levels.items(), ("--", ":", "-.") * 10, strict=False):
        axes.axvline(level, label=name, color="#555555", linewidth=1.2, linestyle=style)
    axes.set_yticks(ticks, [name for _, name, _ in rows])
    axes.set(title=title, xlabel=x)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="x", alpha=0.25)
    axes.legend(frameon=False, fontsize=9)
    _save(figure, path, pyplot)
