"""What an experiment is made of: series of cells to compute, claims to hold against them, figures and tables.

A file of this package describes one paper with these nouns. Computing, keeping, judging and drawing are elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reproduction.harness.verdicts import Rule, Values
from reproduction.report.charts import Figure

Arguments = Mapping[str, Any]

Results = Mapping[str, Sequence[Sequence[Any]]]
"""For each series its results: one row for each seed, in it one entry for each part."""


@dataclass(frozen=True)
class Plan:
    """How much is computed: everything, or so little that it is done in minutes; `seeds` overrides both."""

    quick: bool = False
    seeds: int | None = None


@dataclass(frozen=True)
class Cell:
    """One computation: a function, by a name that another process can find, its arguments, a seed, a data set.

    The function is called with the arguments and the seed, and with the `folder` of the data where there are any. It
    returns what JSON can hold. `cost` is a guess at its seconds, for the order of the work and the remaining time.
    """

    function: str
    arguments: Arguments
    seed: int
    data: str | None = None
    cost: float = 1.0


@dataclass(frozen=True)
class Series:
    """The same computation for several seeds and, within each, for several parts (folds, learners).

    `quick` replaces some arguments in a quick run. Where nothing is left to chance `seeds` is 1, and stays 1.

    >>> from math import comb
    >>> series = Series("c", comb, {"n": 5}, parts=({"k": 1}, {"k": 2}), seeds=3)
    >>> [len(row) for row in series.cells(Plan(), None)]
    [2, 2, 2]
    """

    name: str
    function: Callable[..., Any]
    arguments: Arguments = field(default_factory=dict)
    quick: Arguments = field(default_factory=dict)
    parts: Sequence[Arguments] = ({},)
    quick_parts: Sequence[Arguments] | None = None
    seeds: int = 10
    quick_seeds: int = 3
    cost: float = 1.0

    def count(self, plan: Plan) -> int:
        """How many seeds."""
        if self.seeds == 1:
            return 1
        return plan.seeds or (self.quick_seeds if plan.quick else self.seeds)

    def settings(self, plan: Plan) -> str:
        """What this run computes: the numbers among the arguments, and the seeds.

        >>> Series("c", print, {"T": 1000}, {"T": 10}).settings(Plan(quick=True))
        'T = 10 (full run: 1,000), 3 seeds (full run: 10)'
        """
        given = {**self.arguments, **(self.quick if plan.quick else {})}
        shown = [
            f"{name} = {_format_value(value)}" + (f" (full run: {_format_value(full)})" if value != full else "")
            for name, value in given.items()
            if _format_value(value) and (full := self.arguments.get(name, value)) is not None
        ]
        seeds = self.count(plan)
        full_run = f" (full run: {self.seeds})" if seeds != self.seeds else ""
        return ", ".join([*shown, *([f"{seeds} seeds{full_run}"] if self.seeds > 1 else [])])

    def is_full(self, plan: Plan) -> bool:
        """Whether each run that the plan makes is one of the full ones; seeds may be missing."""
        return not plan.quick or not (self.quick or self.quick_parts is not None)

    def cells(self, plan: Plan, data: str | None) -> list[list[Cell]]:
        """The cells, a row for each seed."""
        given = {**self.arguments, **(self.quick if plan.quick else {})}
        parts = self.quick_parts if plan.quick and self.quick_parts is not None else self.parts
        name = f"{self.function.__module__}:{self.function.__qualname__}"
        return [
            [Cell(name, {**given, **part}, seed, data, self.cost) for part in parts] for seed in range(self.count(plan))
        ]


def _format_value(value: object) -> str:
    if isinstance(value, (int, float)):
        return f"{value:,}" if isinstance(value, int) else f"{value:g}"
    shown = [_format_value(part) for part in value] if isinstance(value, (tuple, list)) else []
    return " ".join(shown) if all(shown) else ""


@dataclass(frozen=True)
class Claim:
    """One thing that the paper says: where, what, and the rule that judges our values.

    `note` says where the text is wrong or silent, and what was done about it. `setting` names the reading of the text
    that the row is for, where the text leaves several open and the same is claimed of each.
    """

    item: str
    statement: str
    rule: Rule
    values: Callable[[Results], Values]
    note: str = ""
    setting: str = ""


@dataclass(frozen=True)
class ReportTable:
    """A table of the report; numbers are printed as they are given."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True)
class Experiment:
    """A figure, a table or a theorem of a paper, on one data set or on simulated data.

    `about` says what was done, with the choices that the paper leaves open; `stand_in` what stands for what, where the
    paper's own data or programs are not to be had.
    """

    name: str
    title: str
    about: str
    series: Sequence[Series]
    claims: Sequence[Claim] = ()
    figures: Sequence[Callable[[Results], Figure]] = ()
    tables: Sequence[Callable[[Results], ReportTable]] = ()
    data: str | None = None
    stand_in: str = ""


@dataclass(frozen=True)
class Paper:
    """All experiments of one paper."""

    name: str
    title: str
    authors: str
    experiments: Sequence[Experiment]
