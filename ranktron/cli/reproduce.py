"""`ranktron reproduce`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

import click

from ranktron.cli.cluster_options import tasks_option
from ranktron.cli.options import as_json
from ranktron.cli.output import print_json, print_table
from ranktron.papers import PAPERS


@click.command()
@click.argument("name", type=click.Choice([*PAPERS, "all"]), default="all", required=False)
@click.option("--out", required=True, type=click.Path(file_okay=False), help="Folder for the report and the cache.")
@click.option(
    "--data", type=click.Path(exists=True, file_okay=False), envvar="RANKTRON_DATA", help="Folder with the data sets."
)
@click.option("--seeds", type=click.IntRange(1), help="Number of seeds.  [default: as each experiment states]")
@click.option("--quick", is_flag=True, help="Fewer rounds, passes and seeds: minutes instead of an hour.")
@tasks_option
@as_json
def reproduce(
    name: str, out: str, data: str | None, seeds: int | None, quick: bool, dask: str | None, as_json: bool
) -> None:
    """Reproduce the experiments of the papers and write a report.

    For every claim the report has the published value, ours and a verdict. Simulations always run; experiments on data
    sets run if these are found in --data (or $RANKTRON_DATA). Finished computations are cached in the folder of the
    report: after Ctrl-C the same command continues from there.

    Example: ranktron reproduce slam --quick --out report
    """
    from ranktron.papers.harness.experiment import Plan
    from ranktron.papers.harness.reproduce import lay_out, prepare, select_papers
    from ranktron.papers.harness.reproduce import reproduce as run_again
    from ranktron.papers.harness.verdicts import severity

    papers, plan = select_papers(name), Plan(quick, seeds)
    prepare(out)
    works = lay_out(papers, plan, data)
    total = sum(job.cell.cost for work in works for job in work.all_jobs())
    with _executor(dask) as workers, _progress(total) as watch:
        found = run_again(papers, out, data=data, plan=plan, works=works, workers=workers, watch=watch)
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
