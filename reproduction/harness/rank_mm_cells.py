"""Cells of RankMM on folds: weights of each way to solve it, chosen on validation lists, measured on test lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ranktron.kernels.dense import score
from ranktron.learners.batch.rank_mm import SolverRun, make_dual
from ranktron.learners.batch.rank_mm_problem import RankMMProblem
from ranktron.learners.schedule import Schedule
from ranktron.metrics import evaluate
from ranktron.training.cross_validation import Fold
from ranktron.types import Floats
from reproduction.harness.data import cached_folds

SELECT = "map:letor"
DEPTHS = range(1, 11)
METRICS = (SELECT, *(f"ndcg@{k}:letor" for k in DEPTHS), *(f"p@{k}:letor" for k in DEPTHS))


class Choice(NamedTuple):
    """Weights, what validation thinks of them, and the parameters that gave them."""

    value: float
    parameters: tuple[float, ...]
    w: Floats


def steps(
    loss: str, fold: int, Cs: Sequence[float], etas: Sequence[float], Ts: Sequence[int], folder: str, seed: int
) -> Any:
    """The paper's T single-list steps, and the exact step to a gap of 1e-3 with and without early stopping."""
    data = cached_folds(folder)[fold]
    found = _exact(data, loss, Cs, seed)
    found["T steps"] = _search_paper_steps(data, loss, (Cs, etas, Ts), seed, 1)
    return {reading: measure_on_test(data, choice) for reading, choice in found.items()}


def measure_passes(
    loss: str, fold: int, Cs: Sequence[float], etas: Sequence[float], Ts: Sequence[int], folder: str, seed: int
) -> Any:
    """The other reading of T: passes over all lists."""
    data = cached_folds(folder)[fold]
    return {"T passes": measure_on_test(data, _search_paper_steps(data, loss, (Cs, etas, Ts), seed, len(data.train)))}


def _exact(fold: Fold, loss: str, Cs: Sequence[float], seed: int) -> dict[str, Choice]:
    """The solution of the best C; with early stopping the best pass of the best C."""
    solved: list[Choice] = []
    early: list[Choice] = []
    for C in Cs:
        run = SolverRun(make_dual(RankMMProblem(fold.train, loss, C)), tol=1e-3)
        early.extend(judge_on_validation(fold, (C, done.number), run.w) for done in run.passes(Schedule(1, seed), 1000))
        solved.append(judge_on_validation(fold, (C, len(run.history)), run.solution().w))
    return {"exact": best_on_validation(solved), "exact, early stopping": best_on_validation(early)}


def _search_paper_steps(
    fold: Fold, loss: str, grid: tuple[Sequence[float], Sequence[float], Sequence[int]], seed: int, per_t: int
) -> Choice:
    """The paper's steps for the best (C, η_0, T); T counts `per_t` steps, each on a list drawn at random."""
    Cs, etas, Ts = grid
    choices = []
    for C in Cs:
        problem = RankMMProblem(fold.train, loss, C)
        for eta in etas:
            dual, done = make_dual(problem, "paper", eta), 0
            rng = np.random.default_rng((seed, 7))
            for T in Ts:
                dual.visit(rng.integers(len(fold.train), size=(T - done) * per_t))
                done = T
                choices.append(judge_on_validation(fold, (C, eta, T), dual.w))
    return best_on_validation(choices)


def judge_on_validation(fold: Fold, parameters: tuple[float, ...], w: Floats) -> Choice:
    """Weights with what the validation lists think of them."""
    value = evaluate(fold.valid, score(fold.valid.X, w), [SELECT]).means[SELECT]
    return Choice(value, parameters, w.copy())


def best_on_validation(choices: Sequence[Choice]) -> Choice:
    """The choice that the validation lists like best, the first of equals."""
    return max(choices, key=lambda choice: choice.value)


def measure_on_test(fold: Fold, choice: Choice) -> dict[str, Any]:
    """What a choice is worth on the test lists."""
    means = evaluate(fold.test, score(fold.test.X, choice.w), METRICS).means
    return {"means": {name: round(value, 6) for name, value in means.items()}, "chosen": list(choice.parameters)}
