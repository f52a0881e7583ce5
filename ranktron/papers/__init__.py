"""Every table and figure of the papers again: one file for each paper, and what they share.

The laboratory: the command line alone imports it. `harness` computes and judges, `report` shows, `theory` has the
theorems, `datasets` the papers' data sets.
"""

from collections.abc import Mapping
from types import MappingProxyType

PAPERS: Mapping[str, str] = MappingProxyType(
    {
        "slam": "ranktron.papers.slam",
        "topk": "ranktron.papers.top_k",
        "rankmm": "ranktron.papers.rank_mm",
        "predtron": "ranktron.papers.predtron",
        "committee": "ranktron.papers.committee",
        "comparison": "ranktron.papers.comparison",
    }
)
"""The module of each name that `ranktron reproduce` takes: it has a `PAPER`."""
