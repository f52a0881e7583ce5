"""What is proved of RTop-kF, as functions: second moments (Lemma 5), the theorem's own settings, its bound.

Letters are the paper's: R_D the longest row of X, U the radius of the ball, R_max the highest label, m documents, T
rounds. C is the constant of Lemma 5, E|z|² ≤ C/γ; B the largest loss of an exploring round, whose scores are in [0, 1].
"""

from math import e, exp, sqrt
from typing import NamedTuple

from ranktron.errors import DataError
from ranktron.surrogates import KL, PairwiseHinge, Squared


class Limits(NamedTuple):
    """How large a game is."""

    m: int
    R_D: float = 1.0
    U: float = 1.0
    R_max: float = 1.0


def second_moment(surrogate: object, game: Limits, gamma: float = 0.5) -> float:
    """The constant C of E|z|² ≤ C/γ, explicitly.

        squared   8 R_D² m² (γ R_D² U² + R_max²),    with residuals 4 R_D² m² (R_D U + R_max)²
        RankSVM   R_D² m² (m − 1)²
        KL        R_D² m² exp(2 max(R_D U, R_max))

    The paper speaks of polynomials of degree at most four; KL's is an exponential. It holds for both its estimates'
    larger one, the printed one. For a margin other than 1 and k above the minimum it holds as well.

    >>> second_moment(PairwiseHinge(), Limits(m=3))
    36.0
    """
    m, R_D, U, R_max = game
    if isinstance(surrogate, Squared) and surrogate.residual:
        return 4.0 * R_D**2 * m**2 * (R_D * U + R_max) ** 2
    if isinstance(surrogate, Squared):
        return 8.0 * R_D**2 * m**2 * (gamma * R_D**2 * U**2 + R_max**2)  # Eq. (6)
    if isinstance(surrogate, PairwiseHinge):
        return R_D**2 * m**2 * (m - 1.0) ** 2
    if isinstance(surrogate, KL):
        return R_D**2 * m**2 * exp(2.0 * max(R_D * U, R_max))
    raise DataError(f"there is no bound for {type(surrogate).__name__}: the theorem speaks of convex surrogates")


def largest_loss(surrogate: object, game: Limits) -> float:
    """B: no loss of scores in [0, 1]^m is above it.

    >>> largest_loss(Squared(), Limits(m=3, R_max=2.0))
    12.0
    """
    m, _, _, R_max = game
    if isinstance(surrogate, Squared):
        return m * max(R_max, 1.0) ** 2
    if isinstance(surrogate, PairwiseHinge):
        return m * (m - 1) / 2.0 * (surrogate.margin + 1.0)
    if isinstance(surrogate, KL):
        return m * max(exp(R_max) * (R_max - 1.0) + 1.0, exp(R_max) * (R_max - 2.0) + e, e - 2.0)
    raise DataError(f"there is no bound for {type(surrogate).__name__}: the theorem speaks of convex surrogates")


def theorem_settings(surrogate: object, game: Limits, T: int) -> tuple[float, float]:
    """The exploration γ and step η that Theorem 4.1 chooses for T rounds.

        γ = min(1/2, (U √C / (2 B))^(2/3) T^(−1/3)),    η = U √(γ / (T C))

    >>> gamma, eta = theorem_settings(PairwiseHinge(), Limits(m=3), 1000)
    >>> round(gamma, 4), round(eta, 5)
    (0.063, 0.00132)
    """
    C, B = second_moment(surrogate, game), largest_loss(surrogate, game)
    gamma = min(0.5, (game.U * sqrt(C) / (2.0 * B)) ** (2.0 / 3.0) * T ** (-1.0 / 3.0))
    return gamma, game.U * sqrt(gamma / (T * C))


def regret_bound(
    surrogate: object, game: Limits, T: int, gamma: float, eta: float, distance: float | None = None
) -> float:
    """What Theorem 4.1 promises: U²/(2η) + η T C/(2γ) + γ T B.

    From a start w_1, the ball around it: the distance of the comparator from w_1 takes the place of U in the first
    term, and U is the length of the longest weights in the ball (ours: the proof is in docs/theory.md).

    >>> game = Limits(m=3)
    >>> round(regret_bound(PairwiseHinge(), game, 1000, *theorem_settings(PairwiseHinge(), game, 1000)))
    1134
    """
    C, B = second_moment(surrogate, game), largest_loss(surrogate, game)
    distance = game.U if distance is None else distance
    return distance**2 / (2.0 * eta) + eta * T * C / (2.0 * gamma) + gamma * T * B  # Eq. (7)
