"""Algorithm 2 of Chaudhuri and Tewari: a perceptron for NDCG, NDCG@k or AP."""

from ranktron.defaults import PAPER
from ranktron.learners.linear import Linear
from ranktron.learners.mistakes import mistake_rule
from ranktron.learners.steps import make_step
from ranktron.metrics import Metric
from ranktron.metrics import metric as as_metric
from ranktron.surrogates import SLAM

_PRINTED = PAPER["slam"]


def slam_perceptron(
    n_features: int,
    metric: str | Metric = _PRINTED["metric"],
    eta: float = _PRINTED["eta"],
    margin: float = _PRINTED["margin"],
    fraction: float = _PRINTED["fraction"],
    binarise: bool = _PRINTED["binarise"],
    step: str = _PRINTED["step"],
    average: bool = _PRINTED["average"],
) -> Linear:
    """Composes a SLAM surrogate with updates on the mistakes of its metric.

    Parameters
    ----------
    n_features : int
        The number of features.
    metric : str or Metric
        `ndcg`, `ndcg@k` or `ap`: what is optimised, and what counts as a mistake.
    eta : float
        The step size.
    margin : float
        Correctly ordered pairs closer than this in score still incur loss.
    fraction : float
        Share of the lower-graded documents to compare with; 0 takes the best-scored one, as the paper does. Try 0.7
        on noisy data.
    binarise : bool
        Whether `ap` treats every label above 0 as relevant, or refuses graded labels.
    step : {"constant", "sqrt"}
        Whether the step shrinks with the square root of the round number.
    average : bool
        Serve the mean of all weight vectors instead of the last one.

    Examples
    --------
    >>> slam_perceptron(3, metric="ap").surrogate.measure
    Metric(name='map', k=None, convention='paper')
    """
    measure = as_metric(metric)
    surrogate = SLAM(measure, margin, fraction, binarise)
    return Linear(n_features, surrogate, make_step(step, eta), mistake_rule(measure), average)
