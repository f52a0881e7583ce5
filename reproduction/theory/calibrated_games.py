"""Theorem 5.2 for any calibrated surrogate: what a round costs at least if only the first label is seen.

Let E_1 and E_2 be the expected losses in two games that the first label does not tell apart. For all scores s

    max(E_1(s) − min E_1, E_2(s) − min E_2) ≥ ½ (E_1 + E_2)(s) − ½ (min E_1 + min E_2) ≥ gap,
    gap = min ½ (E_1 + E_2) − ½ (min E_1 + min E_2),

and whoever plays both games alike has that regret a round in one of them. The gap is 0 only if some scores minimise
both. A surrogate is calibrated with NDCG if its minimisers order documents by E[G/Z]; the games of `Indistinguishable`
have other documents at the top, so for *every* calibrated surrogate the gap is above 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ranktron.errors import DataError
from ranktron.surrogates import CalibratedSquared
from ranktron.types import Floats, Surrogate
from reproduction.theory.top_k_games import Indistinguishable

LINKS = ("identity", "exponential", "logistic")


@dataclass(frozen=True)
class CalibratedDivergence:
    """A Bregman divergence between the shares G/Z of the ideal DCG and the scores: calibrated with NDCG, each of them.

        identity      Σ (s_i − t_i)²                      minimised at s = E[t]
        exponential   Σ exp(s_i) − t_i s_i                minimised at exp(s) = E[t]
        logistic      Σ log(1 + exp(s_i)) − t_i s_i       minimised at 1/(1 + exp(−s)) = E[t],    t = G(R)/Z(R)

    Parameters
    ----------
    link : "identity", "exponential" or "logistic"

    Examples
    --------
    >>> loss, gradient = CalibratedDivergence("exponential")(np.zeros(2), np.array([1.0, 0.0]))
    >>> loss, gradient
    (2.0, array([0., 1.]))

    References
    ----------
    Ravikumar, Tewari and Yang, On NDCG Consistency of Listwise Ranking Methods.
    """

    link: str = "identity"

    def __post_init__(self) -> None:
        if self.link not in LINKS:
            raise DataError(f"there is no link {self.link!r}; choose from {', '.join(LINKS)}")

    def __call__(self, scores: Floats, labels: Floats) -> tuple[float, Floats]:
        shares = -CalibratedSquared()(np.zeros(len(scores)), labels)[1] / 2.0
        if self.link == "identity":
            return float(np.sum((scores - shares) ** 2)), 2.0 * (scores - shares)
        if self.link == "exponential":
            return float(np.sum(np.exp(scores) - shares * scores)), np.exp(scores) - shares
        mean = 1.0 / (1.0 + np.exp(-scores))
        return float(np.sum(np.logaddexp(0.0, scores) - shares * scores)), mean - shares


def expected_loss(surrogate: Surrogate, game: Indistinguishable, scores: Floats) -> tuple[float, Floats]:
    """The mean loss of scores over the game's labels, and its gradient.

    >>> expected_loss(CalibratedDivergence(), Indistinguishable(), Indistinguishable().target)[1].round(9) + 0.0
    array([0., 0., 0.])
    """
    found = [surrogate(scores, labels) for labels in game.patterns]
    gradient: Floats = np.mean([g for _, g in found], axis=0)
    return float(np.mean([loss for loss, _ in found])), gradient


def least_expected_loss(surrogate: Surrogate, *games: Indistinguishable) -> tuple[float, Floats]:
    """The smallest mean of the games' expected losses, and the scores that have it; for smooth convex surrogates.

    >>> round(least_expected_loss(CalibratedDivergence(), Indistinguishable())[0], 3)
    0.438
    """
    from scipy.optimize import minimize

    def objective(scores: Floats) -> tuple[float, Floats]:
        found = [expected_loss(surrogate, game, scores) for game in games]
        return float(np.mean([loss for loss, _ in found])), np.mean([gradient for _, gradient in found], axis=0)

    best = minimize(objective, np.zeros(3), jac=True, method="BFGS", options={"gtol": 1e-10})
    return float(best.fun), np.asarray(best.x, float)


def unavoidable_regret(surrogate: Surrogate) -> float:
    """The gap: what every learner loses a round, at least, in one of the two games; 0 where both have one minimiser.

    >>> round(unavoidable_regret(CalibratedDivergence("identity")), 4) == round(Indistinguishable().unavoidable, 4)
    True
    """
    one, other = Indistinguishable(), Indistinguishable(other=True)
    together = least_expected_loss(surrogate, one, other)[0]
    apart = [least_expected_loss(surrogate, game)[0] for game in (one, other)]
    return together - float(np.mean(apart))
