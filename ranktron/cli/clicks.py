"""`ranktron clicks`."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import click

from ranktron.cli.options import DATA, PICTURE, as_json, log_options, log_table_options
from ranktron.cli.output import print_json, print_table, show_activity

if TYPE_CHECKING:
    from ranktron.data.impressions import Impressions
    from ranktron.learners.clicks import Examination

MUCH = 0.2  # of the impressions, in one query


@click.command()
@click.argument("log", type=DATA)
@log_table_options
@click.option(
    "--replicates", default=100, show_default=True, type=click.IntRange(0), help="Resampled logs, for intervals."
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of the resampling.")
@click.option(
    "--resample",
    type=click.Choice(["impressions", "queries"]),
    default="impressions",
    show_default=True,
    help="What is drawn for intervals: impressions, or queries with all of theirs, where users differ by query.",
)
@click.option("--picture", type=PICTURE, help="Draw the curves as a picture (.png or .svg).")
@as_json
def clicks(log: str, replicates: int, seed: int, resample: str, picture: str | None, as_json: bool) -> None:
    """Describe a click LOG: click-through and examination by position.

    LOG is a table with a row for each document shown: its impression, its position (from 1) and whether it was clicked.
    Examination is estimated by every method that the columns allow: randomised needs exploration, harvested needs query
    and item, and em (expectation-maximisation) features, or query and item. Intervals are pointwise, 95 %.

    Clicks tell examination from relevance only between positions that the same documents stood at. Where none did, no
    method can check the curve: it is refused, or rests on a model of relevance and has no interval.

    Example: ranktron clicks log.csv --picture clicks.png
    """
    from ranktron.data.io import read_click_log

    with show_activity(f"reading {log}"):
        rounds, impressions = read_click_log(log, **log_options())
    X = None if rounds is None or rounds.n_features == 0 else rounds.X
    with show_activity("estimating examination"):
        curves, refused = _estimates(impressions, X, replicates, seed, resample)
    if picture:
        from ranktron.training.figures.plots import draw_examination

        draw_examination(picture, impressions.click_through(), curves)
    summary = _summary(impressions, curves, refused, resample) | {"click_models": _click_models(impressions, seed)}
    if as_json:
        print_json(summary)
    else:
        _print(log, summary)


def _estimates(
    log: Impressions, X: Any, replicates: int, seed: int, resample: str
) -> tuple[dict[str, Examination], dict[str, str]]:
    """The curve of each method, or the reason why the log does not allow it."""
    from ranktron.errors import DataError, RankingWarning
    from ranktron.learners.clicks.estimating import METHODS, estimate_examination

    curves, refused = {}, {}
    for method in METHODS:
        count = min(replicates, 20) if method == "em" else replicates  # each is a whole fit
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RankingWarning)  # a curve without interval is explained below the table
                curves[method] = estimate_examination(log, X, method, count, seed, resample)
        except DataError as error:
            refused[method] = str(error)
    return curves, refused


def _summary(
    log: Impressions, curves: dict[str, Examination], refused: dict[str, str], resample: str
) -> dict[str, Any]:
    import numpy as np

    shown = np.bincount(log.position, minlength=log.n_positions + 1)[1:]
    rate = log.click_through()
    return {
        "impressions": len(log),
        "documents_shown": len(log.position),
        "clicks": int(log.clicks.sum()),
        "impressions_without_a_click": int((np.add.reduceat(log.clicks, log.offsets[:-1]) == 0).sum()),
        "positions": list(range(1, log.n_positions + 1)),
        "shown": shown.tolist(),
        "click_through": [None if value != value else value for value in rate.tolist()],
        "resampled": resample,
        "largest_query": _largest_query(log),
        "connected": _connected(log),
        "examination": {name: _plain(curve) for name, curve in curves.items()},
        "not_estimated": refused,
        "furthest_apart": _furthest_apart(curves),
    }


def _largest_query(log: Impressions) -> float | None:
    """The share of the impressions that the most frequent query has; None if queries are not known."""
    import numpy as np

    if log.query is None:
        return None
    _, counts = np.unique(log.query[log.offsets[:-1]], return_counts=True)
    return float(counts.max() / len(log))


def _connected(log: Impressions) -> dict[str, Any] | None:
    """How many documents moved, and the groups of positions that they connect; None if documents are not known."""
    from ranktron.learners.clicks.identification import Swaps, islands

    if log.query is None or log.item is None:
        return None
    swaps = Swaps(log)
    return {"documents_that_moved": swaps.documents, "positions": islands(swaps.joined)}


def _plain(curve: Examination) -> dict[str, Any]:
    """What `Examination.to_dict` returns, in JSON: bounds that are not known are null."""
    content = {name: value for name, value in curve.to_dict().items() if name != "method"}
    return {
        name: value if isinstance(value, str) else [each if math.isfinite(each) else None for each in value.ravel()]
        for name, value in content.items()
    }


def _furthest_apart(curves: dict[str, Examination]) -> dict[str, Any] | None:
    """The position at which two estimates differ by the largest factor, and whether their intervals are disjoint."""
    import numpy as np

    names = list(curves)
    worst: dict[str, Any] | None = None
    for i, one in enumerate(names):
        for other in names[i + 1 :]:
            a, b = curves[one], curves[other]
            apart = np.abs(np.log(a.values / b.values))
            at = int(apart.argmax())
            disjoint = None
            if a.low is not None and a.high is not None and b.low is not None and b.high is not None:
                disjoint = bool(a.low[at] > b.high[at] or b.low[at] > a.high[at])
            factor = float(np.exp(apart[at]))
            if worst is None or factor > worst["factor"]:
                worst = {"methods": [one, other], "position": at + 1, "factor": factor, "disjoint": disjoint}
    return worst


def _print(name: str, summary: dict[str, Any]) -> None:
    from ranktron.learners.clicks.identification import REMEDY, name_islands

    counts = ("impressions", "documents_shown", "clicks", "impressions_without_a_click")
    print_table(name, ["", ""], [(each.replace("_", " "), summary[each]) for each in counts])
    curves = summary["examination"]
    rows = []
    for k, position in enumerate(summary["positions"]):
        rate = summary["click_through"][k]
        cells = [f"{curve['values'][k]:.3f}{_interval(curve, k)}" for curve in curves.values()]
        rows.append((str(position), f"{summary['shown'][k]:,}", "–" if rate is None else f"{rate:.4f}", *cells))
    print_table("examination, relative to position 1", ["position", "shown", "click-through", *curves], rows)
    connected = summary["connected"]
    if connected is not None:
        moved = f"{connected['documents_that_moved']:,} documents stood at several positions"
        whole = len(connected["positions"]) == 1
        said = "and connect all of them" if whole else f"and nothing connects {name_islands(connected['positions'])}"
        click.echo(f"{moved} {said}")
    share = summary["largest_query"]
    if summary["resampled"] == "impressions" and share is not None and MUCH < share < 1.0:
        click.echo(
            f"one query has {share:.0%} of the impressions: intervals hold for these queries, and --resample queries "
            "is for others"
        )
    for method, curve in curves.items():
        if "alone" in curve.get("basis", ""):
            click.echo(
                f"{method} rests on {curve['basis']}: nothing in the log can check it, and an interval would not hold; "
                f"{REMEDY}"
            )
    for method, why in summary["not_estimated"].items():
        click.echo(f"not {method}: {why}")
    _print_click_models(summary["click_models"])
    worst = summary["furthest_apart"]
    if worst is not None:
        kind = {True: "; their intervals there are disjoint", False: "; their intervals there overlap", None: ""}
        one, other = worst["methods"]
        click.echo(
            f"furthest apart: {one} and {other} at position {worst['position']}, by a factor of {worst['factor']:.2f}"
            f"{kind[worst['disjoint']]}"
        )


def _interval(curve: dict[str, list[float]], k: int) -> str:
    if "low" not in curve or not k:
        return ""
    return " (unknown)" if curve["high"][k] is None else f" ({curve['low'][k]:.3f}–{curve['high'][k]:.3f})"


def _click_models(log: Impressions, seed: int) -> list[dict[str, Any]]:
    """How well each click model predicts held-out clicks; none where the log does not allow it."""
    from ranktron.learners.clicks.browsing import compare_click_models

    if log.query is None or log.item is None or len(log) < 10 or not log.clicks.any():
        return []
    scores = (score._asdict() for score in compare_click_models(log, seed=seed))
    return [{name: None if value != value else value for name, value in score.items()} for score in scores]


def _print_click_models(scores: list[dict[str, Any]]) -> None:
    rows = []
    for score in scores:
        interval = (
            "" if score["low"] is None or not score["gain"] else f" ({score['low']:+.4f} to {score['high']:+.4f})"
        )
        rows.append((score["model"], f"{score['log_likelihood']:.4f}", f"{score['gain']:+.4f}{interval}"))
    if rows:
        columns = ["model of users", "log-likelihood", "gain on position-based"]
        print_table("click models, fitted to 70 % of the impressions: the clicks of the others, a row", columns, rows)
