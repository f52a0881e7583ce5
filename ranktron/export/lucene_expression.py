"""Lucene expressions, `"lang": "expression"` of Elasticsearch and OpenSearch: a formula over the fields of a document.

The rules, from Lucene's JavascriptCompiler and the engines' expression module: `doc['clicks'].value` is the value of a
numeric field, 0 if the document lacks it; `+`, `*`, `>` and `?:` compute in double precision. A script may have at
most 65,535 bytes (`script.max_size_in_bytes`). The compiler recurses into a sum term by term: with Lucene 8.8, 1,250
terms in a row compile and 1,500 overflow its stack. Sums are therefore written as balanced trees, of which 5,000 terms
compile and 5,500 exceed Java's limit on a method, far beyond the limit in bytes.

`scores` follows these rules. The tests compile the expressions with Lucene itself, and sort by them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import numpy as np

from ranktron.errors import DataError
from ranktron.export.curves import Curve, CurveRanker
from ranktron.export.engine import as_json
from ranktron.types import Floats, Integers, Matrix

MAX_BYTES = 65_535
"""The default of `script.max_size_in_bytes` in Elasticsearch and OpenSearch."""


class LuceneExpression:
    """A script for `sort`, `script_score` or `script_fields`."""

    scales_lists = False
    handles_missing = False
    lucene = False
    double = True

    def remarks(self, ranker: CurveRanker) -> list[str]:
        return []

    def write(self, ranker: CurveRanker, name: str, store: str | None) -> bytes:
        terms = [_curve_text(_variable(ranker.names[j]), curve) for j, curve in ranker.curves.items()]
        if ranker.constant or not terms:
            terms.append(_number(ranker.constant))
        source = _balanced(terms)
        size = len(source.encode())
        if size > MAX_BYTES:
            count = sum(len(curve.at) for curve in ranker.curves.values())
            raise DataError(
                f"the expression of this model has {size:,} bytes for {count:,} terms, more than the {MAX_BYTES:,} "
                "bytes that Elasticsearch and OpenSearch allow (script.max_size_in_bytes): train with fewer features "
                "or bins, or export a linear model to the LTR plugin"
            )
        return as_json({"script": {"lang": "expression", "source": source}})

    def scores(self, file: bytes, names: tuple[str, ...], X: Matrix, offsets: Integers) -> Floats:
        source = json.loads(file)["script"]["source"]
        columns = {_variable(name): X[:, j].astype(float) for j, name in enumerate(names)}
        return np.broadcast_to(ExpressionReader(source, columns).value(), len(X)).astype(float)


def _variable(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"doc['{escaped}'].value"


def _number(value: float) -> str:
    return repr(float(value))


def _balanced(terms: Sequence[str]) -> str:
    """The sum of the terms, with parentheses that make it a balanced tree."""
    if len(terms) == 1:
        return terms[0]
    middle = len(terms) // 2
    return f"({_balanced(terms[:middle])} + {_balanced(terms[middle:])})"


def _curve_text(x: str, curve: Curve) -> str:
    pieces = [_piece_text(x, *numbers) for numbers in zip(curve.at, curve.slopes, curve.origins, strict=True)]
    return _choice(x, pieces, [_number(threshold) for threshold in curve.thresholds])


def _piece_text(x: str, at: float, slope: float, origin: float) -> str:
    if slope == 0.0:
        return _number(at)
    line = f"{_number(slope)} * " + (f"({x} - {_number(origin)})" if origin else x)
    return f"({_number(at)} + {line})" if at else line


def _choice(x: str, pieces: list[str], thresholds: list[str]) -> str:
    """A binary search among the pieces."""
    if len(pieces) == 1:
        return pieces[0]
    middle = len(thresholds) // 2
    above = _choice(x, pieces[middle + 1 :], thresholds[middle + 1 :])
    return f"({x} > {thresholds[middle]} ? {above} : {_choice(x, pieces[: middle + 1], thresholds[:middle])})"


_TOKEN = re.compile(r"\s*(doc\['(?:[^'\\]|\\.)*'\]\.value|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[-+*>?:()])")


class ExpressionReader:
    """Evaluates the part of the grammar that `LuceneExpression` writes, for all documents at the same time.

    >>> ExpressionReader("(1.5 + -2.0 * (doc['a'].value - 1.0))", {"doc['a'].value": np.array([1.0, 2.0])}).value()
    array([ 1.5, -0.5])
    """

    def __init__(self, source: str, columns: dict[str, Floats]) -> None:
        self.columns = columns
        self.tokens: list[str] = []
        source, at = source.rstrip(), 0
        while at < len(source):
            match = _TOKEN.match(source, at)
            if match is None:
                raise DataError(f"the expression cannot be read at {source[at : at + 20]!r}")
            self.tokens.append(match[1])
            at = match.end()
        self.tokens.append("")  # the end
        self.at = 0

    def value(self) -> Floats:
        value = self._choice()
        self._expect("")
        return value

    def _next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def _expect(self, token: str) -> None:
        actual = self._next()
        if actual != token:
            raise DataError(f"the expression has {actual!r} where {token!r} is expected")

    def _choice(self) -> Floats:
        condition = self._comparison()
        if self.tokens[self.at] != "?":
            return condition
        self._next()
        if_true = self._choice()
        self._expect(":")
        value: Floats = np.where(condition != 0.0, if_true, self._choice())
        return value

    def _comparison(self) -> Floats:
        left = self._sum()
        if self.tokens[self.at] != ">":
            return left
        self._next()
        return np.asarray(left > self._sum(), float)

    def _sum(self) -> Floats:
        total = self._product()
        while self.tokens[self.at] in ("+", "-"):
            total = total + self._product() if self._next() == "+" else total - self._product()
        return total

    def _product(self) -> Floats:
        product = self._factor()
        while self.tokens[self.at] == "*":
            self._next()
            product = product * self._factor()
        return product

    def _factor(self) -> Floats:
        token = self._next()
        if token == "(":
            inner = self._choice()
            self._expect(")")
            return inner
        if token == "-":
            return -self._factor()
        if token.startswith("doc["):
            if token not in self.columns:
                raise DataError(f"the expression has an unknown field: {token}")
            return self.columns[token]
        try:
            return np.asarray(float(token))
        except ValueError:
            raise DataError(f"the expression has {token!r} where a value is expected") from None
