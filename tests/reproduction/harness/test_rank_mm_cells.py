"""The grid of Figure 1: the best point on the validation part is taken, and T counts steps from the first one."""

import numpy as np
import pytest

from ranktron.data.synthetic import WebSearch
from ranktron.kernels.dense import score
from ranktron.learners.batch.rank_mm import make_dual
from ranktron.learners.batch.rank_mm_problem import RankMMProblem
from ranktron.metrics import evaluate
from ranktron.training.cross_validation import Fold
from reproduction.harness.rank_mm_cells import SELECT, _exact, _search_paper_steps

LISTS = WebSearch(features=5, documents=8).rounds(24)
FOLD = Fold("Fold1", LISTS[:12], LISTS[12:18], LISTS[18:])
GRID = ((0.1, 10.0), (1e-1, 1e-3), (5, 9, 20))


def valued(w):
    return evaluate(FOLD.valid, score(FOLD.valid.X, w), [SELECT]).means[SELECT]


@pytest.mark.parametrize("loss", ["average", "max", "max-average"])
@pytest.mark.parametrize("per_t", [1, 3])
def test_the_papers_steps_are_those_of_every_grid_point_on_its_own(loss, per_t):
    Cs, etas, Ts = GRID
    drawn = np.random.default_rng((4, 7)).integers(12, size=20 * per_t)
    found = []
    for C in Cs:
        for eta in etas:
            for T in Ts:
                dual = make_dual(RankMMProblem(FOLD.train, loss, C), "paper", eta)
                dual.visit(drawn[: T * per_t])
                found.append((valued(dual.w), (C, eta, T), dual.w))
    best = max(found, key=lambda row: row[0])
    assert best[0] > min(row[0] for row in found)
    chosen = _search_paper_steps(FOLD, loss, GRID, 4, per_t)
    assert (chosen.value, chosen.parameters) == (best[0], best[1])
    assert chosen.w == pytest.approx(best[2], rel=1e-9)


def test_early_stopping_takes_the_best_pass_and_the_solution_the_best_c():
    found = _exact(FOLD, "average", (0.1, 100.0), 0)
    assert found["exact, early stopping"].value >= found["exact"].value
    for choice in found.values():
        assert choice.value == pytest.approx(valued(choice.w))
    alone = [_exact(FOLD, "average", (C,), 0) for C in (0.1, 100.0)]
    for reading, choice in found.items():
        assert choice.value == max(one[reading].value for one in alone)
    assert alone[0]["exact"].value != alone[1]["exact"].value
