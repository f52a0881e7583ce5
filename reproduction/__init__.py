"""Every table and figure of the papers again: one file for each paper, and what they share.

Not in the wheel: `python -m reproduction` in a checkout. `harness` computes and judges, `report` shows, `theory` has
games and worst cases, `datasets` the papers' data sets.
"""

from collections.abc import Mapping
from types import MappingProxyType

PAPERS: Mapping[str, str] = MappingProxyType(
    {
        "slam": "reproduction.slam",
        "topk": "reproduction.top_k",
        "rankmm": "reproduction.rank_mm",
        "predtron": "reproduction.predtron",
        "committee": "reproduction.committee",
        "comparison": "reproduction.comparison",
    }
)
"""The module of each name that `python -m reproduction` takes, with its `PAPER`."""
