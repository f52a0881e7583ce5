"""The pairwise perceptron and its outputs: last, pocket, average, voted, and committees."""

from ranktron.learners.pairwise.committee import committee_perceptron
from ranktron.learners.pairwise.learner import OUTPUTS, Pairwise, pairwise_perceptron
from ranktron.learners.pairwise.outputs import Average, Committee, Last

__all__ = ["OUTPUTS", "Average", "Committee", "Last", "Pairwise", "committee_perceptron", "pairwise_perceptron"]
