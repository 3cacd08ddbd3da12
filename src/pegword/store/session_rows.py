"""Sessions as rows, read together with what their users may do now."""

from dataclasses import dataclass

from pegword.core.caller import Scope, Session
from pegword.store.engine import Row, Tx, among, padded

CLOSED_KEPT_US = 30 * 24 * 3_600 * 1_000_000  # from when it was closed
FORGOTTEN_AT_ONCE = 200

# What a session has of a scope with members follows from the member's row of this moment, never from what was true when it was made.
_SESSION = """
    SELECT s.session_id, s.kind, s.user_id, u.name, s.anonymous, s.workstream_id, s.workstream_key, s.project_key, s.persona, s.memory,
        s.parent_id, s.created, s.resumed_at, s.closed_at,
        CASE WHEN w.scope_key IS NULL OR wm.user_id IS NULL THEN 0 ELSE 1 + wm.may_write END,
        CASE WHEN p.scope_key IS NULL OR pm.user_id IS NULL THEN 0 ELSE 1 + pm.may_write END
    FROM sessions AS s
    JOIN users AS u ON u.user_id = s.user_id
    LEFT JOIN shared_scopes AS w ON w.scope_key = s.workstream_key AND w.deleted_at IS NULL AND w.archived_at IS NULL
    LEFT JOIN scope_members AS wm ON wm.scope_key = s.workstream_key AND wm.user_id = s.user_id AND s.anonymous = 0
    LEFT JOIN shared_scopes AS p ON p.scope_key = s.project_key AND p.deleted_at IS NULL AND p.archived_at IS NULL
    LEFT JOIN scope_members AS pm ON pm.scope_key = s.project_key AND pm.user_id = s.user_id AND s.anonymous = 0
    WHERE {condition}
"""
# Whose it is, or the service that made it.
_ONE = _SESSION.replace("{condition}", "s.session_id = ? AND (s.user_id = ? OR (s.made_by = ? AND ? = 1))")
_OWN = _SESSION.replace(
    "{condition}", "(s.user_id = :user OR (s.made_by = :user AND :service = 1)) AND (s.closed_at IS NULL OR :closed = 1)"
)
_LIST = _OWN + " ORDER BY s.created DESC, s.session_id LIMIT :limit"
_ADD = """
    INSERT INTO sessions (session_id, kind, user_id, anonymous, made_by, credential, workstream_id, workstream_key, project_key, persona,
        memory, parent_id, created, resumed_at, closed_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)
"""
_RESUME = "UPDATE sessions SET closed_at = NULL, resumed_at = ? WHERE session_id = ?"
_CLOSE = "UPDATE sessions SET closed_at = ? WHERE session_id = ? AND closed_at IS NULL"
_CLOSE_CHILDREN = "UPDATE sessions SET closed_at = ? WHERE closed_at IS NULL AND {children} RETURNING session_id"
_CLOSE_IN_WORKSTREAM = "UPDATE sessions SET closed_at = ? WHERE closed_at IS NULL AND workstream_key = ?"
_IN_WORKSTREAM = "SELECT 1 FROM sessions WHERE workstream_key = ? LIMIT 1"
# Of those that were closed long ago, none whose child is open; one that is resumed at this moment stays.
_ENDED = """
    SELECT s.session_id, s.user_id FROM sessions AS s WHERE s.closed_at < ? AND s.closed_at IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM sessions AS child WHERE child.parent_id = s.session_id AND child.closed_at IS NULL)
    ORDER BY s.closed_at, s.session_id LIMIT ?
"""
_FORGET = "DELETE FROM sessions WHERE closed_at < ? AND {ids} RETURNING session_id"


@dataclass(frozen=True, slots=True)
class Made:
    """What is kept of a session beside what it is: by whom it was made, and the keys of its workstream and its project."""

    made_by: str
    credential: str
    workstream_key: str
    project_key: str


def add(tx: Tx, session: Session, made: Made) -> None:
    """Add *session*."""
    tx.run(
        _ADD,
        (
            session.session_id, session.kind, session.user_id, int(session.anonymous), made.made_by, made.credential,
            session.workstream_id, made.workstream_key, made.project_key, session.persona, int(session.memory), session.parent_id,
            session.created, session.created if session.resumed else None,
        ),
    )  # fmt: skip


def get(tx: Tx, session_id: str, user_id: str, *, service: bool) -> Session | None:
    """The session of that id if it is the user's own, or was made by that user as a *service*; closed or not."""
    rows = tx.rows(_ONE, (session_id, user_id, user_id, int(service)))
    return _session(rows[0]) if rows else None


def newest(tx: Tx, user_id: str, *, service: bool, closed: bool, limit: int) -> list[Session]:
    """The sessions that `get` would give, the newest first; with *closed* also those that are."""
    parameters = {"user": user_id, "service": int(service), "closed": int(closed), "limit": limit}
    return [_session(row) for row in tx.rows(_LIST, parameters)]


def alone(tx: Tx, user_id: str) -> None:
    """Let nobody else close, resume or beget sessions of a user until this transaction ends."""
    tx.alone(f"sessions:{user_id}")


def resume(tx: Tx, session_id: str, now: int) -> None:
    """Open a session again."""
    tx.run(_RESUME, (now, session_id))


def close(tx: Tx, session_id: str, now: int) -> None:
    """Close a session and every child below it."""
    tx.run(_CLOSE, (now, session_id))
    parents = [session_id]
    while parents:
        sql = _CLOSE_CHILDREN.replace("{children}", among("parent_id", len(parents)))
        parents = [row[0] for row in tx.rows(sql, (now, *padded(parents)))]


def close_in_workstream(tx: Tx, workstream_key: str, now: int) -> bool:
    """Close every session in a workstream; False when it never had one."""
    tx.run(_CLOSE_IN_WORKSTREAM, (now, workstream_key))
    return bool(tx.rows(_IN_WORKSTREAM, (workstream_key,)))


def forget_closed(tx: Tx, before: int) -> list[str]:
    """Forget sessions that were closed *before*, but not all at once; their ids, none when no more is left. Who would resume
    one, or make a child of it, waits until the transaction ends."""
    ended = tx.rows(_ENDED, (before, FORGOTTEN_AT_ONCE))
    for user_id in sorted({row[1] for row in ended}):
        alone(tx, user_id)
    ids = [row[0] for row in ended]
    return [row[0] for row in tx.rows(_FORGET.replace("{ids}", among("session_id", len(ids))), (before, *padded(ids)))] if ids else []


def _session(row: Row) -> Session:
    session_id, kind, user_id, user_name, anonymous, workstream_id, workstream_key, project_key, persona, memory, *rest = row
    parent_id, created, resumed_at, closed_at, workstream_access, project_access = rest
    shared = bool(workstream_key) and Scope.from_key(workstream_key).shared
    return Session(
        "" if shared and not workstream_access else workstream_id,
        session_id=session_id,
        kind=kind,
        user_id=user_id,
        user_name=user_name,
        project_id=Scope.from_key(project_key).id if project_access else "",
        project_write=project_access == 2,
        workstream_shared=shared,
        workstream_write=not shared or workstream_access == 2,
        persona=persona,
        memory=bool(memory),
        parent_id=parent_id,
        resumed=resumed_at is not None,
        resumed_at=resumed_at or 0,
        anonymous=bool(anonymous),
        closed=closed_at is not None,
        created=created,
    )
