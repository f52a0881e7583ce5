"""Training: the table of algorithms, the model file, training plans, cross-validation, sweeps, tuning, figures.

Modules are imported when they are used, so that reading the table of algorithms is fast.
"""

from typing import TYPE_CHECKING

from ranktron.lazy import lazy_names

if TYPE_CHECKING:
    from ranktron.training.fit import Trained, TrainingPlan, make_untrained, play_schedule, train

__all__ = ["Trained", "TrainingPlan", "make_untrained", "play_schedule", "train"]

__getattr__ = lazy_names(__name__, homes=dict.fromkeys(__all__, "ranktron.training.fit"))
