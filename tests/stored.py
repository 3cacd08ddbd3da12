"""Everything that a store holds, as bytes: for tests that look for what must not be in it."""

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
