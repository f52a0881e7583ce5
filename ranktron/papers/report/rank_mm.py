"""The picture of how solvers close their duality gaps: against passes above, against seconds below."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np

from ranktron.training.figures.curves import COLOURS, _pyplot, _without_date

Points = Sequence[tuple[float, float, float]]
"""(passes, seconds, relative gap), one after the other."""


def draw_gaps(path: str | os.PathLike[str], panels: Mapping[str, Mapping[str, Points]]) -> None:
    """Draws one column per panel, both axes logarithmic, and writes the picture to a file."""
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(
        2, len(panels), figsize=(4.2 * len(panels), 7.6), sharey=True, squeeze=False, layout="constrained"
    )
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    colours = dict(zip(names, COLOURS * 10, strict=False))
    styles = {name: ("-", "--")[at // len(COLOURS) % 2] for at, name in enumerate(names)}
    for column, (title, lines) in enumerate(panels.items()):
        for row, (label, coordinate) in enumerate({"passes": 0, "seconds": 1}.items()):
            ax = axes[row, column]
            for name, points in ((name, _thinned(points)) for name, points in lines.items()):
                xs, ys = [point[coordinate] for point in points], [point[2] for point in points]
                ax.plot(xs, ys, label=name, color=colours[name], linestyle=styles[name], linewidth=1.6)
            ax.set(xscale="log", yscale="log", xlabel=label, title=title if row == 0 else "")
            ax.spines[["top", "right"]].set_visible(False)
            ax.grid(alpha=0.25)
        axes[0, column].legend(frameon=False, fontsize=7)
    for row in range(2):
        axes[row, 0].set_ylabel("gap, relative to the optimum")
    figure.savefig(path, dpi=144, metadata=_without_date(path))
    pyplot.close(figure)


def _thinned(points: Points) -> Points:
    """Points that lie apart on a logarithmic axis."""
    kept = np.unique(np.geomspace(1, max(len(points), 1), 60).astype(int)) - 1
    return [points[i] for i in kept]
