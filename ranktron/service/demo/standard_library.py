"""The documentation of the running interpreter's standard library, as documents to search."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Timer

from ranktron.errors import DataError

SCRIPT = Path(__file__).with_name("inventory.py")
TIMEOUT = 60.0  # seconds; half a second is usual


@dataclass(frozen=True)
class LibraryEntry:
    """One documented name of the standard library.

    >>> document = LibraryEntry("os.path.join", "os.path", "function", "(a, *p)", "Join two\\ncomponents.\\n\\nMore.")
    >>> document.name, document.summary
    ('join', 'Join two components.')
    """

    id: str
    module: str
    kind: str
    signature: str
    text: str

    @property
    def name(self) -> str:
        """The last part of the full name."""
        return self.id.rpartition(".")[2]

    @property
    def summary(self) -> str:
        """The first paragraph of the docstring that is not a signature, on one line."""
        first, *others = self.text.split("\n\n")
        repeated = others and re.match(rf"(\w+\.)*{re.escape(self.name)} ?\(", first)
        return " ".join((others[0] if repeated else first).split())


def standard_library(advance: Callable[[int, int], None] = lambda done, total: None) -> list[LibraryEntry]:
    """Reads the docstrings of the standard library, in a process of its own (see `inventory`).

    `advance` is called after each module, with the number of modules read and their total.

    >>> documents = standard_library()
    >>> [each.signature for each in documents if each.id == "json.load"][0][:4]
    '(fp,'
    """
    command = [sys.executable, "-I", "-S", "-W", "ignore", str(SCRIPT)]
    entries: dict[str, LibraryEntry] = {}
    total = done = 0
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
    ) as reader:
        assert reader.stdout is not None
        timeout = Timer(TIMEOUT, reader.kill)
        timeout.start()
        try:
            total = int(reader.stdout.readline() or 0)
            for done, line in enumerate(reader.stdout, 1):
                for document in json.loads(line):
                    entries.setdefault(document["id"], LibraryEntry(**document))
                advance(done, total)
        except ValueError:
            total = -1  # an incomplete line
        finally:
            timeout.cancel()
            reader.kill()
    if total < 1 or done < total:
        raise DataError("the standard library could not be read: the process that reads it ended too early")
    return list(entries.values())
