"""A click log as a picture: what is clicked, and what is seen, by position."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ranktron.learners.clicks.examination import Examination
from ranktron.training.figures.curves import COLOURS, _pyplot, _save
from ranktron.types import Floats


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
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.25)
    axes.legend(frameon=False, fontsize=9)
    _save(figure, path, pyplot)
