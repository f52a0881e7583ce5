"""The page about metrics shows the tables that the code uses, and its examples run."""

import doctest
from pathlib import Path

import pytest

from ranktron.metrics import CONVENTIONS, MEASURES
from ranktron.metrics.conventions import TIES

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def table(name):
    page = PAGE.read_text(encoding="utf-8")
    rows = page.split(f"<!-- {name} -->\n")[1].split(f"<!-- /{name} -->")[0].strip().splitlines()[2:]
    return [[cell.strip() for cell in row.strip("| ").split(" | ")] for row in rows]


def test_conventions():
    expected = []
    for name, c in CONVENTIONS.items():
        except_for = "".join(f" ({metric}: {value:g})" for metric, value in c.exceptions.items())
        empty = f"{c.empty:g}{except_for}"
        expected.append([f"`{name}`", c.tool, c.gain, c.discount, c.ties, empty, c.short, ", ".join(c.measured)])
    assert table("conventions") == expected


def test_names():
    forms = {"none": "`{0}`", "optional": "`{0}`, `{0}@k`", "required": "`{0}@k`"}
    assert table("names") == [
        [forms[m.cut].format(name), m.summary, "higher" if m.higher_is_better else "lower"]
        for name, m in MEASURES.items()
    ]


@pytest.mark.parametrize("rule", TIES)
def test_ties(rule):
    assert f"\n| `{rule}` |" in PAGE.read_text(encoding="utf-8")


def test_examples_run():
    failed, tried = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert tried > 10
    assert failed == 0
