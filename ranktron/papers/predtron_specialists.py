"""Sections 3 and 5 of *Predtron*: its instances beside the perceptrons whose bounds it compares with its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ranktron.papers.harness import specialist_cells
from ranktron.papers.harness.experiment import Claim, Experiment, Results, Series, Table
from ranktron.papers.harness.verdicts import AtLeast, AtMost, Ordered, Values, spread
from ranktron.types import Floats

GENERAL = "Predtron"


class Problem(NamedTuple):
    """A problem, the algorithm made for it, the cell that plays both, and which of the two bounds is the larger."""

    name: str
    specialist: str
    cell: Callable[..., Any]
    larger: str
    told: str


PROBLEMS = (
    Problem("Ordered classes", "PRank", specialist_cells.ordered, GENERAL,
            "(l − 1)(R² + 1)/γ² of PRank is the smaller bound"),
    Problem("Multilabel ranking", "MMP", specialist_cells.ranked_labels, GENERAL,
            "2 R²/γ² of MMP is the smaller bound"),
    Problem("Unequal costs", "Uneven margins", specialist_cells.unequal_costs, "Uneven margins",
            "Predtron's bound on the weighted loss is the smaller one"),
)  # fmt: skip


def numbers(results: Results, problem: Problem, who: str, what: str) -> Floats:
    """One number of a player for each seed."""
    return np.array([row[0][who][what] for row in results[problem.name]])


def share(problem: Problem, who: str) -> Callable[[Results], Values]:
    """Of its bound, the share that a player loses."""
    return lambda results: {who: numbers(results, problem, who, "loss") / numbers(results, problem, who, "bound")}


def ratio(problem: Problem) -> Callable[[Results], Values]:
    """The larger bound over the other one."""
    other = problem.specialist if problem.larger == GENERAL else GENERAL
    return lambda results: {
        "ratio": numbers(results, problem, problem.larger, "bound") / numbers(results, problem, other, "bound")
    }


def losses(problem: Problem) -> Callable[[Results], Values]:
    """What both lose."""
    return lambda results: {who: numbers(results, problem, who, "loss") for who in (GENERAL, problem.specialist)}


def claims_of(problem: Problem) -> list[Claim]:
    """Both bounds hold, one is the larger, and the algorithm made for the problem loses less."""
    bounds = [
        Claim(
            f"{problem.name} (ours), {who}: bound",
            "the loss keeps to its bound; ours is the largest share of it",
            AtMost(1.0),
            share(problem, who),
        )
        for who in (problem.specialist, GENERAL)
    ]
    compared = Claim(
        f"{problem.name} (ours): bounds",
        f"{problem.told}, each with its own margin of the same stream; ours is the ratio",
        AtLeast(1.0),
        ratio(problem),
    )
    better = Claim(
        f"{problem.name} (ours): loss",
        f"{problem.specialist} loses less than Predtron: it was made for this",
        Ordered((GENERAL, problem.specialist)),
        losses(problem),
    )
    return [*bounds, compared, better]


def both(results: Results) -> Table:
    """Loss and bound of all players."""
    rows = []
    for problem in PROBLEMS:
        for who in (problem.specialist, GENERAL):
            lost, bounds = (numbers(results, problem, who, what) for what in ("loss", "bound"))
            cells = f"{lost.mean():,.1f} ± {spread(lost):,.1f}", f"{bounds.mean():,.0f}"
            rows.append((f"{problem.name}, {who}", *cells))
    return Table("Loss after all rounds, and its bound", ("", "loss", "bound"), rows)


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
    claims=[claim for problem in PROBLEMS for claim in claims_of(problem)],
    tables=(both,),
)
