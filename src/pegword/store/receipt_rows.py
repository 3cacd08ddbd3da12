"""Receipts: what a turn considered and showed, for as long as they are kept."""

from collections.abc import Sequence

from pegword.store.engine import Tx

_ADD = "INSERT INTO receipts (receipt_id, memory_id, user_id, at, version, body) VALUES (?, ?, ?, ?, ?, ?)"
_GET = "SELECT memory_id, user_id, at, version, body FROM receipts WHERE receipt_id = ?"
_DROP = "DELETE FROM receipts WHERE at < ?"


def add(tx: Tx, receipt_id: str, user_id: str, at: int, head: str, lines: Sequence[tuple[str, int, str]]) -> None:
    """Keep a receipt: its *head*, and a line (memory id, version, body) a memory. Bodies are JSON texts."""
    rows = [("", 0, head), *lines]
    tx.run_many(_ADD, [(receipt_id, memory_id, user_id, at, version, body) for memory_id, version, body in rows])


def get(tx: Tx, receipt_id: str) -> list[tuple[str, str, int, int, str]]:
    """The rows of a receipt (memory id, user id, time, version, body), the head first; none when it is gone."""
    rows = tx.rows(_GET, (receipt_id,))
    return sorted(((m, u, at, v, body) for m, u, at, v, body in rows), key=lambda row: row[0] != "")


def drop_before(tx: Tx, at: int) -> None:
    """Forget every receipt older than *at*."""
    tx.run(_DROP, (at,))
