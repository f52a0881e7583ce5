"""RankMM on parts: each shard improves the dual variables of its own queries, and the changes of w are added up.

This is CoCoA+ (Ma et al., Adding vs. Averaging in Distributed Primal-Dual Optimization, 2015) over blocks of queries.
The dual variables of a query are bounded by C/m, where m counts the queries of all parts. A shard makes its steps as if
each of the S shards made the same ones (σ′ = S), so that the sum of all steps never lowers the dual value. Primal and
dual value are those of all queries, and so is the gap between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ranktron.dask.tasks import prepare_part
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.learners.batch.rank_mm import SolverRun, make_dual
from ranktron.learners.batch.rank_mm_exact import ExactDual
from ranktron.learners.batch.rank_mm_problem import RankMMProblem
from ranktron.learners.schedule import Schedule
from ranktron.training.model import Model
from ranktron.types import Floats

if TYPE_CHECKING:
    from ranktron.dask.training import PartData


class DualArrays(NamedTuple):
    """The dual variables of the queries of a part, as weighted corners."""

    corners: Floats
    margins: Floats
    weights: Floats


class ShardVisit(NamedTuple):
    """The dual variables of the parts of a shard, and their images: weights and margin."""

    duals: list[DualArrays]
    w: Floats
    margin: float


def share_problem(rounds: Rounds, loss: str, C: float, queries: int) -> RankMMProblem:
    """The problem of one part, with the share of C that its queries have among `queries` of all parts.

    >>> lists = Rounds.from_arrays([[1.0], [3.0], [1.0], [2.0]], [0, 1, 1, 0], group=[2, 2])
    >>> share_problem(lists[:1], "average", 3.0, 2).bound == RankMMProblem(lists, "average", 3.0).bound
    True
    """
    problem = RankMMProblem(rounds, loss, C)
    return replace(problem, C=C * problem.m / queries) if problem.m else problem


def visit_shard(
    problems: Sequence[RankMMProblem],
    before: ShardVisit | None,
    w: Floats,
    shards: int,
    corners: int,
    memory: float,
    order: tuple[int, int, int] | None,
) -> ShardVisit:
    """Visits all queries of a shard once, from the weights of all shards: a pure function.

    `order` seeds the order of the queries; without it they are visited as they come.
    """
    view, duals, image, margin = w.copy(), [], np.zeros_like(w), 0.0
    rng = None if order is None else np.random.default_rng(order)
    for p, problem in enumerate(problems):
        dual = make_dual(problem, corners=corners, memory=memory)
        assert isinstance(dual, ExactDual)
        if before is not None:
            dual.corners, dual.margins, dual.weights = (array.copy() for array in before.duals[p])
        dual.w = view
        count = len(problem.rounds)
        dual.visit(np.arange(count) if rng is None else rng.permutation(count), float(shards))
        own, part = dual.recovered()
        image, margin = image + own, margin + part
        duals.append(DualArrays(dual.corners, dual.margins, dual.weights))
    return ShardVisit(duals, image, margin)


def image_of(visit: ShardVisit) -> tuple[Floats, float]:
    """The contribution of a shard to weights and margin."""
    return visit.w, visit.margin


def sum_losses(problem: RankMMProblem, w: Floats) -> float:
    """The share of a part in the primal value."""
    return problem.primal(w) - 0.5 * float(w @ w)


@dataclass(eq=False)
class PartsProblem:
    """The problem of all parts: its primal value is the sum of theirs.

    Parameters
    ----------
    data : PartData
        The workers, which hold the problem of each part.
    """

    data: PartData

    def primal(self, w: Floats) -> float:
        """The objective of all queries."""
        losses: list[float] = self.data.map(sum_losses, w)
        return 0.5 * float(w @ w) + sum(losses)


@dataclass(eq=False)
class PartsDual:
    """The dual variables of all parts, which stay on the workers, and their images.

    Parameters
    ----------
    problem : PartsProblem
        The parts.
    shards : sequence of range
        The parts of each shard.
    w : array
        The image of all dual variables: the weights.
    corners, memory
        As for `solve_rank_mm`.
    """

    problem: PartsProblem
    shards: Sequence[range]
    w: Floats
    corners: int
    memory: float
    margin: float = 0.0
    steps: int = 0
    averaged: Floats = field(init=False, repr=False)
    visits: list[Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.averaged, self.visits = np.append(self.w, 0.0), [None] * len(self.shards)

    @property
    def value(self) -> float:
        """The dual value."""
        return self.margin - 0.5 * float(self.w @ self.w)

    def visit_all(self, schedule: Schedule, number: int) -> None:
        """Visits all queries once, all shards at the same time, and adds their images up in order."""
        data = self.problem.data
        for s, own in enumerate(self.shards):
            order = (schedule.seed, number, own.start) if schedule.shuffle else None
            problems = [data.parts[p] for p in own]
            self.visits[s] = data.workers.submit(
                visit_shard, problems, self.visits[s], self.w, len(self.shards), self.corners, self.memory, order,
                home=data.homes[own.start],
            )  # fmt: skip
        homes = [data.homes[own.start] for own in self.shards]
        images = [
            data.workers.submit(image_of, visit, home=home) for visit, home in zip(self.visits, homes, strict=True)
        ]
        self.w, self.margin = np.zeros_like(self.w), 0.0
        for w, margin in (image.result() for image in images):
            self.w, self.margin = self.w + w, self.margin + margin
        self.steps += sum(data.sizes)


class PartsRun(SolverRun):
    """Passes over all parts, with primal value, dual value and gap of all queries after each."""

    def visit(self, schedule: Schedule, number: int) -> None:
        """Makes pass `number`."""
        self.dual.visit_all(schedule, number)  # type: ignore[attr-defined]


def run_on_parts(data: PartData, model: Model, shards: Sequence[range]) -> PartsRun:
    """A run that solves RankMM on parts; steps that need one machine are refused."""
    parameters = model.parameters
    if parameters["step"] != "exact" or parameters["average"]:
        raise DataError("on parts RankMM is solved with step=exact and average=false: other steps need one machine")
    counts = data.map(_count, data.features, model)
    problems = data.hold(_share, data.features, model, max(sum(counts), 1))
    w, corners, memory = np.zeros(model.n_filled), parameters["corners"], parameters["memory"]
    dual = PartsDual(PartsProblem(problems), shards, w, corners, memory)
    return PartsRun(dual, parameters["tol"], parameters["max_seconds"])  # type: ignore[arg-type]


def _count(part: Any, features: Any, model: Model) -> int:
    return RankMMProblem(prepare_part(part, features, model)).m


def _share(part: Any, features: Any, model: Model, queries: int) -> RankMMProblem:
    parameters = model.parameters
    return share_problem(prepare_part(part, features, model), parameters["loss"], parameters["C"], queries)
