"""Single facts about a database, by name: what this program writes down for itself."""

from pegword.store.engine import Tx

_PUT = "INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_GET = "SELECT value FROM facts WHERE name = ?"


def put(tx: Tx, name: str, value: str) -> None:
    """Write a fact down, over an older one of that name."""
    tx.run(_PUT, (name, value))


def get(tx: Tx, name: str) -> str | None:
    """The fact of that name."""
    rows = tx.rows(_GET, (name,))
    return str(rows[0][0]) if rows else None
