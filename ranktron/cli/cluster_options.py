"""The options --dask and --stream, and training on parts of files with them: on a cluster, or in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from glob import glob
from typing import TYPE_CHECKING, Any

import click

from ranktron.cli.options import read_data, reading_options, say_columns
from ranktron.cli.output import show_activity, show_progress
from ranktron.errors import DataError

if TYPE_CHECKING:
    from ranktron.data.feature_ranges import Drift
    from ranktron.metrics import Evaluation, Metric
    from ranktron.training.fit import Trained, TrainingPlan
    from ranktron.training.model import Model
    from ranktron.training.workers import Workers


class PartsPath(click.Path):
    """A path, or a pattern such as `part-*.parquet` that matches at least one file."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuses paths and patterns without a file."""
        if isinstance(value, str) and not os.path.exists(value) and glob(value):
            return value
        return super().convert(value, param, ctx)


PARTS = PartsPath(exists=True, allow_dash=True)

cluster_option = click.option(
    "--dask",
    metavar="ADDRESS",
    default=None,
    help="Train on a Dask cluster, whose workers read the files: the address of its scheduler, or `local` for one "
    "process per processor of this machine. DATA may be a pattern, such as 'part-*.parquet'.",
)
tasks_option = click.option(
    "--dask",
    metavar="ADDRESS",
    default=None,
    help="Compute on a Dask cluster, with the same result: the address of its scheduler, or `local` for one process "
    "per processor of this machine.",
)
stream_option = click.option(
    "--stream", is_flag=True, help="Train on files larger than memory, one part after the other."
)
mode_option = click.option(
    "--mode",
    type=click.Choice(["mix", "sequential"]),
    default=None,
    help="With --dask: shards in parallel, mixed ten times a pass, or one part after the other.  [default: mix]",
)
shards_option = click.option(
    "--shards",
    type=click.IntRange(1),
    default=None,
    help="Number of shards to mix; the result depends on it.  [default: the number of parts, at most 16]",
)


def parts_options(command: Any) -> Any:
    """The options of training on parts: --dask, --stream, --mode and --shards."""
    return cluster_option(stream_option(mode_option(shards_option(command))))


@dataclass(frozen=True)
class PartsOptions:
    """The values of `parts_options`."""

    dask: str | None  # the address of a scheduler
    stream: bool
    mode: str | None
    shards: int | None

    @property
    def used(self) -> bool:
        """Whether to train on parts."""
        return bool(self.dask or self.stream)

    def check(self, excluded: Mapping[str, Any]) -> None:
        """Refuses combinations without a meaning; none of the `excluded` options may have a value."""
        if not self.used:
            if self.mode or self.shards:
                raise click.UsageError("--mode and --shards belong to --dask")
            return
        for name, value in excluded.items():
            if value:
                raise click.UsageError(f"{name} cannot be combined with --dask or --stream")
        if self.dask and self.stream:
            raise click.UsageError("--stream trains in this process: leave it out, or --dask")
        if self.stream and (self.mode == "mix" or self.shards):
            raise click.UsageError("--stream plays one part after the other: leave --mode and --shards out")


def train_on_parts(
    plan: TrainingPlan, options: PartsOptions, data: str, valid: str | None, out: str, null: str, start: Model | None
) -> Trained:
    """Trains on the parts of files, saves the model after every pass, and shows the progress."""
    from ranktron.dask.training import SHARDS, inspect_parts, train_parts
    from ranktron.data.io.parts import divide_files

    mode = options.mode or ("mix" if options.dask else "sequential")
    parts = divide_files(data, null=null, **reading_options())
    missing = plan.nan != "error" or (start is not None and start.imputer is not None)
    saved: list[int] = []

    def save(model: Model) -> None:
        if out != "-":
            model.save(out)
            saved.append(int(model.record["epoch"]))

    with _workers(options.dask) as workers:
        with show_activity(f"reading {len(parts):,} parts"):
            shards = 1 if mode == "sequential" else options.shards or min(SHARDS, len(parts))
            inspected = inspect_parts(parts, workers, missing=missing, shards=shards)
        say_columns(data, parts[0].path, start)
        checked = read_data(valid, null, inspected.features, part="vali") if valid else None  # type: ignore[arg-type]
        title = f"training {plan.algorithm} on {len(inspected.parts):,} parts"
        with show_progress(title, plan.schedule.epochs * sum(inspected.sizes)) as step:
            try:
                return train_parts(
                    plan, inspected, mode=mode, shards=options.shards, start=start, valid=checked, progress=step,
                    save=save, report=None if step is None else partial(step, 0),
                )  # fmt: skip
            except DataError as error:
                if not saved:
                    raise
                where = f"the model after pass {saved[-1]} is saved in {out}: continue with --from {out}"
                raise DataError(f"{error}; {where}") from None


@contextmanager
def task_workers(dask: str | None) -> Iterator[Workers | None]:
    """The workers of a cluster for independent tasks; None without an address."""
    if dask is None:
        yield None
        return
    with _workers(dask) as workers:
        yield workers


def evaluate_on_parts(
    model: Model, name: str, data: str, metrics: Sequence[Metric], null: str, dask: str
) -> tuple[Evaluation, list[Drift]]:
    """Evaluates a model on files that the workers of a cluster read, and names features that have left its training."""
    from ranktron.dask.training import evaluate_parts, inspect_parts, warn_of_parts_drift
    from ranktron.data.io.parts import divide_files

    parts = divide_files(data, null=null, **reading_options())
    with _workers(dask) as workers, show_activity(f"evaluating {len(parts):,} parts"):
        inspected = inspect_parts(parts, workers, missing=model.imputer is not None)
        drifts = warn_of_parts_drift(model, inspected, name)
        return evaluate_parts(model, inspected, metrics), drifts


@contextmanager
def _workers(dask: str | None) -> Iterator[Workers]:
    if dask is None:
        from concurrent.futures import ThreadPoolExecutor

        from ranktron.training.workers import LocalWorkers

        with ThreadPoolExecutor(2) as executor:  # one trains, the other reads the next part
            yield LocalWorkers(executor)
        return
    from ranktron.dask.cluster import Cluster, open_client

    with open_client(dask) as client:
        click.echo(f"dashboard of the cluster: {client.dashboard_link}", err=True)
        yield Cluster(client)
