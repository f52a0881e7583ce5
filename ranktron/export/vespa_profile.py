"""Reads a rank profile, and scores with it by Vespa's documented rules.

Expressions are sums, differences, products and quotients of numbers, constants, query inputs, functions and rank
features, `if (a > b, yes, no)` and `isNan(f)`, 1 or 0, in double precision. `normalize_linear(f)`, in the global phase
only, maps the values of f among the hits of a query to 0 … 1 (to ½ if they are all the same). A query input without a
value has its default.

It supports the expressions that the exporter writes. Vespa itself is not tested: no package registry has a build of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from ranktron.errors import DataError
from ranktron.types import Floats, Integers

_NUMBER = re.compile(r"\d+(\.\d*)?([eE][+-]?\d+)?")
_WORD = re.compile(r"[A-Za-z_]\w*")
_OUTPUT = re.compile(r"\.\w+")
_NORMALIZE = "normalize_linear("
_IS_NAN = "isNan("


@dataclass(frozen=True)
class Profile:
    """A rank profile: its definitions, and the expression of its last phase."""

    constants: Mapping[str, float]
    inputs: Mapping[str, float]
    functions: Mapping[str, str]
    expression: str
    globally: bool

    @classmethod
    def of(cls, text: str) -> Profile:
        """Reads the text of a profile.

        >>> Profile.of("rank-profile p { first-phase { expression: 2 * bm25(title) } }").expression
        '2 * bm25(title)'
        """
        ((header, body),) = _parts(text)
        if not header.startswith("rank-profile "):
            raise DataError(f"a rank profile begins with rank-profile, not with {header!r}")
        parts = _parts(body)
        inside = {header: dict(_parts(inner)) for header, inner in parts}
        phases = [name for name in ("global-phase", "first-phase") if name in inside]
        functions = {
            header.removeprefix("function ").removesuffix("()"): content["expression"]
            for header, content in inside.items()
            if header.startswith("function ")
        }
        constants = {name: float(value) for name, value in inside.get("constants", {}).items()}
        inputs = {name.split()[0]: float(value) for name, value in inside.get("inputs", {}).items()}
        return cls(constants, inputs, functions, inside[phases[0]]["expression"], phases[0] == "global-phase")

    def scores(
        self, features: Mapping[str, Floats], offsets: Integers, inputs: Mapping[str, float] | None = None
    ) -> Floats:
        """The scores of documents with these rank features, and these inputs of the query."""
        unknown = set(inputs or {}) - set(self.inputs)
        if unknown:
            raise DataError(f"the profile has no input {min(unknown)}")
        values: dict[str, Floats | float] = {**features, **self.constants, **self.inputs, **(inputs or {})}
        evaluation = _Evaluation(values, self.functions, offsets if self.globally else None)
        size = int(offsets[-1])
        return np.broadcast_to(evaluation.value(self.expression), (size,)).astype(float)


@dataclass
class _Evaluation:
    """Values of expressions: one number per document, or one for all."""

    values: Mapping[str, Floats | float]
    functions: Mapping[str, str]
    offsets: Integers | None
    _tokens: list[tuple[str, str]] = field(default_factory=list)

    def value(self, expression: str) -> Floats | float:
        outer, self._tokens = self._tokens, list(_tokens(expression))[::-1]
        result = self._sum()
        if self._tokens:
            raise DataError(f"the expression continues after its end: {self._tokens[-1][1]!r}")
        self._tokens = outer
        return result

    def _sum(self) -> Floats | float:
        total = self._product()
        while self._next() in ("+", "-"):
            sign = 1.0 if self._tokens.pop()[1] == "+" else -1.0
            total = total + sign * self._product()
        return total

    def _product(self) -> Floats | float:
        total = self._factor()
        while self._next() in ("*", "/"):
            divides = self._tokens.pop()[1] == "/"
            factor = self._factor()
            total = total / factor if divides else total * factor
        return total

    def _factor(self) -> Floats | float:
        kind, text = self._tokens.pop() if self._tokens else ("end", "")
        if kind == "number":
            return float(text)
        if text == "if":
            return self._choice()
        if kind == "name":
            return self._named(text)
        if text == "-":
            return -self._factor()
        if text != "(":
            raise DataError(f"expected a number, a name or a bracket in the expression, found {text or 'its end'!r}")
        inner = self._sum()
        self._expect(")")
        return inner

    def _choice(self) -> Floats | float:
        """The rest of an `if`: (left > right, value if true, value if false)."""
        self._expect("(")
        left = self._sum()
        self._expect(">")
        condition = left > self._sum()
        self._expect(",")
        if_true = self._sum()
        self._expect(",")
        if_false = self._sum()
        self._expect(")")
        value: Floats = np.where(condition, if_true, if_false)
        return value

    def _expect(self, sign: str) -> None:
        token = self._tokens.pop()[1] if self._tokens else "its end"
        if token != sign:
            raise DataError(f"expected {sign!r} in the expression, found {token!r}")

    def _named(self, name: str) -> Floats | float:
        if name in self.values:
            return self.values[name]
        if name.removesuffix("()") in self.functions:
            return self.value(self.functions[name.removesuffix("()")])
        if name.startswith(_IS_NAN):
            return np.isnan(self._named(name.removeprefix(_IS_NAN)[:-1])) * 1.0
        if name.startswith(_NORMALIZE):
            return self._normalised(name.removeprefix(_NORMALIZE)[:-1])
        raise DataError(f"the profile does not define {name}, which is not a feature either")

    def _normalised(self, name: str) -> Floats:
        if self.offsets is None:
            raise DataError("normalize_linear belongs to the global phase")
        values = np.broadcast_to(self._named(name), (int(self.offsets[-1]),)).astype(float)
        result = np.full(len(values), 0.5)
        for a, b in zip(self.offsets, self.offsets[1:], strict=False):
            low, high = values[a:b].min(), values[a:b].max()
            if high > low:
                result[a:b] = 0.5 + (values[a:b] - 0.5 * (low + high)) / (high - low)
        return result

    def _next(self) -> str:
        return self._tokens[-1][1] if self._tokens else ""


def _tokens(expression: str) -> Iterator[tuple[str, str]]:
    at, text = 0, expression.strip()
    while at < len(text):
        number, name = _NUMBER.match(text, at), _feature(text, at)
        kind, token = ("number", number.group()) if number else ("name", name) if name else ("sign", text[at])
        if not token.isspace():
            yield kind, token
        at += len(token)


def _feature(text: str, at: int) -> str:
    """The feature that begins here, with its arguments in brackets and its output after a dot; "" if none does."""
    word = _WORD.match(text, at)
    if word is None:
        return ""
    end = word.end()
    if text[end : end + 1] == "(":
        end = _find_closing(text, end, "()") + 1
    while (output := _OUTPUT.match(text, end)) is not None:
        end = output.end()
    return text[at:end]


def _parts(text: str) -> list[tuple[str, str]]:
    """The contents of a block: (`header`, the text in its braces), or (`name`, the text after the colon)."""
    parts, at = [], 0
    while at < len(text):
        brace, line = text.find("{", at), text.find("\n", at)
        line = len(text) if line < 0 else line
        if 0 <= brace < line:
            end = _find_closing(text, brace, "{}")
            parts.append((text[at:brace].strip(), text[brace + 1 : end].strip()))
            at = end + 1
            continue
        name, colon, value = text[at:line].rpartition(":")
        if colon:
            parts.append((name.strip(), value.strip()))
        elif value.strip():
            parts.append((value.strip(), ""))
        at = line + 1
    return parts


def _find_closing(text: str, at: int, pair: str) -> int:
    depth = 0
    for end in range(at, len(text)):
        depth += (text[end] == pair[0]) - (text[end] == pair[1])
        if depth == 0:
            return end
    raise DataError(f"{pair[0]} is not closed")
