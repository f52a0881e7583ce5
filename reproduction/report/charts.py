"""Charts as SVG text, without a plotting library: for pages that work offline, in light and dark, on small screens.

Colours are style sheet classes (`c0`, `c1`, …), so that a page can choose them; a chart in a file of its own brings
the style sheet along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import ceil, floor, isfinite, log10

WIDTH, HEIGHT = 380, 270
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 30, 44
DASHES = ("", "6 3", "2 3", "8 3 2 3")

STYLE = """
.chart{--ink:#1d232b;--faint:#d9dee5;--c0:#0072b2;--c1:#d55e00;--c2:#008a63;--c3:#b4559b;--c4:#2f9ad0;--c5:#a97500;
--c6:#6b6f76;--c7:#7a4fd0;font-family:system-ui,sans-serif}
@media (prefers-color-scheme:dark){.chart{--ink:#e6e9ee;--faint:#3a424d;--c0:#5ab4f0;--c1:#ff8f4a;--c2:#3ecf9f;
--c3:#e594cf;--c4:#8fd0f5;--c5:#efc04f;--c6:#a4a9b2;--c7:#b49af5}}
.chart text{fill:var(--ink);font-size:11px}.chart .title{font-size:13px;font-weight:600}
.chart .grid{stroke:var(--faint);stroke-width:1}.chart .axis{stroke:var(--ink);stroke-width:1}
.chart .line{fill:none;stroke-width:1.9;stroke-linejoin:round}.chart .band{stroke:none;opacity:.18}
.chart .mark{fill:none;stroke-width:2}
""" + "".join(f".chart .s{i}{{stroke:var(--c{i})}}.chart .f{i}{{fill:var(--c{i})}}" for i in range(8))


@dataclass(frozen=True)
class ChartLine:
    """A curve: its points, and the half-widths of the band around it. `marks` draws rings instead of a line."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    band: Sequence[float] = ()
    marks: bool = False


@dataclass(frozen=True)
class Dot:
    """One row of a chart of dots; `band` is the half-width of its error bar, `mark` a number to compare it with."""

    name: str
    value: float
    band: float = 0.0
    mark: float | None = None
    colour: int = 0


@dataclass(frozen=True)
class Panel:
    """One pair of axes with lines, or rows of dots."""

    title: str
    x: str
    y: str
    lines: Sequence[ChartLine] = ()
    dots: Sequence[Dot] = ()
    log_x: bool = False
    log_y: bool = False
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Figure:
    """Panels side by side, with one legend and a caption."""

    name: str
    title: str
    panels: Sequence[Panel]
    caption: str = ""
    colours: Mapping[str, int] = field(default_factory=dict)

    @property
    def legend(self) -> dict[str, int]:
        """The names of all lines, each with the number of its colour."""
        names = dict.fromkeys(line.name for panel in self.panels for line in panel.lines)
        return {name: self.colours.get(name, at) for at, name in enumerate(names)}


@dataclass(frozen=True)
class _Axis:
    """Maps values to pixels."""

    low: float
    high: float
    start: float
    end: float
    log: bool

    def __call__(self, value: float) -> float:
        a, b, v = (log10(t) for t in (self.low, self.high, max(value, self.low))) if self.log else self._plain(value)
        return self.start + (v - a) / (b - a) * (self.end - self.start)

    def _plain(self, value: float) -> tuple[float, float, float]:
        return self.low, self.high, value

    def ticks(self) -> list[float]:
        if self.log:
            decades = range(ceil(log10(self.low) - 1e-9), floor(log10(self.high) + 1e-9) + 1)
            found = [10.0**e for e in decades]
            if len(found) < 3:
                steps = [m * 10.0**e for e in range(floor(log10(self.low)), decades.stop + 1) for m in (1, 2, 5)]
                found = [t for t in steps if self.low * 0.999 <= t <= self.high * 1.001]
            return found[:: ceil(len(found) / 7)]
        step = 10.0 ** floor(log10((self.high - self.low) / 4.0))
        step *= next(m for m in (1, 2, 2.5, 5, 10) if (self.high - self.low) / (m * step) <= 6.5)
        return [i * step for i in range(ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9) + 1)]


def format_tick(value: float) -> str:
    """A tick's label.

    >>> format_tick(100000.0), format_tick(0.25), format_tick(1e-6)
    ('100,000', '0.25', '1e-06')
    """
    return f"{value:,.0f}" if abs(value) >= 1.0 and value == round(value) else f"{value:.4g}"


def panel_height(panel: Panel) -> int:
    """How high a panel is: many rows of dots take more room.

    >>> [panel_height(Panel("a", "", "", dots=[Dot("b", 1.0)] * rows)) for rows in (3, 20)]
    [270, 344]
    """
    return max(HEIGHT, TOP + 34 + 14 * len(panel.dots))


def svg(panel: Panel, legend: Mapping[str, int]) -> str:
    """One panel as an <svg> element; it takes the width that it is given."""
    inside = _dots(panel) if panel.dots else _curves(panel, legend)
    label = escape(f"{panel.title}: {panel.y} against {panel.x}" if panel.lines else f"{panel.title}: {panel.y}")
    return (
        f'<svg class="chart" role="img" aria-label="{label}" viewBox="0 0 {WIDTH} {panel_height(panel)}" '
        f'xmlns="http://www.w3.org/2000/svg">{inside}</svg>'
    )


def svg_file(figure: Figure) -> str:
    """A figure as a file of its own: panels side by side, the legend below."""
    legend, columns = figure.legend, min(3, len(figure.panels))
    rows = ceil(len(figure.panels) / columns)
    high = max(map(panel_height, figure.panels))
    width, below = columns * WIDTH, rows * high
    parts = [
        svg(panel, legend).replace(
            "<svg ",
            f'<svg x="{i % columns * WIDTH}" y="{i // columns * high}" width="{WIDTH}" height="{panel_height(panel)}" ',
            1,
        )
        for i, panel in enumerate(figure.panels)
    ]
    places = max(1, width // 190)
    for i, (name, colour) in enumerate(legend.items()):
        x, y = 14 + i % places * 190, below + 12 + i // places * 18
        parts.append(f'<line class="line {_stroke(colour)}" {_dash(colour)} x1="{x}" x2="{x + 22}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text x="{x + 28}" y="{y + 4}">{escape(name)}</text>')
    height = below + 14 + 18 * ceil(len(legend) / places)
    background = "<style>.sheet{fill:#fff}@media (prefers-color-scheme:dark){.sheet{fill:#14181d}}"
    return (
        f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}">{background}{STYLE}</style><title>{escape(figure.title)}</title>'
        f'<rect class="sheet" width="{width}" height="{height}"/>{"".join(parts)}</svg>\n'
    )


def swatch(colour: int) -> str:
    """A short line in a colour, for a legend."""
    return (
        '<svg class="chart swatch" viewBox="0 0 26 10" aria-hidden="true">'
        f'<line class="line {_stroke(colour)}" {_dash(colour)} x1="1" x2="25" y1="5" y2="5"/></svg>'
    )


def _stroke(colour: int) -> str:
    return f"s{colour % 8}"


def _dash(colour: int) -> str:
    pattern = DASHES[colour // 4 % len(DASHES)]
    return f'stroke-dasharray="{pattern}"' if pattern else ""


def _extent(values: Sequence[float], log: bool, low: float | None, high: float | None) -> tuple[float, float]:
    usable = [v for v in values if isfinite(v) and (v > 0.0 or not log)] or [1.0]
    a, b = min(usable), max(usable)
    if log:
        a, b = (a / 1.1, b * 1.1) if a == b else (a, b)
    else:
        room = 0.05 * (b - a) or 0.05 * abs(b) or 0.5
        a, b = a - room, b + room
    a, b = a if low is None else low, b if high is None else high
    return (a, b) if b > a else (a, a + 1.0)


def _curves(panel: Panel, legend: Mapping[str, int]) -> str:
    bands = [line.band or [0.0] * len(line.y) for line in panel.lines]
    heights = [y + s * e for line, band in zip(panel.lines, bands, strict=True) for s in (-1, 1)
               for y, e in zip(line.y, band, strict=True)]  # fmt: skip
    widths = [x for line in panel.lines for x in line.x]
    across = _Axis(*_extent(widths, panel.log_x, min(widths), max(widths)), LEFT, WIDTH - RIGHT, panel.log_x)
    up = _Axis(*_extent(heights, panel.log_y, panel.low, panel.high), HEIGHT - BOTTOM, TOP, panel.log_y)
    parts = [_frame(panel, across, up)]
    for line, band in zip(panel.lines, bands, strict=True):
        colour = legend[line.name]
        points = [(across(x), up(y)) for x, y in zip(line.x, line.y, strict=True)]
        if line.marks:
            parts += [f'<circle class="mark {_stroke(colour)}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in points]
            continue
        if line.band:
            edges = [f"{across(x):.1f},{up(y + e):.1f}" for x, y, e in zip(line.x, line.y, band, strict=True)]
            edges += [f"{across(x):.1f},{up(y - e):.1f}" for x, y, e in zip(line.x, line.y, band, strict=True)][::-1]
            parts.append(f'<polygon class="band f{colour % 8}" points="{" ".join(edges)}"/>')
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline class="line {_stroke(colour)}" {_dash(colour)} points="{path}"/>')
    return "".join(parts)


def _frame(panel: Panel, across: _Axis, up: _Axis) -> str:
    right, foot = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = [f'<text class="title" x="{LEFT}" y="18">{escape(panel.title)}</text>']
    for value in up.ticks():
        y = up(value)
        if TOP - 1 <= y <= foot + 1:
            parts.append(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>')
            parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{format_tick(value)}</text>')
    for value in across.ticks():
        x = across(value)
        parts.append(f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{foot}" y2="{foot + 4}"/>')
        parts.append(f'<text x="{x:.1f}" y="{foot + 16}" text-anchor="middle">{format_tick(value)}</text>')
    parts.append(f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{foot}" y2="{foot}"/>')
    middle = (LEFT + right) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(panel.x)}</text>')
    height = (TOP + foot) / 2
    turned = f'transform="rotate(-90 12 {height})"'
    parts.append(f'<text x="12" y="{height}" text-anchor="middle" {turned}>{escape(panel.y)}</text>')
    return "".join(parts)


def _dots(panel: Panel) -> str:
    left, top, height = 128, TOP, panel_height(panel)
    foot = height - 34
    ends = [dot.value + s * dot.band for dot in panel.dots for s in (-1, 1)]
    ends += [dot.mark for dot in panel.dots if dot.mark is not None]
    across = _Axis(*_extent(ends, False, panel.low, panel.high), left, WIDTH - RIGHT - 8, False)
    parts = [f'<text class="title" x="8" y="18">{escape(panel.title)}</text>']
    for value in across.ticks():
        x = across(value)
        parts.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{foot}"/>')
        parts.append(f'<text x="{x:.1f}" y="{foot + 14}" text-anchor="middle">{format_tick(value)}</text>')
    pitch = (foot - top) / len(panel.dots)
    for i, dot in enumerate(panel.dots):
        y, colour = top + (i + 0.5) * pitch, dot.colour % 8
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(dot.name)}</text>')
        if dot.mark is not None:
            parts.append(f'<circle class="mark s1" cx="{across(dot.mark):.1f}" cy="{y:.1f}" r="5"/>')
        if dot.band:
            a, b = across(dot.value - dot.band), across(dot.value + dot.band)
            parts.append(f'<line class="line s{colour}" x1="{a:.1f}" x2="{b:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<circle class="f{colour}" cx="{across(dot.value):.1f}" cy="{y:.1f}" r="3.6"/>')
    parts.append(f'<text x="{(left + WIDTH) / 2}" y="{height - 6}" text-anchor="middle">{escape(panel.y)}</text>')
    return "".join(parts)
