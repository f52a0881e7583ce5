"""Which steps of a scikit-learn pipeline a ranker is fitted behind."""

from __future__ import annotations

import sys
from typing import Any


def steps_before(ranker: Any) -> tuple[str, ...]:
    """The classes of the steps that transform what a ranker is being fitted to; none outside of a pipeline.

    A step is never told of its pipeline. While it is fitted, the pipeline's own `fit` stands further down the stack:
    it is looked for there. Features that were transformed by hand look like any others.
    """
    Pipeline = getattr(sys.modules.get("sklearn.pipeline"), "Pipeline", None)
    frame = sys._getframe()
    while Pipeline is not None and frame is not None:
        found = frame.f_locals.get("self")
        if isinstance(found, Pipeline) and found.steps and found.steps[-1][1] is ranker:
            return tuple(type(step).__name__ for _, step in found.steps[:-1] if step not in (None, "passthrough"))
        frame = frame.f_back  # type: ignore[assignment]
    return ()
