"""Cells of the pairwise family on folds: one walk over all pairs, read in several ways; and the seconds it takes."""

from __future__ import annotations

from collections.abc import Mapping
from time import process_time
from typing import Any

import numpy as np

from ranktron.data.rounds import Rounds
from ranktron.data.scaling import fit_scaler, scale
from ranktron.learners.batch.rank_svm import minimise
from ranktron.learners.pairwise.learner import Pairwise
from ranktron.learners.pairwise.outputs import Average, Committee, Last, Output
from ranktron.learners.pairwise.pairs import Documents, Pairs
from ranktron.learners.pairwise.passes import MemberWeights, Passes, TrainedOutput, train_outputs, train_together
from ranktron.learners.schedule import Fit, Schedule, Validation
from ranktron.metrics import Evaluation, evaluate, metric
from ranktron.training.algorithms import ALGORITHMS
from ranktron.training.cross_validation import Fold, cross_validate
from ranktron.training.fit import TrainingPlan
from ranktron.types import Integers
from reproduction.harness.data import cached_folds

METRICS = ("map:letor", "ndcg@1:letor", "ndcg@5:letor", "ndcg@10:letor")
SELECT = "ndcg@10:letor"
ALPHA_BOUND = 0.85
SIZES = (20, 50, 100)
SUBCOMMITTEES = (5, 10, 20, 50)
"""Section 6.2 varies both “up to 100 members”: committees of so many, and the best so many on validation of 100."""
_VARIED: dict[str, Output] = {
    **{f"Com {n}": Committee(n) for n in SIZES},
    **{f"{n} of 100": Committee(100, subcommittee=n) for n in SUBCOMMITTEES},
}
READOUTS: dict[str, Output] = {
    "Com 30 A": Committee(30),
    "Com 30 B": Committee(30, "borda"),
    "Pocket": Committee(1, weights="count"),
    "Average": Average(),
    "Last": Last(),
    "Com 30 A, counters": Committee(30, weights="count"),
    "Com 30 A, uniform": Committee(30, weights="uniform"),
    **_VARIED,
}
DRAWN: dict[str, Output] = {"Com 20": Committee(20), "Average": Average(), "Pocket": Committee(1, weights="count")}
SUBCOMMITTEES_DRAWN = {**DRAWN, **{name: each for name, each in _VARIED.items() if "of" in name}}
VARIANTS = ("Last", "Pocket", "Average", "Com 30 A")
ORDERS = ("a new order in every pass", "one order for all passes")


def scale_fold(folder: str, fold: int) -> Fold:
    """A fold with its features scaled to [0, 1] within each list, as the data's makers suggest."""
    data = cached_folds(folder)[fold]
    scaler = fit_scaler("minmax-query", data.train)
    return Fold(data.name, *(scale(part, scaler) for part in data[1:]))


def perceptrons(fold: int, epochs: int, folder: str, seed: int) -> Any:
    """Table 4: {output: {metric: values of the test lists}}, the number of passes chosen on the validation part."""
    data = scale_fold(folder, fold)
    outputs = train_outputs(
        data.train, READOUTS, Schedule(epochs, seed),
        alpha_bound=ALPHA_BOUND, valid=data.valid, select=SELECT, weigh=SELECT,
    )  # fmt: skip
    scores = {name: output.learner.ensemble.of_rounds(data.test) for name, output in outputs.items()}
    return {name: _per_list(evaluate(data.test, row, METRICS)) for name, row in scores.items()}


def baselines(fold: int, folder: str, seed: int) -> Any:
    """Table 4's RankSVM and RankBoost, chosen on the validation part in the same way."""
    one = [scale_fold(folder, fold)]
    grid = {"C": [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0]}
    solved = ALGORITHMS["ranksvm"].preset("paper")
    boosted = {**ALGORITHMS["rankboost"].preset("paper"), "n_rounds": 500}
    svm = cross_validate(TrainingPlan("ranksvm", solved, Schedule(10), select=SELECT), one, grid=grid, metrics=METRICS)
    boost = cross_validate(TrainingPlan("rankboost", boosted, Schedule(10), select=SELECT), one, metrics=METRICS)
    return {"RankSVM": _per_list(svm.evaluation), "RankBoost": _per_list(boost.evaluation)}


def _per_list(evaluation: Evaluation) -> dict[str, list[float]]:
    return {name: evaluation.per_query[name].round(6).tolist() for name in METRICS}


def learning_curves(fold: int, metric: str, epochs: int, folder: str, seed: int) -> Any:
    """Figure 1: {output: the metric on the validation part after each pass}."""
    return _curves(scale_fold(folder, fold), DRAWN, metric, Schedule(epochs, seed))


def subcommittee_curves(fold: int, epochs: int, folder: str, seed: int) -> Any:
    """Figure 1 with subcommittees of several sizes."""
    return _curves(scale_fold(folder, fold), SUBCOMMITTEES_DRAWN, SELECT, Schedule(epochs, seed))


def _curves(data: Fold, outputs: Mapping[str, Output], metric: str, schedule: Schedule) -> Any:
    trained = train_outputs(
        data.train, outputs, schedule, alpha_bound=ALPHA_BOUND, valid=data.valid, select=metric, weigh=SELECT
    )
    return {name: [round(means[metric], 6) for means in output.valid] for name, output in trained.items()}


class OneOrder(Passes):
    """Passes that all visit the pairs in the order of the first."""

    def _order(self, epoch: int) -> tuple[Documents, Documents, Integers]:
        return super()._order(0)


def measure_alpha_bound(fold: int, bound: float, order: str, epochs: int, folder: str, seed: int) -> Any:
    """Section 6.2's α-bound: the share of pairs that it removes, and of each variant what it serves and how it wavers.

    {"removed": share, variant: {"chosen", "last": test NDCG@10 at the chosen and after the last pass, "wavers": the
    deviation of its validation NDCG@10 over the last half of the passes}}.
    """
    data, schedule = scale_fold(folder, fold), Schedule(epochs, seed)
    passes = (Passes, OneOrder)[ORDERS.index(order)](data.train, schedule, bound)
    by = metric(SELECT)
    learners = [[Pairwise(data.train.n_features, READOUTS[name]) for name in VARIANTS] for _ in range(2)]
    chosen = [TrainedOutput(learner, Validation(data.valid, by)) for learner in learners[0]]
    last = [TrainedOutput(learner) for learner in learners[1]]
    train_together(passes, [*chosen, *last], Fit(data.train, schedule), MemberWeights(data.valid, by))
    found: dict[str, Any] = {"removed": round(passes.removed / len(passes.pairs), 6)}
    for name, *both in zip(VARIANTS, chosen, last, strict=True):
        served = [evaluate(data.test, o.learner.ensemble.of_rounds(data.test), [SELECT]).means[SELECT] for o in both]
        late = [means[SELECT] for means in both[0].valid[epochs // 2 :]]
        numbers = dict(zip(("chosen", "last", "wavers"), (*served, float(np.std(late, ddof=1))), strict=True))
        found[name] = {what: round(value, 6) for what, value in numbers.items()}
    return found


def training_seconds(fold: int, epochs: int, folder: str, seed: int) -> Any:
    """Table 5: processor seconds of a committee of 20 and of three ways to train a RankSVM, in one process."""
    lists = scale_fold(folder, fold).train
    committee = {"committee": Committee(20, weights="count")}
    train_outputs(lists, committee, Schedule(1), alpha_bound=ALPHA_BOUND)  # compiles
    minimise(lists, 1.0, max_iter=1)
    began = process_time()
    train_outputs(lists, committee, Schedule(epochs), alpha_bound=ALPHA_BOUND)
    marks = [process_time()]
    for loss in ("hinge", "squared"):
        minimise(lists, 1.0, loss, "pair")
        marks.append(process_time())
    _linear_svc(lists)
    marks.append(process_time())
    names = ("committee of 20", "RankSVM, hinge", "RankSVM, squared hinge", "LinearSVC on pair differences")
    return dict(zip(names, np.diff([began, *marks]).round(4).tolist(), strict=True))


def _linear_svc(lists: Rounds) -> None:
    """scikit-learn's solver on the differences of all pairs: RankSVM for those who have no library for it."""
    from sklearn.svm import LinearSVC

    pairs = Pairs.of(lists.labels, lists.offsets)
    upper, lower = pairs.decode(pairs.all())
    sign = np.where(np.arange(len(upper)) % 2, 1.0, -1.0)
    differences = (lists.X[upper] - lists.X[lower]) * sign[:, None]
    LinearSVC(C=1.0 / len(upper), fit_intercept=False, dual=False).fit(differences, sign)
