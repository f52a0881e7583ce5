"""Surrogate losses in score space, each with its (sub)gradient.

A surrogate takes the scores and the labels of one query and returns (loss, gradient). It knows nothing of features:
the learner computes the gradient in its weights by the chain rule.
"""

from ranktron.surrogates.calibrated import CalibratedSquared
from ranktron.surrogates.classification import ClassificationHinge
from ranktron.surrogates.kl import KL
from ranktron.surrogates.listnet import ListNet
from ranktron.surrogates.pairwise_hinge import MeanPairwiseHinge, PairwiseHinge
from ranktron.surrogates.slam import SLAM
from ranktron.surrogates.smooth_dcg import SmoothDCG
from ranktron.surrogates.squared import Squared
from ranktron.surrogates.worst_pair import WorstPair

__all__ = [
    "KL",
    "SLAM",
    "CalibratedSquared",
    "ClassificationHinge",
    "ListNet",
    "MeanPairwiseHinge",
    "PairwiseHinge",
    "SmoothDCG",
    "Squared",
    "WorstPair",
]
