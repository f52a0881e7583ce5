"""Agarwal and Collins, *Maximum Margin Ranking Algorithms for Information Retrieval*: Figure 1."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ranktron.learners.batch.rank_mm_losses import LOSSES
from ranktron.types import Floats
from reproduction.harness import rank_mm_cells
from reproduction.harness.experiment import Claim, Experiment, Paper, ReportTable, Results, Series
from reproduction.harness.verdicts import AtMost, Ordered, Values, standard_deviation
from reproduction.rank_mm_beside import beside_figure_1
from reproduction.report.charts import ChartLine, Dot, Figure, Panel

NAMES = dict(zip(LOSSES, ("RankMM-1", "RankMM-2", "RankMM-3"), strict=True))
GRID = {"Cs": (0.1, 1.0, 10.0, 100.0, 1000.0), "etas": (1e-2, 1e-3, 1e-4, 1e-5, 1e-6), "Ts": (100, 250, 500, 750, 1000)}
QUICK = {"Cs": (1.0, 10.0), "etas": (1e-2,), "Ts": (10,)}
PARTS = [{"loss": loss, "fold": fold} for loss in LOSSES for fold in range(5)]
READINGS = ("T steps", "T passes", "exact", "exact, early stopping")
MAP = "map:letor"
AT_DEPTH = {"ndcg": "ndcg@{}:letor", "p": "p@{}:letor"}

# What the paper compares with: the means over five test parts that LETOR 3.0 published with the data, NDCG@1 … 10, then
# precision@1 … 10 and MAP. RankSVM-Primal is the retrained RankSVM of footnote 2.
_PUBLISHED = """
Regression     .4456 .4533 .4426 .4368 .4278 .4216 .4217 .4187 .4136 .4110
               .5965 .6007 .5768 .5605 .5337 .5046 .5001 .4837 .4752 .4666 .4220
RankSVM        .4958 .4331 .4207 .4240 .4164 .4159 .4133 .4073 .4124 .4141
               .5974 .5493 .5427 .5442 .5320 .5253 .5097 .4933 .4920 .4864 .4334
RankBoost      .4632 .4504 .4556 .4543 .4494 .4439 .4412 .4361 .4326 .4302
               .5576 .5481 .5609 .5580 .5447 .5297 .5241 .5130 .5023 .4966 .4411
ListNet        .5326 .4810 .4732 .4561 .4432 .4400 .4409 .4460 .4459 .4410
               .6524 .6093 .6016 .5744 .5502 .5373 .5267 .5236 .5138 .4975 .4457
AdaRank-MAP    .5388 .4789 .4682 .4721 .4613 .4579 .4558 .4506 .4464 .4429
               .6338 .5959 .5895 .5887 .5674 .5565 .5392 .5239 .5077 .4976 .4487
AdaRank-NDCG   .5330 .4922 .4789 .4688 .4673 .4597 .4596 .4575 .4541 .4496
               .6719 .6236 .5984 .5838 .5767 .5563 .5511 .5354 .5211 .5087 .4498
SVMMAP         .5229 .4909 .4663 .4624 .4516 .4411 .4335 .4332 .4304 .4319
               .6433 .6197 .5802 .5768 .5523 .5281 .5107 .5060 .4928 .4910 .4453
RankSVM-Primal .5460 .5010 .4855 .4766 .4689 .4552 .4534 .4500 .4490 .4504
               .6156 .6052 .5866 .5773 .5639 .5364 .5286 .5191 .5087 .5071 .4446
"""


def _read_numbers(text: str) -> dict[str, tuple[float, ...]]:
    """{name: its numbers in the order of `margins.METRICS`, MAP first}."""
    words, found, name = text.split(), dict[str, list[float]](), ""
    for word in words:
        if word[0] == ".":
            found[name].append(float(word))
        else:
            name, found[word] = word, []
    return {name: (row[-1], *row[:-1]) for name, row in found.items()}


PUBLISHED = _read_numbers(_PUBLISHED)
PAIRWISE = ("Regression", "RankSVM", "RankBoost")


def means(results: Results, reading: str, metric: str) -> dict[str, Floats]:
    """For each RankMM the mean over folds, one value for each seed."""
    rows = results["passes" if reading == "T passes" else "steps"]
    return {
        NAMES[loss]: np.array(
            [np.mean([part[reading]["means"][metric] for part in row[5 * i : 5 * i + 5]]) for row in rows]
        )
        for i, loss in enumerate(LOSSES)
    }


def beside(metric: str, reading: str) -> Callable[[Results], Values]:
    """Ours with the paper's steps, beside the published baselines and the best of them."""

    def values(results: Results) -> Values:
        ours = means(results, reading, metric)
        theirs = {name: np.full(len(ours["RankMM-1"]), published_number(name, metric)) for name in PUBLISHED}
        best = max((theirs[name] for name in PAIRWISE), key=lambda row: float(row[0]))
        return {**ours, **theirs, BEST_OF: best}

    return values


def leads(name: str, which: str, reading: str) -> Callable[[Results], Values]:
    """The smallest lead over the best of the three baselines at any depth, for each seed."""

    def values(results: Results) -> Values:
        metrics = [AT_DEPTH[which].format(k) for k in rank_mm_cells.DEPTHS]
        tables = [beside(metric, reading)(results) for metric in metrics]
        lead: Floats = np.array([table[name] - table[BEST_OF] for table in tables]).min(axis=0)
        return {"smallest lead": lead, "none": np.zeros(len(lead))}

    return values


def published_number(name: str, metric: str) -> float:
    """A published number.

    >>> published_number("RankSVM", "map:letor"), published_number("RankSVM", "ndcg@1:letor")
    (0.4334, 0.4958)
    """
    return PUBLISHED[name][rank_mm_cells.METRICS.index(metric)]


def behind_the_best(reading: str) -> Callable[[Results], Values]:
    """How far RankMM-1 is behind the best of the published methods that optimise MAP or NDCG themselves."""
    best = max(published_number(name, MAP) for name in ("SVMMAP", "AdaRank-MAP", "AdaRank-NDCG"))
    return lambda results: {"behind": best - means(results, reading, MAP)["RankMM-1"]}


def figure_1_panels(results: Results) -> Figure:
    """The paper's three panels: NDCG@k, precision@k, MAP."""
    panels = []
    for which, title in (("ndcg", "NDCG@k"), ("p", "Prec@k")):
        drawn = []
        for name in NAMES.values():
            tables = [means(results, "T steps", AT_DEPTH[which].format(k))[name] for k in range(1, 11)]
            middle, bands = [float(t.mean()) for t in tables], [standard_deviation(t) for t in tables]
            drawn.append(ChartLine(name, range(1, 11), middle, bands))
        for name in ("Regression", "RankSVM", "RankBoost", "ListNet", "AdaRank-NDCG"):
            theirs = [published_number(name, AT_DEPTH[which].format(k)) for k in range(1, 11)]
            drawn.append(ChartLine(f"{name} (published)", range(1, 11), theirs))
        panels.append(Panel(title, "k", title, drawn))
    ours = means(results, "T steps", MAP)
    dots = [Dot(name, float(row.mean()), standard_deviation(row)) for name, row in ours.items()]
    dots += [Dot(name, published_number(name, MAP), colour=6) for name in PUBLISHED]
    panels.append(Panel("MAP", "", "MAP (grey: published)", dots=dots))
    return Figure("rankmm-figure-1", "RankMM on OHSUMED, beside the results published with the data", panels,
                  "Bands and error bars: one standard deviation over seeds.")  # fmt: skip


def all_readings(results: Results) -> ReportTable:
    """Every way to solve each problem."""
    shown = (MAP, "ndcg@1:letor", "ndcg@3:letor", "ndcg@5:letor", "ndcg@10:letor", "p@1:letor", "p@10:letor")
    rows = []
    for reading in READINGS:
        columns = {metric: means(results, reading, metric) for metric in shown}
        rows += [
            (f"{name}, {reading}", len(columns[MAP][name]), *(_cell(columns[metric][name]) for metric in shown))
            for name in columns[MAP]
        ]
    rows += [
        (f"{name} (published)", "–", *(f"{published_number(name, metric):.4f}" for metric in shown))
        for name in PUBLISHED
    ]
    heads = ("", "seeds", *(metric.removesuffix(":letor").upper() for metric in shown))
    return ReportTable("All readings of “T iterations”, and the exact step", heads, rows)


def _cell(values: Floats) -> str:
    return f"{values.mean():.4f}" + (f" ± {standard_deviation(values):.4f}" if len(values) > 1 else "")


BEST_OF = "the best of regression, RankSVM, RankBoost"
ABOVE = "above regression, RankSVM and RankBoost"
CLAIMS = (
    ("RankMM-1, MAP", ABOVE, "RankMM-1", BEST_OF, MAP),
    ("RankMM-3, MAP", ABOVE, "RankMM-3", BEST_OF, MAP),
    ("RankMM-1, NDCG@5", ABOVE, "RankMM-1", BEST_OF, "ndcg@5:letor"),
    ("RankMM-3, NDCG@5", ABOVE, "RankMM-3", BEST_OF, "ndcg@5:letor"),
    ("RankMM-1, Prec@5", ABOVE, "RankMM-1", BEST_OF, "p@5:letor"),
    ("RankMM-3, Prec@5", ABOVE, "RankMM-3", BEST_OF, "p@5:letor"),
    ("RankMM-2, MAP", "not as suited: behind RankMM-3", "RankMM-3", "RankMM-2", MAP),
    ("RankMM-2, NDCG@5", "not as suited: behind RankMM-1", "RankMM-1", "RankMM-2", "ndcg@5:letor"),
    ("best overall, MAP", "RankMM-1 above RankMM-3", "RankMM-1", "RankMM-3", MAP),
    ("best overall, NDCG@5", "RankMM-1 above RankMM-3", "RankMM-1", "RankMM-3", "ndcg@5:letor"),
    ("footnote 2, MAP", "RankMM-1 above the retrained RankSVM", "RankMM-1", "RankSVM-Primal", MAP),
    ("footnote 2, NDCG@5", "RankMM-1 above the retrained RankSVM", "RankMM-1", "RankSVM-Primal", "ndcg@5:letor"),
)


def figure_claims(reading: str) -> list[Claim]:
    """What the paper says of its figure, under one reading of “T iterations”."""
    found = [
        Claim(f"Figure 1, {item}, {reading}", statement, Ordered((higher, lower)), beside(metric, reading),
              setting=reading)
        for item, statement, higher, lower, metric in CLAIMS
    ]  # fmt: skip
    found += [
        Claim(f"Figure 1, {name}, {shown} at every k, {reading}", f"{ABOVE} at every k from 1 to 10",
              Ordered(("smallest lead", "none")), leads(name, which, reading), setting=reading)
        for name in ("RankMM-1", "RankMM-3")
        for which, shown in (("ndcg", "NDCG"), ("p", "Prec"))
    ]  # fmt: skip
    direct = Claim(
        f"Figure 1, RankMM-1 and the direct methods, {reading}",
        "comparable to what optimises MAP or NDCG itself: at most 0.01 of MAP behind the best of three",
        AtMost(0.01),
        behind_the_best(reading),
        setting=reading,
    )
    return [*found, direct]


FIGURE_1 = Experiment(
    name="figure-1",
    title="Figure 1: OHSUMED",
    about="LETOR 3.0, five folds; C, η_0 and T from the printed grids, chosen by MAP on each fold's validation part; "
    "LETOR's metrics (discount 1 for rank 1, then 1/log2(rank)). The figure prints no numbers: its claims are orders. "
    "T counts steps on single lists, as section 3 defines an iteration, or passes over all lists: both are judged.",
    series=(
        Series("steps", rank_mm_cells.steps, GRID, parts=PARTS, seeds=10, quick_seeds=2, cost=3.0),
        Series("passes", rank_mm_cells.measure_passes, GRID, QUICK, PARTS, seeds=5, cost=35.0),
    ),
    claims=[*figure_claims("T steps"), *figure_claims("T passes")],
    figures=(figure_1_panels,),
    tables=(all_readings,),
    data="ohsumed-letor3",
)

THIRD = [part for part in PARTS if NAMES[str(part["loss"])] == "RankMM-3"]
BESIDE = beside_figure_1(GRID, THIRD, {name: published_number(name, MAP) for name in PUBLISHED})

PAPER = Paper(
    name="rankmm",
    title="Maximum Margin Ranking Algorithms for Information Retrieval",
    authors="Agarwal, Collins",
    experiments=(FIGURE_1, BESIDE),
)
