"""Prints constraints that pin every dependency of the package at its lower bound: `make test-lowest` installs these.

    python tests/lowest.py > lowest.txt

Core and extras for users are pinned. Tools for developers are not: which pytest runs the tests is nobody's concern.
"""

import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parent.parent
TOOLS = ("dev", "docs", "bench")
"""Extras that are for developers."""


def declared(tools=False):
    """The requirements in `pyproject.toml` with the name of their extra; "" for the core."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {"": project["dependencies"], **project["optional-dependencies"]}
    for extra, lines in extras.items():
        for line in lines:
            requirement = Requirement(line)
            if requirement.name != project["name"] and (tools or extra not in TOOLS):
                yield extra, requirement


def lower_bound(requirement):
    """The version in `>=`; None where there is none."""
    bounds = [clause.version for clause in requirement.specifier if clause.operator == ">="]
    return Version(bounds[0]) if bounds else None


def constraints():
    """`name==version` for each dependency, at its lower bound, in the order of their names."""
    return sorted({f"{requirement.name}=={lower_bound(requirement)}" for _, requirement in declared()})


if __name__ == "__main__":
    print("\n".join(constraints()))
