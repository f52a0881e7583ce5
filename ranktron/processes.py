"""How Ranktron starts processes of its own: with the same code as this one, and nothing from the current folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def ranktron_command(*arguments: str) -> list[str]:
    """A command of Ranktron for a new process.

    `-m` would import from the current folder, and the package found there or elsewhere: this starts it by its path.
    """
    return [sys.executable, "-P", str(Path(__file__).with_name("__main__.py")), *arguments]


def process_environment() -> dict[str, str]:
    """The environment for it: without entries of PYTHONPATH that depend on the current folder."""
    folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(filter(os.path.isabs, folders))}
