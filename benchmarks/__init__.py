"""Measurements beside peers, in one run: `make bench`."""

import os
from compileall import compile_dir
from pathlib import Path

# Programs that are timed find the package's bytecode, as they would where pip has installed it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
compile_dir(Path(__file__).parent.parent / "ranktron", quiet=1)
