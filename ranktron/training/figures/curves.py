"""Plots of curves (PNG or SVG, by the file's extension)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from ranktron.errors import DataError, MissingExtra

Curve = tuple[Sequence[float], Sequence[float]]

# Distinguishable with the common forms of colour blindness, in this order.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")


def curves(
    path: str | os.PathLike[str],
    lines: Mapping[str, Curve],
    levels: Mapping[str, float],
    *,
    title: str,
    x: str,
    y: str,
    log: bool = False,
) -> None:
    """Draws lines, and baselines as dashed levels, and writes the plot to a file (`log`: a logarithmic x axis)."""
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(figsize=(7.2, 4.2), layout="constrained")
    for (name, (xs, ys)), colour in zip(lines.items(), COLOURS * 10, strict=False):
        axes.plot(xs, ys, label=name, color=colour, linewidth=1.8)
    for (name, level), style in zip(levels.items(), ("--", ":", "-.") * 10, strict=False):
        axes.axhline(level, label=name, color="#555555", linewidth=1.2, linestyle=style)
    axes.set(title=title, xlabel=x, ylabel=y, xscale="log" if log else "linear")
    if not log and all(float(value).is_integer() for xs, _ in lines.values() for value in xs):
        axes.xaxis.get_major_locator().set_params(integer=True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.25)
    axes.legend(frameon=False, fontsize=9)
    _save(figure, path, pyplot)


def panels(
    path: str | os.PathLike[str],
    grid: Mapping[str, Mapping[str, Curve]],
    levels: Mapping[str, float],
    columns: int,
    title: str,
    x: str,
    *,
    log: bool = False,
) -> None:
    """Draws one small plot for each name of the grid, `columns` in a row; rows share their y axis."""
    pyplot = _pyplot()
    rows = -(-len(grid) // columns)
    size = (2.6 * columns + 0.6, 2.4 * rows + 0.9)
    figure, axes = pyplot.subplots(rows, columns, figsize=size, sharex="col", sharey="row", layout="constrained")
    for place, (each, (name, lines)) in enumerate(zip(axes.flat, grid.items(), strict=True)):
        for (label, (xs, ys)), colour in zip(lines.items(), COLOURS * 10, strict=False):
            each.plot(xs, ys, "o-", label=label, color=colour, linewidth=1.6, markersize=3)
        if name in levels:
            each.axhline(levels[name], color="#555555", linewidth=1.0, linestyle="--")
        each.set(xscale="log" if log else "linear", xlabel=x if place >= len(grid) - columns else "")
        each.set_title(name, fontsize=9)
        each.spines[["top", "right"]].set_visible(False)
        each.grid(axis="y", alpha=0.25)
    axes.flat[0].legend(frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=10)
    _save(figure, path, pyplot)


def _save(figure: Any, path: str | os.PathLike[str], pyplot: Any) -> None:
    try:
        figure.savefig(path, dpi=144, metadata=_without_date(path))
    except (OSError, ValueError) as error:
        raise DataError(f"cannot write the picture {os.fspath(path)}: {error}") from None
    finally:
        pyplot.close(figure)


def _without_date(path: str | os.PathLike[str]) -> dict[str, Any] | None:
    return {"Date": None} if os.fspath(path).endswith(".svg") else None


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise MissingExtra("drawing a picture", "plot") from None
    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "ranktron"  # the same plot gives the same bytes
    import matplotlib.pyplot as pyplot

    return pyplot
