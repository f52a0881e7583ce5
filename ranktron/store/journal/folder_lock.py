"""The lock of a state folder: admits one server, and distinguishes the folder from its copies."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path

from ranktron.errors import DataError

_LOCKED = {errno.EWOULDBLOCK, errno.EACCES}


class FolderLock:
    """Locks the file `lock`, and the folder as well, because a lock file may be deleted by accident."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "lock"
        self._descriptors: list[int] = []  # of the lock file and the folder, locked until close
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._descriptors.append(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
            self._descriptors.append(os.open(folder, os.O_RDONLY))
        except OSError as error:
            self.close()
            raise DataError(f"{folder}: the state cannot be stored there: {error.strerror}") from None
        for descriptor in self._descriptors:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in _LOCKED:  # other errors are ignored: some filesystems cannot lock folders
                    self.close()
                    message = f"{folder} is in use by another server: stop it first, or choose another folder"
                    raise DataError(message) from None

    def facts(self, log: Path) -> str:
        """Properties that a copy cannot share: two inodes, and the change time of the lock file, never written to."""
        lock = self._path.stat()
        return f"{log.stat().st_ino} {lock.st_ino} {lock.st_ctime_ns}"

    def close(self) -> None:
        for descriptor in self._descriptors:
            with suppress(OSError):
                os.close(descriptor)
        self._descriptors = []
