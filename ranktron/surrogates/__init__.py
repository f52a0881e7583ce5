"""Losses in score space, each with its (sub)gradient.

A surrogate is called with the scores and the labels of one list and answers (loss, gradient). It knows nothing of
features: the learner carries the gradient back to its weights.
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
