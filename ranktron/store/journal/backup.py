"""Online backup of a state folder, and restoring it.

SQLite copies the log as of one commit. Snapshots are immutable files; only those that the copied log continues are
kept. The mark is not copied: a folder without one begins a new epoch, so that no feedback is learnt on a list that
another copy has shown.
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
_ATTEMPTS = 3  # in case snapshots are pruned faster than they are copied
_RESTORED = "INSERT INTO owner VALUES (1, 0, 0, 'restored', 0) ON CONFLICT (id) DO UPDATE SET facts = excluded.facts"
_PAGES = 1_000  # of the log per step: commits happen between steps


class BackedUp(NamedTuple):
    """A ranker or an experiment in a backup: its version, and that of its newest snapshot."""

    name: str
    version: int
    snapshot: int


class Backup(msgspec.Struct, frozen=True):
    """The description of a backup, in backup.json."""

    ranktron: str
    made: str
    cluster: str
    bytes: int
    rankers: list[BackedUp]


def back_up(folder: str | Path, target: str | Path) -> Backup:
    """Copies a state folder, with or without a running server, to a new folder, atomically.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     back_up(place, f"{place}/backup")
    Traceback (most recent call last):
    ...
    ranktron.errors.DataError: ... is no state folder: it has no log.sqlite
    """
    source, target = Path(folder), Path(target)
    if not (source / LOG).is_file():
        raise DataError(f"{source} is no state folder: it has no {LOG}")
    check_free(target)
    draft = target.with_name(f".{target.name}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for _ in range(_ATTEMPTS):
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir(mode=0o700)
            backup = _copied(source, draft)
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
    raise DataError(f"{source}: snapshots went faster than they could be copied: raise `versions`, or try again")


def restore(backup: str | Path, folder: str | Path) -> Backup:
    """Makes a new state folder of a backup; a server that starts there begins a new epoch."""
    source, target = Path(backup), Path(folder)
    found = read_backup(source)
    check_free(target)
    draft = target.with_name(f".{target.name}.tmp")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft.mkdir(mode=0o700)
        shutil.copyfile(source / LOG, draft / LOG)
        _copy_snapshots(source, draft)
        if [*_backed_up(draft)] != found.rankers:
            raise DataError(f"{source} is not what {TABLE} says, or snapshots are missing: take another backup")
        with closing(connect(draft / LOG)) as connection:
            connection.execute(_RESTORED)
            connection.execute("PRAGMA journal_mode = DELETE")
        draft.rename(target)  # over an empty folder, too
    except (OSError, sqlite3.Error) as error:
        raise DataError(f"{target} cannot be made of {source}: {error}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return found


def read_backup(folder: Path) -> Backup:
    """The description of a backup."""
    try:
        return msgspec.json.decode((folder / TABLE).read_bytes(), type=Backup)
    except (OSError, msgspec.DecodeError) as error:
        raise DataError(f"{folder} is no backup: {getattr(error, 'strerror', error)}") from None


def check_free(target: Path) -> None:
    """Refuses to overwrite existing files."""
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DataError(f"{target} exists, and nothing is written over it: choose another folder, or move it away")


def _copied(source: Path, draft: Path) -> Backup | None:
    """Copies everything; None if the copied snapshots do not fit the log."""
    _copy_snapshots(source, draft)
    with closing(sqlite3.connect(source / LOG)) as log, closing(sqlite3.connect(draft / LOG)) as copy:
        log.backup(copy, pages=_PAGES, sleep=0.001)
        copy.execute("PRAGMA journal_mode = DELETE")
        if copy.execute("PRAGMA quick_check").fetchone() != ("ok",):
            raise DataError(f"{source / LOG} is damaged: no backup was made")
        check_format(copy, source / LOG)
        cluster = copy.execute("SELECT cluster FROM identity").fetchone()[0]
    _copy_snapshots(source, draft)  # those written meanwhile
    rankers = [*_backed_up(draft)]
    if any(each.snapshot < 0 for each in rankers):
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
            except FileNotFoundError:  # pruned by the server
                copy.unlink(missing_ok=True)


def _backed_up(draft: Path) -> Iterator[BackedUp]:
    """The rankers of a copy, with snapshots beyond its log removed; -1 where a snapshot is missing."""
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
            whole = name.startswith(PREFIX) or after.fetchone()[0] == version - snapshot  # experiments need no snapshot
            yield BackedUp(name, version, snapshot if whole else -1)
