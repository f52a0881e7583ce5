"""Dask: rankers that learn from data of many machines, and training on files that workers read.

`cluster`, `collections` and `ranker` need the extra `dask`, which is imported when they are used. The other modules
train on parts of data with any workers; `ranktron train --stream` gives them two threads. "Beyond one machine" in the
documentation says what is exact about each mode, and what it costs.
"""

from typing import TYPE_CHECKING

from ranktron.lazy import lazy_names

if TYPE_CHECKING:
    from ranktron.dask.cluster import Cluster, open_client
    from ranktron.dask.ranker import DaskRanker

__all__ = ["Cluster", "DaskRanker", "open_client"]

_HOMES = {"Cluster": "cluster", "DaskRanker": "ranker", "open_client": "cluster"}

__getattr__ = lazy_names(__name__, homes={name: f"{__name__}.{home}" for name, home in _HOMES.items()})


def __dir__() -> list[str]:
    return __all__
