"""Writing files atomically: completely or not at all."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from ranktron.errors import DataError


@contextmanager
def atomically(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Opens a file for writing that appears under its name only when it is complete and on disk.

    Of a symbolic link, the target is replaced. A device or a pipe is written to directly. `-` is standard output, which
    gets everything or nothing as well.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomically(f"{folder}/a") as file:
    ...         _ = file.write(b"all of it")
    ...     Path(folder, "a").read_bytes()
    b'all of it'
    """
    if os.fspath(path) == "-":
        with tempfile.TemporaryFile() as file:
            yield file
            file.seek(0)
            shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        return
    try:
        target = Path(os.path.realpath(path))
        special = target.exists() and not target.is_file()
    except (OSError, ValueError) as error:  # a name too long, or one with a zero byte
        raise DataError(f"{os.fspath(path)!r}: cannot be written: {getattr(error, 'strerror', error)}") from None
    if not os.fspath(path) or target.is_dir():
        raise DataError(f"{os.fspath(path) or 'an empty name'}: cannot be written: it does not name a file")
    draft = target if special else target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with open(draft, "wb") as file:
            yield file
            file.flush()
            if not special:
                os.fsync(file.fileno())
        if not special:
            os.replace(draft, target)
    except OSError as error:
        raise DataError(f"{os.fspath(path)}: cannot be written: {error.strerror or error}") from None
    finally:
        if not special:
            with suppress(OSError):  # there is none where its name was too long
                draft.unlink()
