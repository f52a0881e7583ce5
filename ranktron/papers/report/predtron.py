"""The three plots of Predtron's section 6 as pictures, with bands of two standard errors."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ranktron.errors import DataError
from ranktron.papers.theory.predtron_games import Curves
from ranktron.training.figures.curves import COLOURS, _pyplot, _without_date


def bands(
    path: str | os.PathLike[str],
    curves: Curves,
    *,
    title: str,
    x: str,
    names: Mapping[str, str] | None = None,
    log: bool = False,
) -> None:
    """Draws mean losses over seeds with a band of two standard errors (`log`: a logarithmic x axis)."""
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(figsize=(7.2, 4.2), layout="constrained")
    for name, colour in zip(curves.losses, COLOURS, strict=False):
        mean, error = curves.mean(name), curves.error(name)
        axes.plot(curves.x, mean, label=(names or {}).get(name, name), color=colour, linewidth=1.8, marker="o")
        axes.fill_between(curves.x, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)
    axes.set(title=title, xlabel=x, ylabel="NDCG loss on test lists", xscale="log" if log else "linear")
    axes.set_ylim(bottom=0.0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.25)
    axes.legend(frameon=False, fontsize=9)
    try:
        figure.savefig(path, dpi=144, metadata=_without_date(path))
    except (OSError, ValueError) as error:
        raise DataError(f"cannot write the picture {os.fspath(path)}: {error}") from None
    finally:
        pyplot.close(figure)
