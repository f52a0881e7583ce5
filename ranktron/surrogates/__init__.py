"""Losses in score space, each with its (sub)gradient.

A surrogate is called with the scores and the labels of one list and answers (loss, gradient). It knows nothing of
features: the learner carries the gradient back to its weights.
"""

from ranktron.surrogates.pairwise_hinge import MeanPairwiseHinge, PairwiseHinge

__all__ = ["MeanPairwiseHinge", "PairwiseHinge"]
