"""Snapshots: the complete state of a ranker at one version, in a file that is written atomically."""

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
    """The snapshots of one ranker: the newest `keep`, and the pinned ones.

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
        self.damaged = 0  # damaged snapshots that recovery has skipped; newest

    def remove_drafts(self) -> None:
        """Removes the unfinished files of a server that was killed."""
        for path in self.folder.glob(".*.tmp"):
            with suppress(OSError):  # leftovers are harmless
                path.unlink()

    def versions(self) -> list[int]:
        """The versions of all snapshots, in ascending order."""
        return sorted({*self._with("snapshot"), *self._with("kept")})

    def pinned(self) -> list[int]:
        """The pinned versions, exempt from the limit `keep`."""
        return self._with("kept")

    def _with(self, suffix: str) -> list[int]:
        # regular files only: opening a named pipe would block
        paths = [path for path in self.folder.glob(f"*.{suffix}") if path.stem.isdecimal() and path.is_file()]
        return sorted(int(path.stem) for path in paths)

    def write(self, version: int, data: bytes, *, pinned: bool = False) -> None:
        """Writes a snapshot, flushes it to disk, and deletes the oldest ones over the limit `keep`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with atomically(self.folder / f"{version:016d}.{'kept' if pinned else 'snapshot'}") as file:
            file.write(data)
        _flush(self.folder)
        for old in self._with("snapshot")[: -self.keep]:
            (self.folder / f"{old:016d}.snapshot").unlink(missing_ok=True)

    def pin(self, version: int) -> None:
        """Exempts an existing snapshot from the limit `keep`."""
        try:
            self._path(version).rename(self.folder / f"{version:016d}.kept")
        except OSError as error:
            raise DataError(f"version {version} cannot be kept: {error.strerror}") from None
        _flush(self.folder)

    def remove(self, version: int) -> None:
        """Deletes a snapshot; the two newest are refused, since recovery starts from them."""
        check_not_needed(version, self.versions())
        for suffix in ("kept", "snapshot"):
            (self.folder / f"{version:016d}.{suffix}").unlink(missing_ok=True)
        _flush(self.folder)

    def read(self, version: int) -> dict[str, Any]:
        """The snapshot of a version; a DataError if it is missing or damaged."""
        return serialization.deserialize(self._load(version), self._name(version))

    def newest(self, misfit: Callable[[Mapping[str, Any]], str] = lambda snapshot: "") -> Mapping[str, Any] | None:
        """The newest intact snapshot for which `misfit` returns "".

        Damaged snapshots are skipped. Those with a misfit, a reason why they do not belong to the journal, are renamed.
        """
        for version in reversed(self.versions()):
            try:
                snapshot = self.read(version)
            except DataError as error:
                self.damaged += 1
                _logger.warning("%s: an older snapshot is used", error)
                continue
            reason = misfit(snapshot)
            if not reason:
                return snapshot
            self._reject(version, reason)
        return None

    def remove_unpinned(self, before: int) -> None:
        """Deletes the snapshots below a version, except pinned ones; for logs that are complete without them."""
        for old in self._with("snapshot"):
            if old < before:
                (self.folder / f"{old:016d}.snapshot").unlink(missing_ok=True)

    def clear(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _load(self, version: int) -> bytes:
        path = self._path(version)
        try:
            return path.read_bytes()
        except OSError as error:
            raise DataError(f"{path.name} cannot be read: {error.strerror}") from None

    def _reject(self, version: int, reason: str) -> None:
        _logger.warning("%s %s: it is renamed, and an older snapshot is used", self._path(version), reason)
        self._path(version).rename(self._path(version).with_suffix(".foreign"))

    def _name(self, version: int) -> str:
        return self._path(version).name

    def _path(self, version: int) -> Path:
        pinned = self.folder / f"{version:016d}.kept"
        return pinned if pinned.exists() else pinned.with_suffix(".snapshot")


def check_not_needed(version: int, versions: list[int]) -> None:
    """Refuses to delete one of the two newest versions."""
    if version in versions[-2:]:
        message = f"version {version} is one of the two newest, from which recovery starts"
        raise DataError(f"{message}: it can be deleted once there are two newer ones")


def _flush(folder: Path) -> None:
    """Flushes a folder's directory entries to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
