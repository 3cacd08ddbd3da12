"""Receipts: what a turn considered and showed, for as long as they are kept."""

from collections.abc import Sequence

from pegword.store.engine import Tx

ROWS_AT_ONCE = 64

_ADD = "INSERT INTO receipts (receipt_id, memory_id, user_id, at, version, body) VALUES {rows}"
_GET = "SELECT memory_id, user_id, at, version, body FROM receipts WHERE receipt_id = ?"
_DROP = "DELETE FROM receipts WHERE at < ?"


def add(tx: Tx, receipt_id: str, user_id: str, at: int, head: str, lines: Sequence[tuple[str, int, str]]) -> None:
    """Keep a receipt: its *head*, and a line (memory id, version, body) a memory. Bodies are JSON texts.

    In one statement: row by row, each would let go of the interpreter and wait for it again, beside those who rank.
    """
    rows = [("", 0, head), *lines]
    for start in range(0, len(rows), ROWS_AT_ONCE):
        some = rows[start : start + ROWS_AT_ONCE]
        values = [value for memory_id, version, body in some for value in (receipt_id, memory_id, user_id, at, version, body)]
        tx.run(_ADD.replace("{rows}", ", ".join(["(?, ?, ?, ?, ?, ?)"] * len(some))), values)


def get(tx: Tx, receipt_id: str) -> list[tuple[str, str, int, int, str]]:
    """The rows of a receipt (memory id, user id, time, version, body), the head first; none when it is gone."""
    rows = tx.rows(_GET, (receipt_id,))
    return sorted(((m, u, at, v, body) for m, u, at, v, body in rows), key=lambda row: row[0] != "")


def drop_before(tx: Tx, at: int) -> None:
    """Forget every receipt older than *at*."""
    tx.run(_DROP, (at,))
