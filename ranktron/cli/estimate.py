"""`ranktron estimate`."""

from __future__ import annotations

import math
import warnings
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ranktron.cli.options import DATA, PICTURE, as_json, log_options, log_table_options
from ranktron.cli.output import print_json, print_table, show_activity
from ranktron.errors import DataError, RankingWarning, warn

if TYPE_CHECKING:
    from ranktron.data.rounds import Rounds
    from ranktron.metrics.off_policy import Estimate, RankingPolicy
    from ranktron.training.model import Model
    from ranktron.types import Floats, Impression


class _Log(NamedTuple):
    """Candidates with their features, and the documents of them that were shown."""

    rounds: Rounds
    impressions: list[Impression]


@click.command()
@click.argument("log", type=DATA)
@click.argument("models", metavar="MODEL...", nargs=-1, required=True, type=DATA)
@click.option("--logged-by", type=DATA, help="Logging model: it drew the pages from its scores (pdgd).")
@click.option(
    "--logged-temperature",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="Temperature of the logging model.",
)
@click.option(
    "--temperature",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    help="Temperature of each MODEL; 0 ranks by score, without draws.",
)
@log_table_options
@click.option("--figure", type=PICTURE, help="Write the estimates with their intervals as a picture (.png or .svg).")
@as_json
def estimate(
    log: str, models: tuple[str, ...], logged_by: str | None, logged_temperature: float, temperature: float,
    figure: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Off-policy evaluation: estimate the mean gain of a page of LOG, had each MODEL ranked it.

    LOG is a table with a row for each candidate of each impression: features, position (0 or empty if not shown) and
    click. Pages must have been drawn at random with known propensities: by the logging model (--logged-by), or in a
    column with the probability of each document at its position. The column is enough for the item-position estimate;
    the others need the model.

    Intervals are over impressions: they are too narrow if the same users come back often.

    Example: ranktron estimate log.csv my.model --logged-by shown.model
    """
    from ranktron.training.model import load

    if len(set(models)) < len(models):
        raise click.UsageError("the same model is named twice")
    with show_activity(f"reading {log}"):
        pages = _read_log(log, with_propensity=logged_by is None)
    logging = None if logged_by is None else _policies(load(logged_by), pages.rounds, logged_temperature)
    by_model = {}
    for model in models:
        with show_activity(f"estimating {model}"):
            policies = _policies(load(model), pages.rounds, temperature)
            by_model[model] = _estimate_model(model, pages, policies, logging)
    shown = _shown_gain(pages)
    if figure:
        _draw(figure, log, shown, by_model)
    if as_json:
        print_json(_as_content(pages, shown, by_model))
        return
    rows = [("shown pages", "mean", shown.value, f"{shown.low:.4f} – {shown.high:.4f}", f"{shown.n:,}")]
    for model, estimates in by_model.items():
        for name, each in estimates.items():
            interval = f"{each.low:.4f} – {each.high:.4f}"
            rows.append((model, name.replace("_", " "), each.value, interval, f"{each.effective_size:,.0f}"))
    print_table(
        f"gain of a page, from {log}", ["ranker", "estimator", "value", "95 % interval", "effective size"], rows
    )
    click.echo(f"{len(pages.impressions):,} impressions of up to {_places(pages)} documents")


def _read_log(path: str, with_propensity: bool) -> _Log:
    import numpy as np

    from ranktron.data.files import from_standard_input
    from ranktron.data.io import read
    from ranktron.data.io.click_logs import NEEDED, find_log_columns
    from ranktron.data.io.columns import as_columns
    from ranktron.data.rounds import Rounds
    from ranktron.types import Impression

    options = log_options()
    with from_standard_input(path) as source, warnings.catch_warnings():
        warnings.simplefilter("ignore", RankingWarning)  # logs have lists without a click
        found = find_log_columns(source, needed=(*NEEDED, *["exploration"] * with_propensity), **options)
        position, exploration = found["position"], found.get("exploration")
        roles = [position, found["exploration"]] if with_propensity else [position]
        chosen = as_columns(None, None, None, options.get("features"), options.get("drop"))
        others = [found[role] for role in found if role not in (*NEEDED, "item", "exploration")]
        table = read(
            source, label=found["click"], query=found["impression"], doc=found.get("item"), null="nan", sparse=False,
            features=None if chosen.features is None else [*chosen.features, *roles], format=options.get("format"),
            drop=None if chosen.features else [*chosen.drop, *others],
        )  # fmt: skip
    names = list(table.feature_names or ())
    columns = {name: np.nan_to_num(table.X[:, names.index(name)].astype(float)) for name in roles}
    features = [j for j, name in enumerate(names) if name not in (position, exploration)]
    X = np.ascontiguousarray(table.X[:, features])
    feature_names = tuple(names[j] for j in features)
    rounds = Rounds(X, table.labels, table.offsets, table.qids, table.docids, table.rows, feature_names,
                    missing=bool(np.isnan(X).any()))  # fmt: skip
    impressions = []
    for qid, (a, b) in zip(table.qids, pairwise(table.offsets.tolist()), strict=True):
        items = _order(columns[position][a:b], f"{path}: impression {qid}")
        propensities = columns[found["exploration"]][a:b][items] if with_propensity else None
        impressions.append(Impression(items, table.labels[a:b][items], propensities))
    return _Log(rounds, impressions)


def _order(positions: Floats, where: str) -> Any:
    """The documents of a page from the top; its positions must be 1, 2, … without a gap."""
    import numpy as np

    order = np.argsort(positions, kind="stable")
    items = order[positions[order] > 0]
    if not len(items) or not np.array_equal(positions[items], np.arange(1, len(items) + 1)):
        listed = ", ".join(f"{place:g}" for place in positions[items])
        raise DataError(f"{where} has the positions {listed or 'of no document'}: count from 1, without a gap")
    return items


def _policies(model: Model, rounds: Rounds, temperature: float) -> list[RankingPolicy]:
    from ranktron.metrics.off_policy import RankingPolicy

    scores, price = model.score_rounds(rounds), model.parameters.get("exploration_price", 1.0)
    return [RankingPolicy(scores[a:b], temperature, price) for a, b in pairwise(rounds.offsets.tolist())]


def _estimate_model(
    model: str, log: _Log, target: list[RankingPolicy], logging: list[RankingPolicy] | None
) -> dict[str, Estimate]:
    """All estimates of one model; each warning is repeated once, with its name."""
    from ranktron.metrics.off_policy import estimate_values

    cuts = pairwise(log.rounds.offsets.tolist())
    filled = None if log.rounds.missing else [log.rounds.X[a:b] for a, b in cuts]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RankingWarning)
        estimates = estimate_values(log.impressions, target, logging, filled)
    for message in dict.fromkeys(str(each.message).partition(":")[0] for each in caught):
        least = min(estimate.effective_size for estimate in estimates.values())
        warn(f"{model}: {message}: an estimate rests on {least:,.0f} of {len(target):,} impressions")
    return estimates


def _shown_gain(log: _Log) -> Estimate:
    """The mean gain of the pages as shown."""
    import numpy as np

    from ranktron.metrics.off_policy import ips

    totals = np.array([[impression.gains.sum()] for impression in log.impressions])
    return ips(totals, np.ones_like(totals), np.ones_like(totals))


def _places(log: _Log) -> int:
    return max(len(impression.items) for impression in log.impressions)


def _as_content(log: _Log, shown: Estimate, by_model: dict[str, dict[str, Estimate]]) -> dict[str, Any]:
    return {
        "impressions": len(log.impressions),
        "places": _places(log),
        "shown": _numbers(shown),
        "models": {model: {name: _numbers(each) for name, each in all.items()} for model, all in by_model.items()},
    }


def _numbers(estimate: Estimate) -> dict[str, Any]:
    numbers = {name: getattr(estimate, name) for name in ("value", "low", "high", "effective_size", "mean_weight")}
    return {name: value if math.isfinite(value) else None for name, value in numbers.items()}


def _draw(path: str, log: str, shown: Estimate, by_model: dict[str, dict[str, Estimate]]) -> None:
    from ranktron.training.figures.plots import intervals

    groups = {
        model: {name.replace("_", " "): (each.value, each.low, each.high) for name, each in all.items()}
        for model, all in by_model.items()
    }
    title = f"Estimated gain of each ranker, from {log}"
    intervals(path, groups, {"shown pages": shown.value}, title=title, x="gain of a page")
