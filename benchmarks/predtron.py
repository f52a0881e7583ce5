"""Predtron: the time of one loss-augmented argmax, and its online errors on real data beside scikit-learn's.

`python -m benchmarks.predtron` prints the times, `python -m benchmarks.predtron DATA` the errors, DATA being a folder
with `multilabel/*.arff.gz` and `ordinal/*.csv`.
"""

import csv
import gzip
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

MULTILABEL = {"emotions": 6, "yeast": 14, "scene": 6}
ORDINAL = ("machine_ord", "stock_ord", "winequality-red", "winequality-white", "abalone_ord")
ETAS = (0.001, 0.01, 0.1, 1.0)


def best_of(call, repeats=20):
    """The shortest of several runs, the first of them not counted."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def one_list(m):
    rng = np.random.default_rng(0)
    return rng.normal(size=m), rng.choice(5, m, p=[0.52, 0.32, 0.13, 0.02, 0.01]).astype(float)


def row(m, places, limit):
    from scipy.optimize import linear_sum_assignment

    from ranktron.learners.predtron import Permutations, Places

    problem = Permutations(representation=Places(places))
    scores, labels = one_list(m)
    gains, discounts, best = problem.measure.weights(labels)
    worth = np.outer(scores, problem.representation(m)) - np.outer(gains / best, discounts)
    ours = best_of(lambda: problem.augmented(scores, labels))
    peer = best_of(lambda: linear_sum_assignment(worth, maximize=True), 5)
    return {
        "what": f"loss-augmented argmax, {m} documents, f = {places}: seconds, against scipy on the plain matrix",
        "ours": ours,
        "peer": peer,
        "ratio": peer / ours,
        "bar": f"under {limit:g} s",
        "holds": ours < limit,
    }


def run():
    rows = [
        row(m, places, limit) for m, limit in ((120, 1e-3), (1000, 0.15)) for places in ("-i", "-i^1.1", "-i^2", "1/i")
    ]
    return [*rows, row(1000, "discount", 1e-4)]


# --- online errors on real data


def multilabel(folder, name):
    with gzip.open(folder / "multilabel" / f"{name}-train.arff.gz", "rt", encoding="utf-8") as file:
        lines = iter(file)
        next(line for line in lines if line.strip().lower() == "@data")
        table = np.array([line.split(",") for line in lines if line.strip()], float)
    m = MULTILABEL[name]
    return standardised(table[:, :-m]), table[:, -m:]


def ordinal(folder, name):
    with (folder / "ordinal" / f"{name}.csv").open(encoding="utf-8") as file:
        table = np.array(list(csv.reader(file))[1:], float)
    return standardised(table[:, 1:]), table[:, 0].astype(int)


def standardised(X):
    deviation = X.std(axis=0)
    return np.ascontiguousarray((X - X.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0))


def perceptron_stream(X, y, classes):
    """What scikit-learn's Perceptron predicts for each example before it learns it."""
    from sklearn.linear_model import Perceptron

    model = Perceptron()
    predictions = [classes[0]]
    model.partial_fit(X[:1], y[:1], classes=classes)
    for i in range(1, len(X)):
        predictions.append(model.predict(X[i : i + 1])[0])
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    return np.array(predictions)


def ours(make, X, y):
    """The online loss of the best of a few step sizes, and that step (one pass, in order)."""
    results = {}
    for eta in ETAS:
        results[eta] = make(eta).partial_fit(X, y).online_losses_[0] if y.ndim == 2 else _classes(make(eta), X, y)
    best = min(results, key=results.get)
    return results[best], best


def _make(estimator, eta, **given):
    return estimator(eta=eta, **given)


def _classes(estimator, X, y):
    return estimator.partial_fit(X, y, classes=np.unique(y)).online_losses_[0]


def cost(loss, P, Y):
    vain, missed = np.sum(P > Y, axis=1), np.sum(P < Y, axis=1)
    return {"hamming": vain + missed, "subset": vain + missed > 0, "error-set": vain * missed}[loss].mean()


def shuffled(X, y, seed=0):
    order = np.random.default_rng(seed).permutation(len(X))
    return np.ascontiguousarray(X[order]), y[order]


def online_errors(folder):
    """Rows (data, examples, loss, ours standard, its step, ours loss-driven, scikit-learn, constant)."""
    from ranktron import PredtronMultilabel, PredtronOrdinal

    rows = []
    for name in MULTILABEL:
        X, Y = shuffled(*multilabel(folder, name))
        columns = [perceptron_stream(X, Y[:, j].astype(int), np.array([0, 1])) for j in range(Y.shape[1])]
        theirs = np.array(columns).T
        constant = (Y.mean(axis=0) > 0.5).astype(float)
        subsets, counts = np.unique(Y, axis=0, return_counts=True)
        common = subsets[counts.argmax()]
        for loss, best in (("hamming", constant), ("subset", common), ("error-set", constant)):
            given = {"loss": loss, "preset": "paper"}
            standard, eta = ours(partial(_make, PredtronMultilabel, **given), X, Y)
            driven, _ = ours(partial(_make, PredtronMultilabel, variant="loss-driven", **given), X, Y)
            rows.append((name, len(X), loss, standard, eta, driven, cost(loss, theirs, Y), cost(loss, best, Y)))
    for name in ORDINAL:
        X, y = shuffled(*ordinal(folder, name))
        classes = np.unique(y)
        theirs = perceptron_stream(X, y, classes)
        standard, eta = ours(partial(_make, PredtronOrdinal, preset="paper"), X, y)
        driven, _ = ours(partial(_make, PredtronOrdinal, variant="loss-driven", preset="paper"), X, y)
        y_codes, median = np.searchsorted(classes, y), np.median(np.searchsorted(classes, y))
        error = np.abs(np.searchsorted(classes, theirs) - y_codes).mean()
        rows.append((name, len(X), "absolute", standard, eta, driven, error, np.abs(y_codes - median).mean()))
    return rows


def main(arguments):
    if arguments:
        print(
            "| data | examples | loss | Predtron (its eta) | loss-driven | scikit-learn's Perceptron | best constant |"
        )
        print("|---|---|---|---|---|---|---|")
        for name, n, loss, standard, eta, driven, theirs, constant in online_errors(Path(arguments[0])):
            print(
                f"| {name} | {n:,} | {loss} | {standard:.3f} ({eta:g}) | {driven:.3f} | {theirs:.3f} | {constant:.3f} |"
            )
        return
    for result in run():
        print(f"{result['what']}: ours {result['ours']:.3g}  peer {result['peer']:.3g}  {result['bar']}")


if __name__ == "__main__":
    main(sys.argv[1:])
