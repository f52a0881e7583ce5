"""RankMM: the time of a path of solutions and of a pass over web-sized data; with arguments, the results on OHSUMED.

python -m benchmarks.rank_mm                    times and memory
python -m benchmarks.rank_mm tolerances 3       RankMM-1 solved to smaller and smaller gaps
python -m benchmarks.rank_mm gap picture.svg    gap against passes and seconds
"""

import os
import resource
import sys
import time
from pathlib import Path

import numpy as np

from ranktron.data.synthetic import WebSearch
from ranktron.kernels.dense import score
from ranktron.learners.batch.rank_mm import SolverRun, make_dual, solve_rank_mm
from ranktron.learners.batch.rank_mm_losses import LOSSES
from ranktron.learners.batch.rank_mm_problem import RankMMProblem, bytes_held
from ranktron.learners.batch.rank_svm import Objective, minimise, minimise_objective
from ranktron.learners.schedule import Schedule
from ranktron.metrics import evaluate
from ranktron.training.cross_validation import read_folds
from ranktron.training.figures.plots import COLOURS
from reproduction.harness.rank_mm_cells import METRICS, SELECT
from reproduction.theory.pegasos import Pegasos
from reproduction.theory.rank_mm import solve_path

CS, ETAS, TS = (0.1, 1.0, 10.0, 100.0, 1000.0), (1e-2, 1e-3, 1e-4, 1e-5, 1e-6), (100, 250, 500, 750, 1000)
NAMES = dict(zip(LOSSES, ("RankMM-1", "RankMM-2", "RankMM-3"), strict=True))


def folder():
    root = os.environ.get("RANKTRON_DATA")
    if not root:
        raise SystemExit("point RANKTRON_DATA at the folder that holds ohsumed-letor3")
    return Path(root) / "ohsumed-letor3"


def chooser(fold):
    """What the validation part thinks of weights."""
    return lambda w: evaluate(fold.valid, score(fold.valid.X, w), [SELECT]).means[SELECT]


def tested(fold, w):
    return evaluate(fold.test, score(fold.test.X, w), METRICS).means


def tolerances(seeds):
    """RankMM-1 solved to a gap of 1e-3, 1e-4 and 1e-5, C chosen on the validation part."""
    folds = list(read_folds(folder()))
    for tol in (1e-3, 1e-4, 1e-5):
        found = []
        for seed in range(seeds):
            row = []
            for fold in folds:
                path = solve_path(fold.train, CS, tol=tol, max_iter=3000, schedule=Schedule(1, seed))
                w = max((solution.w for solution in path), key=chooser(fold))
                row.append((tested(fold, w), None))
            found.append(row)
        means = summary({("average", "exact"): found})["average", "exact"]
        cells = [shown(*means[m]) for m in (SELECT, "ndcg@1:letor", "ndcg@5:letor", "ndcg@10:letor")]
        print(f"| {tol:g} | {' | '.join(cells)} |")


def summary(found):
    """{(loss, reading): {metric: (mean over folds and seeds, spread over seeds of the mean over folds)}}."""
    result = {}
    for key, by_seed in found.items():
        means = {m: [np.mean([test[m] for test, _ in folds]) for folds in by_seed] for m in METRICS}
        result[key] = {
            m: (float(np.mean(v)), float(np.std(v, ddof=1)) if len(v) > 1 else 0.0) for m, v in means.items()
        }
    return result


def shown(mean, spread):
    if mean is None:
        return "–"
    return f"{mean:.4f}" + (f" ± {spread:.4f}" if spread else "")


def seconds_of(call):
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def gap_lines(fold, C, loss, most=300, seconds=10.0):
    """{name: [(passes, seconds, relative gap)]}: exact steps, the paper's with the best of its step sizes, Pegasos."""
    problem = RankMMProblem(fold.train, loss, C)
    reference = solve_rank_mm(fold.train, C, loss, tol=1e-6, max_iter=5000)
    lower = reference.primal - reference.gap
    lines = {}
    for name, corners in {"exact step": 20, "exact step, 1 corner": 1}.items():
        run = SolverRun(make_dual(problem, corners=corners), tol=1e-5)
        lines[name] = [(p.number, p.seconds, p.gap / lower) for p in run.passes(Schedule(), most)]
    tried = {}
    for eta in (1.0, 0.1, *ETAS):
        run = SolverRun(make_dual(problem, "paper", eta), tol=1e-5, max_seconds=seconds)
        tried[eta] = [(p.number, p.seconds, p.gap / lower) for p in run.passes(Schedule(), most)]
    best = min(tried, key=lambda eta: tried[eta][-1][2])
    allowed = min(ETAS, key=lambda eta: tried[eta][-1][2])
    lines["paper's step, its best step size"] = tried[allowed]
    lines["paper's step, best of any size"] = tried[best]
    lines["Pegasos, to the optimum"] = pegasos_line(problem, lower, most)
    print(f"step sizes: {allowed:g} of the paper's, {best:g} of all")
    return lines


def pegasos_line(problem, lower, most):
    pegasos, points, best = Pegasos(problem), [], np.inf
    lists = len(problem.rounds)
    taken = 0.0
    for number in range(1, most + 1):
        order = np.random.default_rng((0, number)).integers(lists, size=lists)
        taken += seconds_of(lambda order=order: pegasos.visit(order))
        best = min(best, problem.primal(pegasos.mean))
        points.append((number, taken, max(best / lower - 1.0, 1e-9)))
    return points


def rank_svm_line(fold, C, balance):
    """RankSVM with the squared hinge; a pass is one evaluation of the objective or one product with its curvature."""
    lower = minimise(fold.train, C, "squared", balance, tol=1e-9).value
    points = []
    for most in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64):
        objective = CountedObjective(fold.train, C, balance)
        began = time.perf_counter()
        value = minimise_objective(objective, np.zeros(fold.train.n_features), 1e-9, most, lambda: False).value
        points.append((objective.calls, time.perf_counter() - began, max(value / lower - 1.0, 1e-9)))
    return points


class CountedObjective(Objective):
    calls = 0

    def _count(self):
        object.__setattr__(self, "calls", self.calls + 1)

    def _at(self, w):
        self._count()
        super()._at(w)

    def curvature(self, w, v):
        self._count()
        return super().curvature(w, v)


def row(what, ours, peer, bar, holds):
    return {
        "what": what,
        "ours": ours,
        "peer": peer,
        "ratio": None if peer is None else peer / ours,
        "bar": bar,
        "holds": holds,
    }


def path_rows():
    """The rows that need real data."""
    fold, rows = next(iter(read_folds(folder()))), []
    for loss in LOSSES:
        solve_path(fold.train, CS[:1], loss)
        path = []
        ours = seconds_of(lambda path=path, loss=loss: path.extend(solve_path(fold.train, CS, loss, tol=1e-3)))
        assert all(found.converged for found in path)
        paper = seconds_of(lambda loss=loss: paper_path(fold.train, loss))
        what = f"{NAMES[loss]}, 5 values of C to a gap of 1e-3, OHSUMED fold 1: seconds, against 100 paper passes each"
        rows.append(row(what, ours, paper, "under 10 s", ours < 10.0))
    return rows


def run():
    try:
        rows = path_rows()
    except SystemExit as missing:
        print(f"  skipped what needs OHSUMED: {missing}")
        rows = []
    lists = WebSearch().rounds(6000)
    for loss, step in ((loss, step) for loss in LOSSES for step in ("exact", "paper")):
        solve_rank_mm(lists[:2], 1.0, loss, step=step, max_iter=1)
        ours = seconds_of(lambda loss=loss, step=step: solve_rank_mm(lists, 1.0, loss, step=step, max_iter=1, tol=0.0))
        held = bytes_held(lists, loss, step, 20) / 1e9
        what = f"{NAMES[loss]}, {step} step, a pass and its gap, 6,000 lists of 120 × 136: seconds ({held:.2f} GB held)"
        rows.append(row(what, ours, None, "under 10 s", ours < 10.0))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    rows.append(
        row("peak memory of the whole process, lists included (0.39 GB): GB", peak, None, "under 4 GB", peak < 4.0)
    )
    return rows


def paper_path(lists, loss):
    for C in CS:
        solve_rank_mm(lists, C, loss, step="paper", max_iter=100, tol=0.0)


def gap(picture):
    """Prints when each way reaches a gap, for several C, and draws those of C = 100."""
    fold = next(iter(read_folds(folder())))
    drawn = {}
    for C in (10.0, 100.0, 1000.0):
        for loss in LOSSES:
            lines = gap_lines(fold, C, loss)
            if loss == "average":
                lines["RankSVM per query, to its own optimum"] = rank_svm_line(fold, C, "query")
                lines["RankSVM of Eq. (1), to its own optimum"] = rank_svm_line(fold, C, "pair")
            print_hits(f"{NAMES[loss]}, C = {C:g}", lines)
            if C == 100.0:
                drawn[f"{NAMES[loss]}, C = {C:g}"] = lines
    draw_gaps(picture, drawn)


def draw_gaps(path, panels):
    """Draws one column per panel, both axes logarithmic, and writes the picture to a file."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        2, len(panels), figsize=(4.2 * len(panels), 7.6), sharey=True, squeeze=False, layout="constrained"
    )
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    colours = dict(zip(names, COLOURS * 10, strict=False))
    styles = {name: ("-", "--")[at // len(COLOURS) % 2] for at, name in enumerate(names)}
    for column, (title, lines) in enumerate(panels.items()):
        for row, (label, coordinate) in enumerate({"passes": 0, "seconds": 1}.items()):
            ax = axes[row, column]
            for name, points in ((name, thinned(points)) for name, points in lines.items()):
                xs, ys = [point[coordinate] for point in points], [point[2] for point in points]
                ax.plot(xs, ys, label=name, color=colours[name], linestyle=styles[name], linewidth=1.6)
            ax.set(xscale="log", yscale="log", xlabel=label, title=title if row == 0 else "")
            ax.spines[["top", "right"]].set_visible(False)
            ax.grid(alpha=0.25)
        axes[0, column].legend(frameon=False, fontsize=7)
    for row in range(2):
        axes[row, 0].set_ylabel("gap, relative to the optimum")
    figure.savefig(path, dpi=144, metadata={"Date": None})
    pyplot.close(figure)


def thinned(points):
    """Points that lie apart on a logarithmic axis."""
    kept = np.unique(np.geomspace(1, max(len(points), 1), 60).astype(int)) - 1
    return [points[i] for i in kept]


def print_hits(panel, lines):
    for name, points in lines.items():
        hits = [next(((p, s) for p, s, g in points if g <= level), None) for level in (1e-2, 1e-3, 1e-4)]
        cells = ["–" if hit is None else f"{hit[0]:.0f}, {hit[1]:.3f} s" for hit in hits]
        print(f"| {panel} | {name} | {' | '.join(cells)} |", flush=True)


def main(what="", *arguments):
    if what == "gap":
        gap(arguments[0])
    elif what == "tolerances":
        tolerances(int(arguments[0]))
    else:
        for result in run():
            print(f"{result['what']}: {result['ours']:.3g}  {result['bar']}: {result['holds']}")


if __name__ == "__main__":
    main(*sys.argv[1:])
