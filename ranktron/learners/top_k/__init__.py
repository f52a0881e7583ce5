"""Learning from the labels of the first k documents shown (RTop-kF)."""

from ranktron.learners.top_k.learner import TopK

__all__ = ["TopK"]
