"""The mark: how far the log had come when it was last told of, in a small file beside the log.

A commit is on disk before the mark moves, and the mark moves before anyone is told. So a log that falls short of its
mark has lost something, and a crash between the two leaves a mark that is a little behind, which says nothing. Each
ranker has a place of its own in the file, with a checksum, that one write replaces. The kernel has the write at once:
killing the process does not undo it. A power cut may undo the last `_PAUSE` of it, since the file is flushed beside
the commits instead of within them.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from struct import Struct
from threading import Event, Thread
from typing import NamedTuple
from zlib import crc32

SIZE = 256  # bytes of a place: a disk writes it whole or not at all
_PLACE = Struct("<QQQIB64sd")
_PAUSE = 0.1  # seconds between two flushes
_REMOVED = 64  # removed rankers whose places are kept before they are used again


class RankerMark(NamedTuple):
    """How far one ranker had come: its last version with the checksum of that entry, its reserved numbers, its time."""

    ranker: int
    name: str
    version: int
    checksum: int
    next: int
    removed: bool
    at: float = 0.0


class Mark:
    """The file of marks of one journal.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mark = Mark(Path(folder) / "mark")
    ...     mark.write(7, [RankerMark(1, "shop", 3, 99, 20_000, False)])
    ...     mark.close()
    ...     again = Mark(Path(folder) / "mark")
    ...     again.commits, again.rankers[1].version
    (7, 3)
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self.commits, self.damaged = 0, 0
        self.rankers: dict[int, RankerMark] = {}
        self._places: dict[int, int] = {0: 0}
        data = os.pread(self._file, os.fstat(self._file).st_size, 0)
        self.missing = not data
        self._end = -(-len(data) // SIZE) or 1
        for place in range(len(data) // SIZE):
            self._read(place, data[place * SIZE : (place + 1) * SIZE])
        self.damaged += len(data) % SIZE > 0
        self._moved, self._closing = Event(), Event()
        self._thread = Thread(target=self._flush_often, name="ranktron-mark", daemon=True)
        self._thread.start()

    def _read(self, place: int, data: bytes) -> None:
        if not any(data):
            self.damaged += place == 0
            return
        if crc32(data[4:]) != int.from_bytes(data[:4], "little"):
            self.damaged += 1
            return
        ranker, version, following, checksum, removed, name, at = _PLACE.unpack_from(data, 4)
        self._places[ranker] = place
        if ranker == 0:
            self.commits = version
        else:
            self.rankers[ranker] = RankerMark(
                ranker, name.rstrip(b"\0").decode(), version, checksum, following, bool(removed), at
            )

    def write(self, commits: int, rankers: list[RankerMark]) -> None:
        """Moves the marks of some rankers, and then that of the journal."""
        for mark in rankers:
            place = self._places.get(mark.ranker)
            if place is None:
                place = self._places[mark.ranker] = self._free()
            self.rankers[mark.ranker] = mark
            self._put(place, mark)
        self._put(0, RankerMark(0, "", commits, 0, 0, False))
        self.commits = commits
        self._moved.set()

    def _free(self) -> int:
        """A new place, or that of the ranker that was removed first, if there are many such."""
        removed = [mark.ranker for mark in self.rankers.values() if mark.removed]
        if len(removed) > _REMOVED:
            first = min(removed)
            del self.rankers[first]
            return self._places.pop(first)
        self._end += 1
        return self._end - 1

    def _put(self, place: int, mark: RankerMark) -> None:
        name = mark.name.encode()
        body = _PLACE.pack(mark.ranker, mark.version, mark.next, mark.checksum, mark.removed, name, mark.at)
        body = body.ljust(SIZE - 4, b"\0")
        os.pwrite(self._file, crc32(body).to_bytes(4, "little") + body, place * SIZE)

    def _flush_often(self) -> None:
        while not self._closing.is_set():
            self._moved.wait()
            self._moved.clear()
            with suppress(OSError):  # the kernel has it all the same; the next one may succeed
                os.fdatasync(self._file)
            self._closing.wait(_PAUSE)

    def close(self) -> None:
        self._closing.set()
        self._moved.set()
        self._thread.join()
        with suppress(OSError):
            os.fsync(self._file)
        os.close(self._file)
