"""The lock of a folder: one process writes there, and tells a copy of the folder from the original."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path

from ranktron.errors import DataError

_TAKEN = {errno.EWOULDBLOCK, errno.EACCES}


class FolderLock:
    """Locks the file `lock`, and the folder as well, because a lock file may be deleted by accident."""

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
