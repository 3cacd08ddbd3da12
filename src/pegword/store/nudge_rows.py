"""What sessions were nudged of, what waits to be, and the last call of a tool. A key is a session's id, or that of a scope."""

from collections.abc import Sequence

from pegword.core.nudge_queue import Event
from pegword.store.engine import MANY_ROWS, Tx, among, padded

_NOTED = """
SELECT 'mark', kind, '', at, '', 0 FROM nudge_marks WHERE session_key = :key
UNION ALL
SELECT 'event', kind, channel, at, event_id, valid_until FROM nudge_events WHERE session_key = :key
"""
_MARK = "INSERT INTO nudge_marks (session_key, kind, at) VALUES {rows} ON CONFLICT (session_key, kind) DO UPDATE SET at = excluded.at"
_ADD = "INSERT INTO nudge_events (session_key, event_id, kind, channel, at, valid_until) VALUES (?, ?, ?, ?, ?, ?)"
_CALLED = """
INSERT INTO nudge_calls (session_key, fingerprint, times, at) VALUES (:key, :fingerprint, 1, :at)
ON CONFLICT (session_key) DO UPDATE SET fingerprint = excluded.fingerprint, at = excluded.at,
    times = CASE WHEN nudge_calls.fingerprint = excluded.fingerprint THEN nudge_calls.times + 1 ELSE 1 END
RETURNING times
"""


def noted(tx: Tx, key: str) -> tuple[list[tuple[str, int]], list[Event]]:
    """The marks of a session as pairs of kind and time, and the events that wait in it, in no order. One statement."""
    marks, events = [], []
    for what, kind, channel, at, event_id, valid_until in tx.rows(_NOTED, {"key": key}):
        if what == "mark":
            marks.append((kind, at))
        else:
            events.append(Event(kind, channel, at, event_id, valid_until))
    return marks, events


def mark(tx: Tx, key: str, marks: Sequence[tuple[str, int]]) -> None:
    """Write down the latest time of each kind. *marks* hold each kind once."""
    rows = ", ".join(["(?, ?, ?)"] * len(marks))
    tx.run(_MARK.format(rows=rows), [value for kind, at in sorted(marks) for value in (key, kind, at)])


def add(tx: Tx, key: str, event: Event) -> None:
    """Let *event* wait."""
    tx.run(_ADD, (key, event.event_id, event.kind, event.channel, event.at, event.valid_until))


def move(tx: Tx, key: str, ids: Sequence[str], channel: str) -> None:
    """Let the events of these *ids* that still wait do so in *channel*."""
    if not ids:
        return
    tx.run(f"UPDATE nudge_events SET channel = ? WHERE session_key = ? AND {among('event_id', len(ids))}", (channel, key, *padded(ids)))


def remove(tx: Tx, key: str, ids: Sequence[str]) -> None:
    """Let the events of these *ids* wait no longer."""
    if not ids:
        return
    tx.run(f"DELETE FROM nudge_events WHERE session_key = ? AND {among('event_id', len(ids))}", (key, *padded(ids)))


def called(tx: Tx, key: str, fingerprint: str, at: int) -> int:
    """Count a call of a tool, and return how often in a row it came, this time included."""
    return int(tx.rows(_CALLED, {"key": key, "fingerprint": fingerprint, "at": at})[0][0])


def forget_sessions(tx: Tx, session_ids: Sequence[str]) -> None:
    """Forget all that is known of these sessions."""
    for table in ("nudge_events", "nudge_marks", "nudge_calls"):
        tx.run(f"DELETE FROM {table} WHERE {among('session_key', len(session_ids))}", padded(session_ids))


def drop_before(tx: Tx, now: int, at: int) -> None:
    """Forget the events that are no longer valid *now*, and the marks and calls older than *at*."""
    tx.alone(MANY_ROWS)
    tx.run("DELETE FROM nudge_events WHERE valid_until < ?", (now,))
    tx.run("DELETE FROM nudge_marks WHERE at < ?", (at,))
    tx.run("DELETE FROM nudge_calls WHERE at < ?", (at,))
