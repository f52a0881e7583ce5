"""Learners: `rank` orders documents, `learn` updates the weights. An algorithm composes parts in one small file."""

from typing import TYPE_CHECKING

from ranktron.lazy import lazy_names

if TYPE_CHECKING:
    from ranktron.learners.base import BaseLearner
    from ranktron.learners.classification import classification_perceptron
    from ranktron.learners.clicks.pdgd import PDGD, pdgd_ranker
    from ranktron.learners.hinge import hinge_perceptron
    from ranktron.learners.kernelized.functions import Gaussian, LinearKernel, Polynomial
    from ranktron.learners.kernelized.learner import KernelLearner, kernel_perceptron
    from ranktron.learners.kernelized.pairs import PairSteps
    from ranktron.learners.kernelized.removal import Oldest, Projection, Random, Smallest
    from ranktron.learners.kernelized.updates import Descent, PredtronLoss
    from ranktron.learners.linear import Linear
    from ranktron.learners.listnet import online_listnet
    from ranktron.learners.minimax import minimax_perceptron
    from ranktron.learners.pairwise.committee import committee_perceptron
    from ranktron.learners.pairwise.learner import Pairwise, pairwise_perceptron
    from ranktron.learners.pairwise.outputs import Average, Committee, Last
    from ranktron.learners.slam import slam_perceptron
    from ranktron.learners.top_k.learner import TopK
    from ranktron.learners.top_k.settings import top_k_ranker

# Where each name is defined: it is imported on first use, so that a command waits only for the learner that it trains.
_HOMES = {
    "BaseLearner": "ranktron.learners.base",
    "classification_perceptron": "ranktron.learners.classification",
    "PDGD": "ranktron.learners.clicks.pdgd",
    "pdgd_ranker": "ranktron.learners.clicks.pdgd",
    "hinge_perceptron": "ranktron.learners.hinge",
    "Gaussian": "ranktron.learners.kernelized.functions",
    "LinearKernel": "ranktron.learners.kernelized.functions",
    "Polynomial": "ranktron.learners.kernelized.functions",
    "KernelLearner": "ranktron.learners.kernelized.learner",
    "kernel_perceptron": "ranktron.learners.kernelized.learner",
    "PairSteps": "ranktron.learners.kernelized.pairs",
    "Oldest": "ranktron.learners.kernelized.removal",
    "Projection": "ranktron.learners.kernelized.removal",
    "Random": "ranktron.learners.kernelized.removal",
    "Smallest": "ranktron.learners.kernelized.removal",
    "Descent": "ranktron.learners.kernelized.updates",
    "PredtronLoss": "ranktron.learners.kernelized.updates",
    "Linear": "ranktron.learners.linear",
    "online_listnet": "ranktron.learners.listnet",
    "minimax_perceptron": "ranktron.learners.minimax",
    "committee_perceptron": "ranktron.learners.pairwise.committee",
    "Pairwise": "ranktron.learners.pairwise.learner",
    "pairwise_perceptron": "ranktron.learners.pairwise.learner",
    "Average": "ranktron.learners.pairwise.outputs",
    "Committee": "ranktron.learners.pairwise.outputs",
    "Last": "ranktron.learners.pairwise.outputs",
    "slam_perceptron": "ranktron.learners.slam",
    "TopK": "ranktron.learners.top_k.learner",
    "top_k_ranker": "ranktron.learners.top_k.settings",
}

__getattr__ = lazy_names(__name__, homes=_HOMES)

__all__ = [
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
    "committee_perceptron",
    "hinge_perceptron",
    "kernel_perceptron",
    "minimax_perceptron",
    "online_listnet",
    "pairwise_perceptron",
    "pdgd_ranker",
    "slam_perceptron",
    "top_k_ranker",
]
