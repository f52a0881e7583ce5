"""Faults that once lived stay noticed, and the faults that we draw are faults."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from mutants import mutants
from recorded import GOAL, LIVES, named_faults, read_record, score

RUN = Path(__file__).parent / "run.py"


def changes(source):
    return {(mutant.old, mutant.new) for mutant in mutants(source.encode())}


def test_every_kind_of_fault_is_drawn():
    assert changes("if a < b and not c:\n    x += 2 * y\n    f(0.5)\n") == {
        ("a < b and not c", "(not (a < b and (not c)))"),
        ("a < b and not c", "(a < b or not c)"),
        ("a < b", "(a <= b)"),
        ("not c", "(c)"),
        ("x += 2 * y", "x -= 2 * y"),
        ("x += 2 * y", "pass"),
        ("2 * y", "(2 / y)"),
        ("2", "3"),
        ("f(0.5)", "pass"),
        ("0.5", "1.0"),
    }


def test_what_computes_nothing_is_left_alone():
    source = '''
from a import b
__all__ = ["c"]
Alias = tuple[int, 3]
if TYPE_CHECKING:
    import d
@decorated(1)
def f(x: Literal[2] = None) -> Literal[3]:
    """4 > 5"""
    if x:
        raise ValueError(f"{6 + 7}")
'''
    assert changes(source) == {("x", "(not x)")}


def test_a_fault_changes_its_own_place_alone_and_can_be_compiled():
    source = Path(mutants.__code__.co_filename).read_bytes()
    found = mutants(source)
    assert len(found) > 50
    for mutant in found:
        changed = mutant.apply(source)
        assert changed.startswith(source[: mutant.start])
        assert changed.endswith(source[mutant.stop :])
        assert source[mutant.start : mutant.stop].decode() == mutant.old
        assert source.count(b"\n", 0, mutant.start) + 1 == mutant.line
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))


def test_the_record_keeps_to_the_goal_and_explains_what_lives():
    record = read_record()
    assert len(record) >= 10
    assert score(record) >= GOAL
    for name, answer in record.items():
        told = answer.removeprefix(LIVES) if answer.startswith(LIVES) else answer
        assert len(told) > 20, name
        assert answer.startswith((LIVES, "tests/", "ranktron/", "reproduction/")), name


def test_names_of_faults_outlive_other_changes_of_a_file(tmp_path):
    before, after = "def f(a):\n    return a + 1 + (a + 1)\n", "import os\n\n\ndef f(a):\n    return a + 1 + (a + 1)\n"
    names = []
    for text in (before, after):
        (tmp_path / "file.py").write_text(text)
        found = named_faults(tmp_path, "file.py")
        names.append(set(found))
        for mutant in found.values():
            assert text[mutant.start : mutant.stop] == mutant.old
    assert names[0] == names[1]
    assert {"file.py:f:0: a + 1 -> (a - 1)", "file.py:f:1: a + 1 -> (a - 1)"} <= names[0]


@pytest.mark.slow
def test_the_faults_that_once_lived_are_noticed():
    done = subprocess.run([sys.executable, RUN, "chosen"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
