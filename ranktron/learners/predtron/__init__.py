"""Predtron: one mistake-driven loop for every prediction problem (Jain, Natarajan, Tewari, NIPS 2015).

A problem is a loss, a representation of predictions by unit vectors, a decoding of scores and a loss-augmented
argmax; `Predtron` learns any of them. Write your own and try `check_problem` on it.
"""

from ranktron.learners.predtron import links
from ranktron.learners.predtron.checking import check_problem
from ranktron.learners.predtron.classes import binary, multiclass, ordinal, with_costs, with_reject
from ranktron.learners.predtron.links import Euclidean, Group, L1Link, Trace, link_of
from ranktron.learners.predtron.loop import Mistake, Predtron, theoretical_step, walk
from ranktron.learners.predtron.permutations import Permutations
from ranktron.learners.predtron.positions import PlaceLoss, Places
from ranktron.learners.predtron.problem import Enumerated, Problem, surrogate, unit_surrogate
from ranktron.learners.predtron.ranker import PredtronLearner, predtron_ranker
from ranktron.learners.predtron.subsets import Counted, ErrorSetSize, Hamming, Subsets, SubsetZeroOne
from ranktron.learners.predtron.variants import LossDriven, Standard, variant_of

__all__ = [
    "Counted",
    "Enumerated",
    "ErrorSetSize",
    "Euclidean",
    "Group",
    "Hamming",
    "L1Link",
    "LossDriven",
    "Mistake",
    "Permutations",
    "PlaceLoss",
    "Places",
    "Predtron",
    "PredtronLearner",
    "Problem",
    "Standard",
    "SubsetZeroOne",
    "Subsets",
    "Trace",
    "binary",
    "check_problem",
    "link_of",
    "multiclass",
    "ordinal",
    "predtron_ranker",
    "surrogate",
    "theoretical_step",
    "unit_surrogate",
    "variant_of",
    "walk",
    "with_costs",
    "with_reject",
]


def __getattr__(name: str) -> type[L1Link]:
    if name != "Sparse":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return links.Sparse  # which warns
