"""Every table and figure of the papers again: one file for each paper, and what they share.

`verdicts` has the rules, `experiment` the nouns, `running` and `keeping` the machinery, `reproducing` puts it together.
"""

from collections.abc import Mapping
from types import MappingProxyType

PAPERS: Mapping[str, str] = MappingProxyType(
    {name: f"ranktron.papers.{name}" for name in ("slam", "topk", "rankmm", "predtron", "committee", "comparison")}
)
"""The module of each name that `ranktron reproduce` takes: it has a `PAPER`."""
