"""Rankers that survive: a folder that is opened like a database, in which what was acknowledged stays.

`open` gives a `Store`, whose `Ranker`s rank and learn; the page "The store" shows how. Below them, `engine` is what the
service shares: `journal/` is where entries, rounds and snapshots are on disk, `rankers/` are learners at work, whose
open rounds wait for feedback, `experiments/` compare rankers on live traffic. There is no event loop here, and no HTTP.
"""

from typing import TYPE_CHECKING

from ranktron.lazy import lazy_names

if TYPE_CHECKING:
    from ranktron.store.errors import RequestError
    from ranktron.store.store import Ranker, ShownRanking, Store, open

_HOMES = {
    "Ranker": "store",
    "RequestError": "errors",
    "ShownRanking": "store",
    "Store": "store",
    "open": "store",
}

__getattr__ = lazy_names(__name__, homes={name: f"{__name__}.{home}" for name, home in _HOMES.items()})

__all__ = ["Ranker", "RequestError", "ShownRanking", "Store", "open"]
