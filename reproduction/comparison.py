"""Nobody's table: all learners and trees side by side, same folds, same metrics, chosen on validation only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ranktron.metrics import Evaluation, compare
from ranktron.types import Floats
from reproduction.harness import comparison_cells
from reproduction.harness.comparison_cells import METRICS, SELECT
from reproduction.harness.data import SOURCES
from reproduction.harness.experiment import Claim, Experiment, Paper, ReportTable, Results, Series
from reproduction.harness.verdicts import Near, Values, standard_deviation
from reproduction.report.charts import Dot, Figure, Panel

FOLDS = [{"fold": fold} for fold in range(5)]
ONE_SEED = ("CatBoost", "kernel ListNet")
"""So slow that they have one seed, though chance plays a part."""
RATES = (0.05,)
SIMULATED_RATES = (0.1, 0.3)
"""Learning rates of the trees: two hundred small steps are too few for the 36,000 documents of a simulation."""

_LETOR = (
    "LETOR's five folds and metrics. A development set: it was looked at often while the learners were made, and "
    "flatters what was chosen by it."
)
_SAMPLE = (
    "Divided into five by query, at random with seed 0: one part tests, the next validates, three train. Raw features, "
    "scaled to [0, 1] within each list for everyone, trees too. Metrics as `ranktron evaluate` has them: LETOR's give "
    "lists of fewer than ten documents 0."
)
_SIMULATED = (
    "Simulated: 300 queries train, 100 validate, 200 test. Features are standardised on the training queries for "
    "everyone, which trees do not notice. Trees try learning rates of 0.1 and 0.3; 0.05 would take more trees."
)
SETS: Mapping[str, str] = {
    **dict.fromkeys(comparison_cells.LETOR_SETS, _LETOR),
    "mslr-sample": _SAMPLE,
    "yandex-imat2009-sample": f"{_SAMPLE} Labels have decimals; LightGBM and XGBoost get them rounded.",
    "web": f"{_SIMULATED} Relevance is a third linear, a third nonlinear, a third noise.",
    "decisive": f"{_SIMULATED} Few features decide, each by a curve, and some only together.",
}
"""The data of each table, and how they are used."""
TITLES = {
    **{data: SOURCES[data].title for data in SETS if data in SOURCES},
    "web": "simulated web search",
    "decisive": "simulated lists in which few features decide",
}
LEVEL = 0.05

# What LETOR and the papers print for the same learners on the same folds: NDCG@10, MAP.
PRINTED: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "ohsumed-letor3": {"RankSVM": (0.4504, 0.4446), "ListNet": (0.4410, 0.4457), "RankBoost": (0.4302, 0.4411)},
    "ohsumed-letor2": {"RankSVM": (0.441, 0.447), "RankBoost": (0.436, 0.440), "committee": (0.450, 0.447)},
}
WHERE = {
    "ohsumed-letor3": "LETOR 3.0's baselines (RankSVM: the retrained one, RankSVM-Primal)",
    "ohsumed-letor2": "Table 4 of the committee perceptron's paper",
}


def by_seed(metric: str) -> Callable[[Results], Values]:
    """For each system the mean over folds of the test means, one value for each seed."""
    return lambda results: {
        name: np.array([np.mean([np.mean(part["queries"][metric]) for part in row]) for row in rows])
        for name, rows in results.items()
    }


def evaluations(results: Results) -> dict[str, Evaluation]:
    """For each system the test values of all queries, averaged over seeds; the metrics as `compare` writes them."""
    found = {}
    for name, rows in results.items():
        per_query = {
            metric.lower(): np.concatenate(
                [np.mean([part["queries"][metric] for part in parts], axis=0) for parts in zip(*rows, strict=True)]
            )
            for metric in METRICS
        }
        qids = np.arange(len(per_query[SELECT.lower()]))
        found[name] = Evaluation({m: float(v.mean()) for m, v in per_query.items()}, per_query, qids, 0)
    return found


def against_the_best(results: Results, metric: str) -> tuple[str, dict[str, float]]:
    """The system with the best mean over queries, and the p-value of each other against it, corrected after Holm."""
    values, metric = evaluations(results), metric.lower()
    best = max(values, key=lambda name: values[name].means[metric])
    raw = {
        name: float(compare({best: values[best], name: one}, metric).p_values[metric][0, 1])
        for name, one in values.items()
        if name != best
    }
    corrected, largest = {best: 1.0}, 0.0
    for at, (name, p) in enumerate(sorted(raw.items(), key=lambda pair: pair[1])):
        largest = max(largest, min(1.0, p * (len(raw) - at)))
        corrected[name] = largest
    return best, corrected


def median_seconds(results: Results) -> dict[str, float]:
    """For each system the median processor seconds of one training."""
    return {name: float(np.median([part["seconds"] for row in rows for part in row])) for name, rows in results.items()}


def variants(results: Results) -> dict[str, int]:
    """For each system how many variants were tried on the validation part of a fold."""
    return {name: rows[0][0]["tried"] for name, rows in results.items()}


def table(results: Results) -> ReportTable:
    """All systems, the best NDCG@10 first; a † where the best of the column is significantly better."""
    tried = variants(results)
    columns = {shown: by_seed(shown)(results) for shown in METRICS}
    p_values = {shown: against_the_best(results, shown)[1] for shown in METRICS}
    times = median_seconds(results)
    order = sorted(results, key=lambda name: -float(columns[SELECT][name].mean()))
    rows = [
        (
            name,
            *(cell(columns[shown][name], p_values[shown][name]) for shown in METRICS),
            *(f"{p_values[shown][name]:.3f}" for shown in METRICS),
            tried[name],
            f"{times[name]:.2g}" if times[name] < 10.0 else f"{times[name]:.0f}",
        )
        for name in order
    ]
    titles = ("", *METRICS, *(f"p, {shown}" for shown in METRICS), "variants", "seconds")
    return ReportTable(f"All systems: {sum(tried.values()):,} variants tried on each validation part", titles, rows)


def cell(values: Floats, p: float) -> str:
    """A mean over seeds with its spread; † where the best is significantly better."""
    around = f" ± {standard_deviation(values):.4f}" if len(values) > 1 else ""
    return f"{values.mean():.4f}{around}{' †' if p < LEVEL else ''}"


def picture(data: str) -> Callable[[Results], Figure]:
    """Dots with the spread over seeds, and a ring at what was published."""

    def draw(results: Results) -> Figure:
        panels = []
        for at, metric in enumerate(METRICS):
            values = by_seed(metric)(results)
            printed = {name: row[at] for name, row in PRINTED.get(data, {}).items()}
            order = sorted(values, key=lambda name, v=values: -float(v[name].mean()))  # type: ignore[misc]
            dots = [
                Dot(name, float(values[name].mean()), standard_deviation(values[name]), printed.get(name))
                for name in order
            ]
            low = min(dot.value - dot.band for dot in dots)
            panels.append(Panel(metric, "", metric, dots=dots, low=np.floor(low * 20.0) / 20.0))
        title = f"All systems on {TITLES[data]}"
        return Figure(f"comparison-{data}", title, panels, "Error bars: one standard deviation over seeds.")

    return draw


def system_series(name: str, data: str) -> Series:
    """The cells of one system on one set; those without chance have one seed."""
    real = data in SOURCES
    source = {} if real else {"simulation": data, "queries": 600}
    quick = {} if real else {"queries": 60}
    chance = name in comparison_cells.BOOSTERS or comparison_cells.SYSTEMS[name].seeded
    known: dict[str, Any] = {"parts": FOLDS if real else ({},), "cost": 4.0 if real else 20.0, "quick_seeds": 1}
    known["seeds"] = 3 if chance and name not in ONE_SEED else 1
    if name not in comparison_cells.BOOSTERS:
        return Series(name, comparison_cells.measure_system, {"system": name, **source}, quick, **known)
    trees = {"booster": name, "trees": comparison_cells.TREES, "rates": RATES if real else SIMULATED_RATES}
    return Series(name, comparison_cells.measure_boosting, {**trees, **source}, {"trees": 60, **quick}, **known)


def compare_systems(data: str) -> Experiment:
    """The table on one data set."""
    title, printed = TITLES[data], PRINTED.get(data, {})
    return Experiment(
        name=data,
        title=f"All learners on {title}",
        about=f"{SETS[data]} Every parameter, and of learners that pass over the data the pass, chosen by NDCG@10 on "
        "the validation part, among as many variants as the table says. † marks what is significantly worse than the "
        "best of the column (paired t-test over the queries, values averaged over seeds, Holm's correction, p < 0.05); "
        "seconds are processor time of one training, with the evaluations that chose its pass.",
        series=[system_series(name, data) for name in comparison_cells.names()],
        claims=[
            Claim(
                f"{title}, {name}, {metric}",
                f"test mean over five folds, as in {WHERE[data]}",
                Near(name, {system: row[at] for system, row in printed.items()}, 0.01),
                by_seed(metric),
                "Not a claim of a paper on this learner: another implementation's result on the same folds.",
            )
            for name in printed
            for at, metric in enumerate(METRICS)
        ],
        figures=(picture(data),),
        tables=(table,),
        data=data if data in SOURCES else None,
    )


PAPER = Paper(
    name="comparison",
    title="All learners side by side",
    authors="Ours: no paper has this table",
    experiments=[compare_systems(data) for data in SETS],
)
