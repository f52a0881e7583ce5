"""RankMM: maximum margins between grades, solved in the dual."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ranktron.learners.parameters import AVERAGE, ETA, Parameter, Parameters, declare

if TYPE_CHECKING:
    from ranktron.learners.fixed_scorer import Fixed
    from ranktron.types import Floats, State


def gaps_(state: State) -> Floats:
    """For each pass the primal value, the dual value, and the gap between the best of both so far."""
    gaps: Floats = state["history"]
    return gaps


def gap_(state: State) -> float:
    """How far the objective of the best pass is from the minimum, at most."""
    return float(gaps_(state)[-1, 2])


@declare(
    "rankmm",
    Parameter(
        "loss",
        "over a query: the average pair, the worst pair (max), or the worst document (max-average)",
        "average",
        choices=("average", "max", "max-average"),
    ),
    Parameter("C", "weight of the mean loss against the regulariser |w|^2 / 2", 1.0, above=0.0),
    Parameter(
        "step",
        "exact (no step size, to the gap tol) or paper (as published: eta, and n_epochs passes)",
        "exact",
        choices=("exact", "paper"),
    ),
    Parameter("tol", "duality gap at which the exact step stops, relative to the objective", 1e-4, above=0.0),
    Parameter("max_iter", "maximum number of passes of the exact step", 1000, above=0),
    Parameter("max_seconds", "stop after the first pass that ends later than this; 0: no limit", 0.0, above=-1e-9),
    replace(ETA, paper=0.01, help="step size of the paper's steps"),
    Parameter("corners", "corners of its dual variables that each query remembers", 20, above=0),
    Parameter("early_stopping", "keep the best pass on the validation set instead of the exact solution", paper=False),
    Parameter("memory", "gigabytes that the dual variables may take", 4.0, above=0.0),
    AVERAGE,
    estimator="RankMM",
    summary="maximum margins between grades, solved in the dual to a small duality gap",
    paper="Agarwal and Collins, Maximum Margin Ranking Algorithms for Information Retrieval",
    about="""
    The linear ranker of maximum margin: a pair should be as far apart in score as in label.

    `loss="average"` is RankMM-1, `"max"` RankMM-2 and `"max-average"` RankMM-3. The default `step="exact"` asks for
    nothing but `C`: it takes as many passes as the gap wants, and `n_epochs` counts for the paper's steps only.
    Held-out lists (`eval_set`) choose the pass of the paper's steps, and with `early_stopping` of the exact one.
    After `fit`, `gap_` is at most `tol` times the smallest primal value of `gaps_`, if the exact step converged.
    """,
    example="C=100.0",
    solution="ranktron.learners.batch.rank_mm:fit_rank_mm",
    partial_fit=False,
    clicks=True,
    attributes=(gaps_, gap_),
)
def rank_mm(n_features: int, p: Parameters) -> Fixed:
    """The scorer for a solution.

    Examples
    --------
    >>> rank_mm(2).coef
    array([0., 0.])
    """
    from ranktron.learners.fixed_scorer import Fixed

    return Fixed(n_features)
