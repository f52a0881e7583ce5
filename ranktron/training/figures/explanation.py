"""An HTML page that explains a model and the ranking of one query, without scripts or external resources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import isnan

import numpy as np

from ranktron.training.figures.plots import COLOURS
from ranktron.training.figures.weights import Weights
from ranktron.training.model import Explanation, Model
from ranktron.types import Floats

Piece = tuple[str, str]
"""A section of the page: its title, and its HTML."""

SHOWN = 30
"""The number of weights to show; the others can be unfolded."""


@dataclass(frozen=True, eq=False)
class ExplainedList:
    """A query with the ids and labels of its documents, and the explanation of its ranking."""

    qid: str
    documents: Sequence[str]
    labels: Floats
    explanation: Explanation

    def label(self, document: int) -> float | None:
        """The label of a document, None if it has none."""
        label = float(self.labels[document])
        return None if isnan(label) else label


def explanation_page(
    model: Model,
    weights: Weights | None,
    explained: ExplainedList | None,
    top: int,
    more: Sequence[Piece] = (),
    about: Sequence[Piece] = (),
    first: Sequence[Piece] = (),
) -> str:
    """The page: what it is `about` (names and texts), the sections of `first`, the ranking of a query and the weights.

    Of the query the first `top` documents are shown; the sections of `more` come last.
    """
    pieces = list(first)
    pieces += [] if explained is None else [(f"Query {explained.qid}", list_piece(explained, top))]
    pieces += [] if weights is None else [("Weights", weights_piece(weights))]
    pieces += more
    title = (
        f"The {'curves' if weights is None else 'weights'} of a model"
        if explained is None
        else f"Why query {explained.qid} is ranked as it is"
    )
    rounds = model.learner().rounds
    scaling = "as they are" if model.scaler is None else f"scaled ({model.scaler.name})"
    facts = [model.kind, f"{model.n_features:,} features, {scaling}"]
    facts += [] if model.map is None else [model.map.name]
    queries = model.record.get("queries")
    passes = round(rounds / queries, 1) if queries else 0.0
    trained = f"{queries:,} queries, {passes:g} pass{'es' * (passes != 1)}" if queries else f"{rounds:,} queries learnt"
    facts += [trained] if rounds else []
    items = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in about)
    sections = "".join(f"<section><h2>{escape(name)}</h2>\n{html}</section>\n" for name, html in pieces)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        f'<header><h1>{escape(title)}</h1>\n<p class="facts">{escape(" · ".join(facts))}</p>'
        f"{f'<dl>{items}</dl>' if items else ''}</header>\n"
        f"{sections}</main>\n</body>\n</html>\n"
    )


def weights_piece(weights: Weights) -> str:
    """The weights as bars around zero, with whiskers for their spread."""
    order = weights.strongest()
    spread = np.zeros(len(order)) if weights.spread is None else weights.spread
    reach = float((np.abs(weights.scaled) + spread).max(initial=0.0)) or 1.0
    rows = [_weight_row(weights, j, float(spread[j]), reach) for j in order]
    head = "<tr><th>feature</th><th></th><th>weight</th>"
    head += "<th>per unit</th></tr>" if weights.raw is not None else "</tr>"
    first, rest = "".join(rows[:SHOWN]), "".join(rows[SHOWN:])
    table = f'<table class="weights"><thead>{head}</thead><tbody>{first}</tbody></table>'
    if rest:
        table += f"<details><summary>{len(rows) - SHOWN:,} smaller weights</summary>"
        table += f'<table class="weights"><tbody>{rest}</tbody></table></details>'
    sign = "" if weights.spread is None else "± and whiskers: "
    unit = "" if weights.raw is None else " Per unit: what one unit more of the feature, unscaled, adds to a score."
    return f'<p class="note">{escape(sign + weights.note)}.{unit}</p>\n{table}\n'


def _weight_row(weights: Weights, j: int, spread: float, reach: float) -> str:
    weight = float(weights.scaled[j])
    start, width = 100.0 + min(weight, 0.0) / reach * 100.0, abs(weight) / reach * 100.0
    low, high = (100.0 + (weight + sign * spread) / reach * 100.0 for sign in (-1.0, 1.0))
    kind = "up" if weight >= 0.0 else "down"
    whisker = f'<path class="whisker" d="M{low:.2f} 6H{high:.2f}"/>' if spread else ""
    bar = (
        '<svg viewBox="0 0 200 12" preserveAspectRatio="none" aria-hidden="true"><path class="axis" d="M100 0V12"/>'
        f'<rect class="{kind}" x="{start:.2f}" y="2" width="{width:.2f}" height="8"/>{whisker}</svg>'
    )
    shown = f"{weight:+.4g}" + (f" <small>± {spread:.2g}</small>" if weights.spread is not None else "")
    raw = "" if weights.raw is None else f"<td>{float(weights.raw[j]):+.4g}</td>"
    return f'<tr><th>{escape(weights.names[j])}</th><td class="bar">{bar}</td><td>{shown}</td>{raw}</tr>\n'


def list_piece(explained: ExplainedList, top: int) -> str:
    """The documents in ranked order: the contributions to each score, and what decides between neighbours."""
    explanation = explained.explanation
    count = min(top, len(explanation.order))
    shown = explanation.order[:count]
    loudest = np.argsort(-np.abs(explanation.contributions[shown]).sum(axis=0), kind="stable")
    coloured = {int(j): k for k, j in enumerate(loudest[: len(COLOURS)])}
    above, below = (np.clip(side * explanation.contributions[shown], 0.0, None).sum(axis=1) for side in (1.0, -1.0))
    reach = (float(below.max(initial=0.0)), float(above.max(initial=0.0)))
    names = explanation.feature_names
    legend = "".join(f'<li><i class="c{k}"></i>{escape(names[j])}</li>' for j, k in coloured.items())
    legend += '<li><i class="c"></i>all others</li>' if len(names) > len(coloured) else ""
    cards = "".join(
        _document(explained, p, coloured, reach) + _compare_with_next(explanation, p, coloured) for p in range(count)
    )
    hidden = len(explanation.order) - count
    note = "A score is the sum of its parts, weight × feature: right of the line they add, left of it they take."
    rest = float(np.mean(explanation.scores - explanation.contributions.sum(axis=1)))
    note += f" Every score has {rest:+.4g} on top." if abs(rest) > 1e-4 * (1.0 + sum(reach)) else ""
    after = f'<p class="note">{hidden:,} more documents follow.</p>' if hidden else ""
    return f'<p class="note">{note}</p>\n<ul class="legend">{legend}</ul>\n<ol class="list">{cards}</ol>{after}\n'


def _document(explained: ExplainedList, position: int, coloured: dict[int, int], reach: tuple[float, float]) -> str:
    explanation = explained.explanation
    document = int(explanation.order[position])
    parts = explanation.contributions[document]
    score, label = float(explanation.scores[document]), explained.label(document)
    labelled = "" if label is None else f'<span class="label">label {label:g}</span> '
    strongest = [int(j) for j in np.argsort(-np.abs(parts), kind="stable")[:4] if parts[j] != 0.0]
    chips = _chips(explanation.feature_names, parts, strongest, coloured)
    return (
        f'<li class="document"><div class="head"><b>{position + 1}</b> <span class="name">'
        f"{escape(explained.documents[document])}</span> {labelled}"
        f'<span class="score">{score:+.4g}</span></div>{_stack(parts, coloured, reach)}'
        f'<div class="chips">{chips}</div></li>\n'
    )


def _stack(parts: Floats, coloured: dict[int, int], reach: tuple[float, float]) -> str:
    """The contributions to a score as stacked bars, to both sides of zero, the named features first."""
    total = sum(reach) or 1.0
    others = np.array([part for j, part in enumerate(parts) if j not in coloured])
    drawn = [(f"c{k}", float(parts[j])) for j, k in coloured.items()]
    drawn += [("c", float(np.clip(side * others, 0.0, None).sum()) * side) for side in (1.0, -1.0)]
    edges = {True: reach[0], False: reach[0]}
    boxes = []
    for colour, part in drawn:
        start = min(edges[part > 0.0], edges[part > 0.0] + part)
        edges[part > 0.0] += part
        x, width = start / total * 1000.0, abs(part) / total * 1000.0
        boxes.append(f'<rect class="{colour}" x="{x:.2f}" y="3" width="{width:.2f}" height="14"/>')
    zero = reach[0] / total * 1000.0
    return (
        '<svg class="stack" viewBox="0 0 1000 20" preserveAspectRatio="none" aria-hidden="true">'
        f'{"".join(boxes)}<path class="axis" d="M{zero:.2f} 0V20"/></svg>'
    )


def _compare_with_next(explanation: Explanation, position: int, coloured: dict[int, int]) -> str:
    """Why a document is ranked above the next one."""
    if position + 1 >= len(explanation.order):
        return ""
    lead, names = explanation.lead(position), explanation.feature_names
    deciding = explanation.deciding(position)
    if not deciding:
        return '<li class="between">tied with the next</li>\n'
    more = f"<span>and {len(deciding) - 5} more</span>" if len(deciding) > 5 else ""
    against = [int(j) for j in np.argsort(lead, kind="stable")[:2] if lead[j] < 0.0]
    return (
        f'<li class="between"><span>{float(lead.sum()):+.3g} over the next, decided by</span>'
        f"{_chips(names, lead, deciding[:5], coloured)}{more}"
        + (f"<span>against</span>{_chips(names, lead, against, coloured)}" if against else "")
        + "</li>\n"
    )


def _chips(names: Sequence[str], parts: Floats, chosen: Sequence[int], coloured: dict[int, int]) -> str:
    """Features by name, with their colour and contribution."""
    return "".join(
        f'<span class="chip"><i class="c{coloured.get(j, "")}"></i>{escape(names[j])} '
        f"<b>{float(parts[j]):+.3g}</b></span>"
        for j in chosen
    )


_STYLE = """
:root{color-scheme:light dark;--ground:#fff;--card:#f6f7f9;--ink:#1b1f24;--soft:#5b6470;--line:#d8dde3;
--up:#0072b2;--down:#c2570c;--other:#a9b1bb}
@media (prefers-color-scheme:dark){:root{--ground:#14171b;--card:#1d2126;--ink:#e7eaee;--soft:#9aa4b0;--line:#343b44;
--up:#4aa8e0;--down:#f0915a;--other:#5d6772}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:56rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 .25rem;overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:2.25rem 0 .5rem;overflow-wrap:anywhere}
.facts,.note{color:var(--soft);margin:.25rem 0 .75rem}
.note{font-size:.9rem}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;margin:.5rem 0}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
svg{display:block;width:100%;height:1rem}
.axis{stroke:var(--soft);stroke-width:1;vector-effect:non-scaling-stroke}
.whisker{stroke:var(--ink);stroke-width:1.5;vector-effect:non-scaling-stroke}
rect.up{fill:var(--up)}rect.down{fill:var(--down)}rect.c{fill:var(--other)}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
td,th{padding:.2rem .5rem;text-align:right;white-space:nowrap;font-weight:400}
thead th{color:var(--soft);font-size:.85rem;border-bottom:1px solid var(--line)}
tr>th:first-child{text-align:left;white-space:normal;overflow-wrap:anywhere;padding-left:0;max-width:14rem}
td.bar{width:45%;min-width:5rem}
td small{color:var(--soft)}
details{margin-top:.5rem}summary{cursor:pointer;color:var(--soft)}
ul,ol{list-style:none;margin:0;padding:0}
.legend{display:flex;flex-wrap:wrap;gap:.25rem 1rem;font-size:.9rem;margin-bottom:.75rem}
i{display:inline-block;width:.7rem;height:.7rem;border-radius:2px;margin-right:.35rem;background:var(--other)}
.document{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.6rem .75rem}
.head{display:flex;flex-wrap:wrap;gap:.25rem .75rem;align-items:baseline}
.head .name{flex:1 1 8rem;overflow-wrap:anywhere}.head .label{color:var(--soft);font-size:.9rem}
.head .score{font-variant-numeric:tabular-nums;font-weight:600}
.stack{height:1.25rem;margin:.35rem 0}
.chips,.between{display:flex;flex-wrap:wrap;gap:.25rem .5rem;font-size:.85rem;align-items:baseline}
.between{padding:.35rem .75rem .35rem 1rem;margin-left:1rem;border-left:2px solid var(--line);color:var(--soft)}
.chip{overflow-wrap:anywhere}.chip b{font-weight:600;font-variant-numeric:tabular-nums}
.between .chip{color:var(--ink)}
@media (max-width:34rem){h1{font-size:1.35rem}td,th{padding:.1rem .3rem}.weights thead{display:none}
.weights,.weights tbody{display:block}.weights tr{display:grid;grid-template-columns:1fr 8.5rem 5rem;padding:.2rem 0}
.weights th:first-child{grid-column:1/-1;max-width:none;padding:0}td.bar{width:auto;padding-left:0}td{font-size:.9rem}}
""" + "".join(f"i.c{k}{{background:{colour}}}rect.c{k}{{fill:{colour}}}" for k, colour in enumerate(COLOURS))
