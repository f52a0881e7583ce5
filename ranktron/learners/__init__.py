"""Learners: `rank` shows, `learn` moves. An algorithm is a named composition in one small file."""

from ranktron.learners.classification import classification_perceptron
from ranktron.learners.committee import committee_perceptron
from ranktron.learners.hinge import hinge_perceptron
from ranktron.learners.kernel import KernelLearner, kernel_perceptron
from ranktron.learners.kernel_functions import Gaussian, LinearKernel, Polynomial
from ranktron.learners.kernel_pairs import PairSteps
from ranktron.learners.kernel_removal import Oldest, Projection, Random, Smallest
from ranktron.learners.kernel_updates import Descent, PredtronLoss
from ranktron.learners.linear import Linear
from ranktron.learners.listnet import online_listnet
from ranktron.learners.minimax import minimax_perceptron
from ranktron.learners.pairwise import Pairwise, pairwise_perceptron
from ranktron.learners.pairwise_readouts import Average, Committee, Last
from ranktron.learners.slam import slam_perceptron
from ranktron.learners.top_k import TopK
from ranktron.learners.top_k_settings import top_k_ranker

__all__ = [
    "Average",
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
    "slam_perceptron",
    "top_k_ranker",
]
