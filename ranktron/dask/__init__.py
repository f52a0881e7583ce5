"""Dask: rankers that learn from data of many machines, and training on files that workers read.

The extra `dask` installs what it needs; nothing of it is imported before it is used. What is exact about each mode, and
what it costs, is in the documentation, "Beyond one machine".
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
