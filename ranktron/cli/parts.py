"""Training on files in parts: by a Dask cluster, or by this process with bounded memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from glob import glob
from typing import TYPE_CHECKING, Any

import click

from ranktron.cli.options import read_data, reading_options
from ranktron.cli.output import show_activity, show_progress
from ranktron.errors import DataError

if TYPE_CHECKING:
    from ranktron.learners.schedule import Schedule
    from ranktron.metrics import Evaluation, Metric
    from ranktron.training.fit import Trained
    from ranktron.training.model import Model
    from ranktron.training.parts import Workers


class PartsPath(click.Path):
    """A path, or a pattern such as `part-*.parquet` that some files match."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuses what no file matches."""
        if isinstance(value, str) and not os.path.exists(value) and glob(value):
            return value
        return super().convert(value, param, ctx)


PARTS = PartsPath(exists=True, allow_dash=True)

cluster_option = click.option(
    "--dask",
    metavar="ADDRESS",
    default=None,
    help="Train on a Dask cluster, whose workers read the files: the address of its scheduler, or local for a process "
    "on each processor of this machine. DATA may be a pattern, such as 'part-*.parquet'.",
)
tasks_option = click.option(
    "--dask",
    metavar="ADDRESS",
    default=None,
    help="Compute on a Dask cluster, with the same result: the address of its scheduler, or local for a process on "
    "each processor of this machine.",
)
stream_option = click.option(
    "--stream", is_flag=True, help="Train on files larger than memory, one part after the other (--mode sequential)."
)
mode_option = click.option(
    "--mode",
    type=click.Choice(["mix", "sequential"]),
    default=None,
    help="With --dask: shards at the same time, mixed ten times a pass, or one part after the other.  [default: mix]",
)
shards_option = click.option(
    "--shards",
    type=click.IntRange(1),
    default=None,
    help="How many shards are mixed; the result depends on it.  [default: the number of parts, at most 16]",
)


def parts_options(command: Any) -> Any:
    """The options of training on parts."""
    return cluster_option(stream_option(mode_option(shards_option(command))))


def check_parts_options(
    dask: str | None, stream: bool, mode: str | None, shards: int | None, others: Mapping[str, Any]
) -> None:
    """Refuses combinations that have no meaning."""
    if not dask and not stream:
        if mode or shards:
            raise click.UsageError("--mode and --shards belong to --dask")
        return
    given = [name for name, value in others.items() if value]
    if given:
        raise click.UsageError(f"{given[0]} does not go with --dask or --stream: parts are learnt from by labels")
    if dask and stream:
        raise click.UsageError("--stream is for this process alone: leave it out, or --dask")
    if stream and (mode == "mix" or shards):
        raise click.UsageError("--stream plays one part after the other: leave --mode and --shards out")


def train_on_parts(
    files: tuple[str, str | None, str, str | None],
    name: str,
    parameters: Mapping[str, Any],
    schedule: Schedule,
    before: Model | None,
    asked: Mapping[str, Any],
    where: tuple[str | None, str | None, int | None],
) -> Trained:
    """Trains on the parts of files, saves every pass, and shows the progress."""
    from ranktron.data.io.parts import divide_files
    from ranktron.training.distributed import SHARDS, inspect_parts, train_parts

    (data, valid, out, null), (dask, mode, shards) = files, where
    mode = mode or ("mix" if dask else "sequential")
    parts = divide_files(data, null=null, **reading_options())
    missing = asked["nan"] != "error" or (before is not None and before.imputer is not None)
    saved: list[int] = []

    def save(model: Model) -> None:
        if out != "-":
            model.save(out)
            saved.append(int(model.record["epoch"]))

    options = {key: value for key, value in asked.items() if key != "feedback"}
    with _workers(dask) as workers:
        with show_activity(f"reading {len(parts):,} parts"):
            count = 1 if mode == "sequential" else shards or min(SHARDS, len(parts))
            found = inspect_parts(parts, workers, missing=missing, shards=count)
        checked = read_data(valid, null, found.features, part="vali") if valid else None  # type: ignore[arg-type]
        with show_progress(
            f"training {name} on {len(found.parts):,} parts", schedule.epochs * sum(found.sizes)
        ) as step:
            try:
                return train_parts(
                    name, parameters, found, schedule, mode=mode, shards=shards, start=before, valid=checked,
                    progress=step, save=save, report=None if step is None else partial(step, 0), **options,
                )  # fmt: skip
            except DataError as error:
                if not saved:
                    raise
                kept = f"the model after pass {saved[-1]} is saved in {out}: continue with --from {out}"
                raise DataError(f"{error}; {kept}") from None


@contextmanager
def task_workers(dask: str | None) -> Iterator[Workers | None]:
    """The workers of a cluster for tasks that do not depend on each other; None without an address."""
    if dask is None:
        yield None
        return
    with _workers(dask) as workers:
        yield workers


def evaluate_on_parts(model: Model, data: str, metrics: Sequence[Metric], null: str, dask: str) -> Evaluation:
    """Evaluates a model on files that the workers of a cluster read."""
    from ranktron.data.io.parts import divide_files
    from ranktron.training.distributed import evaluate_parts, inspect_parts

    parts = divide_files(data, null=null, **reading_options())
    with _workers(dask) as workers, show_activity(f"evaluating {len(parts):,} parts"):
        return evaluate_parts(model, inspect_parts(parts, workers, missing=model.imputer is not None), metrics)


@contextmanager
def _workers(dask: str | None) -> Iterator[Workers]:
    if dask is None:
        from concurrent.futures import ThreadPoolExecutor

        from ranktron.training.parts import LocalWorkers

        with ThreadPoolExecutor(2) as executor:  # one plays, the other one reads the next part
            yield LocalWorkers(executor)
        return
    from ranktron.dask.cluster import Cluster, open_client

    with open_client(dask) as client:
        click.echo(f"dashboard of the cluster: {client.dashboard_link}", err=True)
        yield Cluster(client)
