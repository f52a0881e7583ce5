"""Algorithm 1 of Chaudhuri and Tewari: the perceptron for classification, on queries with one document."""

from ranktron.learners.linear import Linear
from ranktron.learners.mistakes import Misclassified
from ranktron.learners.steps import Constant
from ranktron.surrogates import ClassificationHinge


def classification_perceptron(n_features: int, eta: float = 1.0, average: bool = False) -> Linear:
    """Composes the classification hinge with updates on mistakes: w += η y x.

    Parameters
    ----------
    n_features : int
        The number of features.
    eta : float
        The step size.
    average : bool
        Serve the mean of all weight vectors instead of the last one.

    Examples
    --------
    >>> classification_perceptron(3).mistake
    Misclassified()
    """
    return Linear(n_features, ClassificationHinge(), Constant(eta), Misclassified(), average)
