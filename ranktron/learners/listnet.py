"""Online ListNet: gradient descent on the cross-entropy, with an update in every round."""

from ranktron.defaults import PAPER
from ranktron.learners.linear import Linear
from ranktron.learners.steps import make_step
from ranktron.surrogates import ListNet

_PRINTED = PAPER["listnet"]


def online_listnet(
    n_features: int, eta: float = _PRINTED["eta"], step: str = _PRINTED["step"], average: bool = _PRINTED["average"]
) -> Linear:
    """Composes ListNet's cross-entropy with step sizes eta/√t (or constant ones); it updates in every round.

    Parameters
    ----------
    n_features : int
        The number of features.
    eta : float
        The step size of the first round.
    step : {"sqrt", "constant"}
        Whether the step shrinks with the square root of the round number.
    average : bool
        Serve the mean of all weight vectors instead of the last one.

    Examples
    --------
    >>> online_listnet(3, eta=0.5).step
    InversePower(eta=0.5, power=0.5)
    """
    return Linear(n_features, ListNet(), make_step(step, eta), None, average)
