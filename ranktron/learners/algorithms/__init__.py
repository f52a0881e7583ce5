"""The algorithms, one file for each: its name, its parameters, and the function that builds its learner.

An algorithm is declared in a file of this folder and imported here, in the order of tables; command line, estimators,
service and pages are derived from what it declares.
"""

# ruff: noqa: I001
from ranktron.learners.algorithms.slam import slam_perceptron as slam_perceptron
from ranktron.learners.algorithms.minimax import minimax_perceptron as minimax_perceptron
from ranktron.learners.algorithms.listnet import online_listnet as online_listnet
from ranktron.learners.algorithms.hinge import hinge_perceptron as hinge_perceptron
from ranktron.learners.algorithms.topk import top_k_ranker as top_k_ranker
from ranktron.learners.algorithms.pdgd import pdgd_ranker as pdgd_ranker
from ranktron.learners.algorithms.predtron import predtron_ranker as predtron_ranker
from ranktron.learners.algorithms.pairwise import pairwise_perceptron as pairwise_perceptron
from ranktron.learners.algorithms.committee import committee_perceptron as committee_perceptron
from ranktron.learners.algorithms.ranksvm import rank_svm as rank_svm
from ranktron.learners.algorithms.smoothrank import smooth_rank as smooth_rank
from ranktron.learners.algorithms.rankboost import rank_boost as rank_boost
from ranktron.learners.algorithms.lightgbm import lambda_mart as lambda_mart
from ranktron.learners.algorithms.rankmm import rank_mm as rank_mm
from ranktron.learners.algorithms.kernel import kernel_perceptron as kernel_perceptron

from ranktron.learners.parameters import ALGORITHMS

__all__ = [each.build.__name__ for each in ALGORITHMS.values() if each.partial_fit]  # the others build mere scorers
