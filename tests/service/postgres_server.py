"""A PostgreSQL server of one's own: in a folder that goes away, at a socket that nobody else sees."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote
from zlib import crc32

import psycopg

OWNER = "shop"  # an ordinary user: nothing here needs more


def find_programs():
    """Where `initdb` and `postgres` are; None if there is no server on this machine."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    found = [str(folder) for folder in folders if (folder / "initdb").exists()]
    here = shutil.which("initdb")
    return Path(here).parent if here else Path(found[0]) if found else None


class PostgresServer:
    """A server that was started, and can be killed and started again."""

    def __init__(self, **settings):
        self.programs = find_programs()
        self.folder = Path(tempfile.mkdtemp(prefix="pg-"))
        self.user = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
        if self.user:  # initdb refuses root
            shutil.chown(self.folder, "postgres", "postgres")
        self._run("initdb", "-A", "trust", "-U", "admin", "--no-sync", "--locale=C", "-E", "UTF8")
        settings = {"listen_addresses": "", "shared_buffers": "32MB", "max_connections": "60", **settings}
        settings.setdefault("recovery_init_sync_method", "syncfs")  # a start after a kill would take seconds
        lines = [f"{name} = '{value}'" for name, value in settings.items()]
        lines.append(f"unix_socket_directories = '{self.folder}'")
        (self.folder / "data" / "postgresql.auto.conf").write_text("\n".join(lines))
        self.start()
        self.execute(f"CREATE ROLE {OWNER} LOGIN")

    def _run(self, program, *options):
        command = [self.programs / program, "-D", self.folder / "data", *options]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, **self.user)

    def start(self):
        self._run("pg_ctl", "-w", "-l", self.folder / "log", "start")

    def kill(self):
        """As if its machine had lost its power: every process of it is gone, and its memory, at once."""
        number = int((self.folder / "data" / "postmaster.pid").read_text().split()[0])
        children = [process for process, parent in _processes() if parent == number]
        for process in (number, *children):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        while {number, *children} & {process for process, _ in _processes()}:
            time.sleep(0.005)
        for lock in (self.folder / "data" / "postmaster.pid", self.folder / ".s.PGSQL.5432.lock"):
            lock.unlink(missing_ok=True)  # a process that nobody has waited for yet passes for one that runs

    def stop(self):
        with suppress(OSError):  # a test may have left it killed
            self.kill()
        shutil.rmtree(self.folder)

    def execute(self, statement, database="postgres", user="admin"):
        with psycopg.connect(host=str(self.folder), user=user, dbname=database, autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def address(self, state):
        """Where the journal of a state is: each has a schema of its own."""
        schema = f"s{crc32(str(state).encode()):08x}"
        self.execute(f"CREATE SCHEMA IF NOT EXISTS {schema} AUTHORIZATION {OWNER}")
        options = quote(f"-csearch_path={schema}")
        return f"postgresql://{OWNER}@/postgres?host={quote(str(self.folder), safe='')}&options={options}"


def _processes():
    """The processes that run, each with the one that has started it."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                yield int(path.parent.name), int(parent)
