"""Small faults put into a source file, one at a time: what a test suite should notice.

A fault is another comparison, + for −, * for /, another constant, a negated condition, `and` for `or`, or a statement
left out. Types, docstrings, decorators, messages of errors and numbers that only bound a check of arguments are left
alone where a reader can tell that from the tree alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
ARITHMETIC = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult,
}  # fmt: skip


class Mutant(NamedTuple):
    """One fault: where it is, what stood there and what stands there now."""

    line: int
    start: int
    stop: int
    old: str
    new: str

    @property
    def key(self) -> str:
        return f"{self.line}:{self.start}:{self.new}"

    def apply(self, source: bytes) -> bytes:
        return source[: self.start] + self.new.encode() + source[self.stop :]


def mutants(source: bytes) -> list[Mutant]:
    """All faults of a source file, in the order of the file.

    >>> [f"{mutant.old} -> {mutant.new}" for mutant in mutants(b"x = a + 1")]
    ['x = a + 1 -> pass', 'a + 1 -> (a - 1)', '1 -> 2']
    """
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = {}
    for node, new in _changes(ast.parse(source)):
        a = starts[node.lineno - 1] + node.col_offset
        b = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        old = source[a:b].decode()
        text = new if isinstance(new, str) else ast.unparse(new)
        if isinstance(new, ast.expr) and not isinstance(new, ast.Constant):
            text = f"({text})"
        found[a, b, text] = Mutant(node.lineno, a, b, old, text)
    return [found[key] for key in sorted(found)]


def _changes(tree: ast.AST) -> Iterator[tuple[ast.stmt | ast.expr, ast.expr | str]]:
    for node in _walk(tree):
        if isinstance(node, ast.Compare):
            for i, operator in enumerate(node.ops):
                operators = [*node.ops]
                operators[i] = COMPARISONS[type(operator)]()
                yield node, ast.Compare(node.left, operators, node.comparators)
        elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and not _text(node):
            yield node, ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right)
        elif isinstance(node, ast.BoolOp):
            other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield node, ast.BoolOp(other, node.values)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Not)):
            yield node, node.operand
        elif isinstance(node, ast.Constant) and type(node.value) in (bool, int, float):
            yield node, ast.Constant(not node.value if isinstance(node.value, bool) else _other(node.value))
        elif isinstance(node, (ast.If, ast.IfExp, ast.While)):
            yield node.test, ast.UnaryOp(ast.Not(), node.test)
        elif isinstance(node, ast.AugAssign):
            if type(node.op) in ARITHMETIC:
                opposite = ast.AugAssign(node.target, ARITHMETIC[type(node.op)](), node.value)
                yield node, ast.unparse(opposite)
            yield node, "pass"
        elif isinstance(node, (ast.Assign, ast.Continue, ast.Break)) or _call(node):
            yield node, "pass"


def _call(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _other(number: float) -> float:
    """A number near by: 1 becomes 2, but 0.01 becomes 0.02, as 1.01 would be another order of magnitude."""
    return 2 * number if 0.0 < abs(number) < 1.0 else number + 1


def _text(node: ast.BinOp) -> bool:
    parts = (node.left, node.right)
    return any(isinstance(part, ast.JoinedStr) or isinstance(getattr(part, "value", 0), str) for part in parts)


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes whose meaning is what the code computes: no types, decorators, docstrings, errors, type checks."""
    yield node
    left_out: tuple[str, ...] = ("annotation", "returns", "decorator_list", "type_params")
    for name, value in ast.iter_fields(node):
        if name in left_out:
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or isinstance(
                child, (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)
            ):
                continue
            if isinstance(child, ast.If) and isinstance(child.test, ast.Name) and child.test.id == "TYPE_CHECKING":
                continue
            if isinstance(child, ast.Assign) and isinstance(child.targets[0], ast.Name) and (
                child.targets[0].id == "__all__" or _only_types(child.value)
            ):  # fmt: skip
                continue
            yield from _walk(child)


def _only_types(value: ast.expr) -> bool:
    """TypeVars and aliases of types, as far as one can see."""
    if isinstance(value, ast.Call):
        return getattr(value.func, "id", "") in ("TypeVar", "NewType")
    return isinstance(value, ast.Subscript) and getattr(value.value, "id", "") in ("Callable", "tuple", "dict", "list")
