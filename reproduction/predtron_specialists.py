"""Sections 3 and 5 of *Predtron*: its instances beside the perceptrons whose bounds it compares with its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ranktron.types import Floats
from reproduction.harness import specialist_cells
from reproduction.harness.experiment import Claim, Experiment, ReportTable, Results, Series
from reproduction.harness.verdicts import AtLeast, AtMost, Ordered, Values, standard_deviation

GENERAL = "Predtron"


class SpecialProblem(NamedTuple):
    """A problem, the algorithm made for it, the cell that plays both, and which of the two bounds is the larger."""

    name: str
    specialist: str
    cell: Callable[..., Any]
    larger: str
    told: str


PROBLEMS = (
    SpecialProblem("Ordered classes", "PRank", specialist_cells.measure_ordered_classes, GENERAL,
            "(l − 1)(R² + 1)/γ² of PRank is the smaller bound"),
    SpecialProblem("Multilabel ranking", "MMP", specialist_cells.measure_label_ranking, GENERAL,
            "2 R²/γ² of MMP is the smaller bound"),
    SpecialProblem("Unequal costs", "Uneven margins", specialist_cells.measure_unequal_costs, "Uneven margins",
            "Predtron's bound on the weighted loss is the smaller one"),
)  # fmt: skip


def seed_values(results: Results, problem: SpecialProblem, who: str, what: str) -> Floats:
    """One number of a player for each seed."""
    return np.array([row[0][who][what] for row in results[problem.name]])


def share_of_bound(problem: SpecialProblem, who: str) -> Callable[[Results], Values]:
    """Of its bound, the share that a player loses."""
    return lambda results: {
        who: seed_values(results, problem, who, "loss") / seed_values(results, problem, who, "bound")
    }


def bound_ratio(problem: SpecialProblem) -> Callable[[Results], Values]:
    """The larger bound over the other one."""
    other = problem.specialist if problem.larger == GENERAL else GENERAL
    return lambda results: {
        "ratio": seed_values(results, problem, problem.larger, "bound") / seed_values(results, problem, other, "bound")
    }


def both_losses(problem: SpecialProblem) -> Callable[[Results], Values]:
    """What both lose."""
    return lambda results: {who: seed_values(results, problem, who, "loss") for who in (GENERAL, problem.specialist)}


def specialist_claims(problem: SpecialProblem) -> list[Claim]:
    """Both bounds hold, one is the larger, and the algorithm made for the problem loses less."""
    bounds = [
        Claim(
            f"{problem.name} (ours), {who}: bound",
            "the loss keeps to its bound; ours is the largest share of it",
            AtMost(1.0),
            share_of_bound(problem, who),
        )
        for who in (problem.specialist, GENERAL)
    ]
    compared = Claim(
        f"{problem.name} (ours): bounds",
        f"{problem.told}, each with its own margin of the same stream; ours is the ratio",
        AtLeast(1.0),
        bound_ratio(problem),
    )
    better = Claim(
        f"{problem.name} (ours): loss",
        f"{problem.specialist} loses less than Predtron: it was made for this",
        Ordered((GENERAL, problem.specialist)),
        both_losses(problem),
    )
    return [*bounds, compared, better]


def specialist_table(results: Results) -> ReportTable:
    """Loss and bound of all players."""
    rows = []
    for problem in PROBLEMS:
        for who in (problem.specialist, GENERAL):
            lost, bounds = (seed_values(results, problem, who, what) for what in ("loss", "bound"))
            cells = f"{lost.mean():,.1f} ± {standard_deviation(lost):,.1f}", f"{bounds.mean():,.0f}"
            rows.append((f"{problem.name}, {who}", *cells))
    return ReportTable("Loss after all rounds, and its bound", ("", "loss", "bound"), rows)


SPECIALISTS = Experiment(
    name="specialists",
    title="Sections 3 and 5: beside PRank, MMP and uneven margins",
    about="Separable streams on the unit sphere. Five classes cut from a line (Predtron sees a constant feature, where "
    "PRank has thresholds); six labels of which those above the widest gap are relevant, under NDCG; two classes, one "
    "of them rare and ten times as costly. Predtron is the loss-driven variant, which has no step to choose.",
    series=tuple(
        Series(problem.name, problem.cell, {"T": 2_000, "features": 10}, {"T": 300}, seeds=10, cost=1.0)
        for problem in PROBLEMS
    ),
    claims=[claim for problem in PROBLEMS for claim in specialist_claims(problem)],
    tables=(specialist_table,),
)
