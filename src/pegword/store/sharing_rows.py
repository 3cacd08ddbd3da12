"""Projects and shared workstreams as rows, and their members."""

from collections.abc import Sequence

from pegword.core.caller import Scope
from pegword.core.people import Member, Seen, SharedScope
from pegword.store.engine import Row, Tx, among, padded

_SHARED = """
    SELECT s.scope_key, s.owner, u.name, s.title, s.created, s.archived_at FROM shared_scopes AS s JOIN users AS u ON u.user_id = s.owner
    WHERE s.deleted_at IS NULL AND (s.owner = :user OR EXISTS (
        SELECT 1 FROM scope_members AS m WHERE m.scope_key = s.scope_key AND m.user_id = :user))
"""
_ONE = _SHARED + " AND s.scope_key = :key"
_ALL = _SHARED + " AND s.scope_key >= :low AND s.scope_key < :high ORDER BY s.created DESC, s.scope_key LIMIT :limit"
_MEMBERS = """
    SELECT m.scope_key, m.user_id, u.name, m.may_write FROM scope_members AS m JOIN users AS u ON u.user_id = m.user_id WHERE {keys}
    ORDER BY u.name_key
"""
_ADD = "INSERT INTO shared_scopes (scope_key, owner, title, created, archived_at, deleted_at) VALUES (?, ?, ?, ?, NULL, NULL)"
_SET_MEMBER = """
    INSERT INTO scope_members (scope_key, user_id, may_write) VALUES (?, ?, ?)
    ON CONFLICT (scope_key, user_id) DO UPDATE SET may_write = excluded.may_write
"""
_DROP_MEMBER = "DELETE FROM scope_members WHERE scope_key = ? AND user_id = ?"
_CHANGE = "UPDATE shared_scopes SET title = ?, archived_at = ? WHERE scope_key = ?"
_MAY_WRITE = """
    SELECT 1 FROM shared_scopes AS s JOIN scope_members AS m ON m.scope_key = s.scope_key
    WHERE s.scope_key = ? AND s.deleted_at IS NULL AND s.archived_at IS NULL AND m.user_id = ? AND m.may_write = 1
"""
_SEES = """
    SELECT 1 FROM shared_scopes AS s WHERE s.scope_key = :key AND s.deleted_at IS NULL AND (
        (:outside = 1 AND s.owner = :user) OR ((:outside = 1 OR s.archived_at IS NULL) AND EXISTS (
            SELECT 1 FROM scope_members AS m WHERE m.scope_key = s.scope_key AND m.user_id = :user)))
"""
_HELD_BY = "SELECT scope_key, n FROM ix_scope WHERE scope_key >= ? AND scope_key < ? AND n > 0 ORDER BY scope_key LIMIT ?"
_DELETED = "SELECT 1 FROM shared_scopes WHERE scope_key = ? AND owner = ? AND deleted_at IS NOT NULL"
_MARK_DELETED = "UPDATE shared_scopes SET deleted_at = ? WHERE scope_key = ?"
_FORGET = (
    """
    DELETE FROM scope_members WHERE scope_key IN (
        SELECT s.scope_key FROM shared_scopes AS s WHERE s.scope_key = ? AND s.deleted_at IS NOT NULL)
    """,
    "DELETE FROM shared_scopes WHERE scope_key = ? AND deleted_at IS NOT NULL",
)


def add(tx: Tx, scope: Scope, owner: str, title: str, now: int) -> None:
    """Add a shared scope without members."""
    tx.run(_ADD, (scope.key, owner, title, now))


def get(tx: Tx, scope: Scope, user_id: str) -> SharedScope | None:
    """The shared scope, if the user owns it or is a member."""
    rows = tx.rows(_ONE, {"user": user_id, "key": scope.key})
    return _with_members(tx, rows)[0] if rows else None


def newest(tx: Tx, letter: str, user_id: str, limit: int) -> list[SharedScope]:
    """The shared scopes of a user whose keys begin with *letter*, the newest first."""
    rows = tx.rows(_ALL, {"user": user_id, "low": f"{letter}:", "high": f"{letter};", "limit": limit})
    return _with_members(tx, rows)


def set_member(tx: Tx, scope: Scope, user_id: str, *, write: bool) -> None:
    """Make a user a member, or change what they may do."""
    tx.run(_SET_MEMBER, (scope.key, user_id, int(write)))


def drop_member(tx: Tx, scope: Scope, user_id: str) -> bool:
    """Make a user a member no longer; False when they were none."""
    return tx.run(_DROP_MEMBER, (scope.key, user_id)) > 0


def change(tx: Tx, scope: Scope, title: str, archived_at: int | None) -> None:
    """Set title and archive of a shared scope."""
    tx.run(_CHANGE, (title, archived_at, scope.key))


def may_write(tx: Tx, scope: Scope, user_id: str) -> bool:
    """Whether the user is at this moment a member who may write to a scope that is neither archived nor being deleted."""
    return bool(tx.rows(_MAY_WRITE, (scope.key, user_id)))


def sees(tx: Tx, seen: Seen) -> bool:
    """Whether what was *seen* of a shared scope is there for that user still."""
    return bool(tx.rows(_SEES, {"key": seen.scope_key, "user": seen.user_id, "outside": int(seen.outside)}))


def is_deleted(tx: Tx, scope: Scope, owner: str) -> bool:
    """Whether that user's scope is marked deleted, and its memories are not all gone."""
    return bool(tx.rows(_DELETED, (scope.key, owner)))


def held_by(tx: Tx, low: str, high: str, *, limit: int) -> list[tuple[str, int]]:
    """The keys from *low* to below *high* of the scopes that hold memories, and how many are in the index of each."""
    return [(key, count) for key, count in tx.rows(_HELD_BY, (low, high, limit))]


def mark_deleted(tx: Tx, scope: Scope, now: int) -> None:
    """From now on nobody has the scope; its row stays until `forget`."""
    tx.run(_MARK_DELETED, (now, scope.key))


def forget(tx: Tx, scope_key: str) -> None:
    """Drop the row of a scope that was marked deleted, and its members."""
    for statement in _FORGET:
        tx.run(statement, (scope_key,))


def _with_members(tx: Tx, rows: Sequence[Row]) -> list[SharedScope]:
    keys = [row[0] for row in rows]
    members: dict[str, list[Member]] = {key: [] for key in keys}
    if keys:
        for key, user_id, name, write in tx.rows(_MEMBERS.replace("{keys}", among("m.scope_key", len(keys))), padded(keys)):
            members[key].append(Member(user_id, name, bool(write)))
    return [
        SharedScope(Scope.from_key(key), owner, name, title, created, archived_at is not None, tuple(members[key]))
        for key, owner, name, title, created, archived_at in rows
    ]
