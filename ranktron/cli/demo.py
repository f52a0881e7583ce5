"""`ranktron demo`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ranktron.cli.options import as_json
from ranktron.cli.output import print_json, table

if TYPE_CHECKING:
    from ranktron.data.rounds import Rounds
    from ranktron.metrics import Metric

PLAYERS = {
    "hinge, eta=0.01": ("hinge", {"eta": 0.01}),
    "hinge, eta=0.1": ("hinge", {"eta": 0.1}),
    "hinge, eta=1": ("hinge", {"eta": 1.0}),
    "SLAM": ("slam", {}),
    "minimax": ("minimax", {}),
    "ListNet": ("listnet", {"eta": 1.0}),
}
SAVED = "SLAM"  # the learner whose model is saved


@click.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    default="ranktron-demo",
    show_default=True,
    help="Folder for the plot and the model.",
)
@click.option("--queries", default=3000, show_default=True, type=click.IntRange(10), help="Number of queries.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of the simulation.")
@click.option("--web", is_flag=True, help="Serve a search page that learns from your votes, at http://127.0.0.1:8080.")
@click.option("--host", default="127.0.0.1", show_default=True, help="With --web: address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), help="With --web: port to listen on.  [default: 8080, or a free one]"
)
@click.option(
    "--dir",
    "folder",
    type=click.Path(file_okay=False),
    help="With --web: folder for the state of the ranker.  [default: a temporary one]",
)
@as_json
@click.pass_context
def demo(
    ctx: click.Context,
    out: str,
    queries: int,
    seed: int,
    web: bool,
    host: str,
    port: int | None,
    folder: str | None,
    as_json: bool,
) -> None:
    """Watch several learners learn from a simulated stream.

    Shows them next to a random order and the best single feature, and writes a plot and a model. With --web: a search
    page for the documentation of Python's standard library, whose ranker learns from your votes.

    Example: ranktron demo
    """
    _check_mode(ctx, web)
    if web:
        from ranktron.cli.demo_web import serve_search

        serve_search(folder, host, port)
    else:
        _stream(out, queries, seed, as_json)


_STREAM_OPTIONS, _WEB_OPTIONS = ("out", "queries", "seed", "as_json"), ("host", "port", "folder")


def _check_mode(ctx: click.Context, web: bool) -> None:
    """Refuses options that have no effect."""
    for name in _STREAM_OPTIONS if web else _WEB_OPTIONS:
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            option = next(each.opts[0] for each in ctx.command.params if each.name == name)
            raise click.UsageError(f"{option} {'cannot be used with' if web else 'requires'} --web", ctx)


def _stream(out: str, queries: int, seed: int, as_json: bool) -> None:
    from ranktron.data.synthetic import Separable
    from ranktron.metrics import metric
    from ranktron.training.baselines import best_feature, random_means

    ndcg = metric("ndcg@10")
    rounds = Separable(seed=seed, margin=0.1).rounds(queries)
    best = best_feature(rounds, [ndcg])
    levels = {
        "random order": random_means(rounds, [ndcg])["ndcg@10"],
        f"best single feature ({best.column + 1})": best.means["ndcg@10"],
    }
    lines, models = _play(rounds, ndcg, levels, quiet=as_json)
    folder = Path(out)
    picture, model = folder / "curve.png", folder / "demo.model"
    drawn = _save(picture, model, lines, models, levels)
    if as_json:
        finals = {name: ys[-1] for name, (_, ys) in lines.items()}
        print_json({"ndcg@10": finals | levels, "picture": str(picture) if drawn else None, "model": str(model)})
        return
    curves = f"The learning curves are in {picture}, the" if drawn else "The"
    click.echo(f"\n{curves} {SAVED} model is in {model}. Next: ranktron train --help")


def _play(rounds: Rounds, ndcg: Metric, levels: dict[str, float], *, quiet: bool) -> tuple[Any, Any]:
    """Plays the learners in parallel, with a live table on a terminal; returns their curves and the learners."""
    from rich.console import Console
    from rich.live import Live

    from ranktron.learners import feedback
    from ranktron.learners.loop import play
    from ranktron.training.algorithms import algorithm

    learners = {
        name: algorithm(kind).learner(rounds.n_features, parameters) for name, (kind, parameters) in PLAYERS.items()
    }
    turns = {name: play(learner, rounds, feedback.full, [ndcg]) for name, learner in learners.items()}
    sums = dict.fromkeys(learners, 0.0)
    lines: dict[str, tuple[list[int], list[float]]] = {name: ([], []) for name in learners}
    marks = {round(10 ** (i / 40)) for i in range(400)} | {len(rounds)}  # evenly spaced on a logarithmic axis
    console = Console(quiet=quiet, highlight=False)
    with Live(console=console, auto_refresh=False) as live:
        for done in range(1, len(rounds) + 1):
            for name, turn in turns.items():
                sums[name] += next(turn).values[0]
                if done in marks:
                    lines[name][0].append(done)
                    lines[name][1].append(sums[name] / done)
            if done == len(rounds) or (console.is_terminal and done % 50 == 0):
                live.update(_table(done, len(rounds), sums, learners, levels), refresh=True)
    return lines, learners


def _table(done: int, total: int, sums: dict[str, float], learners: Any, levels: dict[str, float]) -> Any:
    rows: list[tuple[object, ...]] = [
        (name, sums[name] / done, learners[name].mistakes, f"{float((learners[name].w ** 2).sum()) ** 0.5:.3f}")
        for name in learners
    ]
    rows += [(name, level, "", "") for name, level in levels.items()]
    title = f"NDCG@10, time average after {done:,} of {total:,} rounds"
    return table(title, ["ranker", "NDCG@10", "updates", "length of w"], rows)


def _save(picture: Path, model: Path, lines: Any, learners: Any, levels: dict[str, float]) -> bool:
    """Saves the model and the picture; returns whether the picture could be drawn."""
    from ranktron.errors import DataError, MissingExtra
    from ranktron.training.figures.plots import curves
    from ranktron.training.model import Model

    try:
        picture.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot create the folder {picture.parent}: {error.strerror}") from None
    kind, parameters = PLAYERS[SAVED]
    learner = learners[SAVED]
    Model(kind, parameters, learner.state(), learner.n_features).save(model)
    try:
        title = "A simulated separable stream: time-averaged NDCG@10"
        curves(picture, lines, levels, title=title, x="rounds", y="NDCG@10, time average", log=True)
    except MissingExtra as error:
        click.echo(f"No plot was written: {error}", err=True)
        return False
    return True
