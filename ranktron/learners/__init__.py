"""Learners: `rank` orders documents, `learn` updates the weights. An algorithm composes parts in one small file."""

from typing import TYPE_CHECKING

from ranktron.lazy import lazy_names
from ranktron.learners.algorithms import *  # noqa: F403 (the functions that build learners)
from ranktron.learners.algorithms import __all__ as _BUILDERS

if TYPE_CHECKING:
    from ranktron.learners.base import BaseLearner
    from ranktron.learners.classification import classification_perceptron
    from ranktron.learners.clicks.pdgd import PDGD
    from ranktron.learners.kernelized.functions import Gaussian, LinearKernel, Polynomial
    from ranktron.learners.kernelized.learner import KernelLearner
    from ranktron.learners.kernelized.pairs import PairSteps
    from ranktron.learners.kernelized.removal import Oldest, Projection, Random, Smallest
    from ranktron.learners.kernelized.updates import Descent, PredtronLoss
    from ranktron.learners.linear import Linear
    from ranktron.learners.pairwise.learner import Pairwise
    from ranktron.learners.pairwise.outputs import Average, Committee, Last
    from ranktron.learners.top_k.learner import TopK

# Where each name is defined: it is imported on first use, so that a command waits only for the learner that it trains.
_HOMES = {
    "BaseLearner": "ranktron.learners.base",
    "classification_perceptron": "ranktron.learners.classification",
    "PDGD": "ranktron.learners.clicks.pdgd",
    "Gaussian": "ranktron.learners.kernelized.functions",
    "LinearKernel": "ranktron.learners.kernelized.functions",
    "Polynomial": "ranktron.learners.kernelized.functions",
    "KernelLearner": "ranktron.learners.kernelized.learner",
    "PairSteps": "ranktron.learners.kernelized.pairs",
    "Oldest": "ranktron.learners.kernelized.removal",
    "Projection": "ranktron.learners.kernelized.removal",
    "Random": "ranktron.learners.kernelized.removal",
    "Smallest": "ranktron.learners.kernelized.removal",
    "Descent": "ranktron.learners.kernelized.updates",
    "PredtronLoss": "ranktron.learners.kernelized.updates",
    "Linear": "ranktron.learners.linear",
    "Pairwise": "ranktron.learners.pairwise.learner",
    "Average": "ranktron.learners.pairwise.outputs",
    "Committee": "ranktron.learners.pairwise.outputs",
    "Last": "ranktron.learners.pairwise.outputs",
    "TopK": "ranktron.learners.top_k.learner",
}

__getattr__ = lazy_names(__name__, homes=_HOMES)

__all__ = [
    *_BUILDERS,
    "PDGD",
    "Average",
    "BaseLearner",
    "Committee",
    "Descent",
    "Gaussian",
    "KernelLearner",
    "Last",
    "Linear",
    "LinearKernel",
    "Oldest",
    "PairSteps",
    "Pairwise",
    "Polynomial",
    "PredtronLoss",
    "Projection",
    "Random",
    "Smallest",
    "TopK",
    "classification_perceptron",
]
