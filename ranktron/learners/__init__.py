"""Learners: `rank` shows, `learn` moves. An algorithm is a named composition in one small file."""

from ranktron.learners.hinge import hinge_perceptron
from ranktron.learners.linear import Linear

__all__ = ["Linear", "hinge_perceptron"]
