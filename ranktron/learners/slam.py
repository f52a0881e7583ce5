"""Algorithm 2 of Chaudhuri and Tewari: a perceptron for NDCG, NDCG@k or AP."""

from ranktron.learners.linear import Linear
from ranktron.learners.mistakes import mistake_of
from ranktron.learners.steps import step_of
from ranktron.metrics import Metric
from ranktron.metrics import metric as as_metric
from ranktron.surrogates import SLAM


def slam_perceptron(
    n_features: int,
    metric: str | Metric = "ndcg@10",
    eta: float = 0.1,
    margin: float = 1.0,
    fraction: float = 0.0,
    binarise: bool = True,
    step: str = "constant",
    average: bool = False,
) -> Linear:
    """Composes a SLAM surrogate with updates on the mistakes of its own measure.

    >>> slam_perceptron(3, metric="ap").surrogate.measure
    Metric(name='map', k=None, convention='paper')
    """
    measure = as_metric(metric)
    surrogate = SLAM(measure, margin, fraction, binarise)
    return Linear(n_features, surrogate, step_of(step, eta), mistake_of(measure), average)
