"""The lock of a folder: one server writes there, and notices when the folder is no longer the one that it was."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ranktron.errors import DataError

_TAKEN = {errno.EWOULDBLOCK, errno.EACCES}


class FolderLock:
    """Locks the file `lock`, and the folder itself, which nobody removes by the way as one may remove a file."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "lock"
        self._held: list[int] = []
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._held.append(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
            self._held.append(os.open(folder, os.O_RDONLY))
        except OSError as error:
            self.close()
            raise DataError(f"{folder}: the state cannot be kept there: {error.strerror}") from None
        for each in self._held:
            try:
                fcntl.flock(each, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in _TAKEN:  # others: there are filesystems that lock no folders
                    self.close()
                    sentence = "is in use by another server: stop it first, or choose another folder"
                    raise DataError(f"{folder} {sentence}") from None

    def facts(self, log: Path) -> str:
        """What a copy cannot share: the numbers of two files, and when the lock, which is never written, was made."""
        lock = self._path.stat()
        return f"{log.stat().st_ino} {lock.st_ino} {lock.st_ctime_ns}"

    def close(self) -> None:
        for each in self._held:
            with suppress(OSError):
                os.close(each)
        self._held = []


class OpenFiles:
    """Files that are written to; it notices when they are no longer the ones that stand at their paths."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._identities = [_identity(path) for path in paths]

    def are_gone(self) -> bool:
        """Whether one of them was removed, or another put in its place."""
        return [_identity(path) for path in self._paths] != self._identities


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
