"""`ranktron train`."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from ranktron.cli.cluster_options import PARTS, PartsOptions, parts_options, train_on_parts
from ranktron.cli.options import (
    DATA,
    OUT,
    PICTURE,
    AlgorithmOptions,
    as_json,
    as_metric,
    categorical_option,
    click_log_options,
    epochs_option,
    keep_inputs,
    log_columns,
    log_options,
    map_option,
    metrics_option,
    nan_option,
    null_for,
    null_option,
    preset_option,
    read_data,
    read_training_data,
    reading_options,
    scale_option,
    table_options,
    take_options,
)
from ranktron.cli.output import print_json, print_table, show_activity, show_log, show_progress
from ranktron.errors import DataError
from ranktron.export.targets import TARGETS
from ranktron.learners.clicks.click_models import USERS
from ranktron.training.algorithms import ALGORITHMS, DEFAULT_ALGORITHM, TRAINING
from ranktron.training.algorithms import algorithm as find_algorithm

if TYPE_CHECKING:
    from ranktron.data.rounds import Rounds
    from ranktron.learners.clicks.estimating import WeightedLog
    from ranktron.metrics import Metric
    from ranktron.training.fit import Trained, TrainingPlan
    from ranktron.training.model import Model

_EPOCHS, _SHUFFLE = TRAINING
LISTS = "auto-lists"  # the scaling of a plan that is not told another one
CLICK_ALGORITHMS = ("ranksvm", "rankmm", "hinge")


def _algorithms_help() -> str:
    lines = ["\b", "Algorithms and their parameters (--set key=value):"]
    for each in ALGORITHMS.values():
        lines += _wrap(f"{each.name}: {each.summary}", 2)
        for p in each.parameters:
            lines += _wrap(f"{p.name}={str(p.default).lower()}: {p.help}", 4)
    return "\n".join(lines)


def _wrap(text: str, indent: int) -> list[str]:
    """Lines for a terminal of 80 columns, to which click adds an indent of 2."""
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
@click.option(
    "--exportable",
    is_flag=True,
    help="Only what search engines can compute: scaling over all queries, a linear algorithm or rankboost, no map. "
    "With --valid, says what that costs.",
)
@click.option("--valid", type=DATA, help="Validation set, which selects the best epoch.")
@click.option(
    "--select", default="ndcg@10", show_default=True, callback=as_metric, help="Metric that selects the best epoch."
)
@click.option(
    "--patience",
    type=click.IntRange(1),
    default=None,
    help="Stop after this many epochs without improvement on the validation set; --epochs is then the maximum.",
)
@click.option(
    "--feedback",
    type=click.Choice(list(USERS)),
    default=None,
    help="Learn from the clicks of a simulated user instead of labels; its seed is --seed.",
)
@click.option(
    "--clicks",
    type=click.Choice(["auto", "randomised", "harvested", "em"]),
    default=None,
    help="DATA is a click log (see `ranktron clicks`): learn from its clicks, with position bias estimated by this "
    "method. For ranksvm (then the default), rankmm and hinge.",
)
@click_log_options("impression", "position", "click", "item", "ranker", "exploration", "propensity")
@parts_options
@click.option("--from", "start", type=DATA, help="Model to continue training, exactly where it stopped.")
@click.option(
    "--warm-start",
    type=DATA,
    help="Linear model whose weights an online --algo starts from, with its imputation, scaling and map: a model file, "
    "or XGBoost's gblinear (a dump or a saved model).",
)
@click.option(
    "--trust",
    type=click.FloatRange(0.0, min_open=True),
    help="How far the weights may go from those of --warm-start, in Euclidean distance.  [default: no limit]",
)
@click.option("--model", "out", type=OUT, required=True, help="Where to save the model.")
@click.option("--curve", type=PICTURE, help="Write the learning curve as an image (.png or .svg).")
@metrics_option("ndcg@10")
@null_option
@categorical_option
@table_options
@as_json
def train(**options: Any) -> None:
    """Train a ranker on DATA and save it.

    Online learners rank each query before they learn from it: the time averages are those of these rankings. Ctrl-C
    saves the model as trained so far; --from continues from there. --warm-start begins anew with the weights of another
    linear model.

    Example: ranktron train train.txt --algo hinge --set eta=0.1 --valid vali.txt --model my.model
    """
    algorithm, parts = take_options(AlgorithmOptions, options), take_options(PartsOptions, options)
    _train(TrainOptions(**options, algorithm=algorithm, parts=parts))


@dataclass(frozen=True)
class TrainOptions:
    """The options of `ranktron train`."""

    data: str
    algorithm: AlgorithmOptions
    parts: PartsOptions
    seed: int | None
    shuffle: bool | None
    valid: str | None
    select: Metric
    patience: int | None
    feedback: str | None
    clicks: str | None
    exportable: bool
    start: str | None  # the model to continue
    warm_start: str | None  # the model whose weights are the first ones
    trust: float | None
    out: str
    curve: str | None
    metrics: list[Metric]
    null: str | None
    as_json: bool

    def check(self) -> None:
        """Refuses options that contradict each other."""
        algorithm = self.algorithm
        if self.patience is not None and self.valid is None:
            raise click.UsageError("--patience counts epochs without improvement on a validation set: add --valid")
        categorical = reading_options().get("categorical")
        excluded = {"--clicks": self.clicks, "--feedback": self.feedback, "--categorical": categorical}
        self.parts.check({**excluded, "--warm-start": self.warm_start})
        if self.start and (categorical or any(value for name, value in vars(algorithm).items() if name != "epochs")):
            raise click.UsageError(
                "--from keeps the model's algorithm, parameters, categories, imputation, scaling and map: leave these "
                "options out"
            )
        named = log_columns()
        if named and not self.clicks:
            raise click.UsageError(f"--{next(iter(named))} names a column of a click log: add --clicks auto")
        if self.exportable:
            self._check_exportable()
        if self.clicks and categorical:
            raise click.UsageError("--clicks takes numbers only: leave --categorical out")
        self._check_start(bool(categorical))
        if self.clicks and (self.start or self.feedback or algorithm.algo not in (None, *CLICK_ALGORITHMS)):
            raise click.UsageError(
                "--clicks cannot be combined with --from or --feedback, and needs one of the algorithms "
                f"{', '.join(CLICK_ALGORITHMS)}"
            )

    def _check_exportable(self) -> None:
        """Refuses what no search engine can compute."""
        algorithm = self.algorithm
        if self.start:
            raise click.UsageError("--from keeps the model's scaling: leave --exportable out")
        if algorithm.map:
            raise click.UsageError("--exportable excludes --map: search engines cannot compute feature maps")
        if (algorithm.scale or "").endswith("-query"):
            raise click.UsageError(f"--exportable excludes --scale {algorithm.scale}: it needs the whole list")
        plan = self.plan(None)
        learner = find_algorithm(plan.algorithm).learner(2, plan.parameters)
        if learner.votes or not (learner.linear or plan.algorithm == "rankboost"):
            raise click.UsageError(f"--exportable excludes {plan.algorithm} with these parameters: it is not linear")

    def _check_start(self, categorical: bool) -> None:
        algorithm = self.algorithm
        if self.trust is not None and not self.warm_start:
            raise click.UsageError("--trust is a distance from the weights of --warm-start: add it")
        if self.warm_start and (self.start or categorical or algorithm.scale or algorithm.map or algorithm.nan):
            raise click.UsageError(
                "--warm-start keeps the model's categories, imputation, scaling and map, and cannot be combined with "
                "--from: leave these options out"
            )

    def plan(self, start: Model | None) -> TrainingPlan:
        """The training plan; of a model to continue its algorithm, seed, order and simulated user."""
        from ranktron.learners.schedule import Schedule
        from ranktron.training.fit import TrainingPlan

        record = {} if start is None else start.record
        if start is None:
            plan = self.algorithm.plan(self.algorithm.algo or ("ranksvm" if self.clicks else DEFAULT_ALGORITHM))
            epochs = plan.schedule.epochs
        else:
            plan = TrainingPlan(find_algorithm(start.kind).name)
            epochs = self.algorithm.epochs or _EPOCHS.default
        seed = record.get("seed", 0) if self.seed is None else self.seed
        shuffle = record.get("shuffle", _SHUFFLE.default) if self.shuffle is None else self.shuffle
        plan = replace(plan, scaling="auto") if self.exportable and plan.scaling == LISTS else plan
        return replace(
            plan, schedule=Schedule(epochs, seed, shuffle), select=self.select, patience=self.patience,
            metrics=self.metrics, feedback=self.feedback or record.get("feedback"),
        )  # fmt: skip


def _train(options: TrainOptions) -> None:
    """Reads the data, trains, and saves the model."""
    from ranktron.training.model import load

    options.check()
    keep_inputs(options.out, options.data, options.valid, options.warm_start)
    start = load(options.start) if options.start else None
    plan = options.plan(start)
    if options.warm_start:
        from ranktron.training.starting import linear_start

        start = linear_start(options.warm_start).model(plan.algorithm, plan.parameters, trust=options.trust)
    null = options.null or null_for(start, plan.nan)
    if options.null not in (None, "error"):
        click.echo(f"--null {null} applies to these files and is not saved with the model; --nan would be", err=True)
    if options.parts.used:
        plan = replace(plan, feedback=None)
        _finish(train_on_parts(plan, options.parts, options.data, options.valid, options.out, null, start), options)
    else:
        _finish(_train_in_memory(plan, options, null, start), options)


def _train_in_memory(plan: TrainingPlan, options: TrainOptions, null: str, start: Model | None) -> Trained:
    from ranktron.training.fit import train as train_model

    log = _read_log(options.data, options.clicks) if options.clicks else None
    rounds = read_training_data(options.data, null, start) if log is None else log.lists
    valid = read_data(options.valid, null, rounds, part="vali") if options.valid else None
    weights = None if log is None else log.weights
    compared = options.exportable and valid is not None and plan.scaling == "auto"
    with show_progress(f"training {plan.algorithm}", plan.schedule.epochs * len(rounds)) as step, show_log():
        trained = train_model(
            plan, rounds, start=start, valid=valid, weights=weights, progress=step,
            consume=log is None and not compared, compile_first=True,
        )  # fmt: skip
    if compared and valid is not None and not trained.history.interrupted:
        other = train_model(replace(plan, scaling=LISTS), rounds, valid=valid, weights=weights)
        click.echo(_describe_cost(trained.model, other.model, valid, options), err=options.out == "-")
    if log is None:
        return trained
    record = {**trained.model.record, "examination": log.examination.to_dict()}
    return replace(trained, model=replace(trained.model, record=record))


def _describe_cost(model: Model, other: Model, valid: Rounds, options: TrainOptions) -> str:
    """What the scaling of search engines costs on the validation set, in one line."""
    from ranktron.metrics.evaluation import evaluate_rounds

    name, models = str(options.select), (model, other)
    values = [evaluate_rounds(valid, each.score_rounds(valid), options.select).means[name] for each in models]
    names = ["none" if each.scaler is None else each.scaler.name for each in models]
    return (
        f"{name} on {options.valid}: {values[0]:.4f} with {names[0]} scaling, {values[1]:.4f} with {names[1]} (default)"
    )


def _finish(trained: Trained, options: TrainOptions) -> None:
    """Saves the model and reports the training."""
    out, metrics = options.out, options.metrics
    trained.model.save(out)
    if options.curve:
        from ranktron.training.figures.plots import draw_history

        draw_history(trained.history, options.curve, metrics, title=f"{trained.model.kind}: learning curve")
    summary = _summary(trained, metrics, out)
    if options.as_json:
        print_json(summary)
    else:
        _print(summary, trained, options.select, out)
    if trained.history.interrupted:
        done = f"interrupted after {trained.history.rounds:,} rounds"
        raise DataError(f"{done}; the model so far is saved in {out}: continue with --from {out}")


def _read_log(path: str, method: str) -> WeightedLog:
    """The clicks of a log as weighted lists: the weight is the inverse of the probability that a document was seen."""
    from ranktron.data.io import read_click_log
    from ranktron.learners.clicks.estimating import weigh_log

    with show_activity(f"reading {path}"):
        rounds, impressions = read_click_log(path, **log_options())
        if rounds is None:
            raise DataError(f"{path}: there is no feature in it")
        return weigh_log(impressions, rounds, None if method == "auto" else method)


def _summary(trained: Trained, metrics: list[Metric], out: str) -> dict[str, Any]:
    from ranktron.export import exportable_to

    history, model = trained.history, trained.model
    queries = model.record.get("queries") or 1
    online = dict(zip(map(str, metrics), history.averages(), strict=False))
    return {
        "algorithm": model.kind,
        "queries": queries,
        "passes": round(history.rounds / queries, 2),
        "rounds": history.rounds,
        "mistakes": history.mistakes,
        "seconds": history.seconds,
        "online": online or None,
        "valid": history.best_values,
        "epoch": history.epoch,
        "scale": "none" if model.scaler is None else model.scaler.name,
        "map": None if model.map is None else model.map.name,
        "nan": "error" if model.imputer is None else model.imputer.name,
        "categories": {} if model.encoder is None else {k: len(v) for k, v in model.encoder.categories.items()},
        "exports": list(exportable_to(model)),
        "interrupted": history.interrupted,
        "remarks": history.remarks,
        "model": out,
    }


def _print(summary: dict[str, Any], trained: Trained, select: Metric, out: str) -> None:
    history = trained.history
    rate = history.rounds / history.seconds if history.seconds else 0.0
    passes = summary["passes"]
    played = f"{passes:,g} pass{'' if passes == 1 else 'es'} ({rate:,.0f} queries per second)"
    rows: list[tuple[str, object]] = [("queries", f"{summary['queries']:,}, {played}")]
    if history.mistakes or summary["online"]:
        counted = "rankings" if summary["online"] else "pairs"
        rows.append((f"{counted} with an update", history.mistakes))
    categories = [f"{name} ({count:,})" for name, count in summary["categories"].items()]
    rows += [("categories", ", ".join(categories))] if categories else []
    rows.append(("scaling", summary["scale"]))
    rows += [("feature map", summary["map"])] if summary["map"] else []
    rows.append(("search engines", _describe_engines(summary["exports"], trained.model)))
    rows += [("missing values", summary["nan"])] if trained.model.imputer is not None else []
    rows += [(f"{name}, time average", value) for name, value in (summary["online"] or {}).items()]
    if history.valid:
        rows.append(("best epoch", f"{summary['epoch']}, by {select}"))
        rows += [(f"{name}, validation", value) for name, value in summary["valid"].items()]
    rows += [(remark, count) for remark, count in history.remarks.items() if count]
    print_table(f"{trained.model.kind} → {out}", ["", ""], rows, out)


def _describe_engines(targets: list[str], model: Model) -> str:
    """The search engines that can compute the model's scores, as `export --to` names them."""
    if len(targets) == len(TARGETS):
        return "all (ranktron export)"
    linear = model.blank_learner().linear or model.kind == "rankboost"
    within_lists = linear and model.scaler is not None and model.map is None
    return ", ".join(targets) or ("none has this scaling: see --exportable" if within_lists else "none")
