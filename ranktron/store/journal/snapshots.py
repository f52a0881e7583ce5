"""Snapshots: a ranker at one version, each in a file that is written atomically."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ranktron.data import serialization
from ranktron.data.files import atomically
from ranktron.errors import DataError

_logger = logging.getLogger("ranktron.service")


class Snapshots:
    """The snapshots of one ranker.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     snapshots = Snapshots(Path(folder), 1, keep=2)
    ...     for version in (3, 5, 8):
    ...         snapshots.write(version, serialization.serialize({"version": version}))
    ...     snapshots.versions(), snapshots.newest()
    ([5, 8], {'version': 8})

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     snapshots = Snapshots(Path(folder), 1, keep=2)
    ...     for version in (3, 5, 8):
    ...         snapshots.write(version, serialization.serialize({"version": version}), pinned=version == 3)
    ...     snapshots.versions(), snapshots.pinned()
    ([3, 5, 8], [3])
    """

    def __init__(self, folder: Path, ranker: int, keep: int) -> None:
        self.folder, self.keep = folder / "snapshots" / str(ranker), keep
        self.damaged = 0

    def remove_drafts(self) -> None:
        """Removes incomplete files of a server that was killed."""
        for path in self.folder.glob(".*.tmp"):
            with suppress(OSError):  # harmless if it stays
                path.unlink()

    def versions(self) -> list[int]:
        """The versions with a snapshot, oldest first."""
        return sorted({*self._with("snapshot"), *self._with("kept")})

    def pinned(self) -> list[int]:
        """The versions that a client has pinned: newer snapshots do not replace them."""
        return self._with("kept")

    def _with(self, ending: str) -> list[int]:
        paths = [path for path in self.folder.glob(f"*.{ending}") if path.stem.isdecimal() and path.is_file()]
        return sorted(int(path.stem) for path in paths)  # a named pipe would block the reader

    def write(self, version: int, data: bytes, *, pinned: bool = False) -> None:
        """Writes a snapshot, flushes it to disk, and removes the oldest ones that are not pinned."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with atomically(self.folder / f"{version:016d}.{'kept' if pinned else 'snapshot'}") as file:
            file.write(data)
        _flush(self.folder)
        for old in self._with("snapshot")[: -self.keep]:
            (self.folder / f"{old:016d}.snapshot").unlink(missing_ok=True)

    def pin(self, version: int) -> None:
        """Pins an existing snapshot."""
        try:
            self._path(version).rename(self.folder / f"{version:016d}.kept")
        except OSError as error:
            raise DataError(f"version {version} cannot be kept: {error.strerror}") from None
        _flush(self.folder)

    def remove(self, version: int) -> None:
        """Removes a snapshot; the two newest are needed, since recovery starts from them."""
        check_not_needed(version, self.versions())
        for ending in ("kept", "snapshot"):
            (self.folder / f"{version:016d}.{ending}").unlink(missing_ok=True)
        _flush(self.folder)

    def read(self, version: int) -> dict[str, Any]:
        """The content of a snapshot; a damaged one is an error."""
        return serialization.deserialize(self._load(version), self._name(version))

    def newest(self, misfit: Callable[[Mapping[str, Any]], str] = lambda kept: "") -> Mapping[str, Any] | None:
        """The newest snapshot that is intact and fits; damaged ones are reported, misfits renamed."""
        for version in reversed(self.versions()):
            try:
                kept = self.read(version)
            except DataError as error:
                self.damaged += 1
                _logger.warning("%s: an older snapshot is used", error)
                continue
            why = misfit(kept)
            if not why:
                return kept
            self._put_away(version, why)
        return None

    def clear(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _load(self, version: int) -> bytes:
        path = self._path(version)
        try:
            return path.read_bytes()
        except OSError as error:
            raise DataError(f"{path.name} cannot be read: {error.strerror}") from None

    def _put_away(self, version: int, why: str) -> None:
        _logger.warning("%s %s: it is renamed, and an older snapshot is used", self._path(version), why)
        self._path(version).rename(self._path(version).with_suffix(".foreign"))

    def _name(self, version: int) -> str:
        return self._path(version).name

    def _path(self, version: int) -> Path:
        kept = self.folder / f"{version:016d}.kept"
        return kept if kept.exists() else kept.with_suffix(".snapshot")


def check_not_needed(version: int, versions: list[int]) -> None:
    """Refuses to remove one of the two newest versions."""
    if version in versions[-2:]:
        newest = f"version {version} is one of the two newest that are kept, from which a start goes on"
        raise DataError(f"{newest}: it can go when there are two newer ones")


def _flush(folder: Path) -> None:
    """Flushes the list of files in a folder to disk."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
