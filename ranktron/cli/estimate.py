"""`ranktron estimate`."""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ranktron.cli.options import DATA, PICTURE, as_json
from ranktron.cli.output import print_json, print_table, show_activity
from ranktron.errors import DataError, RankingWarning, warn

if TYPE_CHECKING:
    from ranktron.data.rounds import Rounds
    from ranktron.metrics.off_policy import Estimate, RankingPolicy
    from ranktron.training.model import Model
    from ranktron.types import Floats, Impression


class _Log(NamedTuple):
    """Candidates with their features, and what was shown of them; positions and propensities are 0 where it was not."""

    rounds: Rounds
    impressions: list[Impression]


@click.command()
@click.argument("log", type=DATA)
@click.argument("models", metavar="MODEL...", nargs=-1, required=True, type=DATA)
@click.option("--logged-by", type=DATA, help="The model that showed the pages, by draws from its scores (pdgd).")
@click.option(
    "--logged-temperature",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="The temperature of these draws.",
)
@click.option(
    "--temperature",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="That of each MODEL's draws; 0 shows the best first and draws nothing.",
)
@click.option(
    "--impression", metavar="COLUMN", default="impression", show_default=True, help="Which rows are one page."
)
@click.option(
    "--position", metavar="COLUMN", default="position", show_default=True, help="Places, from 1; 0 if not shown."
)
@click.option("--click", "clicked", metavar="COLUMN", default="click", show_default=True, help="Clicks, or any gain.")
@click.option(
    "--exploration",
    metavar="COLUMN",
    default="exploration",
    show_default=True,
    help="How likely the document was to stand at its place; used without --logged-by.",
)
@click.option("--figure", type=PICTURE, help="Write the estimates with their intervals as a picture (.png or .svg).")
@as_json
def estimate(
    log: str, models: tuple[str, ...], logged_by: str | None, logged_temperature: float, temperature: float,
    impression: str, position: str, clicked: str, exploration: str, figure: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Estimate what each MODEL would have earned on the pages of LOG: the mean gain of a page.

    LOG is a table with a row for each candidate of each impression: features, position (0 or empty where it was not
    shown), click. What was shown must have been drawn at random, and the log has to say how likely it was: either the
    model that showed it (--logged-by), or a column with the probability of each document at its place. The column is
    enough for the item-position estimate; the others need the model.

    Intervals are over impressions: where users come back often, they are too narrow.

    Example: ranktron estimate log.csv my.model --logged-by shown.model
    """
    from ranktron.training.model import load

    if len(set(models)) < len(models):
        raise click.UsageError("the same model is named twice")
    with show_activity(f"reading {log}"):
        read = _read_log(log, impression, position, clicked, exploration, needs=logged_by is None)
    logging = None if logged_by is None else _policies(load(logged_by), read.rounds, logged_temperature)
    found = {}
    for model in models:
        with show_activity(f"estimating {model}"):
            policies = _policies(load(model), read.rounds, temperature)
            found[model] = _estimate_models(model, read, policies, logging)
    earned = _shown_reward(read)
    if figure:
        _draw(figure, log, earned, found)
    if as_json:
        print_json(_as_content(read, earned, found))
        return
    rows = [("what was shown", "mean", earned.value, f"{earned.low:.4f} – {earned.high:.4f}", f"{earned.n:,}")]
    for model, estimates in found.items():
        for name, each in estimates.items():
            interval = f"{each.low:.4f} – {each.high:.4f}"
            rows.append((model, name.replace("_", " "), each.value, interval, f"{each.effective_size:,.0f}"))
    print_table(
        f"gain of a page, from {log}", ["ranker", "estimator", "value", "95 % interval", "effective size"], rows
    )
    click.echo(f"{len(read.impressions):,} impressions of up to {_places(read)} documents")


def _read_log(path: str, impression: str, position: str, clicked: str, exploration: str, needs: bool) -> _Log:
    import numpy as np

    from ranktron.data.io import read
    from ranktron.data.rounds import Rounds
    from ranktron.types import Impression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankingWarning)  # of lists without a click: that is what logs are like
        table = read(path, label=clicked, query=impression, null="nan", sparse=False)
    names = list(table.feature_names or ())
    wanted = [position, exploration] if needs else [position]
    for name in wanted:
        if name not in names:
            option = "--position" if name == position else "--exploration (or name the model with --logged-by)"
            raise DataError(f"{path} has no column {name!r} among {', '.join(names) or 'its features'}: see {option}")
    columns = {name: np.nan_to_num(table.X[:, names.index(name)].astype(float)) for name in wanted}
    kept = [j for j, name in enumerate(names) if name not in (position, exploration)]
    X = np.ascontiguousarray(table.X[:, kept])
    kept_names = tuple(names[j] for j in kept)
    rounds = Rounds(X, table.labels, table.offsets, table.qids, table.docids, table.rows, kept_names,
                    missing=bool(np.isnan(X).any()))  # fmt: skip
    shown = []
    for qid, (a, b) in zip(table.qids, pairwise(table.offsets.tolist()), strict=True):
        items = _order(columns[position][a:b], f"{path}: impression {qid}")
        likely = columns[exploration][a:b][items] if needs else None
        shown.append(Impression(items, table.labels[a:b][items], likely))
    return _Log(rounds, shown)


def _order(positions: Floats, where: str) -> Any:
    """The documents of a page from the top; places without a gap, from 1."""
    import numpy as np

    order = np.argsort(positions, kind="stable")
    items = order[positions[order] > 0]
    if not len(items) or not np.array_equal(positions[items], np.arange(1, len(items) + 1)):
        found = [f"{place:g}" for place in positions[items]]
        raise DataError(
            f"{where} has the positions {', '.join(found) or 'of no document'}: count from 1, without a gap"
        )
    return items


def _policies(model: Model, rounds: Rounds, temperature: float) -> list[RankingPolicy]:
    from ranktron.metrics.off_policy import RankingPolicy

    scores, price = model.score_rounds(rounds), model.parameters.get("exploration_price", 1.0)
    return [RankingPolicy(scores[a:b], temperature, price) for a, b in pairwise(rounds.offsets.tolist())]


def _estimate_models(
    model: str, log: _Log, target: list[RankingPolicy], logging: list[RankingPolicy] | None
) -> dict[str, Estimate]:
    """All estimates of one model; what they warn of is said once, with its name."""
    from ranktron.metrics.off_policy import estimate_values

    cuts = pairwise(log.rounds.offsets.tolist())
    filled = None if log.rounds.missing else [log.rounds.X[a:b] for a, b in cuts]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", RankingWarning)
        found = estimate_values(log.impressions, target, logging, filled)
    for message in dict.fromkeys(str(each.message).partition(":")[0] for each in said):
        least = min(estimate.effective_size for estimate in found.values())
        warn(f"{model}: {message}: an estimate rests on {least:,.0f} of {len(target):,} impressions")
    return found


def _shown_reward(log: _Log) -> Estimate:
    """What the shown pages gained."""
    import numpy as np

    from ranktron.metrics.off_policy import ips

    totals = np.array([[impression.gains.sum()] for impression in log.impressions])
    return ips(totals, np.ones_like(totals), np.ones_like(totals))


def _places(log: _Log) -> int:
    return max(len(impression.items) for impression in log.impressions)


def _as_content(log: _Log, earned: Estimate, found: dict[str, dict[str, Estimate]]) -> dict[str, Any]:
    return {
        "impressions": len(log.impressions),
        "places": _places(log),
        "shown": _numbers(earned),
        "models": {model: {name: _numbers(each) for name, each in all.items()} for model, all in found.items()},
    }


def _numbers(estimate: Estimate) -> dict[str, Any]:
    return {name: value if math.isfinite(value) else None for name, value in asdict(estimate).items() if name != "n"}


def _draw(path: str, log: str, earned: Estimate, found: dict[str, dict[str, Estimate]]) -> None:
    from ranktron.training.figures.intervals import intervals

    groups = {
        model: {name.replace("_", " "): (each.value, each.low, each.high) for name, each in all.items()}
        for model, all in found.items()
    }
    title = f"What each ranker would have earned, from {log}"
    intervals(path, groups, {"what was shown": earned.value}, title=title, x="gain of a page")
