"""Online backup of a state folder, and its restore.

SQLite's backup API copies the log as of one transaction. Snapshots are immutable files; those newer than the copied log
are left out. The high-water mark is left out as well: a folder without one starts a new epoch, so that feedback on a
round of another copy is never learnt here.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from ranktron import __version__
from ranktron.data.files import atomically
from ranktron.errors import DataError
from ranktron.store.journal.journal import CAPACITY, PREFIX
from ranktron.store.journal.sqlite_journal import check_format, connect

LOG, SNAPSHOTS, TABLE = "log.sqlite", "snapshots", "backup.json"
_ATTEMPTS = 3  # an attempt fails if the server deletes a snapshot before it has been copied
_SET_RESTORED = (
    "INSERT INTO owner VALUES (1, 0, 0, 'restored', 0) ON CONFLICT (id) DO UPDATE SET facts = excluded.facts"
)
_STEP_PAGES = 1_000  # copied at a time, between the server's commits


class BackedUp(NamedTuple):
    """A ranker or experiment in a backup: its version, and the version of its newest snapshot."""

    name: str
    version: int
    snapshot: int


class Backup(msgspec.Struct, frozen=True):
    """The description of a backup, in `backup.json`."""

    ranktron: str
    made: str
    cluster: str
    bytes: int
    rankers: list[BackedUp]


def back_up(folder: str | Path, target: str | Path) -> Backup:
    """Copies a state folder to a new folder, atomically, whether a server runs on it or not.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     back_up(place, f"{place}/backup")
    Traceback (most recent call last):
    ...
    ranktron.errors.DataError: ... is not a state folder: it has no log.sqlite
    """
    source, target = Path(folder), Path(target)
    if not (source / LOG).is_file():
        raise DataError(f"{source} is not a state folder: it has no {LOG}")
    check_free(target)
    draft = target.with_name(f".{target.name}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for _ in range(_ATTEMPTS):
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir(mode=0o700)
            backup = _copy(source, draft)
            if backup is not None:
                with atomically(draft / TABLE) as file:
                    file.write(msgspec.json.format(msgspec.json.encode(backup)))
                draft.rename(target)
                return backup
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error.strerror or error}") from None
    except sqlite3.Error as error:
        raise DataError(f"{source / LOG} cannot be copied: {error}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    message = f"{source}: the server deleted snapshots before they were copied"
    raise DataError(f"{message}: raise `versions`, or try again")


def restore(backup: str | Path, folder: str | Path) -> Backup:
    """Creates a new state folder from a backup; a server that starts there begins a new epoch."""
    source, target = Path(backup), Path(folder)
    description = read_backup(source)
    check_free(target)
    draft = target.with_name(f".{target.name}.tmp")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft.mkdir(mode=0o700)
        shutil.copyfile(source / LOG, draft / LOG)
        _copy_snapshots(source, draft)
        if [*_list_rankers(draft)] != description.rankers:
            raise DataError(f"{source} does not match its {TABLE}, or snapshots are missing: use another backup")
        with closing(connect(draft / LOG)) as connection:
            connection.execute(_SET_RESTORED)
            connection.execute("PRAGMA journal_mode = DELETE")
        draft.rename(target)  # replaces an empty folder
    except (OSError, sqlite3.Error) as error:
        raise DataError(f"{target} cannot be created from {source}: {error}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return description


def read_backup(folder: Path) -> Backup:
    """Reads the description of a backup."""
    try:
        return msgspec.json.decode((folder / TABLE).read_bytes(), type=Backup)
    except (OSError, msgspec.DecodeError) as error:
        raise DataError(f"{folder} is not a backup: {getattr(error, 'strerror', error)}") from None


def check_free(target: Path) -> None:
    """Refuses a target that exists, unless it is an empty folder."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DataError(f"{target} exists and is not overwritten: choose another folder, or move it away")


def _copy(source: Path, draft: Path) -> Backup | None:
    """Copies the log and its snapshots; None if a snapshot that the log needs is missing."""
    _copy_snapshots(source, draft)
    with closing(sqlite3.connect(source / LOG)) as log, closing(sqlite3.connect(draft / LOG)) as copy:
        log.backup(copy, pages=_STEP_PAGES, sleep=0.001)
        copy.execute("PRAGMA journal_mode = DELETE")
        if copy.execute("PRAGMA quick_check").fetchone() != ("ok",):
            raise DataError(f"{source / LOG} is damaged: no backup was made")
        check_format(copy, source / LOG)
        cluster = copy.execute("SELECT cluster FROM identity").fetchone()[0]
    _copy_snapshots(source, draft)  # those written since the first pass
    rankers = [*_list_rankers(draft)]
    if any(ranker.snapshot < 0 for ranker in rankers):
        return None
    size = sum(path.stat().st_size for path in draft.rglob("*") if path.is_file())
    return Backup(__version__, datetime.now(UTC).isoformat(timespec="seconds"), cluster, size, rankers)


def _copy_snapshots(source: Path, draft: Path) -> None:
    for path in sorted((source / SNAPSHOTS).glob("*/*")):
        copy = draft / path.relative_to(source)
        if path.suffix in (".snapshot", ".kept") and path.is_file() and not copy.exists():
            copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                shutil.copyfile(path, copy)
            except FileNotFoundError:  # the server has deleted it
                copy.unlink(missing_ok=True)


def _list_rankers(draft: Path) -> Iterator[BackedUp]:
    """The rankers of a copy, `snapshot` -1 where one is missing. Deletes snapshots that are newer than the log."""
    with closing(sqlite3.connect(draft / LOG)) as copy:
        for ranker, name in copy.execute("SELECT id, name FROM rankers WHERE NOT deleted ORDER BY id").fetchall():
            base = ranker * CAPACITY
            span = base, base + CAPACITY
            last = copy.execute("SELECT max(key) FROM entries WHERE key > ? AND key < ?", span).fetchone()[0] or base
            version, snapshot = last - base, 0
            for path in sorted((draft / SNAPSHOTS / str(ranker)).glob("*")):
                if int(path.stem) > version:
                    path.unlink()
                else:
                    snapshot = int(path.stem)
            after = copy.execute("SELECT count(*) FROM entries WHERE key > ? AND key <= ?", (base + snapshot, last))
            is_experiment = name.startswith(PREFIX)  # has no snapshots
            complete = is_experiment or after.fetchone()[0] == version - snapshot
            yield BackedUp(name, version, snapshot if complete else -1)
