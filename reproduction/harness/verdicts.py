"""The rules by which a claim of a paper gets its verdict. No verdict is written down anywhere else.

A rule looks at values over seeds, never at the name of what it judges. `RULES` says in words what each one does; the
report prints them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from ranktron.types import Floats

REPRODUCED = "reproduced"
HOLDS = "holds"
CANNOT_TELL = "cannot tell"
TOO_FEW = "too few runs to tell"
OTHER_LEVEL = "same ordering, other level"
DIFFERS = "differs"
MISSING = "not run: data missing"
FAILED = "not run: a computation failed"

VERDICTS = (REPRODUCED, HOLDS, CANNOT_TELL, OTHER_LEVEL, DIFFERS, MISSING, FAILED, TOO_FEW)
"""From the best to the worst; “holds in k of n settings” (`in_settings`) stands between the second and the third."""

RULES = {
    "near": "A printed number is reproduced if it lies within max(2 · spread, tolerance) of our mean and at least half "
    "of the numbers printed beside it do not: had the paper printed another system's number here, we would have "
    "noticed. The spread is the standard deviation over seeds, the tolerance stands with the row. Where most of its "
    "neighbours lie within as well, the row cannot tell. A number outside is judged by its order among its neighbours: "
    "where every pair that differs by more than the tolerance in print has the same order here, it is “same ordering, "
    "other level”; else it differs.",
    "ordered": "A printed order is reproduced if each stated difference has a mean above 0 by more than twice its "
    "standard error over seeds. It differs if one of them is below 0 by as much. Else the seeds cannot tell.",
    "bounded": "A theorem or bound holds if every seed, and where stated every prefix of every run, keeps it; one "
    "exception and the row differs.",
    "settings": "Where the paper leaves a setting open, every setting that was tried is judged by itself, and the row "
    "says in how many of them the statement comes out.",
    "quick": "A row that was computed from fewer seeds, settings or rounds than in the full run is marked as quick. It "
    "has a verdict only where the full run can hardly have another one: where a mean is further from what separates "
    "two verdicts than its 99 % interval reaches (by Student's t over seeds), or where every value keeps a bound by "
    "more than three times their spread. Else there are too few runs to tell.",
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
    """Judges values; `published` is the number that the paper prints, if it prints one.

    `reads` names the values that it looks at; none: at all.
    """

    @property
    def published(self) -> float | None: ...

    @property
    def reads(self) -> tuple[str, ...]: ...

    def __call__(self, values: Values, /) -> Judgement: ...


def in_settings(count: int, of: int) -> str:
    """The verdict on something that was tried in several settings.

    >>> in_settings(1, 48), in_settings(0, 3), in_settings(3, 3)
    ('holds in 1 of 48 settings', 'differs', 'holds')
    """
    if count in (0, of):
        return HOLDS if count else DIFFERS
    return f"holds in {count} of {of} settings"


def severity(verdict: str) -> int:
    """How bad a verdict is: 0 for the best.

    >>> [severity(v) for v in ("reproduced", "holds", "holds in 1 of 2 settings", "cannot tell", "differs")]
    [0, 0, 1, 2, 4]
    """
    if verdict.startswith("holds in "):
        return 1
    return 0 if verdict in (REPRODUCED, HOLDS) else VERDICTS.index(verdict)


def worst(verdicts: Iterable[str]) -> str:
    """The worst of some verdicts.

    >>> worst(["holds", "cannot tell", "reproduced"])
    'cannot tell'
    """
    return max(verdicts, key=severity)


def standard_deviation(values: Floats) -> float:
    """The standard deviation over seeds; 0 for a single one.

    >>> standard_deviation(np.array([1.0, 3.0])) == 2**0.5
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
    >>> rule({"a": np.array([0.3, 0.6]), "b": np.array([0.3])}).verdict  # 0.40 would do as well
    'cannot tell'
    """

    which: str
    column: Mapping[str, float]
    tolerance: float

    @property
    def published(self) -> float:
        return self.column[self.which]

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(self.column)

    def __call__(self, values: Values) -> Judgement:
        mine = values[self.which]
        mean, deviation = float(np.mean(mine)), standard_deviation(mine)
        allowed = max(2.0 * deviation, self.tolerance)
        beside = [number for name, number in self.column.items() if name != self.which]
        refused = sum(abs(mean - number) > allowed for number in beside)
        if abs(mean - self.published) <= allowed:
            verdict = REPRODUCED if 2 * refused >= len(beside) else CANNOT_TELL
        elif self._keeps_its_place(values):
            verdict = OTHER_LEVEL
        else:
            verdict = DIFFERS
        detail = f"allowed: ± {allowed:.2g}"
        if beside:
            span = max(self.column.values()) - min(self.column.values())
            detail += f"; refuses {refused} of {len(beside)} numbers printed beside it, which span {span:.2g}"
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
    'cannot tell'
    >>> rule({"a": np.array([1.0, 1.0, 1.1]), "b": np.array([2.0, 2.1, 2.2])}).verdict
    'differs'
    """

    names: tuple[str, ...]
    published: None = None

    @property
    def reads(self) -> tuple[str, ...]:
        return self.names

    def __call__(self, values: Values) -> Judgement:
        gaps = [values[a] - values[b] for a, b in zip(self.names, self.names[1:], strict=False)]
        errors = [2.0 * standard_deviation(gap) / np.sqrt(len(gap)) for gap in gaps]
        means = [float(np.mean(gap)) for gap in gaps]
        if all(mean > error for mean, error in zip(means, errors, strict=True)):
            verdict = REPRODUCED
        elif any(mean < -error or mean == error == 0.0 for mean, error in zip(means, errors, strict=True)):
            verdict = DIFFERS
        else:
            verdict = CANNOT_TELL
        smallest = gaps[int(np.argmin(means))]
        shown = ", ".join(f"{name}: {np.mean(values[name]):.4g}" for name in self.names)
        detail = f"{shown}; ours is the {'smallest ' if len(gaps) > 1 else ''}gap"
        return Judgement(float(np.mean(smallest)), standard_deviation(smallest), len(smallest), verdict, detail)


@dataclass(frozen=True)
class AtLeast:
    """Every value has to be `published` or more; `ours` is the smallest.

    >>> AtLeast(0.5)({"loss": np.array([0.5, 0.7])}).verdict
    'holds'
    """

    published: float
    reads: tuple[str, ...] = field(default=(), init=False)

    def __call__(self, values: Values) -> Judgement:
        found = np.concatenate(list(values.values()))
        verdict = HOLDS if np.all(found >= self.published * (1.0 - _ROUNDING)) else DIFFERS
        return Judgement(float(found.min()), standard_deviation(found), len(found), verdict, "the smallest of all")


@dataclass(frozen=True)
class AtMost:
    """Every value has to be `published` or less; `ours` is the largest.

    >>> AtMost(1.0)({"share of the bound": np.array([0.5, 1.7])}).verdict
    'differs'
    """

    published: float
    reads: tuple[str, ...] = field(default=(), init=False)

    def __call__(self, values: Values) -> Judgement:
        found = np.concatenate(list(values.values()))
        verdict = HOLDS if np.all(found <= self.published * (1.0 + _ROUNDING)) else DIFFERS
        return Judgement(float(found.max()), standard_deviation(found), len(found), verdict, "the largest of all")


@dataclass(frozen=True)
class InSettings:
    """A statement tried in several settings: of each one value, above 0 where it comes out; `ours` counts these.

    >>> InSettings()({"10 features": np.array([0.0]), "30 features": np.array([1.0])}).verdict
    'holds in 1 of 2 settings'
    """

    published: None = None
    reads: tuple[str, ...] = field(default=(), init=False)

    def __call__(self, values: Values) -> Judgement:
        where = [name for name, found in values.items() if np.all(found > 0.0)]
        detail = f"it comes out with {'; '.join(where)}" if where else "it comes out nowhere"
        return Judgement(len(where), 0.0, len(values), in_settings(len(where), len(values)), detail)


def judge_few(rule: Rule, values: Values, same_runs: bool) -> Judgement:
    """The judgement of a rule on fewer runs than the full ones, with `TOO_FEW` where those may give another verdict.

    Parameters
    ----------
    rule : Rule
        The rule.
    values : mapping of str to array
        The values of the seeds that were run.
    same_runs : bool
        Whether only seeds are missing: each run that was made is one of the full ones.

    Examples
    --------
    >>> values = {"a": np.array([2.0, 2.1, 2.2]), "b": np.array([1.0, 1.0, 1.1])}
    >>> judge_few(Ordered(("a", "b")), values, same_runs=True).verdict
    'reproduced'
    >>> judge_few(Ordered(("a", "b")), {name: each[:2] for name, each in values.items()}, same_runs=True).verdict
    'too few runs to tell'
    >>> judge_few(Ordered(("a", "b")), values, same_runs=False).verdict
    'too few runs to tell'
    """
    found = rule(values)
    return found if _is_clear(rule, values, found, same_runs) else found._replace(verdict=TOO_FEW)


def _is_clear(rule: Rule, values: Values, found: Judgement, same_runs: bool) -> bool:
    """Whether the full runs can hardly give another verdict."""
    if isinstance(rule, AtLeast | AtMost) and found.verdict == HOLDS:
        return found.seeds > 1 and abs(found.ours - rule.published) > 3.0 * found.spread
    if not same_runs:
        return False
    if isinstance(rule, AtLeast | AtMost | InSettings):
        return isinstance(rule, InSettings) or found.verdict == DIFFERS  # an exception stays one
    if isinstance(rule, Ordered):
        gaps = [values[a] - values[b] for a, b in zip(rule.names, rule.names[1:], strict=False)]
        if found.verdict == REPRODUCED:
            return all(np.mean(gap) > _reach(gap) for gap in gaps)
        return found.verdict == DIFFERS and any(np.mean(gap) < -_reach(gap) for gap in gaps)
    if isinstance(rule, Near) and found.verdict in (REPRODUCED, DIFFERS):
        mine = values[rule.which]
        away, reach = abs(found.ours - rule.published), _reach(mine)
        near = away + reach <= rule.tolerance
        return near if found.verdict == REPRODUCED else away - reach > max(2.0 * found.spread, rule.tolerance)
    return False


def _reach(values: Floats) -> float:
    """Half the 99 % interval of a mean; infinite for fewer than three values."""
    from scipy.stats import t

    if len(values) < 3:
        return float("inf")
    return float(t.ppf(0.995, len(values) - 1)) * standard_deviation(values) / float(np.sqrt(len(values)))
