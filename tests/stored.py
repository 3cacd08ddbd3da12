"""What tests do to a store from outside: see everything that it holds, and hold it as another process would."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from pegword.services.bundle import Services
from pegword.store.sqlite import SqliteEngine

_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"


def everything(services: Services) -> bytes:
    """Of a SQLite store every byte of its files, of another one every value of every row."""
    engine = services.engine
    if isinstance(engine, SqliteEngine):
        return b"".join(path.read_bytes() for path in engine.path.parent.iterdir())
    with engine.read() as tx:
        values = [value for (table,) in tx.rows(_TABLES) for row in tx.rows(f"SELECT * FROM {table}") for value in row]
    return b"\n".join(value if isinstance(value, bytes) else str(value).encode() for value in values)


_HOLDER = """\
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held(database: Path | str) -> Iterator[None]:
    """Another process is in the middle of a write, and lets nobody else begin one."""
    if isinstance(database, str):
        with psycopg.connect(database) as connection:
            connection.execute("LOCK TABLE structured_memories, facts, receipts IN EXCLUSIVE MODE")
            yield
        return
    with subprocess.Popen([sys.executable, "-c", _HOLDER, str(database)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        try:
            yield
        finally:
            holder.communicate()
