"""The nouns that everything else is made of: read these files first.

A *round* is one query with its documents. A learner shows a *ranking* of them, receives *feedback*, and learns. Labels
are seen by the feedback and by the metrics, never by the learner's `rank`.
"""

from ranktron.types.arrays import Features, Floats, Integers, Matrix
from ranktron.types.impressions import Impression
from ranktron.types.protocols import FeedbackModel, Learner, Mistake, State, Step, Surrogate
from ranktron.types.rounds import Feedback, Ranking, Round, Turn

__all__ = [
    "Features",
    "Feedback",
    "FeedbackModel",
    "Floats",
    "Impression",
    "Integers",
    "Learner",
    "Matrix",
    "Mistake",
    "Ranking",
    "Round",
    "State",
    "Step",
    "Surrogate",
    "Turn",
]
