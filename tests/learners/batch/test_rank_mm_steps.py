"""The duals of the three problems against general solvers, step by step and at their optima."""

import time

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp

from ranktron import Rounds
from ranktron.kernels.grades import grades
from ranktron.learners.batch.rank_mm import make_dual, solve_rank_mm
from ranktron.learners.batch.rank_mm_exact import ExactDual, _free_place, _shift, average_in
from ranktron.learners.batch.rank_mm_losses import LOSSES
from ranktron.learners.batch.rank_mm_problem import RankMMProblem, carry
from ranktron.learners.batch.rank_mm_steps import (
    DocumentDual,
    PairDual,
    _log_add,
    _log_sums,
    _single,
    clip_pairs,
    marginals,
    paper_dual,
    project_pairs,
)
from reproduction.theory.pegasos import Pegasos
from reproduction.theory.rank_mm import project_l1_inf

claim = pytest.mark.claim
KINDS = [(loss, step) for loss in LOSSES for step in ("exact", "plain", "paper")]


def lists_of(seed, groups=(5, 4, 6), d=4, grades=3):
    rng = np.random.default_rng(seed)
    n = sum(groups)
    X, u = rng.normal(size=(n, d)), rng.normal(size=d)
    labels = np.clip(np.round(X @ u + rng.normal(size=n) + 1.0), 0, grades - 1)
    return Rounds.from_arrays(X, labels, group=groups)


def dual_of(problem, step, eta=0.3):
    if step == "paper":
        return make_dual(problem, "paper", eta)
    return make_dual(problem, corners=20 if step == "exact" else 1)


class Pairs:
    """All pairs of a problem written out: differences of features and labels, their list, their lower document."""

    def __init__(self, problem):
        rows = []
        for q, (a, b) in enumerate(zip(problem.rounds.offsets, problem.rounds.offsets[1:], strict=False)):
            y = problem.rounds.labels
            rows += [(q, j, k) for k in range(a, b) for j in range(a, b) if y[j] > y[k]]
        self.list, self.j, self.k = np.array(rows).T
        X = problem.rounds.X.astype(float)
        self.X, self.y = X[self.j] - X[self.k], problem.rounds.labels[self.j] - problem.rounds.labels[self.k]
        self.lists = [self.list == q for q in np.unique(self.list)]
        self.columns = [self.k == k for k in np.unique(self.k)]
        self.preferred = np.array([(self.k == k).sum() for k in self.k])
        self.problem = problem

    def primal(self, w):
        hinges = np.maximum(0.0, self.y - self.X @ w)
        losses = {
            "average": [hinges[own].mean() for own in self.lists],
            "max": [hinges[own].max() for own in self.lists],
            "max-average": [max(hinges[c].mean() for c in self.columns if (c & own).any()) for own in self.lists],
        }
        return 0.5 * w @ w + self.problem.C / len(self.lists) * sum(losses[self.problem.loss])

    def images(self):
        """How the printed variables of each dual become w and margin: a factor for each pair."""
        bound = self.problem.C / len(self.lists)
        factors = {"average": 1.0, "max": bound, "max-average": 1.0 / self.preferred}
        return factors[self.problem.loss] * np.ones(len(self.y))

    def constraints(self, n):
        """The feasible set of (α, γ): bounds, and what has to be >= 0."""
        bound = self.problem.C / len(self.lists)
        if self.problem.loss == "average":
            sizes = np.array([(self.list == q).sum() for q in self.list])
            return [(0.0, bound / size) for size in sizes], []
        if self.problem.loss == "max":
            rows = np.array([-own.astype(float) for own in self.lists])
            return [(0.0, None)] * n, [linear(rows, np.ones(len(rows)))]
        columns = np.array(self.columns, float)
        caps = np.hstack([-np.eye(n), columns.T])
        own = np.array([[(c & own).any() for c in self.columns] for own in self.lists], float)
        sums = np.hstack([np.zeros((len(own), n)), -own])
        return [(0.0, None)] * (n + len(columns)), [
            linear(caps, np.zeros(n)),
            linear(sums, np.full(len(own), bound)),
        ]

    def solve_dual(self):
        """(value, w, α) of the best dual point, by a general solver."""
        n, factors = len(self.y), self.images()
        bounds, constraints = self.constraints(n)

        def negative(x):
            w = (factors * x[:n]) @ self.X
            gradient = factors * (self.X @ w - self.y)
            return 0.5 * w @ w - (factors * x[:n]) @ self.y, np.append(gradient, np.zeros(len(x) - n))

        method = "SLSQP" if constraints else "L-BFGS-B"
        options = {"ftol": 1e-15, "maxiter": 3000} | ({} if constraints else {"gtol": 1e-12, "maxfun": 100000})
        found = minimize(
            negative, np.zeros(len(bounds)), jac=True, bounds=bounds, constraints=constraints, method=method,
            options=options,
        )  # fmt: skip
        return -found.fun, (factors * found.x[:n]) @ self.X, found.x[:n]

    def solve_slack_form(self):
        """The minimum over (w, ξ) with slack variables, as the paper writes it, by a general solver."""
        d, n, lists = self.X.shape[1], len(self.y), len(self.lists)
        bound = self.problem.C / lists
        own = np.array(self.lists, float)
        pairwise = np.hstack([self.X, np.eye(n)])  # ξ_jk ≥ y_j − y_k − ⟨w, φ_j − φ_k⟩
        if self.problem.loss == "average":
            costs = bound * (own / own.sum(axis=1, keepdims=True)).sum(axis=0)
            constraints = [linear(pairwise, -self.y)]
        elif self.problem.loss == "max":
            costs = np.full(lists, bound)
            constraints = [linear(np.hstack([self.X, own.T]), -self.y)]
        else:
            costs = np.append(np.zeros(n), np.full(lists, bound))
            columns = np.array(self.columns, float)
            means = columns / columns.sum(axis=1, keepdims=True)
            which = np.array([[(c & o).any() for o in self.lists] for c in self.columns], float)
            over = np.hstack([np.zeros((len(columns), d)), -means, which])
            constraints = [
                linear(np.hstack([pairwise, np.zeros((n, lists))]), -self.y),
                linear(over, np.zeros(len(columns))),
            ]
        size = len(costs)
        start = np.append(np.zeros(d), np.full(size, self.y.max()))
        found = minimize(
            lambda x: (0.5 * x[:d] @ x[:d] + costs @ x[d:], np.append(x[:d], costs)), start, jac=True,
            bounds=[(None, None)] * d + [(0.0, None)] * size, constraints=constraints, method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 2000},
        )  # fmt: skip
        return found.fun


def linear(A, b):
    """A x + b ≥ 0."""
    return {"type": "ineq", "fun": lambda x: A @ x + b, "jac": lambda _: A}


def converged(problem):
    return solve_rank_mm(problem.rounds, problem.C, problem.loss, tol=1e-8, max_iter=5000)


SLACK = {"average": "5 s3.1", "max": "6 s3.2", "max-average": "7 s3.3"}
STRONG = {"average": "8 s3.1", "max": "9 s3.2", "max-average": "10 s3.3"}


@pytest.mark.parametrize("loss", [pytest.param(loss, marks=claim("RANKMM", SLACK[loss])) for loss in LOSSES])
@pytest.mark.parametrize("C", [0.3, 30.0])
def test_the_slack_form_has_the_same_minimum(loss, C):
    problem = RankMMProblem(lists_of(0), loss, C)
    found, pairs = converged(problem), Pairs(problem)
    assert problem.primal(found.w) == pytest.approx(pairs.primal(found.w))
    assert found.primal == pytest.approx(pairs.solve_slack_form(), rel=1e-6)


@pytest.mark.parametrize("loss", [pytest.param(loss, marks=claim("RANKMM", STRONG[loss])) for loss in LOSSES])
@pytest.mark.parametrize("C", [0.3, 30.0])
def test_strong_duality_and_the_optimum_of_a_general_solver(loss, C):
    problem = RankMMProblem(lists_of(1), loss, C)
    value, w, _ = Pairs(problem).solve_dual()
    found = converged(problem)
    assert found.converged
    assert value == pytest.approx(found.primal, rel=1e-5)
    assert value <= found.primal + 1e-9
    assert found.w == pytest.approx(w, abs=2e-3 * max(1.0, np.abs(w).max()))


@pytest.mark.parametrize("loss", LOSSES)
def test_larger_problems_have_the_optimum_of_a_general_solver(loss):
    problem = RankMMProblem(lists_of(1, (12, 1, 13, 9)), loss, 5.0)
    pairs = Pairs(problem)
    assert 120 <= len(pairs.y) <= 200
    assert converged(problem).primal == pytest.approx(pairs.solve_slack_form(), rel=1e-6)


@pytest.mark.parametrize(("loss", "step"), KINDS)
@pytest.mark.parametrize("C", [0.5, 50.0])
def test_weak_duality_at_every_step_and_w_is_that_of_the_dual(loss, step, C):
    problem = RankMMProblem(lists_of(2), loss, C)
    dual = dual_of(problem, step)
    rng = np.random.default_rng(0)
    lower = converged(problem).primal
    before = dual.value
    for _ in range(200):
        dual.visit(rng.integers(3, size=1))
        assert dual.value <= lower * (1.0 + 1e-9)
        assert dual.value <= problem.primal(dual.w)
        averaged = dual.averaged
        assert averaged[-1] - 0.5 * averaged[:-1] @ averaged[:-1] <= lower * (1.0 + 1e-9)
        w, margin = dual.recovered()
        assert dual.w == pytest.approx(w, abs=1e-6)
        assert dual.margin == pytest.approx(margin, abs=1e-6)
        if step != "paper":
            assert dual.value >= before - 1e-12 * abs(before)  # a line search never goes down
        before = dual.value


@claim("RANKMM", "11 s3")
@pytest.mark.parametrize("loss", LOSSES)
def test_w_from_the_printed_variables(loss):
    problem = RankMMProblem(lists_of(3), loss, 4.0)
    pairs, dual = Pairs(problem), dual_of(problem, "paper", eta=1.0)
    dual.visit(np.random.default_rng(0).integers(3, size=30))
    if loss == "max":
        raw = np.concatenate([np.exp(dual.theta[pairs.k[own]] - dual.theta[pairs.j[own]]) for own in pairs.lists])
        alpha = raw / np.concatenate([np.full(own.sum(), 1.0 + raw[own].sum()) for own in pairs.lists])
    else:
        columns = problem.columns()
        lower, upper = columns.decode(columns.all())
        at = {(int(j), int(k)): number for number, (j, k) in enumerate(zip(upper, lower, strict=True))}
        alpha = dual.alpha[[at[j, k] for j, k in zip(pairs.j.tolist(), pairs.k.tolist(), strict=True)]].astype(float)
    assert dual.w == pytest.approx((pairs.images() * alpha) @ pairs.X)
    assert dual.margin == pytest.approx((pairs.images() * alpha) @ pairs.y)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_exact_step_tells_the_gap_of_a_list_for_nothing(loss):
    problem = RankMMProblem(lists_of(4, groups=(9,)), loss, 3.0)
    dual = ExactDual(problem)
    for _ in range(20):
        gap = problem.primal(dual.w) - dual.value
        assert dual.visit(np.array([0])) == pytest.approx(gap, abs=1e-9)


def test_one_corner_is_plain_frank_wolfe():
    problem = RankMMProblem(lists_of(5), "max", 10.0)
    dual = ExactDual(problem, kept=1)
    W, margins = np.zeros((3, 4)), np.zeros(3)
    pairs = Pairs(problem)
    for q in np.random.default_rng(0).integers(3, size=50):
        w = W.sum(axis=0)
        own = np.flatnonzero(pairs.list == q)
        violations = pairs.y[own] - pairs.X[own] @ w
        worst = own[np.argmax(violations)]
        corner, margin = problem.bound * pairs.X[worst], problem.bound * pairs.y[worst]
        if violations.max() <= 0.0:
            corner, margin = np.zeros(4), 0.0
        way = corner - W[q]
        gap = margin - margins[q] - way @ w
        gamma = np.clip(gap / (way @ way), 0.0, 1.0) if way @ way > 0.0 else 0.0
        W[q] += gamma * way
        margins[q] += gamma * (margin - margins[q])
        dual.visit(np.array([q]))
        assert dual.w == pytest.approx(W.sum(axis=0))
        assert dual.margin == pytest.approx(margins.sum())


@claim("RANKMM", "12 s3.1")
def test_the_box_step_is_gradient_and_clipping():
    problem = RankMMProblem(lists_of(6), "average", 2.0)
    pairs, dual = Pairs(problem), PairDual(problem, eta=0.05)
    alpha, cap = np.zeros(len(pairs.y)), np.array([problem.bound / (pairs.list == q).sum() for q in pairs.list])
    for t, q in enumerate(np.random.default_rng(1).integers(3, size=60), start=1):
        gradient = pairs.X @ (alpha @ pairs.X) - pairs.y  # the partial gradient of the printed program
        moved = np.clip(alpha - 0.05 / np.sqrt(t) * gradient, 0.0, cap)
        alpha = np.where(pairs.list == q, moved, alpha)
        dual.visit(np.array([q]))
        assert dual.w == pytest.approx(alpha @ pairs.X, abs=1e-6)
    assert (np.sort(dual.alpha) <= cap.max()).all()
    assert dual.alpha.min() >= 0.0


@claim("RANKMM", "12 s3.1")
def test_the_clipped_step_is_the_projection_on_the_box():
    """Four documents, the last two below the first two: the step of the program against a general solver."""
    rng = np.random.default_rng(2)
    columns, bounds = np.array([0, 0, 0, 2, 4]), 0.4
    for _ in range(20):
        alpha, a = rng.uniform(0.0, bounds, size=4).astype(np.float32), rng.normal(size=4)
        pairs = [(j, k) for k in (2, 3) for j in (0, 1)]
        v = alpha - 0.7 * np.array([a[j] - a[k] for j, k in pairs])  # the gradient step, still outside the box
        nearest = minimize(lambda x, v=v: ((x - v) ** 2).sum(), np.zeros(4), bounds=[(0.0, bounds)] * 4, tol=1e-14).x
        clip_pairs(alpha, a, columns, bounds, 0.7, np.zeros(4))
        assert alpha == pytest.approx(nearest, abs=1e-6)


def test_the_projected_step_stays_feasible():
    problem = RankMMProblem(lists_of(7), "max-average", 5.0)
    dual = PairDual(problem, eta=2.0)
    columns = problem.columns()
    for q in np.random.default_rng(3).integers(3, size=80):
        dual.visit(np.array([q]))
        sums = np.zeros(3)
        for at in range(len(columns.ranked)):
            own = dual.alpha[columns.before[at] : columns.before[at + 1]]
            sums[np.searchsorted(problem.rounds.offsets, at, side="right") - 1] += own.max(initial=0.0)
        assert (sums <= problem.bound).all()
        assert dual.alpha.min() >= 0.0
    assert sums.max() > 0.99 * problem.bound


@claim("RANKMM", "18 s3.3")
def test_the_projected_step_is_gradient_clipping_and_projection():
    """α − η_0/√t · (a_j − a_k)/|P_k|, then 0 where negative, then the nearest point of the ball; w from α/|P_k|."""
    problem = RankMMProblem(lists_of(7), "max-average", 5.0)
    pairs, dual = Pairs(problem), PairDual(problem, eta=0.5)
    alpha, size, moved_most = np.zeros(len(pairs.y)), pairs.preferred, 0.0
    for t, q in enumerate(np.random.default_rng(3).integers(3, size=40), start=1):
        w = (alpha / size) @ pairs.X
        own = np.flatnonzero(pairs.list == q)  # by lower document already
        moved = alpha[own] - 0.5 / np.sqrt(t) * (pairs.X[own] @ w - pairs.y[own]) / size[own]
        starts = np.flatnonzero(np.diff(pairs.k[own], prepend=-1))
        new = project_l1_inf(moved, problem.bound, np.append(starts, len(own)), nonnegative=True)
        moved_most = max(moved_most, np.abs(new - np.maximum(moved, 0.0)).max())
        alpha[own] = new
        dual.visit(np.array([q]))
        assert dual.w == pytest.approx((alpha / size) @ pairs.X, abs=1e-5)
    assert moved_most > 0.01  # the ball was reached
    assert size.max() > 1


def dense_marginals(log_alpha, upper, lower, m):
    """The O(n²) step: all pairs and the empty one, in logarithms."""
    total = logsumexp(np.append(log_alpha, 0.0))
    alpha = np.exp(log_alpha - total)
    g = np.zeros(m)
    np.add.at(g, upper, alpha)
    np.add.at(g, lower, -alpha)
    return g, np.exp(-total), alpha


@claim("RANKMM", "16 s3.2")
@claim("RANKMM", "15 s3.2")
@pytest.mark.parametrize("scale", [0.1, 10.0, 1e4])
def test_the_linear_time_step_is_the_quadratic_one(scale):
    rng = np.random.default_rng(4)
    for kind in range(60):
        m = int(rng.integers(2, 12))
        labels = [rng.integers(3, size=m), rng.choice([0, 2], size=m), rng.random(m)][kind % 3].astype(float)
        codes, count = grades(labels)
        if count < 2:
            continue
        upper, lower = np.nonzero(labels[:, None] > labels[None, :])
        theta, log_alpha = np.zeros(m), np.zeros(len(upper))
        g = np.empty(m)
        for _ in range(8):
            a = scale * rng.integers(-2, 3, size=m) if kind % 2 else scale * rng.normal(size=m)
            theta += 0.7 * a
            log_alpha -= 0.7 * (a[upper] - a[lower])
            empty = marginals(theta, codes, count, g)
            dense, dense_empty, alpha = dense_marginals(log_alpha, upper, lower, m)
            assert np.abs(g - dense).max() <= 1e-10
            assert abs(empty - dense_empty) <= 1e-10
            assert alpha.sum() + empty == pytest.approx(1.0)  # in the simplex
            assert np.isfinite(g).all()


def kl(alpha, pairs):
    """D[α* ‖ uniform], summed over lists, with the empty pair."""
    total = 0.0
    for own in pairs.lists:
        part = np.append(alpha[own], 1.0 - alpha[own].sum())
        part = part[part > 1e-12]
        total += (part * np.log(part)).sum() + np.log(own.sum() + 1)
    return total


@claim("RANKMM", "17 s3.2")
@claim("RANKMM", "30 s5")
def test_exponentiated_gradient_keeps_its_rate():
    problem = RankMMProblem(lists_of(8), "max", 6.0)
    pairs = Pairs(problem)
    value, _, alpha = pairs.solve_dual()
    m, bound = len(pairs.lists), problem.bound
    largest = bound * np.abs(pairs.X @ pairs.X.T).max()  # |A|_∞
    steps = np.arange(1, 601)
    short = np.zeros(len(steps))
    for seed in range(10):
        dual = DocumentDual(problem, eta=1.0 / largest)
        start = -dual.value / bound
        for t, q in enumerate(np.random.default_rng(seed).integers(3, size=len(steps))):
            dual.visit(np.array([q]))
            short[t] += (value - dual.value) / bound / 10  # Q(α) − Q(α*): the dual value is −C/m times Q
    best = -value / bound
    rate = m / steps * (largest * kl(alpha, pairs) + start - best)
    assert (short <= rate).all()


@pytest.mark.parametrize(
    "loss",
    [
        pytest.param("average", marks=claim("RANKMM", "13 s3.1")),
        pytest.param("max-average", marks=claim("RANKMM", "19 s3.3")),
    ],
)
@claim("RANKMM", "30 s5")
def test_gradient_projection_keeps_its_rate(loss):
    """With η_t = η_0/√t the mean of Q − Q* over T random steps is at most (m D²/(2 η_0) + η_0 G²)/√T: O(m²/ε²)."""
    problem = RankMMProblem(lists_of(9), loss, 4.0)
    pairs = Pairs(problem)
    value, _, _ = pairs.solve_dual()
    m, bound, factors = len(pairs.lists), problem.bound, pairs.images()
    sizes = np.array([(pairs.list == q).sum() for q in pairs.list])
    widest = bound / sizes if loss == "average" else np.full(len(sizes), bound)
    diameter = (widest**2).sum()
    steps = np.arange(1, 1001)
    short, steepest, eta = np.zeros(len(steps)), 0.0, 0.1 if loss == "average" else 1.0
    for seed in range(10):
        dual = PairDual(problem, eta=eta)
        for t, q in enumerate(np.random.default_rng(seed).integers(3, size=len(steps))):
            gradient = factors * (pairs.X @ dual.w - pairs.y)
            steepest = max(steepest, gradient @ gradient)
            short[t] += (value - dual.value) / 10
            dual.visit(np.array([q]))
    mean = np.cumsum(short) / steps
    assert (mean <= (m * diameter / (2.0 * eta) + eta * steepest) / np.sqrt(steps)).all()
    assert mean[-1] < 0.3 * mean[0]


@claim("RANKMM", "30 s5")
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kept", [1, 20])
def test_the_exact_step_has_the_rate_that_the_paper_expects(loss, kept):
    """E[D* − D] ≤ 2 m (Σ_i diameter_i² + D*)/(t + 2 m): O(1/ε) without a projection."""
    problem = RankMMProblem(lists_of(10), loss, 20.0)
    optimum = converged(problem).primal
    pairs = Pairs(problem)
    m = len(pairs.lists)
    spread = m * (2.0 * problem.bound) ** 2 * (pairs.X**2).sum(axis=1).max()
    steps = np.arange(1, 401)
    short = np.zeros(len(steps))
    for seed in range(10):
        dual = ExactDual(problem, kept)
        for t, q in enumerate(np.random.default_rng(seed).integers(3, size=len(steps))):
            dual.visit(np.array([q]))
            short[t] += (optimum - dual.value) / 10
    assert (short <= 2.0 * m * (spread + optimum) / (steps + 2.0 * m) + 1e-9).all()
    assert short[-1] < (1e-2 if kept > 1 else 0.2) * optimum


def test_remembered_corners_close_the_gap_quicker():
    lists = lists_of(11, groups=(20, 20, 20), d=8)
    passes = [len(solve_rank_mm(lists, 10.0, "max", corners=k, tol=1e-3).history) for k in (1, 5, 20)]
    assert passes[2] <= passes[1] < passes[0] / 5


def test_real_valued_labels_and_lists_of_one_grade():
    rng = np.random.default_rng(12)
    X, labels = rng.normal(size=(14, 3)), np.append(rng.random(10) * 3.0, [1.0, 1.0, 1.0, 2.0])
    lists = Rounds.from_arrays(X, labels, group=[6, 4, 3, 1])
    for loss in LOSSES:
        problem = RankMMProblem(lists, loss, 8.0)
        assert problem.m == 2
        value, _, _ = Pairs(problem).solve_dual()
        assert converged(problem).primal == pytest.approx(value, rel=1e-4)
        dual = paper_dual(problem, 0.5)
        dual.visit(np.arange(4))
        assert np.isfinite(dual.w).all()
    nothing = RankMMProblem(Rounds.from_arrays(X[:3], [1, 1, 1]))
    found = solve_rank_mm(nothing.rounds)
    assert found.w.tolist() == [0.0, 0.0, 0.0]
    assert found.converged


def test_pegasos_reaches_the_same_minimum():
    for loss in LOSSES:
        problem = RankMMProblem(lists_of(13), loss, 2.0)
        pegasos = Pegasos(problem)
        pegasos.visit(np.random.default_rng(0).integers(3, size=20000))
        optimum = converged(problem).primal
        assert optimum <= problem.primal(pegasos.mean) <= 1.005 * optimum


def test_pegasos_steps_as_it_says():
    """w_{t+1} = (1 − 1/t) w_t + C/t Σ_j g_j x_j, the t-th weights with weight t in the mean."""
    X = np.array([[1.0, 0.0], [0.0, 2.0], [0.5, 0.5], [0.0, 1.0], [1.0, 1.0], [2.0, 0.0]])
    problem = RankMMProblem(Rounds.from_arrays(X, [1, 0, 0, 1, 2, 2], group=[2, 2, 2]), "average", C=3.0)
    pegasos = Pegasos(problem)
    w, kept = np.zeros(2), []
    for t, q in enumerate([0, 1, 0, 2, 1], start=1):
        upper, lower = X[[0, 3, 4][q]], X[[1, 2, 5][q]]
        if q < 2:
            violated = 1.0 - (upper - lower) @ w > 0.0
            w = (1.0 - 1.0 / t) * w + 3.0 / t * violated * (upper - lower)
        kept.append(w)
        pegasos.visit(np.array([q]))
        assert pegasos.w == pytest.approx(w)
    assert pegasos.mean == pytest.approx(np.average(kept, axis=0, weights=np.arange(1, 6)))


def seconds(call):
    """Processor time of the quickest of several calls."""
    call()
    times = []
    for _ in range(9):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return min(times)


def slope(work, times):
    """The power of the work with which the time grows: 1 for “in proportion”."""
    return np.polyfit(np.log(work), np.log(times), 1)[0]


@claim("RANKMM", "14 s3.1")
@pytest.mark.timed
def test_a_box_step_takes_time_in_proportion_to_the_pairs():
    def one(m):
        columns = np.concatenate([np.zeros(m // 2, np.int64), np.arange(m // 2 + 1) * (m // 2)])
        alpha, a, change = np.zeros(int(columns[-1]), np.float32), np.linspace(0.0, 1.0, m), np.zeros(m)
        return seconds(lambda: clip_pairs(alpha, a, columns, 1.0, 0.1, change))

    sizes = (400, 800, 1600, 3200)
    assert slope([m * m / 4 for m in sizes], [one(m) for m in sizes]) == pytest.approx(1.0, abs=0.2)


@claim("RANKMM", "16 s3.2")
@pytest.mark.timed
def test_an_exponentiated_step_takes_time_in_proportion_to_the_documents():
    def one(m):
        theta, codes, g = np.linspace(0.0, 1.0, m), np.arange(m) % 3, np.empty(m)
        return seconds(lambda: marginals(theta, codes, 3, g))

    sizes = (4_000, 16_000, 64_000, 256_000)
    assert slope(sizes, [one(m) for m in sizes]) == pytest.approx(1.0, abs=0.2)  # the pairs would be 2


def test_kernels_equal_their_python():
    rng = np.random.default_rng(14)
    a, columns = rng.normal(size=5), np.array([0, 0, 0, 2, 4, 6])
    for step in (clip_pairs, project_pairs):
        alphas = [np.full(6, 0.1, np.float32) for _ in range(2)]
        changes = [np.zeros(5), np.zeros(5)]
        step(alphas[0], a, columns, 0.3, 0.2, changes[0])
        step.py_func(alphas[1], a, columns, 0.3, 0.2, changes[1])
        assert alphas[0] == pytest.approx(alphas[1])
        assert changes[0] == pytest.approx(changes[1])
    assert float(_single.py_func(0.1)) <= 0.1
    assert _single(0.1) == _single.py_func(0.1)
    theta, codes = rng.normal(size=5), np.array([0, 1, 2, 1, 0])
    assert _log_sums(theta, 1.0, codes, 3) == pytest.approx(_log_sums.py_func(theta, 1.0, codes, 3))
    assert _log_add.py_func(-np.inf, 2.0) == 2.0
    fast, slow = np.empty(5), np.empty(5)
    assert marginals(theta, codes, 3, fast) == pytest.approx(marginals.py_func(theta, codes, 3, slow))
    assert fast == pytest.approx(slow)
    corners = [rng.normal(size=(3, 2))] * 2
    for weights in ([0.5, 0.0, 0.5], [0.2, 0.3, 0.5]):
        results = []
        for kernel in (_free_place, _free_place.py_func):
            c, margins, own = corners[0].copy(), np.arange(3.0), np.array(weights)
            results.append((kernel(c, margins, own), c.tolist(), margins.tolist(), own.tolist()))
        assert results[0] == results[1]
    results = []
    for kernel in (_shift, _shift.py_func):
        own, w = np.array([0.4, 0.6, 0.0]), np.zeros(2)
        results.append((*kernel(corners[0].copy(), np.arange(3.0), own, 2, w, 2.0), *own, *w))
    assert results[0] == pytest.approx(results[1])
    direction, again = np.zeros(2), np.zeros(2)
    X = rng.normal(size=(5, 2)).astype(np.float32)
    assert carry(X, a, theta, 2.0, direction) == pytest.approx(carry.py_func(X, a, theta, 2.0, again))
    assert direction == pytest.approx(again)
    averaged, slow = np.zeros(3), np.zeros(3)
    average_in(direction, 1.0, averaged, 3.0)
    average_in.py_func(direction, 1.0, slow, 3.0)
    assert averaged.tolist() == slow.tolist()
