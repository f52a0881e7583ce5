"""Plots: curves, intervals, the history of a fit, the examination of positions (PNG or SVG, by the file name)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ranktron.errors import DataError, MissingExtra

if TYPE_CHECKING:
    from ranktron.learners.clicks import Examination
    from ranktron.learners.schedule import History
    from ranktron.metrics import Metric
    from ranktron.types import Floats

Curve = tuple[Sequence[float], Sequence[float]]
Interval = tuple[float, float, float]

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
    _finish(axes)
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


def draw_history(
    history: History,
    path: str | os.PathLike[str],
    metrics: Sequence[Metric] = (),
    *,
    title: str = "learning curve",
) -> None:
    """Draws the validation metrics of each pass and the time averages of the shown rankings.

    Parameters
    ----------
    history : History
        The history of a fit: `ranker.history_`, or that of `train`.
    path : path of the picture
        PNG or SVG, by its extension.
    metrics : sequence of Metric
        The metrics of the shown rankings, as in the training plan; the fits of estimators have none.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from ranktron.data.synthetic import Separable
    >>> from ranktron.learners.schedule import Schedule
    >>> from ranktron.training.fit import TrainingPlan, train
    >>> lists = Separable().rounds(60)
    >>> history = train(TrainingPlan("hinge", schedule=Schedule(3)), lists[:40], valid=lists[40:]).history
    >>> len(history.valid)
    3
    >>> with TemporaryDirectory() as folder:
    ...     draw_history(history, f"{folder}/history.svg")
    """
    lines: dict[str, Curve] = {
        f"{m}, time average": ([float(r) for r, _ in history.curve], [v[i] for _, v in history.curve])
        for i, m in enumerate(metrics)
    }
    if history.valid:
        per_epoch = history.rounds / len(history.valid)
        ends = [per_epoch * (i + 1) for i in range(len(history.valid))]
        lines |= {f"{name}, validation": (ends, [v[name] for v in history.valid]) for name in history.valid[0]}
    if not any(len(xs) for xs, _ in lines.values()):
        raise DataError("there is nothing to draw: give a validation set, which is evaluated after each pass")
    names = {name.partition(",")[0] for name in lines}
    curves(path, lines, {}, title=title, x="rounds", y=names.pop() if len(names) == 1 else "metric")


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
    _finish(axes, "x")
    _save(figure, path, pyplot)


def draw_examination(path: str | os.PathLike[str], click_through: Floats, curves: Mapping[str, Examination]) -> None:
    """Draws click-through and each estimate of examination relative to the first position, with its interval."""
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(figsize=(7.2, 4.2), layout="constrained")
    places = range(1, len(click_through) + 1)
    axes.plot(places, click_through / click_through[0], "--", color="#555555", label="click-through", linewidth=1.4)
    for (name, curve), colour in zip(curves.items(), COLOURS * 10, strict=False):
        axes.plot(places, curve.values, "o-", label=f"examination, {name}", color=colour, linewidth=1.8, markersize=4)
        if curve.low is not None and curve.high is not None:
            axes.fill_between(places, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0)
    axes.set(title="Clicks by position", xlabel="position", ylabel="relative to position 1")
    axes.set_ylim(bottom=0.0)
    _finish(axes)
    _save(figure, path, pyplot)


def _finish(axes: Any, grid: str = "y") -> None:
    """Removes the frame, and adds a grid and a legend."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, alpha=0.25)
    axes.legend(frameon=False, fontsize=9)


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
