"""Statistical significance: paired tests over queries, and tables that compare systems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from string import ascii_lowercase
from types import MappingProxyType

import numpy as np

from ranktron.errors import DataError
from ranktron.metrics.evaluation import Evaluation
from ranktron.metrics.metric import Metric, metric, metrics
from ranktron.types import Floats

_EXACT = 14
_CHUNK = 1 << 21


def t_test(a: Evaluation, b: Evaluation, which: str | Metric, tails: int = 2) -> float:
    """The p-value of Student's paired t-test: of no difference (two tails), or of `a` being no better than `b` (one).

        t = mean(d) / (sd(d) / √n),  d = the difference on each of n queries

    Parameters
    ----------
    a, b : Evaluation
        Two systems, evaluated on the same queries.
    which : str or Metric
        The metric to compare.
    tails : {2, 1}
        2 asks whether they differ, 1 whether `a` is better.

    Examples
    --------
    >>> from ranktron.metrics import evaluate
    >>> y, group = [1, 0, 1, 0, 1, 0], [2, 2, 2]
    >>> good, bad = (evaluate(y, scores, "mrr", group=group) for scores in ([1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 1, 0]))
    >>> round(t_test(good, bad, "mrr"), 4), round(t_test(good, bad, "mrr", tails=1), 4)
    (0.1835, 0.0918)
    """
    d = _differences(a, b, which, tails)
    n = len(d)
    if not d.any():
        return 1.0
    spread = d.std(ddof=1)
    with np.errstate(divide="ignore"):
        t = d.mean() / (spread / np.sqrt(n))
    from scipy.special import stdtr

    return float(stdtr(n - 1, -t)) if tails == 1 else float(2.0 * stdtr(n - 1, -abs(t)))


def permutation_test(
    a: Evaluation, b: Evaluation, which: str | Metric, tails: int = 2, resamples: int = 10_000, seed: int = 0
) -> float:
    """The p-value of Fisher's randomisation test: how often random signs give so large a mean difference.

    All 2^n signs are tried for up to 14 queries; otherwise `resamples` random ones, with the observed one counted
    among them.

    Parameters
    ----------
    a, b : Evaluation
        Two systems, evaluated on the same queries.
    which : str or Metric
        The metric to compare.
    tails : {2, 1}
        2 asks whether they differ, 1 whether `a` is better.
    resamples : int
        The number of random signs, if there are too many to try all.
    seed : int
        Seed of the random signs.

    Examples
    --------
    >>> from ranktron.metrics import evaluate
    >>> y, group = [1, 0, 1, 0, 1, 0], [2, 2, 2]
    >>> good, bad = (evaluate(y, scores, "mrr", group=group) for scores in ([1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1]))
    >>> permutation_test(good, bad, "mrr"), permutation_test(good, bad, "mrr", tails=1)
    (0.25, 0.125)
    """
    d = _differences(a, b, which, tails)
    sums, extra = _signed_sums(d, resamples, seed)
    observed = d.sum()
    if tails == 2:
        sums, observed = np.abs(sums), abs(observed)
    slack = 1e-12 * np.abs(d).sum()
    as_large = np.count_nonzero(sums >= observed - slack) + extra
    return float(as_large / (len(sums) + extra))


def _signed_sums(d: Floats, resamples: int, seed: int) -> tuple[Floats, int]:
    """The sums of d under many signs, and how many more (0, or 1 for the observed one) to count."""
    n = len(d)
    if n <= _EXACT:
        signs = 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        return signs @ d, 0
    if resamples < 1:
        raise DataError(f"a randomisation test needs at least one resample, not {resamples}")
    rng = np.random.default_rng(seed)
    rows = max(1, _CHUNK // n)
    sums = [
        (1.0 - 2.0 * rng.integers(0, 2, (min(rows, resamples - done), n), dtype=np.int8)) @ d
        for done in range(0, resamples, rows)
    ]
    return np.concatenate(sums), 1


def _differences(a: Evaluation, b: Evaluation, which: str | Metric, tails: int) -> Floats:
    """How much better a is than b on each query."""
    if tails not in (1, 2):
        raise DataError(f"a test has one tail or two, not {tails}")
    if len(a.qids) != len(b.qids) or not np.array_equal(a.qids, b.qids):
        raise DataError("the evaluations are over different queries (or in another order): they cannot be paired")
    if len(a.qids) < 2:
        raise DataError("a paired test needs at least two queries")
    sign = 1.0 if metric(which).higher_is_better else -1.0
    return sign * (a.values(which) - b.values(which))


TESTS: Mapping[str, Callable[..., float]] = MappingProxyType({"t": t_test, "permutation": permutation_test})
TEST_NAMES = MappingProxyType({"t": "paired t-test", "permutation": "paired randomisation test"})


def _bonferroni(p: Floats) -> Floats:
    return np.minimum(1.0, p * len(p))


def _holm(p: Floats) -> Floats:
    # Holm, A Simple Sequentially Rejective Multiple Test Procedure, 1979, as adjusted p-values.
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, stepped)
    return adjusted


def _uncorrected(p: Floats) -> Floats:
    return p


CORRECTIONS: Mapping[str, Callable[[Floats], Floats]] = MappingProxyType(
    {"none": _uncorrected, "bonferroni": _bonferroni, "holm": _holm}
)


@dataclass(frozen=True, eq=False)
class Comparison:
    """A comparison of systems, made by `compare`; letters beside a mean name the systems it significantly outperforms.

    Parameters
    ----------
    systems, metrics : tuple of str
        The names of the systems and of the metrics.
    means : {system: {metric: float}}
        The mean over queries.
    p_values : {metric: array (systems, systems)}
        The corrected p-value for each pair, tested in the direction observed.
    beats : {system: {metric: tuple of systems}}
        The systems that each is significantly better than.
    note : str
        Test, tails, level and correction, in words.

    Examples
    --------
    >>> from ranktron.metrics import evaluate
    >>> y, qid = [1, 0] * 20, np.repeat(np.arange(20), 2)
    >>> systems = {"right": evaluate(y, [2, 1] * 20, "mrr", qid=qid), "wrong": evaluate(y, [1, 2] * 20, "mrr", qid=qid)}
    >>> table = compare(systems, test="permutation")
    >>> table.means["right"]["mrr"], table.marks("right", "mrr"), table.letters["wrong"]
    (1.0, 'b', 'b')
    """

    systems: tuple[str, ...]
    metrics: tuple[str, ...]
    means: Mapping[str, Mapping[str, float]]
    p_values: Mapping[str, Floats]
    beats: Mapping[str, Mapping[str, tuple[str, ...]]]
    note: str

    @property
    def letters(self) -> dict[str, str]:
        """The letter of each system; numbers if there are more than 26, nothing if there is only one."""
        if len(self.systems) == 1:
            return {self.systems[0]: ""}
        if len(self.systems) <= len(ascii_lowercase):
            return dict(zip(self.systems, ascii_lowercase, strict=False))
        return {system: f"{i}," for i, system in enumerate(self.systems, start=1)}

    def marks(self, system: str, which: str) -> str:
        """The letters of the systems that this one is significantly better than.

        Parameters
        ----------
        system : str
            A system that was compared.
        which : str
            A metric that was compared.
        """
        return "".join(self.letters[loser] for loser in self.beats[system][which]).rstrip(",")

    def best(self, which: str) -> float:
        """The best mean of a metric.

        Parameters
        ----------
        which : str
            A metric that was compared.
        """
        choose = max if Metric.parse(which).higher_is_better else min
        return choose(self.means[system][which] for system in self.systems)

    def text(self) -> str:
        """The table as plain text."""
        heads = ["", "system", *self.metrics]
        rows = [
            [self.letters[s].rstrip(","), s]
            + [f"{self.means[s][m]:.4f} {self.marks(s, m)}".rstrip() for m in self.metrics]
            for s in self.systems
        ]
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        lines = [
            "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip() for row in [heads, *rows]
        ]
        return "\n".join([*lines, self.note])

    __str__ = text

    def markdown(self) -> str:
        """A Markdown table; the best mean of each column is bold."""

        def cell(system: str, which: str) -> str:
            number = f"{self.means[system][which]:.4f}"
            marks = self.marks(system, which)
            strong = f"**{number}**" if self.means[system][which] == self.best(which) else number
            return strong + (f"<sup>{marks}</sup>" if marks else "")

        lines = ["| | system | " + " | ".join(self.metrics) + " |", "|---|---|" + "---|" * len(self.metrics)]
        for s in self.systems:
            cells = " | ".join(cell(s, m) for m in self.metrics)
            name = s.replace("|", "\\|")
            lines.append(f"| {self.letters[s].rstrip(',')} | {name} | {cells} |")
        return "\n".join([*lines, "", self.note])

    def latex(self) -> str:
        """A LaTeX tabular; the best mean of each column is bold."""

        def cell(system: str, which: str) -> str:
            number = f"{self.means[system][which]:.4f}"
            marks = self.marks(system, which)
            strong = rf"\textbf{{{number}}}" if self.means[system][which] == self.best(which) else number
            return strong + (f"$^{{{marks}}}$" if marks else "")

        lines = [rf"\begin{{tabular}}{{ll{'r' * len(self.metrics)}}}", r"\hline"]
        lines.append(" & system & " + " & ".join(map(_escape, self.metrics)) + r" \\ \hline")
        for s in self.systems:
            cells = " & ".join(cell(s, m) for m in self.metrics)
            lines.append(f"{self.letters[s].rstrip(',')} & {_escape(s)} & {cells} " + r"\\")
        notes = [f"% {line}" for line in self.note.splitlines()]
        return "\n".join([*lines, r"\hline", r"\end{tabular}", *notes])


def _escape(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(special.get(c, "\\" + c if c in "&%$#_{}" else c) for c in text)


def compare(
    evaluations: Mapping[str, Evaluation],
    which: str | Metric | Iterable[str | Metric] | None = None,
    *,
    test: str = "t",
    tails: int = 2,
    level: float = 0.05,
    correction: str = "holm",
) -> Comparison:
    """Compares systems in a table that marks where one is significantly better than another.

    Parameters
    ----------
    evaluations : {name: Evaluation}
        The systems, evaluated on the same queries.
    which : metrics, optional
        By value or by name; by default those of the first evaluation.
    test : {"t", "permutation"}
        Student's paired t-test, or Fisher's randomisation test.
    tails : {2, 1}
        2 tests whether two systems differ, 1 whether the better one is better.
    level : float
        The significance level: differences with a smaller p-value are marked.
    correction : {"holm", "bonferroni", "none"}
        The correction for testing all pairs of systems under one metric.

    Examples
    --------
    >>> from ranktron.metrics import evaluate
    >>> y, group = [1, 0] * 6, [2] * 6
    >>> good, bad = (evaluate(y, scores, "mrr", group=group) for scores in ([1, 0] * 6, [0, 1] * 5 + [1, 0]))
    >>> print(compare({"good": good, "bad": bad}))
       system  mrr
    a  good    1.0000 b
    b  bad     0.5833
    Letters: significantly better than that system (paired t-test, two tails, p < 0.05, no correction needed).
    p = 0.0041 (mrr).
    6 queries, 0 of them without relevant documents.
    """
    systems = tuple(evaluations)
    if not systems:
        raise DataError("there is nothing to compare")
    for kind, given, known in (("test", test, TESTS), ("correction", correction, CORRECTIONS)):
        if given not in known:
            raise DataError(f"there is no {kind} {given!r}; there are: {', '.join(known)}")
    if not 0.0 < level < 1.0:
        raise DataError(f"the level of significance must lie between 0 and 1, not {level}")
    first = evaluations[systems[0]]
    chosen = metrics(first.per_query if which is None else which)
    means = {s: {str(m): float(evaluations[s].values(m).mean()) for m in chosen} for s in systems}
    p_values = {str(m): _p_matrix(evaluations, means, m, test, tails, correction) for m in chosen}
    beats = {s: {str(m): _find_beaten(s, means, m, p_values[str(m)], level) for m in chosen} for s in systems}
    note = _note(first, p_values, test, tails, level, correction)
    return Comparison(systems, tuple(map(str, chosen)), means, p_values, beats, note)


def _p_matrix(
    evaluations: Mapping[str, Evaluation],
    means: Mapping[str, Mapping[str, float]],
    which: Metric,
    test: str,
    tails: int,
    correction: str,
) -> Floats:
    """The corrected p-value of each pair of systems, in the direction observed."""
    systems = list(evaluations)
    pairs = list(combinations(range(len(systems)), 2))
    raw = np.ones(len(pairs))
    for at, (i, j) in enumerate(pairs):
        a, b = systems[i], systems[j]
        better, worse = (a, b) if _better(means[a], means[b], which) else (b, a)
        raw[at] = TESTS[test](evaluations[better], evaluations[worse], which, tails=tails)
    matrix = np.ones((len(systems), len(systems)))
    for (i, j), p in zip(pairs, CORRECTIONS[correction](raw), strict=True):
        matrix[i, j] = matrix[j, i] = p
    return matrix


def _better(a: Mapping[str, float], b: Mapping[str, float], which: Metric) -> bool:
    difference = a[str(which)] - b[str(which)]
    return difference > 0.0 if which.higher_is_better else difference < 0.0


def _find_beaten(
    system: str, means: Mapping[str, Mapping[str, float]], which: Metric, p: Floats, level: float
) -> tuple[str, ...]:
    row = p[list(means).index(system)]
    return tuple(
        other
        for other, value in zip(means, row, strict=True)
        if value < level and _better(means[system], means[other], which)
    )


def _note(
    first: Evaluation, p_values: Mapping[str, Floats], test: str, tails: int, level: float, correction: str
) -> str:
    queries = f"{len(first.qids)} queries, {first.empty_queries} of them without relevant documents."
    systems = len(next(iter(p_values.values())))
    if systems == 1:
        return queries
    named = {"holm": "Holm's correction", "bonferroni": "Bonferroni's correction", "none": "no correction"}[correction]
    corrected = named if systems > 2 else "no correction needed"
    how = f"{TEST_NAMES[test]}, {'one tail' if tails == 1 else 'two tails'}, p < {level:g}, {corrected}"
    lines = [f"Letters: significantly better than that system ({how})."]
    if systems == 2:
        each = [f"{p[0, 1]:.2g} ({which})" for which, p in p_values.items()]
        lines.append(f"p = {', '.join(each)}.")
    return "\n".join([*lines, queries])
