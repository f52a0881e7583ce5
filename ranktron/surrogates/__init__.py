"""Losses in score space, each with its (sub)gradient.

A surrogate is called with the scores and the labels of one list and answers (loss, gradient). It knows nothing of
features: the learner carries the gradient back to its weights.
"""

from ranktron.surrogates.classification import ClassificationHinge
from ranktron.surrogates.listnet import ListNet
from ranktron.surrogates.pairwise_hinge import MeanPairwiseHinge, PairwiseHinge
from ranktron.surrogates.slam import SLAM
from ranktron.surrogates.worst_pair import WorstPair

__all__ = ["SLAM", "ClassificationHinge", "ListNet", "MeanPairwiseHinge", "PairwiseHinge", "WorstPair"]
