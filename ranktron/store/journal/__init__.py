"""The journal: entries, rounds and snapshots on disk, in SQLite or PostgreSQL, written by one thread."""
