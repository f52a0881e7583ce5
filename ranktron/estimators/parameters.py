"""The parameters of rankers: those of the algorithm's row in the table, and those that all rankers have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from sklearn.utils import check_random_state

from ranktron.defaults import PRESETS, RENAMED, find_preset
from ranktron.errors import DataError
from ranktron.estimators.signature import with_parameters
from ranktron.training.algorithms import ALGORITHMS, CATEGORICAL, MAP, NAN, PRESET, TRAINING
from ranktron.training.parameters import Parameter

if TYPE_CHECKING:
    from ranktron.estimators.base import BaseRanker

RANDOM_STATE = Parameter("random_state", None, "seed of the shuffling")
_COMMON = (
    *TRAINING,
    Parameter(
        "scale",
        None,
        'None, or "auto" (standardise), "standard", "minmax": scaling fitted with the model; "minmax-query", '
        '"standard-query": within each query, which predict then has to know; "running-standard": one that partial_fit '
        "goes on updating",
    ),
    MAP,
    NAN,
    CATEGORICAL,
    RANDOM_STATE,
    Parameter(
        "ungrouped", "error", "what rows without query ids are: refused, or one list", choices=("error", "one-list")
    ),
    Parameter("features", None, "None, or the names of the columns of a data frame that are features"),
)
UNGROUPED_PARAMETER = _COMMON[-2]
BEFORE = {"ungrouped": "one-list", "features": None, "preset": "paper"}
"""What estimators did before they had these parameters: a pickle of 0.1.0 has none of them."""

R = TypeVar("R", bound="type[BaseRanker]")


def from_table(name: str, *more: Parameter) -> Callable[[R], R]:
    """Gives a ranker its row in the table, the algorithm and its parameters, and more parameters of its own."""
    algorithm = ALGORITHMS[name]
    recommended, paper = (find_preset(name, word) for word in PRESETS)
    common = [replace(p, default=recommended.get(p.name, p.default)) for p in (*_COMMON, PRESET)]
    stored = {old: new for new, old in RENAMED.get(name, {}).items()}
    own = [p for p in algorithm.parameters if p.name not in stored]

    def decorate(cls: R) -> R:
        cls._algorithm, cls._renamed_parameters = algorithm, stored
        values = {key: value for key, value in paper.items() if key not in stored}
        return with_parameters(*own, *more, *common, paper=values)(cls)

    return decorate


def draw_seed(random_state: Any) -> int:
    """A seed drawn from what scikit-learn takes for a random state."""
    try:
        return int(check_random_state(random_state).randint(2**31))
    except ValueError as error:
        raise DataError(f"random_state must be None, a whole number of at least 0 or a RandomState: {error}") from None
