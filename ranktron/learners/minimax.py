"""Algorithm 3 of Chaudhuri and Tewari: the perceptron that attains the lower bound, and needs no learning rate."""

from ranktron.defaults import PAPER
from ranktron.learners.linear import Linear
from ranktron.learners.mistakes import Misordered
from ranktron.learners.steps import Constant
from ranktron.surrogates import WorstPair

_PRINTED = PAPER["minimax"]


def minimax_perceptron(n_features: int, eta: float = _PRINTED["eta"], average: bool = _PRINTED["average"]) -> Linear:
    """Composes the worst pair of a query with updates on mistakes.

    Parameters
    ----------
    n_features : int
        The number of features.
    eta : float
        The step size; if learning starts from zero weights, it scales the weights and changes no ranking.
    average : bool
        Serve the mean of all weight vectors instead of the last one.

    Examples
    --------
    >>> minimax_perceptron(3).surrogate
    WorstPair(margin=1.0)
    """
    return Linear(n_features, WorstPair(), Constant(eta), Misordered(), average)
