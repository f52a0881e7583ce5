"""Nobody's table: all learners side by side on every real set, same folds, same metrics, chosen on validation only."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ranktron.metrics import Evaluation, compare
from ranktron.papers.harness import comparison_cells
from ranktron.papers.harness.data import SOURCES
from ranktron.papers.harness.experiment import Claim, Experiment, Paper, ReportTable, Results, Series
from ranktron.papers.harness.verdicts import Near, Values, standard_deviation
from ranktron.papers.report.charts import Dot, Figure, Panel
from ranktron.types import Floats

FOLDS = [{"fold": fold} for fold in range(5)]
SHOWN = dict(zip(("NDCG@10", "MAP"), comparison_cells.METRICS, strict=True))
SETS = ("ohsumed-letor3", "ohsumed-letor2", "mq2008")
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
    """For each system the test values of all queries, averaged over seeds."""
    found = {}
    for name, rows in results.items():
        per_query = {
            metric: np.concatenate(
                [np.mean([part["queries"][metric] for part in parts], axis=0) for parts in zip(*rows, strict=True)]
            )
            for metric in comparison_cells.METRICS
        }
        qids = np.arange(len(per_query[comparison_cells.SELECT]))
        found[name] = Evaluation({m: float(v.mean()) for m, v in per_query.items()}, per_query, qids, 0)
    return found


def against_the_best(results: Results, metric: str) -> tuple[str, dict[str, float]]:
    """The system with the best mean over queries, and the p-value of each other against it, corrected after Holm."""
    values = evaluations(results)
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


def table(results: Results) -> ReportTable:
    """All systems, the best NDCG@10 first; a † where the best of the column is significantly better."""
    columns = {shown: by_seed(metric)(results) for shown, metric in SHOWN.items()}
    p_values = {shown: against_the_best(results, metric)[1] for shown, metric in SHOWN.items()}
    times = median_seconds(results)
    order = sorted(results, key=lambda name: -float(columns["NDCG@10"][name].mean()))
    rows = [
        (
            name,
            *(cell(columns[shown][name], p_values[shown][name]) for shown in SHOWN),
            *(f"{p_values[shown][name]:.3f}" for shown in SHOWN),
            f"{times[name]:.2g}" if times[name] < 10.0 else f"{times[name]:.0f}",
        )
        for name in order
    ]
    titles = ("", *SHOWN, *(f"p, {shown}" for shown in SHOWN), "seconds")
    return ReportTable("All systems", titles, rows)


def cell(values: Floats, p: float) -> str:
    """A mean over seeds with its spread; † where the best is significantly better."""
    around = f" ± {standard_deviation(values):.4f}" if len(values) > 1 else ""
    return f"{values.mean():.4f}{around}{' †' if p < LEVEL else ''}"


def picture(data: str) -> Callable[[Results], Figure]:
    """Dots with the spread over seeds, and a ring at what was published."""

    def draw(results: Results) -> Figure:
        panels = []
        for at, (shown, metric) in enumerate(SHOWN.items()):
            values = by_seed(metric)(results)
            printed = {name: row[at] for name, row in PRINTED.get(data, {}).items()}
            order = sorted(values, key=lambda name, v=values: -float(v[name].mean()))  # type: ignore[misc]
            dots = [
                Dot(name, float(values[name].mean()), standard_deviation(values[name]), printed.get(name))
                for name in order
            ]
            low = min(dot.value - dot.band for dot in dots)
            panels.append(Panel(shown, "", shown, dots=dots, low=np.floor(low * 20.0) / 20.0))
        title = f"All systems on {SOURCES[data].title}"
        return Figure(f"comparison-{data}", title, panels, "Error bars: one standard deviation over seeds.")

    return draw


def system_series(name: str) -> Series:
    """The cells of one system; those without chance have one seed."""
    if name == comparison_cells.BOOSTER:
        settings = {"trees": comparison_cells.TREES}
        return Series(
            name, comparison_cells.measure_boosting, settings, {"trees": 60}, FOLDS, seeds=3, quick_seeds=1, cost=4.0
        )
    seeds = 3 if comparison_cells.SYSTEMS[name].seeded else 1
    return Series(name, comparison_cells.measure_system, {"system": name}, parts=FOLDS, seeds=seeds, quick_seeds=1)


def compare_systems(data: str) -> Experiment:
    """The table on one data set."""
    title, printed = SOURCES[data].title, PRINTED.get(data, {})
    return Experiment(
        name=data,
        title=f"All learners on {title}",
        about="Five folds; every parameter, and of learners that pass over the data the pass, chosen by NDCG@10 on the "
        "validation part. LETOR's metrics. † marks what is significantly worse than the best of the column (paired "
        "t-test over the queries, values averaged over seeds, Holm's correction, p < 0.05); seconds are processor "
        "time of one training, with the evaluations that chose its pass.",
        series=[system_series(name) for name in comparison_cells.names()],
        claims=[
            Claim(
                f"{title}, {name}, {shown}",
                f"test mean over five folds, as in {WHERE[data]}",
                Near(name, {system: row[at] for system, row in printed.items()}, 0.01),
                by_seed(metric),
                "Not a claim of a paper on this learner: another implementation's result on the same folds.",
            )
            for name in printed
            for at, (shown, metric) in enumerate(SHOWN.items())
        ],
        figures=(picture(data),),
        tables=(table,),
        data=data,
    )


PAPER = Paper(
    name="comparison",
    title="All learners side by side",
    authors="Ours: no paper has this table",
    experiments=[compare_systems(data) for data in SETS],
)
