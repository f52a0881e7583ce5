"""`ranktron estimate`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
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


class _Result(NamedTuple):
    """What was shown, and what each other ranker would have earned, by estimator."""

    impressions: int
    places: int
    shown: Estimate
    by_ranker: dict[str, dict[str, Estimate]]


class _Log(NamedTuple):
    """Candidates with their features, and the documents of them that were shown, at which positions."""

    rounds: Rounds
    impressions: list[Impression]
    positions: list[Floats]


@click.command()
@click.argument("log", type=DATA)
@click.argument("models", metavar="[MODEL]...", nargs=-1, type=DATA)
@click.option(
    "--target",
    "targets",
    metavar="COLUMN",
    multiple=True,
    help="Instead of a MODEL: column with another ranker's probability of showing the document at its position.",
)
@click.option(
    "--policy",
    "policies",
    type=DATA,
    multiple=True,
    help="Instead of a MODEL: table with another ranker's probability of showing each item (at each position).",
)
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
    log: str, models: tuple[str, ...], targets: tuple[str, ...], policies: tuple[str, ...], logged_by: str | None,
    logged_temperature: float, temperature: float, figure: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Off-policy evaluation: estimate the mean gain of a page of LOG, had each MODEL ranked it.

    LOG is a table with a row for each candidate of each impression: features, position (0 or empty if not shown) and
    click. Pages must have been drawn at random with known propensities: by the logging model (--logged-by), or in a
    column with the probability of each document at its position (--exploration). The column is enough for the
    item-position estimate; the others need the model.

    With --target or --policy instead of a MODEL, LOG is a bandit log: it has a row for each document that was shown,
    and the column --exploration. Each row is an impression, unless there is a column that says otherwise.
    A --policy is a table with the columns item, probability and, if they differ, position; it also gives the direct
    and doubly robust estimates.

    Intervals are over impressions: they are too narrow if the same users come back often.

    Example: ranktron estimate log.csv my.model --logged-by shown.model
    """
    for names, what in ((models, "model"), (targets, "column"), (policies, "policy")):
        if len(set(names)) < len(names):
            raise click.UsageError(f"the same {what} is named twice")
    if bool(models) == bool(targets or policies):
        raise click.UsageError("name what to estimate: models, or columns (--target) and tables (--policy)")
    if logged_by is not None and not models:
        raise click.UsageError("--logged-by goes with models: a bandit log has the probabilities in --exploration")
    if models:
        result = _estimate_models(log, models, logged_by, logged_temperature, temperature)
    else:
        result = _estimate_bandit(log, targets, policies)
    if figure:
        _draw(figure, log, result)
    if as_json:
        print_json(_as_content(result))
        return
    shown = result.shown
    rows = [("shown pages", "mean", f"{shown.value:.4g}", _interval(shown), "", f"{shown.n:,}")]
    for ranker, estimates in result.by_ranker.items():
        for name, each in estimates.items():
            size = f"{each.effective_size:,.0f}" if math.isfinite(each.low) else ""
            cells = f"{each.value:.4g}", _interval(each), _interval(each - shown), size
            rows.append((ranker, name.replace("_", " "), *cells))
    heads = ["ranker", "estimator", "value", "95 % interval", "above shown pages", "effective size"]
    print_table(f"gain of a page, from {log}", heads, rows)
    click.echo(f"{result.impressions:,} impressions of up to {result.places} documents")


def _interval(estimate: Estimate) -> str:
    return f"{estimate.low:.4g} – {estimate.high:.4g}" if math.isfinite(estimate.low) else "–"


def _estimate_models(
    path: str, models: tuple[str, ...], logged_by: str | None, logged_temperature: float, temperature: float
) -> _Result:
    from ranktron.training.model import load

    with show_activity(f"reading {path}"):
        log = _read_log(path, with_propensity=logged_by is None)
    logging = None if logged_by is None else _policies(load(logged_by), log.rounds, logged_temperature)
    by_model = {}
    for model in models:
        with show_activity(f"estimating {model}"):
            by_model[model] = _estimate_model(model, log, _policies(load(model), log.rounds, temperature), logging)
    places = max(len(impression.items) for impression in log.impressions)
    return _Result(len(log.impressions), places, _shown_gain(log, places), by_model)


def _estimate_bandit(path: str, targets: tuple[str, ...], policies: tuple[str, ...]) -> _Result:
    """Estimates from a log of shown documents, for rankers whose probabilities are in columns and tables."""
    import numpy as np

    from ranktron.cli.bandit_logs import read_bandit_log, read_policy
    from ranktron.metrics.off_policy import estimate_bandit

    with show_activity(f"reading {path}"):
        log = read_bandit_log(path, targets, with_items=bool(policies))
    by_ranker = {}
    for column in targets:
        with _repeat_warnings(column, len(log.gains)) as estimates:
            estimates |= estimate_bandit(log.gains, log.logged, log.targets[column], impression=log.impression)
        by_ranker[column] = estimates
    for policy in policies:
        items, table = read_policy(policy, log)
        with _repeat_warnings(policy, len(log.gains)) as estimates:
            estimates |= estimate_bandit(log.gains, log.logged, table, item=items, position=log.position,
                                         impression=log.impression)  # fmt: skip
        by_ranker[policy] = estimates
    own = estimate_bandit(log.gains, log.logged, log.logged, impression=log.impression)
    counts = np.ones(1) if log.impression is None else np.unique(log.impression, return_counts=True)[1]
    shown = next(iter(own.values()))
    return _Result(shown.n, int(counts.max()), shown, by_ranker)


@contextmanager
def _repeat_warnings(ranker: str, n: int) -> Iterator[dict[str, Estimate]]:
    """Yields a dict for the estimates of a ranker; each warning that they cause is repeated once, with its name."""
    estimates: dict[str, Estimate] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RankingWarning)
        yield estimates
    for message in dict.fromkeys(str(each.message).partition(":")[0] for each in caught):
        least = min(estimate.effective_size for estimate in estimates.values())
        mean = max((estimate.mean_weight for estimate in estimates.values()), key=lambda weight: abs(weight - 1.0))
        rests = f"an estimate rests on {least:,.0f} of {n:,} impressions, with a mean weight of {mean:.2g}"
        warn(f"{ranker}: {message}: {rests}")


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
    impressions, positions = [], []
    for qid, (a, b) in zip(table.qids, pairwise(table.offsets.tolist()), strict=True):
        items = _order(columns[position][a:b], f"{path}: impression {qid}")
        propensities = columns[found["exploration"]][a:b][items] if with_propensity else None
        impressions.append(Impression(items, table.labels[a:b][items], propensities))
        positions.append(columns[position][a:b][items])
    return _Log(rounds, impressions, positions)


def _order(positions: Floats, where: str) -> Any:
    """The documents of a page from the top: at the positions 1, 2, … without a gap, or one document at any position."""
    import numpy as np

    order = np.argsort(positions, kind="stable")
    items = order[positions[order] > 0]
    places = positions[items]
    single = len(items) == 1 and places[0] == np.floor(places[0])
    if not len(items) or not (single or np.array_equal(places, np.arange(1, len(items) + 1))):
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
    """All estimates of one model."""
    from ranktron.metrics.off_policy import estimate_values

    cuts = pairwise(log.rounds.offsets.tolist())
    filled = None if log.rounds.missing else [log.rounds.X[a:b] for a, b in cuts]
    with _repeat_warnings(model, len(target)) as estimates:
        estimates |= estimate_values(log.impressions, target, logging, filled, positions=log.positions)
    return estimates


def _shown_gain(log: _Log, places: int) -> Estimate:
    """The mean gain of the pages as shown."""
    import numpy as np

    from ranktron.metrics.off_policy import ips

    gains = np.zeros((len(log.impressions), places))
    for row, impression in zip(gains, log.impressions, strict=True):
        row[: len(impression.items)] = impression.gains
    return ips(gains, np.ones_like(gains), np.ones_like(gains))


def _as_content(result: _Result) -> dict[str, Any]:
    return {
        "impressions": result.impressions,
        "places": result.places,
        "shown": _numbers(result.shown),
        "models": {
            ranker: {name: _numbers(each) | {"above_shown": _ends(each - result.shown)} for name, each in all.items()}
            for ranker, all in result.by_ranker.items()
        },
    }


def _numbers(estimate: Estimate) -> dict[str, Any]:
    numbers = {name: getattr(estimate, name) for name in ("value", "low", "high", "effective_size", "mean_weight")}
    return {name: value if math.isfinite(value) else None for name, value in numbers.items()}


def _ends(difference: Estimate) -> dict[str, Any]:
    return {name: value for name, value in _numbers(difference).items() if name in ("value", "low", "high")}


def _draw(path: str, log: str, result: _Result) -> None:
    from ranktron.training.figures.plots import intervals

    groups = {
        ranker: {name.replace("_", " "): (each.value, each.low, each.high) for name, each in all.items()}
        for ranker, all in result.by_ranker.items()
    }
    title = f"Estimated gain of each ranker, from {log}"
    intervals(path, groups, {"shown pages": result.shown.value}, title=title, x="gain of a page")
