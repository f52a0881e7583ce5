"""The ledger of the papers' statements: a verdict on each, from the tests that check it and the rows that it cites.

Nobody writes a verdict down, nor a measured number. A test that is marked with a statement asserts it: it counts as
“holds”, as all tests pass. A row of `python -m reproduction` has the verdict of its rule. The worst of all of them is
the statement's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from reproduction.harness.verdicts import FAILED, HOLDS, MISSING, in_settings, severity, standard_deviation, worst
from reproduction.report.page import Row

CORRECTED = "holds as corrected"
STAND_IN = " on stand-ins"

WORDS: Mapping[str, str] = {
    HOLDS: "every test of it passes, and every row that it cites is *reproduced* or *holds*.",
    CORRECTED: "the same; the text is misprinted or silent, and what is checked stands after *Read*.",
    "holds in k of n settings": "the paper leaves a setting open; it comes out in k of the n that were tried.",
    "cannot tell": "the numbers agree, but would agree with their neighbours as well; or a stated difference is "
    "smaller than what seeds make of it.",
    "same ordering, other level": "a printed number does not come out, its place among those beside it does.",
    "differs": "it did not come out; what did stands after *Here*.",
    MISSING: "the loader is there, the data are not ours to give.",
}
"""Each verdict in words, from the best to the worst."""


@dataclass(frozen=True)
class Statement:
    """A statement of a paper: how it has to be read, what came out, on what, the rows that it cites by their names.

    In `here`, what stands in braces is computed from the rows of the paper: `{item}` is the value of a row with its
    verdict, `{item | a - b}` the mean difference of two of its values with twice its standard error. `rows` are
    patterns (`*`) over the items of the paper's rows. `data` names the data sets that it is about, where they are not
    to be had.
    """

    paper: str
    item: str
    says: str
    corrected: str = ""
    here: str = ""
    on: str = ""
    data: str = ""
    rows: Sequence[str] = ()

    def cited(self, rows: Iterable[Row]) -> list[Row]:
        """Its rows among all."""
        return [
            row
            for row in rows
            if row["paper"] == self.paper.lower() and any(fnmatchcase(row["item"], one) for one in self.rows)
        ]

    def outcome(self, rows: Iterable[Row]) -> str:
        """What came out, with the numbers of the rows.

        >>> values = {"a": [2.0, 4.0], "b": [1.0, 1.0]}
        >>> row = {"paper": "x", "item": "i", "ours": -0.5, "verdict": "differs", "values": values}
        >>> Statement("X", "1", "", here="Behind: {i}, {i | a - b}.").outcome([row])
        'Behind: -0.5000 (differs), +2.0000 ± 2.0000.'
        """
        found = {row["item"]: row for row in rows if row["paper"] == self.paper.lower()}
        return re.sub(r"\{([^}]*)\}", lambda part: _number(part[1], found), self.here)

    def counted(self, rows: Iterable[Row]) -> list[Row]:
        """Of the rows that it cites those that ran; stand-ins only where nothing else did."""
        ran = [row for row in self.cited(rows) if row["ours"] is not None]
        own = [row for row in ran if not row["stand_in"]]
        return own or ran

    def verdict(self, tests: Iterable[str], rows: Iterable[Row]) -> str:
        """What follows from the tests that check it and the rows that it cites: the worst of them counts.

        Rows of several settings count together: how many of the settings keep all of their rows.
        """
        rows = list(rows)
        counted = self.counted(rows)
        found = [HOLDS for _ in tests] + [row["verdict"] for row in counted if not row["setting"]]
        settings: dict[str, list[str]] = {}
        for row in counted:
            if row["setting"]:
                settings.setdefault(row["setting"], []).append(row["verdict"])
        found += _together([worst(each) for each in settings.values()])
        if not found:
            return worst([MISSING, *(row["verdict"] for row in self.cited(rows) if row["verdict"] == FAILED)])
        verdict = worst(found)
        if severity(verdict) == 0:
            verdict = CORRECTED if self.corrected else HOLDS
        return verdict + (STAND_IN if any(row["stand_in"] for row in counted) else "")


def _number(place: str, rows: Mapping[str, Row]) -> str:
    """The text for what stands in braces; a row that is not there is a mistake, and one that did not run says so."""
    item, _, names = place.partition(" | ")
    row = rows[item]
    if row["ours"] is None:
        return "not run"
    if not names:
        return f"{row['ours']:+.4f} ({row['verdict']})"
    first, _, second = names.partition(" - ")
    gap = np.subtract(row["values"][first], row["values"][second])
    return f"{gap.mean():+.4f} ± {2.0 * standard_deviation(gap) / np.sqrt(len(gap)):.4f}"


def _together(settings: Sequence[str]) -> list[str]:
    good = sum(severity(verdict) == 0 for verdict in settings)
    if not settings:
        return []
    return [in_settings(good, len(settings)) if good else worst(settings)]


def plain_verdict(verdict: str) -> str:
    """The entry of `WORDS` that explains a verdict.

    >>> plain_verdict("holds in 1 of 3 settings"), plain_verdict("differs on stand-ins")
    ('holds in k of n settings', 'differs')
    """
    verdict = verdict.removesuffix(STAND_IN)
    return "holds in k of n settings" if verdict.startswith("holds in ") else verdict
