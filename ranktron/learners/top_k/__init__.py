"""Learning from the labels of the first k documents shown (RTop-kF)."""

from ranktron.learners.top_k.learner import TopK
from ranktron.learners.top_k.settings import top_k_ranker

__all__ = ["TopK", "top_k_ranker"]
