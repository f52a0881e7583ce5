"""The hinge perceptron: on a mistake, one step on the mean margin violation over all pairs of the query."""

from ranktron.defaults import PAPER
from ranktron.learners.linear import Linear
from ranktron.learners.mistakes import Misordered
from ranktron.learners.steps import Constant
from ranktron.surrogates import MeanPairwiseHinge

_PRINTED = PAPER["hinge"]


def hinge_perceptron(
    n_features: int,
    eta: float = _PRINTED["eta"],
    margin: float = _PRINTED["margin"],
    average: bool = _PRINTED["average"],
) -> Linear:
    """Composes the mean pairwise hinge, a constant step size and updates on mistakes only.

    Parameters
    ----------
    n_features : int
        The number of features.
    eta : float
        The step size.
    margin : float
        Correctly ordered pairs closer than this in score still incur loss.
    average : bool
        Serve the mean of all weight vectors instead of the last one.

    Examples
    --------
    >>> hinge_perceptron(3, eta=0.5).step
    Constant(eta=0.5)
    """
    return Linear(n_features, MeanPairwiseHinge(margin), Constant(eta), Misordered(), average)
