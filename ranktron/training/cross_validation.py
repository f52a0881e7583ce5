"""Cross-validation: folds, selection on the validation set, seeds, results per fold and per query."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ranktron.data.io import read
from ranktron.data.query_warnings import all_uninformative
from ranktron.data.rounds import Rounds
from ranktron.errors import DataError
from ranktron.metrics import Evaluation, Metric, metric
from ranktron.metrics.evaluation import evaluate_rounds
from ranktron.training.fit import Trained, TrainingPlan, train
from ranktron.training.workers import Workers, keep
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
    folders = [path for path in root.glob("Fold*") if path.is_dir()] if root.is_dir() else []
    if not folders:
        _part(root, PARTS[0])
        return [root]
    return sorted(folders, key=lambda path: (int(re.sub(r"\D", "", path.name) or 0), path.name))


def _part(folder: Path, part: str) -> Path:
    files = sorted(folder.glob(f"{part}*"))
    files = [path for path in files if not path.name.endswith((".csv", ".json"))] or files
    if len(files) != 1:
        count = "several files" if files else "no file"
        raise DataError(f"{folder}: {count} called {part}.* (a fold holds train, vali and test, as in LETOR)")
    return files[0]


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
    """One seed on one fold: the selected parameters and epoch, and their metrics on the test set."""

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

    def by_seed(self, name: str | Metric) -> Floats:
        """For each seed the mean over folds of the folds' test means."""
        key = str(metric(name))
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
    plan: TrainingPlan,
    folds: Sequence[Fold],
    *,
    grid: Mapping[str, Sequence[Any]] | None = None,
    seeds: int | Sequence[int] = 1,
    metrics: Sequence[str | Metric] = ("ndcg@10", "map"),
    watch: Callable[[], None] | None = None,
    workers: Workers | None = None,
) -> Report:
    """Trains on each fold and seed, selects on the validation set, and evaluates on the test set.

    A point of the grid and, for iterative learners, the epoch are selected by `plan.select`. The test set has no
    influence on it.

    Parameters
    ----------
    plan : TrainingPlan
        The training; the grid replaces parameters and `seeds` the seed.
    folds : sequence of Fold
        The splits.
    grid : mapping, optional
        The values of parameters to choose from.
    seeds : int or sequence of int
        The number of seeds (0, 1, …), or the seeds.
    metrics : sequence of str or Metric
        Computed on the test sets.
    watch : callable, optional
        Called after each training.
    workers : Workers, optional
        Where each training is a task of its own, such as a Dask cluster; the report is the same.

    Examples
    --------
    >>> from ranktron.data.synthetic import Separable
    >>> lists = Separable(documents=8, features=6).rounds(30)
    >>> folds = [Fold("one", lists[:10], lists[10:20], lists[20:]), Fold("two", lists[10:20], lists[20:], lists[:10])]
    >>> report = cross_validate(TrainingPlan("ranksvm", scaling="auto"), folds, grid={"C": [1e-3, 100.0]})
    >>> report.mean["ndcg@10"] > 0.95, report.std["ndcg@10"], [trial.parameters["C"] for trial in report.trials]
    (True, 0.0, [100.0, 100.0])
    """
    select, test_metrics, points = metric(plan.select), [metric(m) for m in metrics], grid_points(grid or {})
    if not folds or not test_metrics or not points:
        raise DataError("cross-validation needs at least one fold, one metric and one value for each grid parameter")
    numbers = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    if not numbers:
        raise DataError("cross-validation needs at least one seed")
    for fold in folds:
        if all_uninformative(fold.valid):
            raise DataError(f"{fold.name}: no query of the validation set has documents with different labels")
    runs = [
        (k, replace(plan, parameters={**plan.parameters, **point}, schedule=replace(plan.schedule, seed=seed)))
        for k, seed, point in product(range(len(folds)), numbers, points)
    ]
    results = _train_all(folds, runs, workers)

    def candidate(point: Mapping[str, Any]) -> _Candidate:
        trained = next(results)
        if trained.history.interrupted:
            raise KeyboardInterrupt
        if watch is not None:
            watch()
        return _Candidate(point, trained, trained.history.best_values[str(select)])

    trials, sign = [], 1.0 if select.higher_is_better else -1.0
    for fold, seed in product(folds, numbers):
        candidates = [candidate(point) for point in points]
        best = max(candidates, key=lambda each: sign * each.valid)  # of equal ones the first
        trials.append(_trial(fold, seed, best, test_metrics))
    return Report(plan.algorithm, select, tuple(trials))


def _train_all(
    folds: Sequence[Fold], runs: Sequence[tuple[int, TrainingPlan]], workers: Workers | None
) -> Iterator[Trained]:
    """The trainings in order: one after the other, or as tasks of workers, which receive each fold once."""
    if workers is None:
        for k, plan in runs:
            yield _train_on(folds[k], plan)
        return
    homes = [workers.submit(keep, fold, home=k) for k, fold in enumerate(folds)]
    tasks = [workers.submit(_train_on, homes[k], plan, home=at) for at, (k, plan) in enumerate(runs)]
    for task in tasks:
        yield task.result()


def _train_on(fold: Fold, plan: TrainingPlan) -> Trained:
    return train(plan, fold.train, valid=fold.valid, ranges=False)


class _Candidate(NamedTuple):
    """A point of the grid, the model trained with it, and its metric on the validation set."""

    point: Mapping[str, Any]
    trained: Trained
    valid: float


def _trial(fold: Fold, seed: int, best: _Candidate, metrics: Sequence[Metric]) -> Trial:
    test = evaluate_rounds(fold.test, best.trained.model.score_rounds(fold.test), metrics)
    history = best.trained.history
    return Trial(fold.name, seed, best.point, history.epoch, best.valid, test, history.seconds, history.remarks)
