"""The papers, run again: `python -m reproduction`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

import click

from ranktron.cli.main import main
from ranktron.cli.options import as_json
from ranktron.cli.output import print_json, print_table
from reproduction import PAPERS
from reproduction.datasets.command import datasets


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
def cli() -> None:
    """Run the experiments of the five papers again, and list their data sets.

    \\b
      python -m reproduction datasets
      python -m reproduction all --quick --out report
    """


@click.command()
@click.option("--out", required=True, type=click.Path(file_okay=False), help="Folder for the report and the cache.")
@click.option(
    "--data", type=click.Path(exists=True, file_okay=False), envvar="RANKTRON_DATA", help="Folder with the data sets."
)
@click.option("--seeds", type=click.IntRange(1), help="Number of seeds.  [default: as each experiment states]")
@click.option("--quick", is_flag=True, help="Fewer rounds, passes and seeds: minutes instead of an hour.")
@click.option(
    "--dask",
    metavar="ADDRESS",
    default=None,
    help="Compute on a Dask cluster, with the same result: the address of its scheduler, or local for a process on "
    "each processor of this machine.",
)
@as_json
@click.pass_context
def run_papers(
    context: click.Context, out: str, data: str | None, seeds: int | None, quick: bool, dask: str | None, as_json: bool
) -> None:
    """Reproduce the experiments of one paper, or of all, and write a report.

    For every claim the report has the published value, ours and a verdict. Simulations always run; experiments on data
    sets run if these are found in --data (or $RANKTRON_DATA). Finished computations are cached in the folder of the
    report: after Ctrl-C the same command continues from there.

    Example: python -m reproduction slam --quick --out report
    """
    from reproduction.harness.experiment import Plan
    from reproduction.harness.reproduce import lay_out, prepare, reproduce, select_papers
    from reproduction.harness.verdicts import severity

    papers, plan = select_papers(str(context.info_name)), Plan(quick, seeds)
    prepare(out)
    works = lay_out(papers, plan, data)
    total = sum(job.cell.cost for work in works for job in work.all_jobs())
    with _executor(dask) as workers, _progress(total) as watch:
        found = reproduce(papers, out, data=data, plan=plan, works=works, workers=workers, watch=watch)
    if as_json:
        print_json({"rows": [dict(row) for row in found.rows], "report": str(found.report)})
        return
    counts: dict[str, int] = {}
    for row in found.rows:
        counts[row["verdict"]] = counts.get(row["verdict"], 0) + 1
    print_table("", ("verdict", "claims"), [(verdict, counts[verdict]) for verdict in sorted(counts, key=severity)])
    click.echo(f"report: {found.report}")


@contextmanager
def _executor(dask: str | None) -> Iterator[Executor | None]:
    """The executor of a Dask cluster, if there is one."""
    if dask is None:
        yield None
        return
    from ranktron.dask.cluster import open_client

    with open_client(dask) as client:
        yield client.get_executor(pure=False)


@contextmanager
def _progress(total: float) -> Iterator[Callable[[float], None] | None]:
    """Shows a progress bar with the remaining time; it counts estimated seconds, as cells differ a lot."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, speed_estimate_period=600.0) as progress:
        task = progress.add_task("computing", total=total)
        yield lambda cost: progress.update(task, advance=cost)


cli.add_command(datasets)
for name in (*PAPERS, "all"):
    cli.add_command(run_papers, name)

if __name__ == "__main__":
    main(command=cli, program="python -m reproduction")
