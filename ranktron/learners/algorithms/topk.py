"""RTop-kF by name: its surrogates, and two presets, the paper's and the recommended one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from ranktron.errors import DataError
from ranktron.learners.parameters import AVERAGE, ETA, PRESETS, PRICE, SEED, Parameter, Parameters, declare

if TYPE_CHECKING:
    from ranktron.learners.top_k.estimator import Decomposed
    from ranktron.learners.top_k.learner import TopK


@dataclass(frozen=True)
class Preset:
    """The values of a preset. γ_t = explore · t^(−power); η_t = eta · t^(−2/3), or eta itself if adaptive.

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
    name: Preset(explore=0.1, eta=0.01, radius=radius, adaptive=False, shortlist=0, late=False)
    for name, radius in {"ranksvm": 1.0, "squared": 0.1, "kl": 0.1, "smooth-dcg": 0.3}.items()
}


def _recommended(eta: float, floor: float) -> Preset:
    return Preset(1.0, eta, inf, adaptive=True, shortlist=30, late=True, power=1.0 / 6.0, floor=floor)


RECOMMENDED = {
    "ranksvm": _recommended(0.1, 0.1),
    "squared": _recommended(0.03, 0.0),
    "kl": _recommended(0.03, 0.0),
    "smooth-dcg": _recommended(0.01, 0.0),
}
RESIDUALS = {"squared": _recommended(0.1, 0.1), "kl": _recommended(0.1, 0.0)}
"""The recommended preset where residuals are weighted instead of labels."""


@declare(
    "topk",
    Parameter("surrogate", "loss to learn; ranksvm needs k of at least 2", "ranksvm", choices=tuple(PAPER)),
    Parameter("k", "number of shown documents whose labels are received", 2, above=0),
    Parameter(
        "preset",
        "steps and exploration of the paper, or better ones; parameters that are none take the preset's value",
        paper=PRESETS[1],
        recommended=PRESETS[0],
        choices=PRESETS,
    ),
    Parameter(
        "explore", "share of rounds that explore, times t^(-1/3); the recommended is t^(-1/6)", above=0.0, kind=float
    ),
    replace(ETA, paper=None, kind=float, help="step size: times t^(-2/3) in the paper, adaptive if recommended"),
    Parameter("radius", "the weights stay within a ball of this radius", above=0.0, kind=float),
    Parameter("shortlist", "explore only among this many top-scored documents", above=0, kind=int),
    Parameter("epsilon", "smoothing of smooth-dcg", 0.01, above=0.0),
    Parameter(
        "floor",
        "lower bound on propensities: less variance, some bias; the recommended is 0.1 for ranksvm and squared, else 0",
        above=-1.0,
        kind=float,
    ),
    Parameter("answered", "share of the shown documents whose labels come back", 1.0, above=0.0),
    Parameter("highest", "highest possible label; none: any", above=0.0, kind=float),
    Parameter(
        "strict",
        "refuse queries of fewer than k or 2 documents, and explore of 1/2 or more, as preset=paper does",
        paper=False,
    ),
    SEED,
    replace(AVERAGE, paper=True),
    PRICE,
    Parameter(
        "residual",
        "squared, kl: weight how far scores are from labels instead of labels alone",
        paper=False,
        recommended=True,
    ),
    estimator="TopKRanker",
    summary="updates on a loss over the whole list, estimated from labels of the first k documents shown",
    paper="Chaudhuri and Tewari, Online Learning to Rank with Feedback at the Top",
    about="""
    Learns from the labels of the first k documents that it shows, and never receives those of the others (RTop-kF).

    `fit` and `partial_fit` simulate: they are given all labels, and only those of the first k shown documents reach
    the learner. Real feedback goes through `learner_.rank(X, number)` and `learner_.learn(X, ranking, feedback)`.

    With one label of each list (`k=1`, surrogates `squared` and `kl`) features that are scaled within each list
    (`scale="minmax-query"`) are learnt from faster where few of them decide.
    """,
    simulates=True,
    recommended={"scale": "minmax", "n_epochs": 30},  # its steps are for features in [0, 1]
)
def top_k_ranker(n_features: int, p: Parameters) -> TopK:
    """Composes RTop-kF; parameters that are None take the preset's value. The paper's preset is always strict.

    With an `exploration_price`, the preset's floor is 0.

    Examples
    --------
    >>> learner = top_k_ranker(3, eta=0.5)
    >>> learner.explore, learner.step
    (InversePower(eta=0.1, power=0.333...), InversePower(eta=0.5, power=0.666...))
    """
    from ranktron.learners.steps import Constant, InversePower
    from ranktron.learners.top_k.learner import TopK

    if p.preset == "paper":
        loss, own = make_surrogate(p.surrogate, p.epsilon, residual=p.surrogate == "kl"), PAPER[p.surrogate]
    else:
        loss = make_surrogate(p.surrogate, p.epsilon, residual=p.residual)
        own = {**RECOMMENDED, **(RESIDUALS if p.residual else {})}[p.surrogate]
    gamma, power = (own.explore, own.power) if p.explore is None else (p.explore, 1.0 / 3.0)
    if not 0.0 < gamma <= 1.0:
        raise DataError(f"explore must be above 0 and at most 1, or None, not {p.explore}")
    floor = own.floor if p.exploration_price == 1.0 else 0.0  # a price needs exact propensities
    eta = own.eta if p.eta is None else p.eta
    return TopK(
        n_features,
        loss,
        p.k,
        InversePower(gamma, power),
        Constant(eta) if own.adaptive else InversePower(eta, 2.0 / 3.0),
        own.adaptive,
        own.radius if p.radius is None else p.radius,
        (own.shortlist and max(own.shortlist, p.k)) if p.shortlist is None else p.shortlist,
        floor if p.floor is None else p.floor,
        p.answered,
        inf if p.highest is None else p.highest,
        p.strict or p.preset == "paper",
        p.seed,
        p.average,
        own.late,
        exploration_price=p.exploration_price,
    )


def make_surrogate(name: str, epsilon: float = 0.01, *, residual: bool = False) -> Decomposed:
    """The surrogate of that name; with `residual` the squared loss and KL weight residuals, which is how KL is printed.

    >>> make_surrogate("kl")
    KL(printed=False)
    """
    from ranktron.surrogates import KL, PairwiseHinge, SmoothDCG, Squared

    known: dict[str, Decomposed] = {
        "ranksvm": PairwiseHinge(),
        "squared": Squared(residual),
        "kl": KL(printed=residual),
        "smooth-dcg": SmoothDCG(epsilon),
    }
    if name not in known:
        raise DataError(f"there is no surrogate {name!r} for feedback at the top; choose from {', '.join(known)}")
    return known[name]
