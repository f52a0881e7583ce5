"""The names of feature maps, on the command line and in model files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ranktron.data.maps.bins import Bins, FittedBins
from ranktron.data.maps.gaussian import FittedFourier, FittedNystroem, Nystroem, RandomFourier
from ranktron.data.maps.leaves import FittedLeaves, Leaves
from ranktron.data.maps.linear_bins import FittedLinearBins, LinearBins
from ranktron.data.maps.products import FittedProducts, Products
from ranktron.data.maps.protocols import FeatureMap, FittedMap
from ranktron.errors import DataError

MAPS: dict[str, tuple[type[Any], type[Any]]] = {
    "bins": (Bins, FittedBins),
    "bins-linear": (LinearBins, FittedLinearBins),
    "rff": (RandomFourier, FittedFourier),
    "nystroem": (Nystroem, FittedNystroem),
    "products": (Products, FittedProducts),
    "leaves": (Leaves, FittedLeaves),
}
"""For each name the class of its settings and the class of the fitted map."""


def as_map(given: Any) -> FeatureMap | None:
    """Takes a feature map or its name, such as `bins:32`; None and "none" mean no map.

    Parameters
    ----------
    given : str, FeatureMap or None
        `bins:N`, `bins-linear:N`, `rff:N`, `nystroem:N`, `products:N`, `leaves:N`, or an object such as `Bins(32)`,
        which is returned unchanged. Without `:N` the map has its default size.

    Examples
    --------
    >>> as_map("rff:100")
    RandomFourier(features=100, gamma=0.0, seed=0, sees=2, weight=0.0)
    >>> as_map("bins")
    Bins(count=32)
    """
    if given is None or given == "none":
        return None
    if not isinstance(given, str):
        if callable(getattr(given, "fit", None)) and not isinstance(given, type):
            feature_map: FeatureMap = given
            return feature_map
        raise DataError(f"a map must be a text such as 'bins:32' or an object such as Bins(32), not {given!r}")
    name, colon, number = given.partition(":")
    if name not in MAPS or (colon and not number.isascii()) or (colon and not number.isdigit()):
        known = ", ".join(f"{each}:N" for each in MAPS)
        raise DataError(f"there is no map {given!r}; choose from {known}")
    made: FeatureMap = MAPS[name][0](int(number)) if colon else MAPS[name][0]()
    return made


def map_to_dict(fitted: FittedMap) -> dict[str, Any]:
    """The fitted map as a model file stores it."""
    return {"name": fitted.name, **fitted.state()}


def map_from_dict(stored: Mapping[str, Any] | None, n_features: int) -> FittedMap | None:
    """The fitted map that a model file stores."""
    if stored is None:
        return None
    name = str(stored["name"])
    if name.partition(":")[0] not in MAPS:
        raise DataError(f"the model holds a feature map that this version does not know: {name!r}")
    found: FittedMap = MAPS[name.partition(":")[0]][1].from_state(name, stored)
    if found.n_inputs != n_features:
        raise DataError(f"the model has {n_features} features, but its map is for {found.n_inputs}")
    return found
