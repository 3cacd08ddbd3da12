"""Users and access keys as rows."""

from pegword.core.people import Key, User
from pegword.store.engine import Tx

_USER = "SELECT user_id, name, email, created FROM users"
_KEY = """
    SELECT k.key_id, k.user_id, u.name, k.label, k.access_right, k.project_word, k.created, k.expires_at, k.revoked_at
    FROM access_keys AS k JOIN users AS u ON u.user_id = k.user_id
"""
_ADD_USER = """
    INSERT INTO users (user_id, name, name_key, email, created) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (name_key) DO NOTHING RETURNING user_id, name, email, created
"""
_ADD_KEY = """
    INSERT INTO access_keys (key_id, user_id, label, token_hash, access_right, project_word, created, expires_at, revoked_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL)
"""
_REVOKE = "UPDATE access_keys SET revoked_at = ? WHERE key_id = ? AND revoked_at IS NULL"


def add_user(tx: Tx, user: User, name_key: str) -> User | None:
    """Add *user*; None when the name is taken."""
    rows = tx.rows(_ADD_USER, (user.user_id, user.name, name_key, user.email, user.created))
    return User(*rows[0]) if rows else None


def user_by_name(tx: Tx, name_key: str) -> User | None:
    """The user of that name."""
    rows = tx.rows(f"{_USER} WHERE name_key = ?", (name_key,))
    return User(*rows[0]) if rows else None


def users(tx: Tx) -> list[User]:
    """Every user, by name."""
    return [User(*row) for row in tx.rows(f"{_USER} ORDER BY name_key")]


def add_key(tx: Tx, key: Key, token_hash: str) -> None:
    """Add *key*, of whose token only the hash is kept."""
    tx.run(
        _ADD_KEY,
        (key.key_id, key.user_id, key.label, token_hash, key.right, key.project_word, key.created, key.expires_at),
    )


def key_by_hash(tx: Tx, token_hash: str) -> Key | None:
    """The key whose token has that hash."""
    rows = tx.rows(f"{_KEY} WHERE k.token_hash = ?", (token_hash,))
    return Key(*rows[0]) if rows else None


def keys(tx: Tx, user_id: str = "") -> list[Key]:
    """The keys of a user, or of all, oldest first."""
    if user_id:
        return [Key(*row) for row in tx.rows(f"{_KEY} WHERE k.user_id = ? ORDER BY k.created, k.key_id", (user_id,))]
    return [Key(*row) for row in tx.rows(f"{_KEY} ORDER BY k.created, k.key_id")]


def revoke(tx: Tx, key_id: str, now: int) -> bool:
    """Revoke a key; False when there is no such key in force."""
    return tx.run(_REVOKE, (now, key_id)) > 0
