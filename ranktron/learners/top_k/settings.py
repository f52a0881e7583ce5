"""RTop-kF by name: its surrogates, and two presets, the paper's and the recommended one."""

from dataclasses import dataclass
from math import inf

from ranktron.defaults import PAPER as PRINTED
from ranktron.defaults import PRESETS
from ranktron.errors import DataError
from ranktron.learners.steps import Constant, InversePower
from ranktron.learners.top_k.estimator import Decomposed
from ranktron.learners.top_k.learner import TopK
from ranktron.surrogates import KL, PairwiseHinge, SmoothDCG, Squared

_PRINTED = PRINTED["topk"]


@dataclass(frozen=True)
class Setting:
    """The parameters of a preset. γ_t = explore · t^(−power); η_t = eta · t^(−2/3), or eta itself if adaptive.

    A floor is for RankSVM and for residuals: the other losses have a part that needs no labels, and its steps are right
    only where those of the labels are, on average.
    """

    explore: float
    eta: float
    radius: float
    adaptive: bool
    shortlist: int
    late: bool
    power: float = 1.0 / 3.0
    floor: float = 0.0


# The paper does not state its radius: these were best on the validation sets of OHSUMED and MQ2008.
PAPER = {
    name: Setting(explore=0.1, eta=0.01, radius=radius, adaptive=False, shortlist=0, late=False)
    for name, radius in {"ranksvm": 1.0, "squared": 0.1, "kl": 0.1, "smooth-dcg": 0.3}.items()
}


def _recommended(eta: float, floor: float) -> Setting:
    return Setting(1.0, eta, inf, adaptive=True, shortlist=30, late=True, power=1.0 / 6.0, floor=floor)


RECOMMENDED = {
    "ranksvm": _recommended(0.1, 0.1),
    "squared": _recommended(0.03, 0.0),
    "kl": _recommended(0.03, 0.0),
    "smooth-dcg": _recommended(0.01, 0.0),
}
RESIDUALS = {"squared": _recommended(0.1, 0.1), "kl": _recommended(0.1, 0.0)}
"""The recommended setting where residuals are weighted instead of labels."""


def top_k_ranker(
    n_features: int,
    surrogate: str = _PRINTED["surrogate"],
    k: int = _PRINTED["k"],
    setting: str = PRESETS[0],
    explore: float = _PRINTED["explore"],
    eta: float = _PRINTED["eta"],
    radius: float = _PRINTED["radius"],
    shortlist: int = _PRINTED["shortlist"],
    epsilon: float = _PRINTED["epsilon"],
    floor: float = _PRINTED["floor"],
    answered: float = _PRINTED["answered"],
    highest: float = _PRINTED["highest"],
    strict: bool = _PRINTED["strict"],
    seed: int = _PRINTED["seed"],
    average: bool = _PRINTED["average"],
    exploration_price: float = _PRINTED["exploration_price"],
    residual: bool = _PRINTED["residual"],
) -> TopK:
    """Composes RTop-kF; parameters left at 0 take the preset's value. The paper's preset is always strict.

    Parameters
    ----------
    n_features : int
        The number of features.
    surrogate : {"ranksvm", "squared", "kl", "smooth-dcg"}
        The loss that is estimated from the labels of the first documents.
    k : int
        Number of shown documents whose labels are received.
    setting : {"recommended", "paper"}
        The preset: parameters left at 0 take its value.
    explore : float
        Share of the rounds that explore, times t^(-1/3); -1 takes the preset's, which falls more slowly if recommended.
    eta : float
        The step size: times t^(-2/3) in the paper's setting, adaptive in the recommended one.
    radius : float
        The weights stay within a ball of this radius.
    shortlist : int
        Explore only among this many top-scored documents.
    epsilon : float
        The smoothing of `smooth-dcg`.
    floor : float
        Lower bound on the propensities: less variance, some bias; -1 takes the preset's, and none with a price.
    answered : float
        Share of the shown documents whose labels come back.
    highest : float
        The highest possible label; 0 allows any.
    strict : bool
        Refuse queries with fewer than k documents.
    seed : int
        Seed of the exploration.
    average : bool
        Serve the mean of all weight vectors instead of the last one.
    exploration_price : float
        No list falls below the one by score by more than this share of its estimated reward; 1 allows any.
    residual : bool
        Weight how far scores are from labels instead of labels alone (`squared`, `kl`); the paper's preset does what is
        printed.

    Examples
    --------
    >>> learner = top_k_ranker(3, setting="paper", eta=0.5)
    >>> learner.explore, learner.step
    (InversePower(eta=0.1, power=0.333...), InversePower(eta=0.5, power=0.666...))
    """
    if setting == "paper":
        loss, own = make_surrogate(surrogate, epsilon, residual=surrogate == "kl"), PAPER[surrogate]
    else:
        loss = make_surrogate(surrogate, epsilon, residual=residual)
        own = {**RECOMMENDED, **RESIDUALS}[surrogate] if residual else RECOMMENDED[surrogate]
    eta = eta or own.eta
    # rankers stored by 0.1.0 have 0 for both, and go on as they were
    gamma, power = (own.explore, own.power) if explore == -1.0 else (explore or own.explore, 1.0 / 3.0)
    if not 0.0 < gamma <= 1.0:
        raise DataError(f"explore must be above 0 and at most 1 (0: as the setting has it), not {explore}")
    if floor == -1.0:  # a price needs exact propensities
        floor = own.floor if exploration_price == 1.0 else 0.0
    return TopK(
        n_features,
        loss,
        k,
        InversePower(gamma, power),
        Constant(eta) if own.adaptive else InversePower(eta, 2.0 / 3.0),
        own.adaptive,
        radius or own.radius,
        shortlist or (own.shortlist and max(own.shortlist, k)),
        floor,
        answered,
        highest or inf,
        strict or setting == "paper",
        seed,
        average,
        own.late,
        exploration_price=exploration_price,
    )


def make_surrogate(name: str, epsilon: float = 0.01, *, residual: bool = False) -> Decomposed:
    """The surrogate of that name; with `residual` the squared loss and KL weight residuals, which is how KL is printed.

    >>> make_surrogate("kl")
    KL(printed=False)
    """
    known: dict[str, Decomposed] = {
        "ranksvm": PairwiseHinge(),
        "squared": Squared(residual),
        "kl": KL(printed=residual),
        "smooth-dcg": SmoothDCG(epsilon),
    }
    if name not in known:
        raise DataError(f"there is no surrogate {name!r} for feedback at the top; choose from {', '.join(known)}")
    return known[name]
