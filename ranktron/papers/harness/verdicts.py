"""The rules by which a claim of a paper gets its verdict. No verdict is written down anywhere else.

A rule looks at values over seeds, never at the name of what it judges. `RULES` says in words what each one does; the
report prints them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from ranktron.types import Floats

REPRODUCED = "reproduced"
OTHER_LEVEL = "same ordering, other level"
DIFFERS = "differs"
HOLDS = "holds"
MISSING = "not run: data missing"
FAILED = "not run: a computation failed"

VERDICTS = (REPRODUCED, HOLDS, OTHER_LEVEL, DIFFERS, MISSING, FAILED)

RULES = {
    "near": "A printed number is reproduced if it lies within max(2 · spread, tolerance) of our mean; the spread is "
    "the standard deviation over seeds, the tolerance stands with the row. Otherwise the row is judged by its order "
    "among the numbers printed beside it: where every pair that differs by more than the tolerance in print has the "
    "same order here, it is “same ordering, other level”; else it differs.",
    "ordered": "A printed order is reproduced if each stated difference has a mean above 0 by more than twice its "
    "standard error over seeds. A difference that the seeds cannot tell from 0 is not shown: the row differs.",
    "bounded": "A theorem or bound holds if every seed, and where stated every prefix of every run, keeps it; one "
    "exception and the row differs.",
    "missing": "A row whose data were not found is not run; it says where to get them. A row whose computation failed "
    "says how.",
}

_ROUNDING = 1e-6  # features are 32-bit numbers

Values = Mapping[str, Floats]
"""For each name (a learner, a system) its values, one for each seed."""


class Judgement(NamedTuple):
    """What a rule found: our mean, its spread over seeds, the verdict, and the numbers behind it in words."""

    ours: float
    spread: float
    seeds: int
    verdict: str
    detail: str = ""


class Rule(Protocol):
    """Judges values; `published` is the number that the paper prints, if it prints one."""

    @property
    def published(self) -> float | None: ...

    def __call__(self, values: Values, /) -> Judgement: ...


def spread(values: Floats) -> float:
    """The standard deviation over seeds; 0 for a single one.

    >>> spread(np.array([1.0, 3.0])) == 2**0.5
    True
    """
    found = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    return found if found > 1e-12 * float(np.max(np.abs(values))) else 0.0  # rounding is no spread


@dataclass(frozen=True)
class Near:
    """A number is printed for `which`; `column` has the numbers printed beside it.

    >>> rule = Near("a", {"a": 0.50, "b": 0.40}, tolerance=0.01)
    >>> rule({"a": np.array([0.504, 0.506]), "b": np.array([0.3])}).verdict
    'reproduced'
    >>> rule({"a": np.array([0.6, 0.6]), "b": np.array([0.3])}).verdict
    'same ordering, other level'
    >>> rule({"a": np.array([0.2, 0.2]), "b": np.array([0.3])}).verdict
    'differs'
    """

    which: str
    column: Mapping[str, float]
    tolerance: float

    @property
    def published(self) -> float:
        return self.column[self.which]

    def __call__(self, values: Values) -> Judgement:
        mine = values[self.which]
        mean, deviation = float(np.mean(mine)), spread(mine)
        allowed = max(2.0 * deviation, self.tolerance)
        detail = f"allowed: ± {allowed:.2g}"
        if abs(mean - self.published) <= allowed:
            verdict = REPRODUCED
        elif self._keeps_its_place(values):
            verdict = OTHER_LEVEL
        else:
            verdict = DIFFERS
        return Judgement(mean, deviation, len(mine), verdict, detail)

    def _keeps_its_place(self, values: Values) -> bool:
        apart = {
            name: self.published - number
            for name, number in self.column.items()
            if name != self.which and name in values and abs(self.published - number) > self.tolerance
        }
        here = {name: float(np.mean(values[self.which]) - np.mean(values[name])) for name in apart}
        return bool(apart) and all(here[name] * gap > 0.0 for name, gap in apart.items())


@dataclass(frozen=True)
class Ordered:
    """Names from the highest to the lowest, as the paper has them; `ours` is the smallest gap between neighbours.

    >>> rule = Ordered(("a", "b"))
    >>> rule({"a": np.array([2.0, 2.1, 2.2]), "b": np.array([1.0, 1.0, 1.1])}).verdict
    'reproduced'
    >>> rule({"a": np.array([2.0, 0.1, 2.2]), "b": np.array([1.0, 1.9, 1.1])}).verdict
    'differs'
    """

    names: tuple[str, ...]
    published: None = None

    def __call__(self, values: Values) -> Judgement:
        gaps = {(a, b): values[a] - values[b] for a, b in zip(self.names, self.names[1:], strict=False)}
        shown = [float(np.mean(gap)) > 2.0 * spread(gap) / np.sqrt(len(gap)) for gap in gaps.values()]
        smallest = min(gaps.values(), key=lambda gap: float(np.mean(gap)))
        means = ", ".join(f"{name}: {np.mean(values[name]):.4g}" for name in self.names)
        detail = f"{means}; ours is the {'smallest ' if len(gaps) > 1 else ''}gap"
        verdict = REPRODUCED if all(shown) else DIFFERS
        return Judgement(float(np.mean(smallest)), spread(smallest), len(smallest), verdict, detail)


@dataclass(frozen=True)
class AtLeast:
    """Every value has to be `published` or more; `ours` is the smallest.

    >>> AtLeast(0.5)({"loss": np.array([0.5, 0.7])}).verdict
    'holds'
    """

    published: float

    def __call__(self, values: Values) -> Judgement:
        found = np.concatenate(list(values.values()))
        verdict = HOLDS if np.all(found >= self.published * (1.0 - _ROUNDING)) else DIFFERS
        return Judgement(float(found.min()), spread(found), len(found), verdict, "the smallest of all")


@dataclass(frozen=True)
class AtMost:
    """Every value has to be `published` or less; `ours` is the largest.

    >>> AtMost(1.0)({"share of the bound": np.array([0.5, 1.7])}).verdict
    'differs'
    """

    published: float

    def __call__(self, values: Values) -> Judgement:
        found = np.concatenate(list(values.values()))
        verdict = HOLDS if np.all(found <= self.published * (1.0 + _ROUNDING)) else DIFFERS
        return Judgement(float(found.max()), spread(found), len(found), verdict, "the largest of all")
