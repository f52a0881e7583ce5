"""Kernelized learners: weights are a sum of documents, w = Σ_s α_s φ(s)."""

from ranktron.learners.kernelized.functions import Gaussian, LinearKernel, Polynomial
from ranktron.learners.kernelized.learner import KernelLearner
from ranktron.learners.kernelized.pairs import PairSteps
from ranktron.learners.kernelized.removal import Oldest, Projection, Random, Smallest
from ranktron.learners.kernelized.updates import Descent, PredtronLoss

__all__ = [
    "Descent",
    "Gaussian",
    "KernelLearner",
    "LinearKernel",
    "Oldest",
    "PairSteps",
    "Polynomial",
    "PredtronLoss",
    "Projection",
    "Random",
    "Smallest",
]
