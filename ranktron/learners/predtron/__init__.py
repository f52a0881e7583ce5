"""Predtron: a mistake-driven learner for any prediction problem (Jain, Natarajan, Tewari, NIPS 2015).

A problem is a loss, a representation of predictions by unit vectors, a decoding of scores and a loss-augmented
argmax; `Predtron` learns any of them. Test your own with `check_problem`.
"""

from ranktron.learners.algorithms.predtron import predtron_ranker
from ranktron.learners.predtron.checking import check_problem
from ranktron.learners.predtron.classes import binary, multiclass, ordinal, with_costs, with_reject
from ranktron.learners.predtron.links import Euclidean, GroupLink, L1Link, Trace, make_link
from ranktron.learners.predtron.loop import MistakeRound, Predtron, theoretical_step, walk
from ranktron.learners.predtron.permutations import Permutations
from ranktron.learners.predtron.positions import PlaceLoss, Places
from ranktron.learners.predtron.problem import Enumerated, PredictionProblem, surrogate, unit_surrogate
from ranktron.learners.predtron.ranker import PredtronLearner
from ranktron.learners.predtron.subsets import Counted, ErrorSetSize, Hamming, Subsets, SubsetZeroOne
from ranktron.learners.predtron.variants import LossDriven, Standard, make_variant

__all__ = [
    "Counted",
    "Enumerated",
    "ErrorSetSize",
    "Euclidean",
    "GroupLink",
    "Hamming",
    "L1Link",
    "LossDriven",
    "MistakeRound",
    "Permutations",
    "PlaceLoss",
    "Places",
    "PredictionProblem",
    "Predtron",
    "PredtronLearner",
    "Standard",
    "SubsetZeroOne",
    "Subsets",
    "Trace",
    "binary",
    "check_problem",
    "make_link",
    "make_variant",
    "multiclass",
    "ordinal",
    "predtron_ranker",
    "surrogate",
    "theoretical_step",
    "unit_surrogate",
    "walk",
    "with_costs",
    "with_reject",
]
