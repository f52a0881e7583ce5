"""`ranktron train`."""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from ranktron.cli.options import (
    DATA,
    OUT,
    PICTURE,
    as_json,
    as_metric,
    epochs_option,
    keep_inputs,
    map_option,
    metrics_option,
    nan_option,
    null_for,
    null_option,
    parse_settings,
    preset_option,
    read_data,
    reading_options,
    scale_option,
    table_options,
    with_preset,
)
from ranktron.cli.output import print_json, print_table, show_activity, show_progress, statements
from ranktron.cli.parts import PARTS, check_parts_options, parts_options, train_on_parts
from ranktron.data.option_names import USERS
from ranktron.errors import DataError, RankingWarning
from ranktron.training.algorithms import ALGORITHMS, DEFAULT_ALGORITHM, TRAINING

if TYPE_CHECKING:
    from ranktron.data.rounds import Rounds
    from ranktron.learners.clicks.estimating import WeightedLog
    from ranktron.metrics import Metric
    from ranktron.training.fit import Trained
    from ranktron.training.model import Model

_EPOCHS, _SHUFFLE = TRAINING
_FEW = 8
CLICK_ALGORITHMS = ("ranksvm", "rankmm", "hinge")


def _algorithms_help() -> str:
    lines = ["\b", "Algorithms and their parameters (--set key=value):"]
    for each in ALGORITHMS.values():
        lines += _wrap(f"{each.name}: {each.summary}", 2)
        for p in each.parameters:
            lines += _wrap(f"{p.name}={str(p.default).lower()}: {p.help}", 4)
    return "\n".join(lines)


def _wrap(text: str, indent: int) -> list[str]:
    """Lines for a terminal of 80 columns; click itself adds an indent of 2."""
    return textwrap.wrap(text, 78, initial_indent=" " * indent, subsequent_indent=" " * (indent + 4))


@click.command(epilog=_algorithms_help())
@click.argument("data", type=PARTS)
@click.option(
    "--algo", type=click.Choice(list(ALGORITHMS)), default=None, help=f"Algorithm.  [default: {DEFAULT_ALGORITHM}]"
)
@preset_option
@click.option("--set", "settings", metavar="KEY=VALUE", multiple=True, help="A parameter of the algorithm.")
@epochs_option
@click.option("--seed", default=None, type=click.IntRange(0), help="Seed of the shuffling.  [default: 0]")
@click.option("--shuffle/--no-shuffle", default=None, help=f"{_SHUFFLE.help.capitalize()}.  [default: shuffle]")
@scale_option
@map_option
@nan_option
@click.option("--valid", type=DATA, help="Validation set: the epoch that is best on it is kept.")
@click.option(
    "--select", default="ndcg@10", show_default=True, callback=as_metric, help="Metric that chooses the best epoch."
)
@click.option(
    "--patience",
    type=click.IntRange(1),
    default=None,
    help="End after so many epochs in a row that are no better on the validation set; --epochs is then the most.",
)
@click.option(
    "--feedback",
    type=click.Choice(USERS),
    default=None,
    help="Learn from the clicks of a simulated user instead of labels; its seed is --seed.",
)
@click.option(
    "--clicks",
    type=click.Choice(["auto", "randomised", "harvested", "em"]),
    default=None,
    help="DATA is a click log, as `ranktron clicks` describes it: learn from its clicks, with position bias estimated "
    "in this way. For ranksvm (then the default), rankmm and hinge.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=None,
    help="Number of threads: each learns from its own share of the queries, and they are mixed ten times a pass. The "
    "result depends on it.  [default: 1, or that of the model to continue]",
)
@parts_options
@click.option("--from", "start", type=DATA, help="Model to continue training, exactly where it stopped.")
@click.option("--model", "out", type=OUT, required=True, help="Where to save the model.")
@click.option("--curve", type=PICTURE, help="Write the learning curve as an image (.png or .svg).")
@metrics_option("ndcg@10")
@null_option
@table_options
@as_json
def train(
    data: str, algo: str | None, preset: str | None, settings: tuple[str, ...], epochs: int | None, seed: int | None,
    shuffle: bool | None, scale: str | None, recipe: str | None, nan: str | None, valid: str | None, select: Metric,
    patience: int | None, feedback: str | None, clicks: str | None, jobs: int | None, dask: str | None,
    stream: bool, mode: str | None, shards: int | None, start: str | None, out: str, curve: str | None,
    metrics: list[Metric], null: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Train a ranker on DATA and save it.

    Online learners rank each query before they learn from it: the time averages are those of these rankings. Ctrl-C
    saves the model as trained so far; --from continues from there.

    Example: ranktron train train.txt --algo hinge --set eta=0.1 --valid vali.txt --model my.model
    """
    from ranktron.learners.schedule import Schedule
    from ranktron.training.fit import train as train_model
    from ranktron.training.model import load

    if patience is not None and valid is None:
        raise click.UsageError("--patience counts epochs that are no better on a validation set: add --valid")
    check_parts_options(dask, stream, mode, shards, {"--clicks": clicks, "--feedback": feedback, "--jobs": jobs})
    keep_inputs(out, data, valid)
    before = load(start) if start else None
    if before is not None and (algo or preset or settings or scale or recipe or nan):
        raise click.UsageError(
            "--from keeps the model's algorithm, parameters, imputation, scaling and map: leave these options out"
        )
    name = before.kind if before is not None else algo or ("ranksvm" if clicks else DEFAULT_ALGORITHM)
    if clicks and (before is not None or feedback or name not in CLICK_ALGORITHMS):
        raise click.UsageError(
            f"--clicks takes {', '.join(CLICK_ALGORITHMS)}, and neither --from nor --feedback: the log says it all"
        )
    parameters = parse_settings(name, settings)
    if before is None:
        parameters, scale, epochs = with_preset(name, preset, parameters, scale, epochs)
    epochs = epochs or _EPOCHS.default
    if null not in (None, "error"):
        click.echo(f"--null {null} applies to these files and is not saved with the model; --nan would be", err=True)
    null = null or null_for(before, nan)
    schedule = Schedule(epochs, *_order(seed, shuffle, before))
    user = feedback or (before.record.get("feedback") if before is not None else None)
    asked: dict[str, Any] = {"scaling": scale, "map": recipe, "select": select, "metrics": metrics}
    asked |= {"nan": nan or "error", "feedback": user, "patience": patience}
    if dask or stream:
        files = data, valid, out, null
        trained = train_on_parts(files, name, parameters, schedule, before, asked, (dask, mode, shards))
        return _finish(trained, metrics, select, out, curve, as_json)
    log = _read_log(data, clicks) if clicks else None
    rounds = read_data(data, null, before, part="train") if log is None else log.lists
    checked = read_data(valid, null, rounds, part="vali") if valid else None
    jobs = jobs or (1 if before is None else before.record.get("division", {}).get("shards", 1))
    _compile(name, parameters if before is None else before.parameters, rounds, checked, asked)
    with show_progress(f"training {name}", epochs * len(rounds)) as step, statements():
        asked |= {"start": before, "valid": checked, "progress": step, "jobs": jobs}
        asked |= {"consume": log is None, "weights": None if log is None else log.weights}
        trained = train_model(name, parameters, rounds, schedule, **asked)
    if log is not None:
        record = {**trained.model.record, "examination": log.examination.to_dict()}
        trained = replace(trained, model=replace(trained.model, record=record))
    return _finish(trained, metrics, select, out, curve, as_json)


def _finish(
    trained: Trained, metrics: list[Metric], select: Metric, out: str, curve: str | None, as_json: bool
) -> None:
    """Saves the model and reports what was learnt."""
    trained.model.save(out)
    if curve:
        from ranktron.training.figures.history import draw_history

        draw_history(trained.history, curve, metrics, title=f"{trained.model.kind}: learning curve")
    summary = _summary(trained, metrics, out)
    if as_json:
        print_json(summary)
    else:
        _print(summary, trained, select, out)
    if trained.history.interrupted:
        done = f"interrupted after {trained.history.rounds:,} rounds"
        raise DataError(f"{done}; the model so far is saved in {out}: continue with --from {out}")


def _read_log(path: str, method: str) -> WeightedLog:
    """A list for each click of a log, weighed by how likely it was to be seen."""
    from ranktron.data.io import read_click_log
    from ranktron.learners.clicks.estimating import weigh_log

    options = reading_options()
    chosen = {name: options[name] for name in ("features", "drop", "format") if options.get(name)}
    with show_activity(f"reading {path}"):
        rounds, impressions = read_click_log(path, **chosen)
        if rounds is None:
            raise DataError(f"{path}: there is no feature in it")
        return weigh_log(impressions, rounds, None if method == "auto" else method)


def _compile(
    name: str, parameters: Mapping[str, Any], rounds: Rounds, checked: Rounds | None, asked: dict[str, Any]
) -> None:
    """Trains on a few queries and discards the result, so that the reported speed does not include compilation."""
    from ranktron.learners.schedule import Schedule
    from ranktron.training.fit import train as train_model

    few, valid = rounds[:_FEW], None if checked is None else checked[:_FEW]
    with show_activity("preparing (compiling on the first run only)"), suppress(DataError), warnings.catch_warnings():
        warnings.simplefilter("ignore", RankingWarning)
        tried = train_model(name, parameters, few, Schedule(1), valid=valid, **asked)
        if tried.history.interrupted:
            raise KeyboardInterrupt


def _order(seed: int | None, shuffle: bool | None, before: Model | None) -> tuple[int, bool]:
    record = {} if before is None else before.record
    own_seed, own_shuffle = record.get("seed", 0), record.get("shuffle", _SHUFFLE.default)
    return own_seed if seed is None else seed, own_shuffle if shuffle is None else shuffle


def _summary(trained: Trained, metrics: list[Metric], out: str) -> dict[str, Any]:
    history, model = trained.history, trained.model
    online = dict(zip(map(str, metrics), history.averages(), strict=False))
    return {
        "algorithm": model.kind,
        "rounds": history.rounds,
        "mistakes": history.mistakes,
        "seconds": history.seconds,
        "online": online or None,
        "valid": history.kept,
        "epoch": history.epoch,
        "scale": "none" if model.scaler is None else model.scaler.name,
        "map": None if model.map is None else model.map.name,
        "nan": "error" if model.imputer is None else model.imputer.name,
        "interrupted": history.interrupted,
        "remarks": history.remarks,
        "model": out,
    }


def _print(summary: dict[str, Any], trained: Trained, select: Metric, out: str) -> None:
    history = trained.history
    rate = history.rounds / history.seconds if history.seconds else 0.0
    rows: list[tuple[str, object]] = [
        ("rounds", f"{history.rounds:,} ({rate:,.0f} per second)"),
    ]
    if history.mistakes or summary["online"]:
        counted = "rounds" if summary["online"] else "pairs"
        rows.append((f"{counted} with an update", history.mistakes))
    rows.append(("scaling", summary["scale"]))
    rows += [("feature map", summary["map"])] if summary["map"] else []
    rows += [("missing values", summary["nan"])] if trained.model.imputer is not None else []
    rows += [(f"{name}, time average", value) for name, value in (summary["online"] or {}).items()]
    if history.valid:
        rows.append(("best epoch", f"{summary['epoch']}, by {select}"))
        rows += [(f"{name}, validation", value) for name, value in summary["valid"].items()]
    rows += [(remark, count) for remark, count in history.remarks.items() if count]
    print_table(f"{trained.model.kind} → {out}", ["", ""], rows, out)
