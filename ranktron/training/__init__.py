"""Training: the table of algorithms, the model file, passes over data, cross-validation, sweeps, pictures of models.

Nothing is imported before it is used, so that the table of algorithms stays quick to read.
"""

from typing import TYPE_CHECKING

from ranktron.lazy import lazy_names

if TYPE_CHECKING:
    from ranktron.training.fit import Trained, make_untrained, play_schedule, train

__all__ = ["Trained", "make_untrained", "play_schedule", "train"]

__getattr__ = lazy_names(
    __name__,
    homes=dict.fromkeys(__all__, "ranktron.training.fit"),
    renamed={"run": "play_schedule", "untrained": "make_untrained"},
)
