"""Cross-validation: folds, selection on the validation set, seeds, results per fold and per query."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ranktron.data.io import read
from ranktron.data.maps import FeatureMap
from ranktron.data.query_warnings import all_uninformative
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.learners.schedule import Schedule
from ranktron.metrics import Evaluation, Metric, evaluate, metric
from ranktron.training.fit import Trained, train
from ranktron.training.parts import Workers, keep
from ranktron.types import Floats
from ranktron.types.validation import check_count

PARTS = ("train", "vali", "test")


class Fold(NamedTuple):
    """One split of the queries: train on `train`, select on `valid`, report on `test`."""

    name: str
    train: Rounds
    valid: Rounds
    test: Rounds


def read_folds(directory: str | os.PathLike[str], null: str = "error", **options: Any) -> Iterator[Fold]:
    """Reads folds in LETOR's layout, one at a time: `Fold1/train.txt`, `Fold1/vali.txt`, `Fold1/test.txt` and so on.

    Files may have any extension that `read` knows and any name that begins with the name of their part. A folder that
    has the three parts itself is one fold. The options are those of `read`.
    """
    for folder in fold_folders(directory):
        paths = [_part(folder, part) for part in PARTS]
        first = read(paths[0], null=null, **options)
        others = [read(path, null=null, like=first, **options) for path in paths[1:]]
        yield Fold(folder.name, first, *others)


def fold_folders(directory: str | os.PathLike[str]) -> list[Path]:
    """The folders of the folds, in the order of their numbers."""
    root = Path(directory)
    found = [path for path in root.glob("Fold*") if path.is_dir()] if root.is_dir() else []
    if not found:
        _part(root, PARTS[0])
        return [root]
    return sorted(found, key=lambda path: (int(re.sub(r"\D", "", path.name) or 0), path.name))


def _part(folder: Path, part: str) -> Path:
    found = sorted(folder.glob(f"{part}*"))
    found = [path for path in found if not path.name.endswith((".csv", ".json"))] or found
    if len(found) != 1:
        what = "no file" if not found else "several files"
        raise DataError(f"{folder}: {what} called {part}.* (a fold holds train, vali and test, as in LETOR)")
    return found[0]


def split_folds(rounds: Rounds, count: int = 5, seed: int = 0) -> list[Fold]:
    """Splits queries into folds at random, as in LETOR: one part tests, the next validates, the others train.

    The documents of a query stay together, and every query is in the test set of exactly one fold.

    Parameters
    ----------
    rounds : Rounds
        The queries.
    count : int
        The number of folds, at least 3.
    seed : int
        Seed of the split, independent of the seeds of the training.

    Examples
    --------
    >>> from ranktron.data.synthetic import Separable
    >>> folds = split_folds(Separable(documents=8, features=6).rounds(10), count=5)
    >>> [(len(fold.train), len(fold.valid), len(fold.test)) for fold in folds[:2]]
    [(6, 2, 2), (6, 2, 2)]
    """
    check_count(count, "the number of folds", 3)
    if len(rounds) < count:
        raise DataError(f"{len(rounds)} queries cannot be divided into {count} folds: each needs a query to test on")
    order = np.random.default_rng((check_count(seed, "the seed of the folds", 0), count)).permutation(len(rounds))
    parts = [np.sort(part) for part in np.array_split(order, count)]
    folds = []
    for number in range(count):
        test, valid = parts[number], parts[(number + 1) % count]
        train = np.setdiff1d(np.arange(len(rounds)), np.concatenate([test, valid]))
        folds.append(Fold(f"Fold{number + 1}", *(rounds[queries] for queries in (train, valid, test))))
    return folds


def grid_points(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """All combinations of a grid's values.

    >>> grid_points({"C": [1.0, 10.0], "loss": ["hinge"]})
    [{'C': 1.0, 'loss': 'hinge'}, {'C': 10.0, 'loss': 'hinge'}]
    """
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


@dataclass(frozen=True, eq=False)
class Trial:
    """One seed on one fold: what was selected on the validation set, and its metrics on the test set."""

    fold: str
    seed: int
    parameters: Mapping[str, Any]
    epoch: int
    valid: float
    test: Evaluation
    seconds: float
    remarks: Mapping[str, int]


@dataclass(frozen=True, eq=False)
class Report:
    """All trials of a cross-validation."""

    algorithm: str
    select: Metric
    trials: tuple[Trial, ...]

    @property
    def folds(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(trial.fold for trial in self.trials))

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(self.trials[0].test.means)

    def of_fold(self, fold: str) -> list[Trial]:
        """The trials of one fold, by seed."""
        return [trial for trial in self.trials if trial.fold == fold]

    def by_seed(self, which: str | Metric) -> Floats:
        """For each seed the mean over folds of the folds' test means."""
        key = str(metric(which))
        means: Floats = np.mean([[t.test.means[key] for t in self.of_fold(fold)] for fold in self.folds], axis=0)
        return means

    @property
    def mean(self) -> dict[str, float]:
        """The mean over folds and seeds."""
        return {name: float(self.by_seed(name).mean()) for name in self.metrics}

    @property
    def std(self) -> dict[str, float]:
        """The standard deviation over seeds of the mean over folds; 0 for a single seed."""
        values = {name: self.by_seed(name) for name in self.metrics}
        return {name: float(v.std(ddof=1)) if len(v) > 1 else 0.0 for name, v in values.items()}

    @property
    def evaluation(self) -> Evaluation:
        """The metrics of every test query of every fold, averaged over seeds, for `compare` and the paired tests."""
        parts = [self.of_fold(fold) for fold in self.folds]
        per_query = {
            name: np.concatenate([np.mean([trial.test.per_query[name] for trial in part], axis=0) for part in parts])
            for name in self.metrics
        }
        qids = np.array([f"{part[0].fold}/{qid}" for part in parts for qid in part[0].test.qids])
        empty = sum(part[0].test.empty_queries for part in parts)
        return Evaluation({name: float(v.mean()) for name, v in per_query.items()}, per_query, qids, empty)


def cross_validate(
    name: str,
    folds: Sequence[Fold],
    parameters: Mapping[str, Any] | None = None,
    *,
    grid: Mapping[str, Sequence[Any]] | None = None,
    epochs: int = 10,
    seeds: int | Sequence[int] = 1,
    shuffle: bool = True,
    scaling: str | None = "auto",
    map: str | FeatureMap | None = None,
    nan: str = "error",
    select: str | Metric = "ndcg@10",
    metrics: Sequence[str | Metric] = ("ndcg@10", "map"),
    watch: Callable[[], None] | None = None,
    workers: Workers | None = None,
) -> Report:
    """Trains on each fold and seed, selects on the validation set by `select`, and evaluates on the test set.

    What is selected is a point of the grid and, for iterative learners, the pass. The test set has no
    influence on it. `seeds` is a number of seeds (0, 1, …) or the seeds themselves; `watch` is called after each
    training. With `workers`, such as a Dask cluster, every training is a task of its own; the report is the same.

    Examples
    --------
    >>> from ranktron.data.synthetic import Separable
    >>> lists = Separable(documents=8, features=6).rounds(30)
    >>> folds = [Fold("one", lists[:10], lists[10:20], lists[20:]), Fold("two", lists[10:20], lists[20:], lists[:10])]
    >>> report = cross_validate("ranksvm", folds, grid={"C": [1e-3, 100.0]})
    >>> report.mean["ndcg@10"] > 0.95, report.std["ndcg@10"], [trial.parameters["C"] for trial in report.trials]
    (True, 0.0, [100.0, 100.0])
    """
    chosen, by = [metric(m) for m in metrics], metric(select)
    points = grid_points(grid or {})
    if not folds or not chosen or not points:
        raise DataError("cross-validation needs at least one fold, one metric and one value for each grid parameter")
    numbers = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    if not numbers:
        raise DataError("cross-validation needs at least one seed")
    for fold in folds:
        if all_uninformative(fold.valid):
            raise DataError(f"{fold.name}: no query of the validation set has documents with different labels")
    options: dict[str, Any] = {"nan": nan, "scaling": scaling, "map": map, "select": by}
    asked = [
        (k, name, {**(parameters or {}), **point}, Schedule(epochs, seed, shuffle), options)
        for k, seed, point in product(range(len(folds)), numbers, points)
    ]
    results = _fit_all(folds, asked, workers)

    def candidate(point: Mapping[str, Any]) -> _Candidate:
        trained = next(results)
        if trained.history.interrupted:
            raise KeyboardInterrupt
        if watch is not None:
            watch()
        return _Candidate(point, trained, trained.history.kept[str(by)])

    trials = []
    for fold, seed in product(folds, numbers):
        sign = 1.0 if by.higher_is_better else -1.0
        best = max(
            [candidate(point) for point in points], key=lambda each: sign * each.valid
        )  # of equal ones the first
        trials.append(_trial(fold, seed, best, chosen))
    return Report(name, by, tuple(trials))


def _fit_all(folds: Sequence[Fold], asked: Sequence[Any], workers: Workers | None) -> Iterator[Trained]:
    """All trainings in order: one after the other, or as tasks of workers, which are sent each fold once."""
    if workers is None:
        for k, *rest in asked:
            yield _fit_point(folds[k], *rest)
        return
    homes = [workers.submit(keep, fold, home=k) for k, fold in enumerate(folds)]
    tasks = [workers.submit(_fit_point, homes[k], *rest, home=at) for at, (k, *rest) in enumerate(asked)]
    for task in tasks:
        yield task.result()


def _fit_point(
    fold: Fold, name: str, parameters: Mapping[str, Any], schedule: Schedule, options: Mapping[str, Any]
) -> Trained:
    return train(name, parameters, fold.train, schedule, valid=fold.valid, **options)


class _Candidate(NamedTuple):
    """A point of the grid, the model trained with it, and its metric on the validation set."""

    point: Mapping[str, Any]
    trained: Trained
    valid: float


def _trial(fold: Fold, seed: int, best: _Candidate, metrics: Sequence[Metric]) -> Trial:
    test = evaluate(best.trained.model.score_rounds(fold.test), fold.test, metrics)
    history = best.trained.history
    return Trial(fold.name, seed, best.point, history.epoch, best.valid, test, history.seconds, history.remarks)
