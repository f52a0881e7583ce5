"""The report of the experiments as one HTML page: no scripts, nothing from elsewhere, any screen, light and dark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from reproduction.report.charts import STYLE as CHART_STYLE
from reproduction.report.charts import Figure, svg, swatch

Row = Mapping[str, Any]
"""One line of the result: paper, item, published, ours, spread, verdict, and what explains them."""
Cells = tuple[str, Sequence[str], Sequence[Sequence[object]]]
"""A table: title, columns, rows."""


@dataclass(frozen=True)
class Part:
    """One experiment: what was done, how to repeat it, its rows, figures and tables; `trouble` if it did not run."""

    name: str
    title: str
    about: str
    command: str
    settings: str
    trouble: str
    rows: Sequence[Row]
    figures: Sequence[Figure]
    tables: Sequence[Cells]


@dataclass(frozen=True)
class Section:
    """One paper."""

    name: str
    title: str
    authors: str
    parts: Sequence[Part]


@dataclass(frozen=True)
class Page:
    """The whole report."""

    settings: Mapping[str, str]
    rules: Sequence[str]
    sections: Sequence[Section]


_NAV = "<a href='#rules'>rules</a><a href='#settings'>this run</a></nav>"
_BADGES = {
    "reproduced": "good",
    "holds": "good",
    "cannot tell": "near",
    "too few runs to tell": "near",
    "same ordering, other level": "near",
    "differs": "bad",
}

STYLE = """
:root{color-scheme:light dark;--page:#fff;--sheet:#f5f7f9;--text:#1d232b;--quiet:#5a6472;--rule:#d9dee5;--link:#0b5cad;
--good:#d7f2e3;--good-ink:#0a5c38;--near:#fdeecb;--near-ink:#6f4a00;--bad:#fbdcd8;--bad-ink:#8c1d13;--off:#e6e9ee;
--off-ink:#4a5361}
@media (prefers-color-scheme:dark){:root{--page:#14181d;--sheet:#1c2229;--text:#e6e9ee;--quiet:#a4adb9;--rule:#343d48;
--link:#7db8f7;--good:#123f2c;--good-ink:#8fe3ba;--near:#47370f;--near-ink:#f3d48a;--bad:#501f1a;--bad-ink:#ffb4ab;
--off:#2b333d;--off-ink:#c3cad4}}
*{box-sizing:border-box}html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--page);color:var(--text);font:16px/1.5 system-ui,sans-serif}
main,header{max-width:72rem;margin:0 auto;padding:0 1rem}header{padding-top:1.5rem}
h1{font-size:1.7rem;line-height:1.2;margin:.2em 0}h2{font-size:1.35rem;margin:2.2em 0 .3em;line-height:1.25;
border-top:2px solid var(--rule);padding-top:1em}h3{font-size:1.1rem;margin:1.8em 0 .3em}
a{color:var(--link)}p{max-width:46rem;margin:.5em 0}.quiet{color:var(--quiet)}
code{font:.86em ui-monospace,monospace;background:var(--sheet);padding:.1em .35em;border-radius:.3em;
overflow-wrap:anywhere}
.wide{overflow-x:auto;margin:.8em 0;border:1px solid var(--rule);border-radius:.5em}
table{border-collapse:collapse;width:100%;font-size:.88rem}th,td{padding:.4em .6em;text-align:left;vertical-align:top;
border-bottom:1px solid var(--rule)}tr:last-child td{border-bottom:0}th{background:var(--sheet);white-space:nowrap}
td.n,th.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}td.words{min-width:13rem}td.verdict{white-space:nowrap}
.badge{display:inline-block;padding:.1em .55em;border-radius:1em;font-size:.82em;font-weight:600;white-space:nowrap;
background:var(--off);color:var(--off-ink)}.badge.good{background:var(--good);color:var(--good-ink)}
.badge.near{background:var(--near);color:var(--near-ink)}.badge.bad{background:var(--bad);color:var(--bad-ink)}
.counts{display:flex;flex-wrap:wrap;gap:.5em;padding:0;margin:1em 0;list-style:none}
figure{margin:1.2em 0}.panels{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,19rem),1fr));gap:.6em}
.panels svg{width:100%;max-width:29rem;height:auto;display:block}figcaption{color:var(--quiet);font-size:.9rem}
.legend{display:flex;flex-wrap:wrap;gap:.2em 1.1em;font-size:.85rem;margin:.3em 0;padding:0;list-style:none}
.swatch{width:26px;height:10px;margin-right:.4em;vertical-align:middle}.ring{display:inline-block;width:.7em;height:.7em;
border:2px solid currentColor;border-radius:50%;margin:0 .5em 0 .3em;vertical-align:middle}
nav{display:flex;flex-wrap:wrap;gap:.2em 1.2em;margin:.6em 0}
@media (max-width:42rem){.rows thead{display:none}.rows tr{display:grid;grid-template-columns:1fr 1fr;padding:.5em .7em;
border-bottom:1px solid var(--rule)}.rows tr:last-child{border:0}.rows td{border:0;padding:.1em 0;text-align:left}
.rows td.words,.rows td.verdict{grid-column:1/-1}.rows td.n::before{content:attr(data-of) " ";color:var(--quiet)}
.rows td:empty{display:none}}
.note{display:block;color:var(--quiet);font-size:.92em;margin-top:.2em}details{margin:.6em 0}summary{cursor:pointer}
dl{display:grid;grid-template-columns:auto 1fr;gap:.15em 1em;font-size:.9rem}dt{color:var(--quiet)}dd{margin:0;
overflow-wrap:anywhere}
"""


def html(page: Page) -> str:
    """The page as text."""
    rows = [row for section in page.sections for part in section.parts for row in part.rows]
    body = [
        "<header><h1>The papers, run again</h1>",
        "<p>Every table and figure of the papers behind Ranktron that can be computed: what the paper says, what came "
        "out, and a verdict that follows from stated <a href='#rules'>rules</a>.</p>",
        _counts(rows),
        "<nav>" + "".join(f"<a href='#{s.name}'>{escape(s.name)}</a>" for s in page.sections) + _NAV,
        "</header><main>",
        "<h2 id='summary'>All claims</h2>",
        *(_summary(section) for section in page.sections),
        *(_section(section) for section in page.sections),
        _rules(page.rules),
        _settings(page.settings),
        "</main>",
    ]
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><meta name='viewport' "
        "content='width=device-width,initial-scale=1'><title>The papers, run again: Ranktron</title>"
        f"<link rel='icon' href='data:,'><style>{STYLE}{CHART_STYLE}</style></head>\n"
        f"<body>{''.join(body)}</body></html>\n"
    )


def badge(verdict: str) -> str:
    """A verdict as a coloured word."""
    colour = "near" if verdict.startswith("holds in ") else _BADGES.get(verdict, "off")
    return f"<span class='badge {colour}'>{escape(verdict)}</span>"


def _verdict(row: Row) -> str:
    """The verdict of a row, and whether it comes from a quick run."""
    return badge(row["verdict"]) + (" <span class='quiet'>quick</span>" if row.get("quick") else "")


def _counts(rows: Sequence[Row]) -> str:
    counted: dict[str, int] = {}
    for row in rows:
        counted[row["verdict"]] = counted.get(row["verdict"], 0) + 1
    items = "".join(f"<li>{badge(verdict)} {count}</li>" for verdict, count in sorted(counted.items(), key=_most))
    return f"<ul class='counts'>{items}</ul>"


def _most(item: tuple[str, int]) -> int:
    return -item[1]


def _summary(section: Section) -> str:
    rows = [row for part in section.parts for row in part.rows]
    ran, others = ([row for row in rows if (row["ours"] is None) == without] for without in (False, True))
    if not rows:
        return ""
    hidden = f"<details><summary>{len(others)} claims not run</summary>{_brief(others)}</details>" if others else ""
    return (
        f"<details open><summary><strong>{escape(section.title)}</strong></summary>{_counts(rows)}"
        f"{_brief(ran) if ran else ''}{hidden}</details>"
    )


def _brief(rows: Sequence[Row]) -> str:
    lines = "".join(
        f"<tr><td class='words'><a href='#{escape(row['experiment'])}'>{escape(row['item'])}</a></td>"
        f"<td class='verdict'>{_verdict(row)}</td>"
        f"{_numeric('paper', _number(row['published']))}{_numeric('ours', _ours(row))}</tr>"
        for row in rows
    )
    return _frame_table(("claim", "verdict", "paper", "ours"), lines)


def _frame_table(heads: Sequence[str], lines: str) -> str:
    """A table of claims: on a narrow screen each of its rows becomes a small block."""
    numeric = ("paper", "ours", "difference", "values")
    cells = "".join(f"<th{' class=n' if head in numeric else ''}>{head}</th>" for head in heads)
    return f"<div class='wide'><table class='rows'><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table></div>"


def _numeric(name: str, text: str) -> str:
    return f"<td class='n' data-of='{name}'>{text}</td>"


def _section(section: Section) -> str:
    parts = "".join(_part(part) for part in section.parts)
    title, authors = escape(section.title), escape(section.authors)
    return f"<h2 id='{escape(section.name)}'>{title}</h2><p class='quiet'>{authors}</p>{parts}"


def _part(part: Part) -> str:
    rows = _rows(part.rows)
    if part.trouble and part.rows:
        why = f"<p>{badge(part.rows[0]['verdict'])} {escape(part.trouble)}</p>"
        rows = f"{why}<details><summary>{len(part.rows)} claims</summary>{rows}</details>"
    settings = f"<p class='quiet'>This run: {escape(part.settings)}.</p>" if part.settings else ""
    return (
        f"<section id='{escape(part.name)}'><h3>{escape(part.title)}</h3><p>{escape(part.about)}</p>{settings}"
        f"{''.join(map(_figure, part.figures))}{rows}{''.join(map(_table, part.tables))}"
        f"<p class='quiet'>Again: <code>{escape(part.command)}</code></p></section>"
    )


def _figure(figure: Figure) -> str:
    legend = figure.legend
    rings = {line.name for panel in figure.panels for line in panel.lines if line.marks}
    names = "".join(f"<li>{swatch(colour)}{escape(name)}</li>" for name, colour in legend.items() if name not in rings)
    names += "".join(
        f"<li class='chart'><span class='ring' style='color:var(--c{legend[name] % 8})'></span>{escape(name)}</li>"
        for name in legend
        if name in rings
    )
    panels = "".join(svg(panel, legend) for panel in figure.panels)
    return (
        f"<figure id='figure-{escape(figure.name)}'><ul class='legend'>{names}</ul><div class='panels'>{panels}</div>"
        f"<figcaption>{escape(figure.title)}. {escape(figure.caption)} "
        f"Files: <code>figures/{escape(figure.name)}.svg</code>, <code>.csv</code></figcaption></figure>"
    )


def _rows(rows: Sequence[Row]) -> str:
    if not rows:
        return ""
    lines = "".join(
        f"<tr><td class='words'>{escape(row['item'])}<span class='note'>{escape(row['statement'])}</span></td>"
        f"<td class='verdict'>{_verdict(row)}</td>{_numeric('paper', _number(row['published']))}"
        f"{_numeric('ours', _ours(row))}{_numeric('difference', _number(row['difference'], sign=True))}"
        f"{_numeric('values', str(row['seeds'] or '–'))}<td class='words'>{_explain_row(row)}</td></tr>"
        for row in rows
    )
    return _frame_table(("claim", "verdict", "paper", "ours", "difference", "values", "remarks"), lines)


def _explain_row(row: Row) -> str:
    words = [row["detail"] or ""] if row["ours"] is not None else []
    words += [f"{noun}: {row[key]}" for key, noun in (("setting", "setting"), ("stand_in", "stand-in")) if row[key]]
    detail = escape("; ".join(words))
    return detail + (f"<span class='note'>{escape(row['note'])}</span>" if row["note"] else "")


def _ours(row: Row) -> str:
    if row["ours"] is None:
        return "–"
    spread = f" ± {_number(row['spread'])}" if row["spread"] else ""
    return f"{_number(row['ours'])}{spread}"


def _number(value: float | None, sign: bool = False) -> str:
    """Four decimals, fewer for large numbers, more for tiny ones.

    >>> _number(0.4474), _number(99.0), _number(2.5e-6), _number(-0.01, sign=True), _number(None)
    ('0.4474', '99', '2.5e-06', '−0.0100', '–')
    """
    if value is None:
        return "–"
    plus = "+" if sign else ""
    if value == round(value) and abs(value) < 1e6:
        text = f"{value:{plus},.0f}"
    elif abs(value) >= 10.0:
        text = f"{value:{plus},.1f}"
    elif abs(value) < 5e-4:
        text = f"{value:{plus}.1e}"
    else:
        text = f"{value:{plus}.4f}"
    return text.replace("-", "−") if text[0] == "-" else text


def _table(table: Cells) -> str:
    title, columns, rows = table
    heads = "".join(f"<th>{escape(column)}</th>" for column in columns)
    lines = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f"<details><summary>{escape(title)}</summary><div class='wide'><table><thead><tr>{heads}</tr></thead>"
        f"<tbody>{lines}</tbody></table></div></details>"
    )


def _rules(rules: Sequence[str]) -> str:
    return "<h2 id='rules'>How verdicts come about</h2>" + "".join(f"<p>{escape(rule)}</p>" for rule in rules)


def _settings(settings: Mapping[str, str]) -> str:
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in settings.items())
    return f"<h2 id='settings'>This run</h2><dl>{items}</dl>"
