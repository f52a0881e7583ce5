"""Jain, Natarajan and Tewari, *Predtron*: the simulations of Figure 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ranktron.papers.harness import predtron_cells
from ranktron.papers.harness.curves import lines
from ranktron.papers.harness.experiment import Claim, Experiment, Paper, Results, Series
from ranktron.papers.harness.verdicts import Near, Ordered, Values
from ranktron.papers.report.charts import Figure, Panel
from ranktron.types import Floats

F1, F2, F3 = "1/i", "-i^1.1", "-i^2"
LISTS = (5, 10, 20, 40, 60, 80, 100)
DOCUMENTS = (3, 5, 10, 20, 40)
FEATURES = (10, 30, 100, 300, 1000)
RELEVANT = (1, 3, 10, 30, 100, 300)
OPEN = "Lengths, dimensions, means and noise are partly open in the text; ours stand above."


def tables(results: Results) -> dict[str, Floats]:
    """For each name its losses, seeds × points."""
    rows = [row[0] for row in results["losses"]]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def at(points: Sequence[int], **wanted: tuple[str, int]) -> Callable[[Results], Values]:
    """Values called by a word: the losses of a name at a point."""

    def values(results: Results) -> Values:
        found = tables(results)
        return {word: found[name][:, points.index(x)] for word, (name, x) in wanted.items()}

    return values


def along(name: str, points: Sequence[int]) -> Callable[[Results], Values]:
    """The losses of one name at all points, called by the point."""
    return lambda results: {f"m = {x}": tables(results)[name][:, i] for i, x in enumerate(points)}


def increase(points: Sequence[int]) -> Callable[[Results], Values]:
    """How much the loss of each norm grows from the first point to the last."""
    return lambda results: {f"{name} grows by": table[:, -1] - table[:, 0] for name, table in tables(results).items()}


def drawn(name: str, title: str, x: str, points: Sequence[int], log: bool = False) -> Callable[[Results], Figure]:
    """One plot of the figure."""

    def figure(results: Results) -> Figure:
        panel = Panel(title, x, "NDCG loss", lines(tables(results), points), log_x=log, low=0.0)
        return Figure(f"predtron-{name}", title, [panel], "Mean over seeds; bands: one standard deviation over seeds.")

    return figure


PLOT_A = Experiment(
    name="figure-1a",
    title="Figure 1 (a): more training lists",
    about="20 documents of 30 features; the mean of document i lies at 1/(i + 1/2) along the unit vector w*, noise "
    "0.25 in every direction; thresholds 1/j as printed; η = 1, one pass; NDCG loss on 100 test lists.",
    series=(Series("losses", predtron_cells.more_lists, {"x": LISTS}, seeds=30, quick_seeds=8, cost=1.0),),
    claims=(
        *(
            Claim(
                f"Figure 1 (a), f = {f}",
                "its loss goes to almost 0 with 60 training lists",
                Near("loss", {"loss": 0.0}, 0.005),
                at(LISTS, loss=(f, 60)),
                OPEN,
            )
            for f in (F2, F3)
        ),
        *(
            Claim(
                f"Figure 1 (a), 1/i and {f}",
                f"1/i loses more than {f} after 60 lists",
                Ordered((F1, f)),
                at(LISTS, **{F1: (F1, 60), f: (f, 60)}),
                "NDCG's gain is printed 2^{y−1}; it is 2^y − 1.",
            )
            for f in (F2, F3)
        ),
        Claim(
            "Figure 1 (a), 1/i after 100 lists",
            "1/i has a large loss even with 100 lists: more than −i^1.1 with 60",
            Ordered(("1/i, 100 lists", "-i^1.1, 60 lists")),
            at(LISTS, **{"1/i, 100 lists": (F1, 100), "-i^1.1, 60 lists": (F2, 60)}),
            OPEN,
        ),
    ),
    figures=(drawn("figure-1a", "Figure 1 (a)", "training lists n", LISTS),),
)


def plot_b(name: str, where: str, wander: float, noise: float) -> Experiment:
    """Plot (b) with the documents' means in one place or another."""
    return Experiment(
        name=f"figure-1b-{name}",
        title=f"Figure 1 (b): longer lists, means {where}",
        about=f"30 training lists of growing length; the means of the documents {where} (noise {noise:g}), which the "
        "text leaves open. Everything else as in (a).",
        series=(
            Series(
                "losses",
                predtron_cells.longer_lists,
                {"x": DOCUMENTS, "wander": wander, "noise": noise},
                seeds=30,
                quick_seeds=8,
                cost=0.5,
            ),
        ),
        claims=(
            *(
                Claim(
                    f"Figure 1 (b), means {where}, f = {f}",
                    "the loss grows with m",
                    Ordered(tuple(f"m = {m}" for m in reversed(DOCUMENTS))),
                    along(f, DOCUMENTS),
                    ""
                    if wander
                    else "A longer list adds documents at the bottom only, and every one teaches something.",
                )
                for f in (F1, F2, F3)
            ),
            *(
                Claim(
                    f"Figure 1 (b), means {where}, 1/i and {f}",
                    f"for long lists 1/i loses more than {f}",
                    Ordered((F1, f)),
                    at(DOCUMENTS, **{F1: (F1, 40), f: (f, 40)}),
                    "−i^a puts nearly all of a step into the last places." if wander else "",
                )
                for f in (F2, F3)
            ),
        ),
        figures=(drawn(f"figure-1b-{name}", f"Figure 1 (b), means {where}", "documents m", DOCUMENTS),),
    )


PLOT_C = Experiment(
    name="figure-1c",
    title="Figure 1 (c): l1 against l2, more features",
    about="200 lists of 10 documents from [−1, 1]^p with 5 grades; 5 features matter. The text varies p, as here; the "
    "caption varies the sparsity, as below.",
    series=(Series("losses", predtron_cells.more_features, {"x": FEATURES}, seeds=30, quick_seeds=5, cost=1.0),),
    claims=(
        Claim(
            "Figure 1 (c), text: levels",
            "with many features the l2 margin loses far more than the l1 margin",
            Ordered(("l2", "l1")),
            at(FEATURES, l2=("l2", 1000), l1=("l1", 1000)),
        ),
        Claim(
            "Figure 1 (c), text: growth",
            "from few features to many the l1 loss increases a little, the l2 loss significantly",
            Ordered(("l2 grows by", "l1 grows by")),
            increase(FEATURES),
        ),
    ),
    figures=(drawn("figure-1c", "Figure 1 (c), by its text", "features p", FEATURES, log=True),),
)

PLOT_C_CAPTION = Experiment(
    name="figure-1c-caption",
    title="Figure 1 (c): l1 against l2, less sparse",
    about="As above with 300 features, of which s matter.",
    series=(Series("losses", predtron_cells.less_sparse, {"x": RELEVANT}, seeds=30, quick_seeds=5, cost=1.0),),
    claims=(
        Claim(
            "Figure 1 (c), caption: sparse",
            "with a sparse w* (10 of 300) the l1 margin is better",
            Ordered(("l2", "l1")),
            at(RELEVANT, l2=("l2", 10), l1=("l1", 10)),
            "The caption varies sparsity, the text the number of features; both are run.",
        ),
        Claim(
            "Figure 1 (c), caption: dense (ours)",
            "with a dense w* (300 of 300) the l2 margin is better",
            Ordered(("l1", "l2")),
            at(RELEVANT, l2=("l2", 300), l1=("l1", 300)),
            "Not said in the paper; the other half of what its bounds say.",
        ),
    ),
    figures=(drawn("figure-1c-caption", "Figure 1 (c), by its caption", "relevant features s", RELEVANT, log=True),),
)

PAPER = Paper(
    name="predtron",
    title="Predtron: A Family of Online Algorithms for General Prediction Problems",
    authors="Jain, Natarajan, Tewari",
    experiments=(
        PLOT_A,
        plot_b("line", "on the line of w*", 0.0, 0.25),
        plot_b("scattered", "scattered", 1.0, 0.05),
        PLOT_C,
        PLOT_C_CAPTION,
    ),
)
