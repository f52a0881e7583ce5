"""Figure 1 of *Maximum Margin Ranking*: two systems that its text names and that are not in it, run beside RankMM."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ranktron.types import Floats
from reproduction.harness import push_cells, rank_mm_cells
from reproduction.harness.experiment import Arguments, Claim, Experiment, ReportTable, Results, Series
from reproduction.harness.verdicts import Near, Ordered, Values, standard_deviation

FOLDS = [{"fold": fold} for fold in range(5)]
PS = (1.0, 2.0, 4.0, 8.0, 16.0)
SHOWN = {"MAP": "map:letor", "NDCG@1": "ndcg@1:letor", "NDCG@5": "ndcg@5:letor", "NDCG@10": "ndcg@10:letor"}
LAST = "RankMM-3"


def means_by_fold(results: Results, metric: str) -> dict[str, Floats]:
    """For each system its test means, one for each fold."""
    parts = results["beside"][0]
    found = {name: np.array([part[name]["means"][metric] for part in parts]) for name in parts[0]}
    found[LAST] = np.mean([[part["T steps"]["means"][metric] for part in row] for row in results["steps"]], axis=0)
    return found


def values_of_folds(metric: str) -> Callable[[Results], Values]:
    """The values of a metric, fold by fold."""
    return lambda results: means_by_fold(results, metric)


def mean_of_folds(metric: str) -> Callable[[Results], Values]:
    """Their means: what LETOR publishes."""
    return lambda results: {name: np.array([row.mean()]) for name, row in means_by_fold(results, metric).items()}


def beside_table(results: Results) -> ReportTable:
    """Means over folds, and what validation chose."""
    columns = [means_by_fold(results, metric) for metric in SHOWN.values()]
    names = [name for name in columns[0] if name != LAST]
    rows = [(name, *(f"{column[name].mean():.4f} ± {standard_deviation(column[name]):.4f}" for column in columns))
            for name in [*names, LAST]]  # fmt: skip
    return ReportTable("Test means over five folds, ± the deviation over folds", ("", *SHOWN), rows)


def beside_figure_1(grid: Arguments, parts: Sequence[Arguments], published: Mapping[str, float]) -> Experiment:
    """Regression and the p-norm push; `published` has LETOR's MAP of the systems of the figure."""
    orders = [
        Claim(
            f"Figure 1 beside (ours), {better} above {worse}, {shown}",
            f"{told}; the five folds count as seeds",
            Ordered((better, worse)),
            values_of_folds(SHOWN[shown]),
        )
        for better, worse, told in (
            (LAST, "p-norm push", "the l∞ extreme with a hinge is better than the p-norm push with exponentials"),
            ("p-norm push", "Regression", "a push towards the top is better than predicting labels"),
            ("p = 16", "p = 1", "a greater p pushes more towards the top"),
        )
        for shown in ("MAP", "NDCG@1", "NDCG@10")
    ]
    level = Claim(
        "Figure 1 beside (ours), Regression, MAP",
        "our plain regression has the MAP that LETOR published for its own",
        Near("Regression", published, 0.01),
        mean_of_folds("map:letor"),
    )
    return Experiment(
        name="figure-1-beside",
        title="Figure 1, beside: p-norm push and plain regression",
        about="The text calls its third loss the l∞ extreme of the p-norm push, and compares with a pointwise "
        "regression that LETOR ran. Both on the same folds: the push with C from the printed grid and p of 1 to 16, "
        "chosen by MAP on each fold's validation part; the regression without anything to choose. RankMM-3 takes T "
        "steps, as in the figure.",
        series=(
            Series("beside", push_cells.measure_push, {"Cs": grid["Cs"], "ps": PS}, parts=FOLDS, seeds=1, cost=10.0),
            Series("steps", rank_mm_cells.steps, grid, parts=parts, seeds=1, cost=3.0),
        ),
        claims=[level, *orders],
        tables=(beside_table,),
        data="ohsumed-letor3",
    )
