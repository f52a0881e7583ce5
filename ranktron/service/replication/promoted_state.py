"""The state folder of a follower that is promoted: its rankers as they are, in a new epoch and a higher term.

A follower has no journal. So the folder has a snapshot of each ranker, and one entry after it, which teaches nothing:
the promotion is a version of its own. The facts that a folder knows itself by are not those of any: its first start
begins a new epoch, as that of a restored one does, and no feedback is learnt on a list that another server has shown.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Collection
from contextlib import closing
from pathlib import Path

from ranktron.data import serialization
from ranktron.errors import DataError
from ranktron.service.replication.follower import PROMOTED, FollowedCopy
from ranktron.store.journal.backup import check_free
from ranktron.store.journal.entries import JournalEntry, encode
from ranktron.store.journal.folder_lock import FolderLock
from ranktron.store.journal.journal import CAPACITY
from ranktron.store.journal.ranker_rows import RankerRow, alone, chain_checksum
from ranktron.store.journal.snapshots import Snapshots
from ranktron.store.journal.sql_database import insert
from ranktron.store.journal.sqlite_journal import SQLiteDatabase
from ranktron.store.rankers.journal_writer import RESERVE
from ranktron.store.rankers.models import stored_bytes
from ranktron.store.rankers.recovery import take_snapshot

_OWNER = "INSERT INTO owner (id, term, commits, facts, epoch) VALUES (1, ?, 0, 'promoted', 0)"


def write_state(folder: Path, cluster: str, term: int, rankers: Collection[FollowedCopy]) -> None:
    """Writes a new state folder, which is there complete or not at all; `cluster` and `term` are the leader's."""
    check_free(folder)
    draft = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with closing(FolderLock(draft)) as lock, closing(SQLiteDatabase(draft, lock)) as database:
            database.begin()
            database.execute("UPDATE identity SET cluster = ?", (cluster,))
            database.execute(_OWNER, ((term // PROMOTED + 1) * PROMOTED,))
            for each in rankers:
                _write_ranker(database, draft, each)
            database.commit()
        draft.rename(folder)
    except (OSError, sqlite3.Error) as error:
        raise DataError(f"{folder} cannot be written: {error}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write_ranker(database: SQLiteDatabase, draft: Path, copy: FollowedCopy) -> None:
    live, base = copy.live, copy.live.id * CAPACITY
    following = (
        copy.next_free_round + RESERVE
    )  # the leader may have shown more rounds than is known here; clients carry some
    definition, asked = stored_bytes(live.definition), stored_bytes(live.asked)
    row = RankerRow(live.id, live.name, definition, following, 0, asked, live.incarnation, live.round_ids.starts)
    row.write(database)
    if live.version:
        Snapshots(draft, live.id, 2).write(live.version, serialization.serialize(take_snapshot(live)))
    key, body = base + live.version + 1, encode(JournalEntry("nothing", 0, live.now(), b""))
    checksum = chain_checksum(key, body, None, live.incarnation) if live.incarnation else alone(key, body)
    insert(database, "entries", [(key, body, checksum, None)])
    rounds = [(base + number, body) for number, body in copy.waiting.items()]
    insert(database, "rounds", [(key, body, alone(key, body)) for key, body in rounds])
