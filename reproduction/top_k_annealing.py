"""Section 6 of *Feedback at the Top*: would annealing help SmoothDCG? The paper knows no form of it for streams."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ranktron.types import Floats
from reproduction.harness import annealing_cells
from reproduction.harness.data import SOURCES
from reproduction.harness.experiment import Claim, Experiment, Results, Series
from reproduction.harness.learning_curves import curve_lines
from reproduction.harness.verdicts import Ordered, Values
from reproduction.report.charts import Figure, Panel

SHARP, SMOOTH, FALLING = annealing_cells.SCHEDULES
STEPS = {"printed steps": False, "steps × ε/0.01": True}
PARTS = [
    {"schedule": schedule, "scaled": scaled}
    for scaled in STEPS.values()
    for schedule in (SHARP, SMOOTH, FALLING)
    if schedule != SHARP or not scaled  # a step times 1 is the printed one
]


def annealed_curves(results: Results, scaled: bool) -> dict[str, Floats]:
    """For each schedule its curves, seeds × points."""
    return {
        str(part["schedule"]): np.array([row[i]["means"] for row in results["annealed"]])
        for i, part in enumerate(PARTS)
        if part["scaled"] == scaled or part["schedule"] == SHARP
    }


def annealed_ends(scaled: bool) -> Callable[[Results], Values]:
    """For each schedule the mean of all that was shown."""
    return lambda results: {name: table[:, -1] for name, table in annealed_curves(results, scaled).items()}


def annealing_figure(data: str) -> Callable[[Results], Figure]:
    """One panel for each way to choose the step."""

    def figure(results: Results) -> Figure:
        at = [float(t) for t in results["annealed"][0][0]["at"]]
        panels = [
            Panel(name, "rounds", "NDCG@10 so far", curve_lines(annealed_curves(results, scaled), at), log_x=True)
            for name, scaled in STEPS.items()
        ]
        title = f"SmoothDCG with a smoothing that falls, {SOURCES[data].title}"
        return Figure(f"topk-annealing-{data}", title, panels, "Bands: one standard deviation over seeds.")

    return figure


def annealing_experiment(data: str) -> Experiment:
    """SmoothDCG with three schedules of ε on one data set."""
    title = SOURCES[data].title
    claims = [
        Claim(
            f"Annealing (ours) on {title}, {steps}: {which}",
            statement,
            Ordered((better, SHARP)),
            annealed_ends(scaled),
            setting=steps,
        )
        for steps, scaled in STEPS.items()
        for which, better, statement in (
            ("falling", FALLING, "ε_t = max(0.01, t^(−0.4)) shows better lists than the printed ε = 0.01"),
            ("smooth", SMOOTH, "so does ε = 1 throughout: smoothing, not annealing"),
        )
    ]
    return Experiment(
        name=f"annealing-{data}",
        title=f"Section 6, SmoothDCG with a falling ε on {title}",
        about="“In batch setting, such problem is avoided by an annealing technique that successively reduces ε. We "
        "are not aware of an analogue in an online setting.” Here ε_t falls from 1 to the printed 0.01, which it "
        "reaches after 100,000 rounds; gradients go with 1/ε, so the step is the printed one or that times ε_t/0.01.",
        stand_in=f"{title} for Yahoo and Yandex",
        series=(
            Series(
                "annealed",
                annealing_cells.measure_annealing,
                {"T": 100_000},
                {"T": 5_000},
                parts=PARTS,
                seeds=5,
                cost=5.0,
            ),
        ),
        claims=claims,
        figures=(annealing_figure(data),),
        data=data,
    )
