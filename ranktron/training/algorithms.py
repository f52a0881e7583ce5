"""The algorithms by name, and the parameters of training that all of them have. Nothing heavy is imported.

Estimators, command line and service read it. What an algorithm is stands in its file of `ranktron.learners.algorithms`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ranktron.data.option_names import IMPUTATIONS
from ranktron.errors import DataError
from ranktron.learners.parameters import ALGORITHMS as DECLARED
from ranktron.learners.parameters import PRESETS, Algorithm, Parameter, Parameters, register

if TYPE_CHECKING:
    from ranktron.learners.fixed_scorer import Fixed

TRAINING = (
    Parameter("n_epochs", "passes over the data", 10, above=0),
    Parameter("shuffle", "whether each pass takes the queries in a new order", paper=True),
)
SCALE = Parameter(
    "scale",
    'None, or "auto" (standard, for sparse features range), "standard", "minmax", "range": scaling fitted with the '
    'model; "minmax-query", '
    '"standard-query": within each query, which predict then has to know; "running-standard": one that partial_fit '
    "goes on updating",
    paper=None,
    recommended="auto",
)
NAN = Parameter(
    "nan",
    "what stands for a missing value (NaN), kept in the model: nothing, the feature's mean, 0, or the mean and a "
    "further feature that says so",
    "error",
    choices=IMPUTATIONS,
)
MAP = Parameter(
    "map",
    "None, or a feature map fitted with the model: bins:N, bins-linear:N, rff:N, nystroem:N, products:N or leaves:N",
)
CATEGORICAL = Parameter(
    "categorical",
    "columns of a data frame of which each category becomes a feature: their names, None, or those whose type says so",
    "auto",
)
PRESET = Parameter(
    "preset",
    "where the values that are not given come from: recommended, or as the paper prints them, features unscaled",
    PRESETS[0],
    choices=PRESETS,
)
DEFAULT_ALGORITHM = "hinge"


def _fixed(n_features: int, p: Parameters) -> Fixed:
    from ranktron.learners.fixed_scorer import Fixed

    return Fixed(n_features)


FIXED = register(Algorithm("linear", _fixed, summary="fixed weights: they score, and do not learn"))
ALGORITHMS: dict[str, Algorithm] = {name: each for name, each in DECLARED.items() if each.estimator}


def algorithm(name: str) -> Algorithm:
    """Looks an algorithm up by its command-line name.

    >>> algorithm("hinge").estimator
    'HingePerceptron'
    """
    if name not in ALGORITHMS:
        raise DataError(f"there is no algorithm {name!r}; choose from {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]


def stored_algorithm(kind: str) -> Algorithm:
    """Looks up what a model file calls its kind: an algorithm, or fixed weights."""
    return FIXED if kind == FIXED.name else algorithm(kind)


def common_parameters(found: Algorithm) -> list[Parameter]:
    """How an algorithm is trained: passes, their order, and the scaling, with the values that it recommends."""
    common = (*TRAINING, SCALE)
    return [replace(p, recommended=found.recommended[p.name]) if p.name in found.recommended else p for p in common]


def find_preset(name: str, word: str) -> dict[str, Any]:
    """All values of a preset for an algorithm: its parameters, and how it is trained.

    >>> find_preset("hinge", "paper")
    {'n_epochs': 10, 'shuffle': True, 'scale': None, 'eta': 1.0, 'margin': 1.0, 'average': False}
    """
    found = algorithm(name)
    common = {p.name: p.paper if word == "paper" else p.default for p in common_parameters(found)}
    return {**common, **found.preset(word)}
