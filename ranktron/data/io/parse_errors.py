"""Error messages of the text parser: file, line, column, what was expected and what was found."""

from typing import NamedTuple

import numpy as np

from ranktron.data.io import grammar, lexer
from ranktron.data.io.lexer import Bytes
from ranktron.errors import DataError


class ParseProblem(NamedTuple):
    """The error code (of `lexer`) and the byte at which it occurred."""

    wrong: int
    at: int


class Look(NamedTuple):
    """How to parse a text: its first index, its number of features, query ids after `#`, and the value of NULL."""

    first: int
    width: int
    after_hash: bool
    null: float


def explain_problem(name: str, data: Bytes, problem: ParseProblem, look: Look, lines_before: int = 0) -> DataError:
    """The error for a problem in `data`, which starts `lines_before` lines after the start of the file."""
    start = _line_start(data, problem.at)
    rest = data[problem.at : problem.at + 400].tobytes().split(b"\n")[0].rstrip(b"\r")
    before = data[start : problem.at].tobytes()
    line = lines_before + grammar.count_lines(data, 0, start) + 1
    words = _words(problem.wrong, before, rest, look)
    return DataError(f"{name}, line {line}, column {problem.at - start + 1}: {words}")


def _line_start(data: Bytes, at: int) -> int:
    feeds = np.flatnonzero(data[max(0, at - 10_000_000) : at] == lexer.LINE_FEED)
    return max(0, at - 10_000_000) + int(feeds[-1]) + 1 if len(feeds) else max(0, at - 10_000_000)


def _words(wrong: int, before: bytes, rest: bytes, look: Look) -> str:
    word = _quote((rest.split() or [b""])[0])
    index = _quote(rest.split(b":")[0])
    if wrong == lexer.QID and look.after_hash:
        return "found 'qid:', but the first document has its query id after '#' at the end of the line"
    if wrong == lexer.VALUE:
        kind = "a finite number" if rest.lower().lstrip(b"+-").startswith((b"nan", b"inf")) else "a number"
        return f"expected {kind} after {_quote(before.split()[-1])}, found {word}"
    return {
        lexer.LABEL: f"expected a label (a finite number >= 0), found {word}",
        lexer.NEGATIVE: f"expected a label >= 0, found {word}",
        lexer.QID: f"expected 'qid:' and a query id after the label, found {word}",
        lexer.ID_COMMENT: f"expected '#' and a query id (one word) at the end of the line, found {_quote(rest)}",
        lexer.NOT_TEXT: f"expected a query id in UTF-8, found {word}",
        lexer.INDEX: f"expected index:value with an index from {look.first} to {lexer.LARGEST_INDEX}, found {word}",
        lexer.TOO_LARGE: f"expected a number that fits into 32 bits, found {word}",
        lexer.TWICE: f"expected each feature once, found {index} again",
        lexer.BEYOND: f"expected at most {look.width} features (from {look.first} on), found feature {index}",
        lexer.BELOW: f"expected an index >= {look.first}, found {index}",
        lexer.NULL: "found NULL; say what to make of it: null='zero', 'min' or 'mean' (or --null zero)",
    }[wrong]


def _quote(found: bytes) -> str:
    if not found:
        return "the end of the line"
    text = found.decode("utf-8", "replace")
    return repr(text if len(text) <= 40 else text[:40] + "…")
