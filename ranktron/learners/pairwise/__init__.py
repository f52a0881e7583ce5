"""The pairwise perceptron and its outputs: last, pocket, average, voted, and committees."""

from ranktron.learners.pairwise.learner import OUTPUTS, Pairwise
from ranktron.learners.pairwise.outputs import Average, Committee, Last

__all__ = ["OUTPUTS", "Average", "Committee", "Last", "Pairwise"]
