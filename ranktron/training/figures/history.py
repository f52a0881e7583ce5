"""The history of a fit as a picture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ranktron.errors import DataError
from ranktron.training.figures.curves import Curve, curves

if TYPE_CHECKING:
    from ranktron.learners.schedule import History
    from ranktron.metrics import Metric


def draw_history(
    history: History,
    path: str | os.PathLike[str],
    metrics: Sequence[Metric] = (),
    *,
    title: str = "learning curve",
) -> None:
    """Draws what the validation set said after each pass, and the time averages of what was shown, as a picture.

    Parameters
    ----------
    history : History
        That of a fit: `ranker.history_`, or what `train` returns.
    path : path of the picture
        PNG or SVG, by its ending.
    metrics : those that were measured on what was shown
        As they were given to `train`; the fits of estimators measure none.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from ranktron.data.synthetic import Separable
    >>> from ranktron.learners.schedule import Schedule
    >>> from ranktron.training.fit import TrainingPlan, train
    >>> lists = Separable().rounds(60)
    >>> history = train(TrainingPlan("hinge", schedule=Schedule(3)), lists[:40], valid=lists[40:]).history
    >>> len(history.valid)
    3
    >>> with TemporaryDirectory() as folder:
    ...     draw_history(history, f"{folder}/history.svg")
    """
    lines: dict[str, Curve] = {
        f"{m}, time average": ([float(r) for r, _ in history.curve], [v[i] for _, v in history.curve])
        for i, m in enumerate(metrics)
    }
    if history.valid:
        per_epoch = history.rounds / len(history.valid)
        ends = [per_epoch * (i + 1) for i in range(len(history.valid))]
        lines |= {f"{name}, validation": (ends, [v[name] for v in history.valid]) for name in history.valid[0]}
    if not any(len(xs) for xs, _ in lines.values()):
        raise DataError("there is nothing to draw: give a validation set, which is measured after each pass")
    measured = {name.partition(",")[0] for name in lines}
    curves(path, lines, {}, title=title, x="rounds", y=measured.pop() if len(measured) == 1 else "metric")
