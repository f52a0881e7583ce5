"""A committee of 20 trained in 50 iterations, beside RankSVM; with arguments, orders of pairs and sizes on OHSUMED."""

import os
import sys
import time
from pathlib import Path

import numpy as np

from ranktron.data.scaling import fit_scaler, scale
from ranktron.data.synthetic import WebSearch
from ranktron.learners.batch.rank_svm import minimise
from ranktron.learners.feedback import full
from ranktron.learners.loop import play
from ranktron.learners.pairwise.learner import Pairwise
from ranktron.learners.pairwise.outputs import Committee
from ranktron.learners.pairwise.pairs import Pairs
from ranktron.learners.pairwise.passes import MemberWeights, train_outputs
from ranktron.learners.schedule import Schedule
from ranktron.metrics import evaluate, metric
from ranktron.training.cross_validation import Fold, read_folds
from reproduction.committee_tables import TABLE_4
from reproduction.harness.pairwise_cells import ALPHA_BOUND, METRICS, READOUTS, SELECT

EPOCHS, SEEDS = 50, 10
PAPER_SECONDS = {"committee": 453.76, "RankSVM": 21238.05}


def folder(version):
    root = os.environ.get("RANKTRON_DATA")
    if not root:
        raise SystemExit("point RANKTRON_DATA at the folder that holds ohsumed-letor2 and ohsumed-letor3")
    return Path(root) / f"ohsumed-letor{version}"


def scaled(fold):
    """LETOR 2.0 is raw, LETOR 3.0 comes scaled per query already; scaling it again changes nothing."""
    scaler = fit_scaler("minmax-query", fold.train)
    return Fold(fold.name, *(scale(part, scaler) for part in fold[1:]))


def folds_of(version):
    return [scaled(fold) for fold in read_folds(folder(version))]


def seconds(call):
    """Seconds of processor time: all of these run on one thread, and other programs must not count."""
    start = time.process_time()
    call()
    return time.process_time() - start


def committee_seconds(lists):
    readouts = {"committee": Committee(20, weights="count")}
    return seconds(lambda: train_outputs(lists, readouts, Schedule(EPOCHS), alpha_bound=ALPHA_BOUND))


def linear_svc_seconds(lists):
    """scikit-learn's solver on the differences of all pairs, as a RankSVM without a library would be built."""
    from sklearn.svm import LinearSVC

    pairs = Pairs.of(lists.labels, lists.offsets)

    def fit():
        upper, lower = pairs.decode(pairs.all())
        sign = np.where(np.arange(len(upper)) % 2, 1.0, -1.0)
        differences = (lists.X[upper] - lists.X[lower]) * sign[:, None]
        LinearSVC(C=1.0 / len(upper), fit_intercept=False, dual=False).fit(differences, sign)

    return seconds(fit)


def row(what, ours, peer, bar, holds=None):
    return {"what": what, "ours": ours, "peer": peer, "ratio": peer / ours, "bar": bar, "holds": holds}


def lists_to_time():
    """OHSUMED's first fold, or simulated lists of the same shape where there are no data."""
    if os.environ.get("RANKTRON_DATA"):
        return folds_of(2)[0].train, "OHSUMED fold 1"
    return WebSearch(documents=152, features=25).rounds(63), "simulated lists like OHSUMED's"


def run():
    first, where = lists_to_time()
    train_outputs(first, {"committee": Committee(20)}, Schedule(1), alpha_bound=ALPHA_BOUND)
    minimise(first, 1.0, max_iter=1)
    ours = min(committee_seconds(first) for _ in range(3))
    svm = min(seconds(lambda: minimise(first, 1.0, "hinge", "pair")) for _ in range(3))
    squared = min(seconds(lambda: minimise(first, 1.0, "squared", "pair")) for _ in range(3))
    svc = linear_svc_seconds(first)
    paper = PAPER_SECONDS["RankSVM"] / PAPER_SECONDS["committee"]
    note = f"the paper's factor over RankSVM (SVM-light): {paper:.1f}"
    what = f"committee of 20, 50 iterations, {where}: seconds"
    return [
        row(f"{what}, against the paper's Java", ours, PAPER_SECONDS["committee"], "at most 2 s", ours <= 2.0),
        row(f"{what}, against LinearSVC on pair differences", ours, svc, note),
        row(f"{what}, against our RankSVM, squared hinge", ours, squared, note),
        row(f"{what}, against our RankSVM, plain hinge", ours, svm, note),
    ]


def _published(name):
    return " / ".join(f"{v:.3f}" for v in TABLE_4["ohsumed-letor2"][name]) if name in TABLE_4["ohsumed-letor2"] else ""


def orders(version, seeds=SEEDS, epochs=EPOCHS):
    """Table 4 when pairs are not mixed over lists: list by list as from a stream, and in the order of the file."""
    readouts = {name: READOUTS[name] for name in ("Com 30 A", "Com 30 B", "Pocket", "Average", "Last")}
    folds = folds_of(version)
    ways = {
        "list by list, both shuffled": (
            _streamed,
            [Schedule(10, seed) for seed in range(seeds)],
        ),
        "in the order of the file": (_in_order, [Schedule(epochs, 0, shuffle=False)]),
    }
    for way, (scores_of, schedules) in ways.items():
        means = {name: [] for name in readouts}
        for schedule in schedules:
            found = [scores_of(fold, readouts, schedule) for fold in folds]
            for name in readouts:
                parts = [evaluate(fold.test, scores[name], METRICS) for scores, fold in zip(found, folds, strict=True)]
                means[name].append([np.mean([part.means[m] for part in parts]) for m in METRICS])
        print(f"\nOHSUMED, LETOR {version}.0, {way}")
        for name, values in means.items():
            print(f"| {name} | {_cells(values)} | {_published(name)} |")


def _cells(values):
    a = np.array(values)
    spread = a.std(axis=0, ddof=1) if len(a) > 1 else None
    if spread is None:
        return " | ".join(f"{m:.3f}" for m in a[0])
    return " | ".join(f"{m:.3f} ± {s:.3f}" for m, s in zip(a.mean(axis=0), spread, strict=True))


def _in_order(fold, readouts, schedule):
    chosen = {"alpha_bound": ALPHA_BOUND, "valid": fold.valid, "select": SELECT, "weigh": SELECT}
    outputs = train_outputs(fold.train, readouts, schedule, **chosen)
    return {name: output.learner.ensemble.of_rounds(fold.test) for name, output in outputs.items()}


def _streamed(fold, readouts, schedule):
    """The test scores of each output after its best pass on the validation part."""
    walker = Pairwise(fold.train.n_features, Committee(30))
    weights = MemberWeights(fold.valid, metric(SELECT))
    best = {}
    for epoch in range(schedule.epochs):
        for _ in play(walker, schedule.epoch(fold.train, epoch), full):
            pass
        weights.measure(walker.hypotheses)
        for name, output in readouts.items():
            ensemble = output.ensemble(walker.hypotheses.settled(30, 0))
            value = evaluate(fold.valid, ensemble.of_rounds(fold.valid), SELECT).means[SELECT]
            if name not in best or value > best[name][0]:
                best[name] = value, ensemble
    return {name: ensemble.of_rounds(fold.test) for name, (_, ensemble) in best.items()}


def sizes(version, seeds=SEEDS, epochs=EPOCHS):
    """Test NDCG@10 and MAP for committee and subcommittee sizes, and with the α-bound off."""
    readouts = {f"size {n}": Committee(n) for n in (1, 5, 10, 20, 30, 50, 100, 1000)}
    readouts |= {f"size 100, subcommittee {n}": Committee(100, subcommittee=n) for n in (5, 10, 30)}
    for alpha_bound in (ALPHA_BOUND, 1.0):
        values = {name: [] for name in readouts}
        for seed in range(seeds):
            tests = {name: [] for name in readouts}
            for fold in folds_of(version):
                outputs = train_outputs(
                    fold.train, readouts, Schedule(epochs, seed),
                    alpha_bound=alpha_bound, valid=fold.valid, select=SELECT, weigh=SELECT,
                )  # fmt: skip
                for name, output in outputs.items():
                    tests[name].append(evaluate(fold.test, output.learner.ensemble.of_rounds(fold.test), METRICS).means)
            for name in readouts:
                values[name].append([np.mean([t[m] for t in tests[name]]) for m in METRICS])
        print(f"\nLETOR {version}.0, alpha-bound {alpha_bound}")
        for name, v in values.items():
            print(f"| {name} | {_cells(v)} |")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        {"sizes": sizes, "orders": orders}[sys.argv[1]](*map(int, sys.argv[2:]))
    else:
        for result in run():
            ratio = f"  peer {result['peer']:.3g}  ratio {result['ratio']:.2f}"
            print(f"{result['what']}: ours {result['ours']:.3g}{ratio}  {result['bar']}")
