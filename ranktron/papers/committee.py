"""Elsas, Carvalho and Carbonell, *Fast Learning of Document Ranking Functions with the Committee Perceptron*."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ranktron.metrics import Evaluation, t_test
from ranktron.papers.committee_tables import FACTOR, MARKS, SHOWN, TABLE_4, TABLE_5
from ranktron.papers.harness import pairwise_cells
from ranktron.papers.harness.curves import lines
from ranktron.papers.harness.data import SOURCES
from ranktron.papers.harness.experiment import Claim, Experiment, Paper, Results, Series, Table
from ranktron.papers.harness.verdicts import AtLeast, AtMost, Near, Ordered, Values, spread
from ranktron.papers.report.charts import Dot, Figure, Panel
from ranktron.types import Floats

FOLDS = [{"fold": fold} for fold in range(5)]
METRICS = dict(zip(SHOWN, pairwise_cells.METRICS, strict=True))


# --- Table 4


def of_metric(metric: str) -> Callable[[Results], Values]:
    """For each system the mean over folds, one value for each seed."""

    def values(results: Results) -> Values:
        found: dict[str, Floats] = {}
        for series in ("perceptrons", "baselines"):
            rows = results[series]
            for name in rows[0][0]:
                found[name] = np.array([np.mean([np.mean(part[name][metric]) for part in row]) for row in rows])
        return found

    return values


def p_value(results: Results, better: str, worse: str, metric: str) -> Floats:
    """The paper's test: paired t over all test lists, one tail; values of a list are averaged over seeds first."""

    def lists_of(name: str) -> Evaluation:
        rows = results["baselines" if name in ("RankSVM", "RankBoost") else "perceptrons"]
        per_list = np.mean([np.concatenate([part[name][metric] for part in row]) for row in rows], axis=0)
        return Evaluation({metric: float(per_list.mean())}, {metric: per_list}, np.arange(len(per_list)), 0)

    return np.array([t_test(lists_of(better), lists_of(worse), metric, tails=1)])


def marked(data: str) -> Callable[[Results], Values]:
    """The p-values of all differences that Table 4 marks as significant."""
    return lambda results: {
        f"{better} above {worse}, {shown}": p_value(results, better, worse, METRICS[shown])
        for better, worse, shown in MARKS[data]
    }


def committee_above(other: str) -> Callable[[Results], Values]:
    """The p-values of the committee being better than another system, under every metric."""
    return lambda results: {shown: p_value(results, "Com 30 A", other, metric) for shown, metric in METRICS.items()}


def above_the_committee(results: Results) -> Values:
    """The p-values of every other system being better than the committee, under every metric."""
    others = ("RankSVM", "RankBoost", "Pocket", "Average")
    return {
        f"{other}, {shown}": p_value(results, other, "Com 30 A", metric)
        for other in others
        for shown, metric in METRICS.items()
    }


def table_4(results: Results) -> Table:
    """All systems, those that the paper does not have included."""
    columns = [of_metric(metric)(results) for metric in METRICS.values()]
    rows = [
        (name, *(f"{column[name].mean():.4f}" + (f" ± {spread(column[name]):.4f}" if len(column[name]) > 1 else "")
                 for column in columns))
        for name in columns[0]
    ]  # fmt: skip
    return Table("All systems", ("", *METRICS), rows)


def figure_of(data: str) -> Callable[[Results], Figure]:
    """Table 4 as dots, with rings where the paper's numbers are."""

    def figure(results: Results) -> Figure:
        panels = []
        for i, (shown, metric) in enumerate(METRICS.items()):
            found, printed = of_metric(metric)(results), TABLE_4[data]
            dots = [Dot(name, float(found[name].mean()), spread(found[name]), row[i]) for name, row in printed.items()]
            panels.append(Panel(shown, "", shown, dots=dots))
        return Figure(f"committee-table-4-{data}", f"Table 4, {SOURCES[data].title}", panels,
                      "Dots: ours, with one standard deviation over seeds; rings: the paper's numbers.")  # fmt: skip

    return figure


def on_lists(data: str) -> Experiment:
    """Table 4 on one data set."""
    title, printed = SOURCES[data].title, TABLE_4[data]
    numbers = [
        Claim(
            f"Table 4, {title}, {name}, {shown}",
            "test mean over five folds",
            Near(name, {system: row[i] for system, row in printed.items()}, 0.01),
            of_metric(metric),
            _NOTES.get(name, ""),
        )
        for i, (shown, metric) in enumerate(METRICS.items())
        for name in printed
    ]
    orders = [
        Claim(
            f"Table 4, {title}: committee above {other.lower()}, {shown}",
            f"the committee is better than the {other.lower()} perceptron",
            Ordered(("Com 30 A", other)),
            of_metric(metric),
            _ORDER if other == "Average" else "",
        )
        for other in ("Pocket", "Average")
        for shown, metric in METRICS.items()
    ]
    return Experiment(
        name=f"table-4-{data}",
        title=f"Table 4 on {title}",
        about="Five folds, features scaled to [0, 1] within each list, α-bound 0.85; the number of passes and the "
        "members' weights by NDCG@10 on the validation part; LETOR's metrics. RankSVM: squared hinge, C of 0.01 to "
        "1000; RankBoost: up to 500 thresholds; both chosen in the same way, without chance.",
        series=(
            Series("perceptrons", pairwise_cells.perceptrons, {"epochs": 50}, {"epochs": 10}, FOLDS, seeds=10,
                   quick_seeds=3, cost=3.0),
            Series("baselines", pairwise_cells.baselines, parts=FOLDS, seeds=1, cost=3.0),
        ),
        claims=(*numbers, *orders, *_tests(data)),
        figures=(figure_of(data),),
        tables=(table_4,),
        data=data,
    )  # fmt: skip


def _tests(data: str) -> tuple[Claim, ...]:
    title = SOURCES[data].title
    return (
        *(
            Claim(
                f"Table 4, {title}: committee significantly above {other.lower()}",
                "significantly better over the queries, one-tailed; ours is the largest p-value of the four metrics",
                AtMost(0.05),
                committee_above(other),
                _ORDER if other == "Average" else "",
            )
            for other in ("Pocket", "Average")
        ),
        Claim(
            f"Table 4, {title}: marks",
            "every difference marked * or † is significant, one-tailed; ours is the largest of their p-values",
            AtMost(0.05),
            marked(data),
        ),
        Claim(
            f"Table 4, {title}: nothing above the committee",
            "no other system is significantly better than the committee; ours is the smallest p-value",
            AtLeast(0.05),
            above_the_committee,
        ),
    )


_ORDER = (
    "The order in which pairs are visited is not given, and decides: mixed over all lists, as here, the average "
    "settles after one pass and is better than printed."
)
_NOTES = {
    "RankSVM": "The paper's row is LETOR's own; ours is solved to the end.",
    "RankBoost": "The paper's row is LETOR's own.",
    "Average": _ORDER,
}


# --- Figure 1


def by_pass(results: Results, metric: str) -> dict[str, Floats]:
    """For each readout the mean over folds after each pass: seeds × passes."""
    first = list(METRICS.values()).index("ndcg@10:letor")
    start = 0 if metric == list(METRICS.values())[first] else 5
    rows = [row[start : start + 5] for row in results["curves"]]
    return {name: np.array([np.mean([part[name] for part in row], axis=0) for row in rows]) for name in rows[0][0]}


def settled(results: Results) -> Values:
    """How much higher the committee's best of all passes is than its best of the first 50."""
    table = by_pass(results, "ndcg@10:letor")["Com 20"]
    return {"gained later": table.max(axis=1) - table[:, :50].max(axis=1)}


def still_improves(results: Results) -> Values:
    """The average perceptron: its last tenth of passes, and passes 41 to 50 (the middle of a shorter run)."""
    table = by_pass(results, "ndcg@10:letor")["Average"]
    late = max(1, table.shape[1] // 10)
    middle = min(50, table.shape[1] // 2)
    return {
        "at the end": table[:, -late:].mean(axis=1),
        "around pass 50": table[:, middle - late : middle].mean(axis=1),
    }


def best_pass(results: Results) -> Values:
    """The best value of each readout at any pass."""
    return {name: table.max(axis=1) for name, table in by_pass(results, "ndcg@10:letor").items()}


def figure_1(results: Results) -> Figure:
    """NDCG@10 and MAP against passes, one above the other in the paper."""
    panels = []
    for metric, title in (("ndcg@10:letor", "NDCG@10"), ("map:letor", "MAP")):
        found = by_pass(results, metric)
        passes = list(range(1, next(iter(found.values())).shape[1] + 1))
        panels.append(Panel(f"Figure 1: {title}", "passes", title, lines(found, passes), log_x=True))
    return Figure("committee-figure-1", "Validation lists of OHSUMED after each pass", panels,
                  "Mean over folds; bands: one standard deviation over seeds.")  # fmt: skip


FIGURE_1 = Experiment(
    name="figure-1",
    title="Figure 1: learning curves on OHSUMED",
    about="LETOR 2.0, the validation part of each fold after each pass; committee of 20, α-bound 0.85.",
    series=(
        Series(
            "curves",
            pairwise_cells.learning_curves,
            {"epochs": 500},
            {"epochs": 60},
            [{"fold": fold, "metric": metric} for metric in ("ndcg@10:letor", "map:letor") for fold in range(5)],
            seeds=3,
            quick_seeds=2,
            cost=20.0,
        ),
    ),
    claims=(
        Claim(
            "Figure 1, committee",
            "it reaches its best before roughly 50 passes: what comes later adds at most 0.005 of NDCG@10",
            AtMost(0.005),
            settled,
        ),
        Claim(
            "Figure 1, average",
            "the average perceptron goes on improving, even after 500 passes",
            Ordered(("at the end", "around pass 50")),
            still_improves,
            _ORDER,
        ),
        Claim(
            "Figure 1, committee above pocket",
            "the committee's solution outperforms the pocket perceptron's",
            Ordered(("Com 20", "Pocket")),
            best_pass,
        ),
        Claim(
            "Figure 1, committee above average",
            "the committee's solution outperforms the average perceptron's",
            Ordered(("Com 20", "Average")),
            best_pass,
            _ORDER,
        ),
    ),
    figures=(figure_1,),
    data="ohsumed-letor2",
)


# --- Table 5


def factor(way: str) -> Callable[[Results], Values]:
    """How many times longer a way to train RankSVM takes than the committee, for each fold."""
    return lambda results: {way: np.array([part[way] / part["committee of 20"] for part in results["seconds"][0]])}


def table_5(results: Results) -> Table:
    """Seconds of every fold beside the printed ones."""
    ways = list(results["seconds"][0][0])
    rows = [
        (i + 1, *(f"{part[way]:.3f}" for way in ways), *(f"{column[i]:,.2f}" for column in TABLE_5.values()))
        for i, part in enumerate(results["seconds"][0])
    ]
    return Table("Seconds of training", ("fold", *ways, *(f"{name} (paper)" for name in TABLE_5)), rows)


TABLE_5_TIMES = Experiment(
    name="table-5",
    title="Table 5: seconds of training on OHSUMED",
    about="A committee of 20 in 50 passes, and RankSVM with C = 1 on the same pairs: our own solver, and "
    "scikit-learn's LinearSVC on the differences of all pairs. Processor time, one thread, one process a fold. Times "
    "are no function of a seed: they are measured once and kept.",
    series=(Series("seconds", pairwise_cells.seconds, {"epochs": 50}, {"epochs": 50}, FOLDS, seeds=1, cost=6.0),),
    claims=(
        *(
            Claim(
                f"Table 5, factor over {way}",
                "RankSVM takes more than 45 times as long as the committee",
                AtLeast(45.0),
                factor(way),
                f"The printed averages give a factor of {FACTOR:.1f}, over SVM-light in C; a RankSVM of today needs no "
                "hours. Our hinge is solved by a smoothed Newton method, LinearSVC by a trust region.",
            )
            for way in ("RankSVM, hinge", "RankSVM, squared hinge", "LinearSVC on pair differences")
        ),
        Claim(
            "Table 5, committee",
            "50 passes take 375 to 527 seconds; ours is the share of the printed time",
            AtMost(1.0),
            lambda results: {
                "share": np.array(
                    [part["committee of 20"] / paper
                     for part, paper in zip(results["seconds"][0], TABLE_5["committee of 20"], strict=True)]
                )
            },
        ),
    ),
    tables=(table_5,),
    data="ohsumed-letor2",
)  # fmt: skip

PAPER = Paper(
    name="committee",
    title="Fast Learning of Document Ranking Functions with the Committee Perceptron",
    authors="Elsas, Carvalho, Carbonell",
    experiments=(FIGURE_1, on_lists("ohsumed-letor2"), TABLE_5_TIMES, on_lists("td2003"), on_lists("td2004")),
)
