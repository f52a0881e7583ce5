"""Learners: `rank` orders documents, `learn` updates the weights. An algorithm composes parts in one small file."""

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
