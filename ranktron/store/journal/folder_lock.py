"""The lock of a state folder: admits one server, and distinguishes the folder from its copies."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from ranktron.errors import DataError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_LOCKED = {errno.EWOULDBLOCK, errno.EACCES}


class FolderLock:
    """Locks the file `lock`, and the folder as well, because a lock file may be deleted by accident."""

    def __init__(self, folder: Path) -> None:
        if fcntl is None:
            raise DataError("stores and services need Linux or macOS: elsewhere folders cannot be locked")
        self._path, self._owner = folder / "lock", folder / "pid"  # fixed
        self._descriptors: list[int] = []  # of the lock file and the folder, locked until close
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._descriptors.append(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
            self._descriptors.append(os.open(folder, os.O_RDONLY))
        except OSError as error:
            self.release()
            raise DataError(f"{folder}: the state cannot be stored there: {error.strerror}") from None
        for descriptor in self._descriptors:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno in _LOCKED:  # other errors are ignored: some filesystems cannot lock folders
                    self.release()
                    raise DataError(_in_use(folder, self._owner)) from None
        with suppress(OSError):  # for the message alone
            self._owner.write_text(f"{os.getpid()}\n")

    def facts(self, log: Path) -> str:
        """Properties that a copy cannot share: two inodes, and the change time of the lock file, never written to."""
        lock = self._path.stat()
        return f"{log.stat().st_ino} {lock.st_ino} {lock.st_ctime_ns}"

    def close(self) -> None:
        if self._descriptors:
            self._owner.unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        """Closes the lock's files; in a child after a fork, the parent still holds the lock."""
        for descriptor in self._descriptors:
            with suppress(OSError):
                os.close(descriptor)
        self._descriptors = []


def _in_use(folder: Path, owner: Path) -> str:
    """The message for a folder that another process has opened."""
    try:
        process = int(owner.read_text())
    except (OSError, ValueError):
        process = 0
    who = "this process" if process == os.getpid() else f"process {process}" if process else "another process"
    share = f"`ranktron serve --dir {folder}` lets many processes use one folder"
    return f"{folder} is in use by {who}: close it there first, or choose another folder; {share}"
