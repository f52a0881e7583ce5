"""The learners in scikit-learn's shape.

Every ranker takes `fit(X, y, qid=...)` with query ids in any order and of any type (or `group=` sizes, or a column
named `qid` in a data frame) and answers in input order. The parameters and defaults are those of `algorithms.py`.
"""

from ranktron.estimators.online import HingePerceptron

__all__ = ["HingePerceptron"]
