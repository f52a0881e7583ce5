"""Training: the table of algorithms, the model file, passes over data, cross-validation, sweeps, figures.

Modules are imported when they are used, so that reading the table of algorithms is fast.
"""

from typing import TYPE_CHECKING

from ranktron.lazy import lazy_names

if TYPE_CHECKING:
    from ranktron.training.fit import Trained, make_untrained, play_schedule, train

__all__ = ["Trained", "make_untrained", "play_schedule", "train"]

__getattr__ = lazy_names(__name__, homes=dict.fromkeys(__all__, "ranktron.training.fit"))
