"""Plots of the curves of an additive model: what each feature adds to a score, as sections of an HTML page."""

from __future__ import annotations

from html import escape

import numpy as np

from ranktron.data.maps.protocols import Shape
from ranktron.data.scaling import Global
from ranktron.training.model import Model
from ranktron.types import Floats

SHOWN = 24
"""The number of curves to show, those with the largest effect on scores."""

WIDTH, HEIGHT, MARGIN = 220.0, 120.0, 8.0


def feature_shapes(model: Model) -> list[tuple[str, Shape]]:
    """The curve of every feature with its name, in the feature's own units, those with the largest effect first.

    Each curve is shifted to a mean of 0 over its bins, which have about the same number of documents: it shows what a
    value adds compared with others. An error if the model has no curves.
    """
    additive, w = model.additive, model.weights
    shapes = [_own_units(model, j, additive.shape(j, w)) for j in range(model.n_filled)]
    order = np.argsort([-float(np.abs(shape.values).mean()) for shape in shapes], kind="stable")
    return [(model.filled_names[j], shapes[j]) for j in order.tolist()]


def _own_units(model: Model, j: int, shape: Shape) -> Shape:
    places = shape.places
    if isinstance(model.scaler, Global):
        places = places * model.scaler.divisor[j] + model.scaler.shift[j]
    return Shape(places, shape.values - shape.values.mean(), shape.steps)


def shape_pieces(model: Model) -> list[tuple[str, str]]:
    """One section of a page, (title, HTML with its plots), without scripts or external resources."""
    shapes = feature_shapes(model)
    shown = [each for each in shapes[:SHOWN] if np.ptp(each[1].values) > 0.0]
    reach = max((float(np.abs(shape.values).max()) for _, shape in shown), default=0.0) or 1.0
    pictures = "".join(_figure(name, shape, reach) for name, shape in shown)
    hidden = len(shapes) - len(shown)
    unit = "scaled within each list" if model.by_list else "in its own units"
    note = (
        f"What a value of the feature ({unit}, below) adds to a score, compared with the feature's mean. Equal widths "
        "hold about as many documents; all pictures have the same height."
    )
    after = f'<p class="note">{hidden:,} features that move scores less are not shown.</p>' if hidden else ""
    return [("Curves", f'<style>{_STYLE}</style><p class="note">{note}</p><div class="shapes">{pictures}</div>{after}')]


def _figure(name: str, shape: Shape, reach: float) -> str:
    picture = (
        f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="curve of {escape(name)}">'
        f'<path class="zero" d="M0 {HEIGHT / 2:g}H{WIDTH:g}"/><path class="curve" d="{_path(shape, reach)}"/></svg>'
    )
    ticks = "".join(f"<span>{text}</span>" for text in _ticks(shape))
    extent = f"{shape.values.min():+.2g} … {shape.values.max():+.2g}"
    caption = f"<figcaption><b>{escape(name)}</b> <small>{extent}</small></figcaption>"
    return f'<figure>{caption}{picture}<div class="ticks">{ticks}</div></figure>\n'


def _path(shape: Shape, reach: float) -> str:
    heights: Floats = HEIGHT / 2.0 - shape.values / reach * (HEIGHT / 2.0 - MARGIN)
    if shape.steps:
        sides = np.linspace(0.0, WIDTH, len(heights) + 1)
        return f"M0 {heights[0]:.1f}" + "".join(
            f"V{height:.1f}H{right:.1f}" for height, right in zip(heights, sides[1:], strict=True)
        )
    places = np.linspace(0.0, WIDTH, len(heights))
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(places, heights, strict=True))


def _ticks(shape: Shape) -> list[str]:
    """The values at the left, in the middle and at the right; step functions have no outermost ones."""
    places = shape.places
    if not len(places):
        return []
    middle = f"{places[len(places) // 2]:.3g}"
    if shape.steps:
        return [f"&lt; {places[0]:.3g}", middle, f"≥ {places[-1]:.3g}"]
    return [f"{places[0]:.3g}", middle, f"{places[-1]:.3g}"]


_STYLE = """
.shapes{display:grid;grid-template-columns:repeat(auto-fill,minmax(13rem,1fr));gap:1rem 1.25rem}
.shapes figure{margin:0;min-width:0}.shapes figcaption{overflow-wrap:anywhere;line-height:1.3}
.shapes small,.ticks{color:var(--soft,#5b6470);font-size:.8rem;font-variant-numeric:tabular-nums}
.shapes svg{display:block;width:100%;height:auto;border:1px solid var(--line,#d8dde3);border-radius:.4rem;
background:var(--card,#f6f7f9);margin:.25rem 0 .1rem}
.shapes .zero{stroke:var(--soft,#5b6470);stroke-width:1;stroke-dasharray:3 3;fill:none}
.shapes .curve{stroke:var(--up,#0072b2);stroke-width:2;fill:none;stroke-linejoin:round}
.ticks{display:flex;justify-content:space-between;gap:.5rem}
"""
