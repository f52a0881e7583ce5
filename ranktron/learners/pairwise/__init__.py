"""The pairwise perceptron and what is read out of its hypotheses: last, pocket, average, votes, a committee."""

from ranktron.learners.pairwise.committee import committee_perceptron
from ranktron.learners.pairwise.learner import OUTPUTS, Pairwise, pairwise_perceptron
from ranktron.learners.pairwise.outputs import Average, Committee, Last

__all__ = ["OUTPUTS", "Average", "Committee", "Last", "Pairwise", "committee_perceptron", "pairwise_perceptron"]
