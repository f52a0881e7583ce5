"""Metrics of rankings, each under the convention of your choice.

A metric is a value that is written as text: `ndcg@10` (this library's own convention, `:paper`), `ndcg@10:letor`,
`map:trec`. Called with labels in the order shown it returns one number; `evaluate` orders documents of many queries by
score and evaluates them; `compare` compares systems.

A document is relevant to the binary metrics (map, mrr, p, recall, rprec, bpref, rankeff, auc) if its label is above 0.
Labels are numbers >= 0, not necessarily whole.
"""

from typing import TYPE_CHECKING

from ranktron.lazy import lazy_names
from ranktron.metrics.conventions import CONVENTIONS, Convention
from ranktron.metrics.metric import MEASURES, Metric, metric

if TYPE_CHECKING:
    from ranktron.metrics.always_valid import ConfidenceSequence, user_differences
    from ranktron.metrics.change_detection import FallDetector
    from ranktron.metrics.evaluation import Evaluation, evaluate
    from ranktron.metrics.scoring import Scorer, scorer
    from ranktron.metrics.significance import Comparison, compare, permutation_test, t_test
    from ranktron.metrics.ties import arrange

_LATE = {
    "ConfidenceSequence": "always_valid",
    "user_differences": "always_valid",
    "FallDetector": "change_detection",
    "Evaluation": "evaluation",
    "evaluate": "evaluation",
    "Scorer": "scoring",
    "scorer": "scoring",
    "arrange": "ties",
    "Comparison": "significance",
    "compare": "significance",
    "permutation_test": "significance",
    "t_test": "significance",
}

__all__ = [
    "CONVENTIONS",
    "MEASURES",
    "Comparison",
    "ConfidenceSequence",
    "Convention",
    "Evaluation",
    "FallDetector",
    "Metric",
    "Scorer",
    "arrange",
    "compare",
    "evaluate",
    "metric",
    "permutation_test",
    "scorer",
    "t_test",
    "user_differences",
]

# Compiled code is imported when it is used, so that parsing the name of a metric is fast.
__getattr__ = lazy_names(__name__, homes={name: f"{__name__}.{home}" for name, home in _LATE.items()})
