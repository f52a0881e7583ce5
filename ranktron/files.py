"""Writing files whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ranktron.errors import DataError


@contextmanager
def atomically(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Opens a file for writing that takes its place only when it is complete and on disk.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomically(f"{folder}/a") as file:
    ...         _ = file.write(b"all of it")
    ...     Path(folder, "a").read_bytes()
    b'all of it'
    """
    target = Path(path)
    draft = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with open(draft, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except OSError as error:
        raise DataError(f"{target}: cannot be written: {error.strerror or error}") from None
    finally:
        draft.unlink(missing_ok=True)
