"""RankMM: maximum-margin ranking, solved in the dual to a duality gap, which bounds the distance to the optimum.

    min_w  ½ |w|² + C/m Σ_i L(w, S^i),    L the average, the maximum, or the maximum of averages of pairwise hinges

`step="exact"` needs only C; `step="paper"` uses the paper's updates and needs a step size.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.kernels.csr_rows import linear_scores
from ranktron.learners.batch.rank_mm_exact import ExactDual
from ranktron.learners.batch.rank_mm_problem import RankMMProblem, bytes_held
from ranktron.learners.batch.rank_mm_steps import paper_dual
from ranktron.learners.parameters import ALGORITHMS, Parameters
from ranktron.learners.schedule import Fit, History, Schedule
from ranktron.types import Floats, Integers, State

STEPS = ("exact", "paper")
UNFINISHED = "passes after which the gap was still above tol"
FUTILE = "w = 0 is as good within tol: these lists may ask for another loss, another C, or step=paper"
UNCORRECTED = 30
"""Passes before the first correction: many problems are solved by then."""
_LOG = logging.getLogger(__name__)
HELD = "megabytes held for dual variables"

_PRINTED = ALGORITHMS["rankmm"].preset("paper")


class Dual(Protocol):
    """Dual variables of all queries, with their images w and margin, and the mean of these over the steps."""

    problem: RankMMProblem
    steps: int
    w: Floats
    margin: float
    averaged: Floats

    @property
    def value(self) -> float: ...

    def visit(self, order: Integers, /) -> Any: ...

    def recovered(self) -> tuple[Floats, float]: ...

    def state(self) -> State: ...

    def restore(self, state: State, steps: int, factor: float = 1.0, /) -> None: ...


class Pass(NamedTuple):
    """The state of a run after a pass: the primal value of its weights, its dual value, and the best gap so far.

    `gap` is the smallest primal value so far minus the largest dual value so far: the objective of the best weights so
    far is at most that much above the optimum.
    """

    number: int
    steps: int
    seconds: float
    primal: float
    dual: float
    gap: float


@dataclass(frozen=True, eq=False)
class RankMMSolution:
    """The best weights found, the duality gap, and the history of passes.

    `primal − gap ≤ minimum ≤ primal`. `dual` has the dual variables, from which another solution can start.
    """

    w: Floats
    primal: float
    gap: float
    converged: bool
    history: tuple[Pass, ...]
    dual: Dual = field(repr=False)


def solve_rank_mm(
    rounds: Rounds,
    C: float = _PRINTED["C"],
    loss: str = _PRINTED["loss"],
    *,
    start: RankMMSolution | None = None,
    schedule: Schedule | None = None,
    **parameters: Any,
) -> RankMMSolution:
    """Solves in passes until the gap is at most `tol` times the objective, for `max_iter` passes or `max_seconds`.

    `start` is a solution on the same queries with the same loss and step, for any C: solving for several C one after
    the other is fast. `schedule` is the order in which the queries are visited. The other parameters are those of
    `RankMM`, as the paper has them.

    Examples
    --------
    >>> from ranktron.data.synthetic import Separable
    >>> lists = Separable().rounds(50)
    >>> found = solve_rank_mm(lists, C=10.0, loss="max", tol=1e-3)
    >>> found.converged, found.history[-1].dual <= found.primal
    (True, True)
    >>> found.primal - found.history[-1].dual <= 1e-3 * found.primal
    True
    """
    problem = RankMMProblem(rounds, loss, C)
    p = Parameters(_PRINTED.algorithm, {**_PRINTED, **parameters})
    dual = make_dual(problem, p.step, p.eta, p.corners, p.memory)
    if start is not None:
        _check_start(start, dual)
        dual.restore(start.dual.state(), start.dual.steps, C / start.dual.problem.C)
    run = SolverRun(dual, p.tol, p.max_seconds, p.average)
    for _ in run.passes(schedule or Schedule(), p.max_iter):
        pass
    return run.solution()


def make_dual(
    problem: RankMMProblem,
    step: str = _PRINTED["step"],
    eta: float = _PRINTED["eta"],
    corners: int = _PRINTED["corners"],
    memory: float = _PRINTED["memory"],
) -> Dual:
    """Initial dual variables; an error if they would take more than `memory` gigabytes."""
    if step not in STEPS:
        raise DataError(f"step must be {' or '.join(STEPS)}, not {step!r}")
    held = bytes_held(problem.rounds, problem.loss, step, corners)
    if held > memory * 1e9:
        advice = "remember fewer corners" if step == "exact" else 'take step="exact"'
        raise DataError(
            f"the dual variables of these queries would take {held / 1e9:.1f} GB, more than the {memory:g} GB allowed: "
            f"{advice}, use fewer queries, or raise memory"
        )
    return ExactDual(problem, corners) if step == "exact" else paper_dual(problem, eta)


def _check_start(start: RankMMSolution, dual: Dual) -> None:
    old, new = start.dual.problem, dual.problem
    if type(start.dual) is not type(dual) or old.loss != new.loss:
        raise DataError("a solution can start from another one only if both have the same loss and step")
    if old.rounds is not new.rounds and old.fingerprint() != new.fingerprint():
        raise DataError("a solution can start from another one only if both are on the same queries")


@dataclass(eq=False)
class SolverRun:
    """Passes over all queries, with primal value, dual value and gap after each."""

    dual: Dual
    tol: float = _PRINTED["tol"]
    max_seconds: float = _PRINTED["max_seconds"]
    average: bool = _PRINTED["average"]
    history: list[Pass] = field(default_factory=list)
    best: tuple[float, int, Floats] = field(init=False)
    bound: float = field(init=False)

    def __post_init__(self) -> None:
        self.best = np.inf, 0, self.w.copy()
        self.bound = self.dual.value

    @property
    def w(self) -> Floats:
        """The current weights: the last ones, or with `average` the mean over all steps."""
        return self.dual.averaged[:-1] if self.average else self.dual.w

    @property
    def gap(self) -> float:
        """The smallest primal value so far minus the largest dual value so far."""
        return max(self.best[0] - self.bound, 0.0)

    @property
    def converged(self) -> bool:
        return self.gap <= self.tol * self.best[0]

    @property
    def futile(self) -> bool:
        """Whether w = 0 is optimal up to the tolerance: other w lose on some queries what they gain on others."""
        nothing = self.dual.problem.primal(np.zeros_like(self.dual.w))
        return nothing - self.bound <= self.tol * nothing

    def passes(self, schedule: Schedule, most: int, first: int = 0) -> Iterator[Pass]:
        """Visits all queries once per pass, `most` times, or until the gap is small enough or the time is over."""
        began = perf_counter()
        for number in range(first, first + most):
            self.visit(schedule, number)
            self._correct(number)
            self._measure(number + 1, perf_counter() - began)
            yield self.history[-1]
            if self.converged or 0.0 < self.max_seconds <= self.history[-1].seconds:
                break

    def visit(self, schedule: Schedule, number: int) -> None:
        """Makes pass `number`."""
        self.dual.visit(_order(schedule, len(self.dual.problem.rounds), number))

    def _correct(self, number: int) -> None:
        """Corrects the weights of all corners of the exact step together, once passes alone turn out to be slow."""
        if number < UNCORRECTED or not isinstance(self.dual, ExactDual):
            return
        every = self.dual.passes_between_corrections
        if every and (number - UNCORRECTED) % every == 0:
            self.dual.correct()

    def _measure(self, number: int, seconds: float) -> None:
        dual, w = self.dual, self.w
        primal, margin = dual.problem.primal(w), dual.averaged[-1] if self.average else dual.margin
        value = float(margin) - 0.5 * float(w @ w)
        if not np.isfinite(primal):
            raise DataError("the weights overflow: choose a smaller eta, a smaller C, or scale the features")
        if primal < self.best[0]:
            self.best = primal, number, w.copy()
        self.bound = max(self.bound, value, dual.value)
        self.history.append(Pass(number, dual.steps, seconds, primal, value, self.gap))

    def solution(self) -> RankMMSolution:
        """The best weights so far."""
        primal, _, w = self.best
        return RankMMSolution(w, primal, self.gap, self.converged, tuple(self.history), self.dual)


def _order(schedule: Schedule, lists: int, number: int) -> Integers:
    if not schedule.shuffle:
        return np.arange(lists)
    return np.random.default_rng((schedule.seed, number)).permutation(lists)


def fit_rank_mm(fit: Fit, parameters: Mapping[str, Any]) -> State:
    """Solves; a validation set, if given, evaluates every pass.

    The exact step makes as many passes as the gap requires, at most `max_iter`, and keeps the weights with the smallest
    objective; the paper's steps make the passes of the schedule. With `early_stopping` or patience, and for the paper's
    steps, the best pass on the validation set is kept. Dual variables of earlier passes over the same queries are used
    as the start.
    """
    rounds, done = fit.rounds, fit.history
    exact = parameters["step"] == "exact"
    if fit.document_weights is not None and not (exact and parameters["loss"] == "average"):
        raise DataError(
            "single documents have sample weights with loss=average and step=exact only: to a maximum it is all the "
            "same whether a document is there twice, and the paper's steps have one bound for all pairs of a query"
        )
    problem = RankMMProblem(rounds, parameters["loss"], parameters["C"], fit.weights, fit.document_weights)
    lists = problem.fingerprint()
    dual = _stated_dual(problem, parameters, done)
    if fit.start and fit.start.get("lists") == lists:
        dual.restore(fit.start["dual"], int(fit.start["steps"]))
    run = SolverRun(dual, parameters["tol"] if exact else 0.0, parameters["max_seconds"], parameters["average"])
    return {**run_passes(fit, parameters, run), "lists": lists, "steps": dual.steps, "dual": dict(dual.state())}


def run_passes(fit: Fit, parameters: Mapping[str, Any], run: SolverRun) -> State:
    """Makes the passes of a run, on one machine or on several, and returns the weights to keep with the history."""
    schedule, done, exact = fit.schedule, fit.history, parameters["step"] == "exact"
    with fit.running():
        for each in run.passes(schedule, parameters["max_iter"] if exact else schedule.epochs, done.epoch):
            done.epoch, done.rounds = each.number, done.rounds + fit.queries
            fit.evaluate(lambda valid: linear_scores(valid.X, run.w), run.w.copy)
            if fit.finished:
                break
    patient = fit.validation is not None and fit.validation.patience is not None
    if exact and not run.converged:
        done.remarks[UNFINISHED] = len(run.history)
    if exact and run.futile:
        done.remarks[FUTILE] = 1
    w = run.w
    if exact and run.history:
        _, done.epoch, w = run.best
    if parameters["early_stopping"] or patient or not exact:
        best = fit.best()
        w = w if best is None else best
    history = np.array([(each.primal, each.dual, each.gap) for each in run.history]).reshape(-1, 3)
    return {"coef": w.copy(), "constant": 0.0, "history": history}


def _stated_dual(problem: RankMMProblem, parameters: Mapping[str, Any], history: History) -> Dual:
    """The dual variables; logs how much memory they need before it is allocated."""
    chosen = {name: parameters[name] for name in ("step", "eta", "corners", "memory")}
    megabytes = bytes_held(problem.rounds, problem.loss, chosen["step"], chosen["corners"]) / 1e6
    _LOG.info("rankmm will use %.3g megabytes for dual variables (at most %g gigabytes)", megabytes, chosen["memory"])
    history.remarks[HELD] = round(megabytes)
    history.remarks["queries of one grade"] = len(problem.rounds) - problem.m
    return make_dual(problem, **chosen)
