"""Online ListNet: gradient descent on the cross-entropy, with an update in every round."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ranktron.learners.parameters import AVERAGE, ETA, STEP, Parameters, declare

if TYPE_CHECKING:
    from ranktron.learners.linear import Linear


@declare(
    "listnet",
    replace(ETA, paper=0.1, recommended=0.03),
    replace(STEP, paper="sqrt"),
    replace(AVERAGE, recommended=True),
    estimator="OnlineListNet",
    summary="online gradient descent on ListNet's cross-entropy",
    paper="Cao et al., Learning to Rank: From Pairwise Approach to Listwise Approach",
    about="Online gradient descent on ListNet's cross-entropy: a strong linear baseline on noisy data.",
)
def online_listnet(n_features: int, p: Parameters) -> Linear:
    """Composes ListNet's cross-entropy with step sizes eta/√t (or constant ones); it updates in every round.

    Examples
    --------
    >>> online_listnet(3, eta=0.5).step
    InversePower(eta=0.5, power=0.5)
    """
    from ranktron.learners.linear import Linear
    from ranktron.learners.steps import make_step
    from ranktron.surrogates import ListNet

    return Linear(n_features, ListNet(), make_step(p.step, p.eta), None, p.average)
