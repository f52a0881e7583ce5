"""The faults of the last sample with the tests that noticed them, and those that live with the reason.

`sample.json` has them by names that outlive other changes of a file: its path, the function, what stood there, what
stands there now, and which of several alike it is.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mutants import Mutant, mutants

RECORD = Path(__file__).parent / "sample.json"
LIVES = "lives: "
GOAL = 0.95


def fault_name(source: str, function: str, alike: list[Mutant], mutant: Mutant) -> str:
    """The name of a fault; `alike` are those of the same function with the same words, in the order of the file."""
    return f"{source}:{function}:{alike.index(mutant)}: {mutant.old} -> {mutant.new}"


def named_faults(root: Path, source: str) -> dict[str, Mutant]:
    """All faults inside the functions of a file, by name."""
    from run import function_of

    path = root / source
    text = path.read_bytes()
    groups: dict[tuple[str, str, str], list[Mutant]] = {}
    for mutant in mutants(text):
        found = function_of(mutant, path, text)
        if found:
            groups.setdefault((found[0], mutant.old, mutant.new), []).append(mutant)
    return {
        fault_name(source, function, alike, mutant): mutant
        for (function, _, _), alike in groups.items()
        for mutant in alike
    }


def read_record() -> dict[str, str]:
    """{fault: the test that notices it, or “lives: ” and why}."""
    found: dict[str, str] = json.loads(RECORD.read_text(encoding="utf-8"))
    return found


def score(record: dict[str, str]) -> float:
    """The share of faults that a test notices."""
    return sum(not answer.startswith(LIVES) for answer in record.values()) / len(record)


class Recheck:
    """Tries the faults of the record again, each against the test that noticed it; `lived` has those that live now."""

    def __init__(self, root: Path, seconds: float) -> None:
        self.root, self.seconds = root, seconds
        self.lived: list[str] = []
        self.gone: list[str] = []
        self.tried = 0

    def pytest_runtestloop(self, session: Any) -> bool:
        from run import Suite

        suite, faults = Suite(session), dict[str, dict[str, Mutant]]()
        for name, answer in read_record().items():
            source, function = name.split(":")[:2]
            if source not in faults:
                faults[source] = named_faults(self.root, source) if (self.root / source).exists() else {}
            mutant = faults[source].get(name)
            if answer.startswith(LIVES) or mutant is None:
                self.gone += [name] * (mutant is None)
                continue
            path = self.root / source
            own = [item for item in session.items if item.nodeid == answer]
            near = own or suite.nearest(path, function)  # its test has another name now
            self.tried += 1
            if not suite.judge(path, path.read_bytes(), mutant, near, self.seconds):
                self.lived.append(name)
        return True

    def verdict(self) -> str:
        """What is wrong, in words; "" if nothing is."""
        told = [f"no test notices any more: {name}" for name in self.lived]
        if 2 * len(self.gone) > self.tried + len(self.gone):
            told.append(f"{len(self.gone)} of the recorded faults are gone: draw a new sample")
        return "\n".join(told)
