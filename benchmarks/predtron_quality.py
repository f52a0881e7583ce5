"""Predtron's estimators at their defaults beside scikit-learn's linear models and mord's LogisticAT.

`python -m benchmarks.predtron_quality DATA` prints the table of docs/papers/predtron.md. DATA is a folder with
`multilabel/*.arff.gz`, whose test parts are tested on, and `ordinal/*.csv`, of which every example is in the test part
of one of five folds. Ours take the features as they come; the others are given standardised ones, and a fifth of the
training part chooses among them.
"""

import csv
import gzip
import sys
import warnings
from pathlib import Path

import numpy as np

from benchmarks.predtron import MULTILABEL, ORDINAL, cost
from ranktron import PredtronMultilabel, PredtronOrdinal

STRENGTHS = (0.01, 0.1, 1.0, 10.0)
FOLDS = 5


def multilabel(folder, name, part):
    with gzip.open(folder / "multilabel" / f"{name}-{part}.arff.gz", "rt", encoding="utf-8") as file:
        lines = iter(file)
        next(line for line in lines if line.strip().lower() == "@data")
        table = np.array([line.split(",") for line in lines if line.strip()], float)
    m = MULTILABEL[name]
    return table[:, :-m], table[:, -m:].astype(int)


def ordinal(folder, name):
    with (folder / "ordinal" / f"{name}.csv").open(encoding="utf-8") as file:
        table = np.array(list(csv.reader(file))[1:], float)
    return table[:, 1:], np.searchsorted(np.unique(table[:, 0]), table[:, 0])


class Rounded:
    """Ridge regression on the number of the class, rounded to a class."""

    def __init__(self, alpha):
        self.alpha = alpha

    def fit(self, X, y):
        from sklearn.linear_model import Ridge

        self.highest = y.max()
        self.model = Ridge(self.alpha).fit(X, y)
        return self

    def predict(self, X):
        return np.clip(np.round(self.model.predict(X)), 0, self.highest)


def linear_models(tabular):
    """scikit-learn's linear models, each with a few strengths of its regulariser."""
    from sklearn.linear_model import LogisticRegression, Perceptron, RidgeClassifier
    from sklearn.multioutput import MultiOutputClassifier
    from sklearn.svm import LinearSVC

    made = [LogisticRegression(C=C, max_iter=1000) for C in STRENGTHS]
    made += [LinearSVC(C=C, dual=False) for C in STRENGTHS] + [RidgeClassifier(alpha=1.0 / C) for C in STRENGTHS]
    made += [Perceptron(random_state=0)]
    if tabular:
        return [MultiOutputClassifier(model) for model in made]
    return made + [Rounded(1.0 / C) for C in STRENGTHS]


def standardise(X, *others):
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    deviation[deviation == 0.0] = 1.0
    return [(part - mean) / deviation for part in (X, *others)]


def chosen(models, X, y, test, loss):
    """What the model that is best on a fifth of the training part predicts, after training on all of it."""
    order = np.random.default_rng(1).permutation(len(X))
    valid, rest = order[: len(X) // 5], order[len(X) // 5 :]
    scaled, scaled_valid = standardise(X[rest], X[valid])
    found = [loss(model.fit(scaled, y[rest]).predict(scaled_valid), y[valid]) for model in models]
    scaled, scaled_test = standardise(X, test)
    return models[int(np.argmin(found))].fit(scaled, y).predict(scaled_test)


def distance(P, y):
    return np.abs(P - y).mean()


def hamming(P, Y):
    return cost("hamming", P, Y)


def ordinal_row(X, y):
    """The mean absolute error of each system."""
    import mord

    found = {name: [] for name in ("printed", "default", "scikit-learn", "LogisticAT", "constant")}
    for fold in np.array_split(np.random.default_rng(0).permutation(len(X)), FOLDS):
        rest = np.setdiff1d(np.arange(len(X)), fold)
        predicted = {
            "printed": PredtronOrdinal(preset="paper", random_state=0).fit(X[rest], y[rest]).predict(X[fold]),
            "default": PredtronOrdinal(random_state=0).fit(X[rest], y[rest]).predict(X[fold]),
            "scikit-learn": chosen(linear_models(False), X[rest], y[rest], X[fold], distance),
            "LogisticAT": chosen([mord.LogisticAT(1.0 / C) for C in STRENGTHS], X[rest], y[rest], X[fold], distance),
            "constant": np.full(len(fold), np.median(y[rest])),
        }
        for name, P in predicted.items():
            found[name].append(distance(P, y[fold]))
    return {name: float(np.mean(values)) for name, values in found.items()}


def multilabel_row(folder, name, loss):
    (X, Y), (test, truth) = (multilabel(folder, name, part) for part in ("train", "test"))
    predicted = {
        "printed": PredtronMultilabel(loss=loss, preset="paper", random_state=0).fit(X, Y).predict(test),
        "default": PredtronMultilabel(loss=loss, random_state=0).fit(X, Y).predict(test),
        "scikit-learn": chosen(linear_models(True), X, Y, test, lambda P, T: cost(loss, P, T)),
        "constant": np.tile(Y.mean(axis=0) > 0.5, (len(test), 1)).astype(int),
    }
    per_example = {f"{key}, labels": float(P.sum(axis=1).mean()) for key, P in predicted.items()}
    return {key: float(cost(loss, P, truth)) for key, P in predicted.items()}, {
        **per_example,
        "true": float(truth.sum(axis=1).mean()),
    }


def main(folder):
    warnings.simplefilter("ignore")
    print("| data | loss | printed | default | scikit-learn | LogisticAT | constant |\n|---|---|---|---|---|---|---|")
    for name in ORDINAL:
        row = ordinal_row(*ordinal(folder, name))
        print(f"| {name} | absolute | {' | '.join(f'{value:.3f}' for value in row.values())} |", flush=True)
    for name in MULTILABEL:
        for loss in ("hamming", "subset", "error-set"):
            row, labels = multilabel_row(folder, name, loss)
            printed, default, theirs, constant = row.values()
            print(f"| {name} | {loss} | {printed:.3f} | {default:.3f} | {theirs:.3f} | | {constant:.3f} |", flush=True)
            print("  labels:", {key: round(value, 2) for key, value in labels.items()}, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
