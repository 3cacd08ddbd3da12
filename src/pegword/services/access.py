"""Users, the keys of their agents, and who a key speaks for."""

import hashlib
import secrets
from collections.abc import Callable

from pegword.core.caller import RIGHTS, Caller
from pegword.core.errors import Conflict, Invalid, NotFound, Unauthenticated
from pegword.core.memory import checked_text, checked_word, folded
from pegword.core.people import Key, User
from pegword.store import access_rows
from pegword.store.engine import Engine, Tx

USER_NAME_CHARS_MAX = 64
EMAIL_CHARS_MAX = 254
LABEL_CHARS_MAX = 64
PROJECT_WORDS = ("project", "general")
TOKEN_PREFIX = "pw_"
_TOKEN_BYTES = 32
_REFUSAL = "Unauthorized: missing or invalid token"


class Access:
    """Who may call. Clock in microseconds since 1970."""

    def __init__(self, engine: Engine, *, clock: Callable[[], int]) -> None:
        self._engine = engine
        self._clock = clock

    def add_user(self, name: str, email: str = "") -> User:
        """Add a user. Raises `Invalid` for a name that cannot be, `Conflict` for one that is taken."""
        name = _checked_name(name)
        email = checked_text(email.strip(), "email", EMAIL_CHARS_MAX)
        user = User(secrets.token_hex(8), name, email, self._clock())
        added = self._engine.write(lambda tx: access_rows.add_user(tx, user, folded(name)))
        if added is None:
            raise Conflict(f"there is a user '{name}' already", field="name", code="name_taken")
        return added

    def users(self) -> list[User]:
        """Every user, by name."""
        with self._engine.read() as tx:
            return access_rows.users(tx)

    def user(self, name: str) -> User:
        """The user of that name, however written."""
        with self._engine.read() as tx:
            return found_user(tx, name)

    def ensure_user(self, name: str) -> User:
        """The user of that name, added if there is none: for the person at the keyboard."""
        name = _checked_name(name)
        user = User(secrets.token_hex(8), name, "", self._clock())
        with self._engine.read() as tx:
            stored = access_rows.user_by_name(tx, folded(name))
        if stored is not None:
            return stored
        added = self._engine.write(lambda tx: access_rows.add_user(tx, user, folded(name)) or access_rows.user_by_name(tx, folded(name)))
        if added is None:
            raise Conflict(f"user '{name}' could not be added", field="name")
        return added

    def add_key(
        self, user_name: str, *, right: str = "write", label: str = "", project_word: str = "", expires_at: int | None = None
    ) -> tuple[Key, str]:
        """Make a key for an agent of *user_name*: the key, and its token, which is told this once.

        *right* is the highest of `RIGHTS` that it has. *project_word* is how its client spells the kind project.
        """
        user = self.user(user_name)
        right = checked_word(right, "scopes", RIGHTS)
        if project_word:
            checked_word(project_word, "project_word", PROJECT_WORDS)
        label = checked_text(label.strip(), "name", LABEL_CHARS_MAX)
        now = self._clock()
        if expires_at is not None and expires_at <= now:
            raise Invalid("expires lies in the past", field="expires")
        token = TOKEN_PREFIX + secrets.token_urlsafe(_TOKEN_BYTES)
        key = Key(secrets.token_hex(6), user.user_id, user.name, label, right, project_word, now, expires_at, None)
        self._engine.write(lambda tx: access_rows.add_key(tx, key, token_hash(token)))
        return key, token

    def keys(self, user_name: str = "") -> list[Key]:
        """The keys of a user, or of all, oldest first."""
        user_id = self.user(user_name).user_id if user_name else ""
        with self._engine.read() as tx:
            return access_rows.keys(tx, user_id)

    def revoke_key(self, key_id: str) -> None:
        """End a key. From this call's return on, nobody gets in with it."""
        now = self._clock()
        if not key_id.isascii() or not self._engine.write(lambda tx: access_rows.revoke(tx, key_id, now)):
            raise NotFound(f"there is no key {key_id!a} in force", field="key")

    def caller_of(self, token: str) -> Caller:
        """Who *token* speaks for. Raises `Unauthenticated`, saying the same whatever is wrong with it."""
        if not token.startswith(TOKEN_PREFIX) or len(token) > 256:
            raise Unauthenticated(_REFUSAL)
        with self._engine.read(single=True) as tx:
            key = access_rows.key_by_hash(tx, token_hash(token))
        if key is None or key.revoked_at is not None or (key.expires_at is not None and key.expires_at <= self._clock()):
            raise Unauthenticated(_REFUSAL)
        return Caller(key.user_id, key.user_name, f"key:{key.key_id}", False, key.right, key.project_word)

    def person(self, user: User) -> Caller:
        """The person *user* at the keyboard: a human, with every right over their own."""
        return Caller(user.user_id, user.name, "cli", True, "approve")

    def operator(self, user: User) -> Caller:
        """As `person`, where they do what only an agent host may: whoever has the database may make any key."""
        return Caller(user.user_id, user.name, "cli", True, "service")

    def agent(self, user: User, credential: str) -> Caller:
        """An agent of *user* inside this process, such as a session of the embedded library."""
        return Caller(user.user_id, user.name, credential, False, "write")


def found_user(tx: Tx, name: str, field: str = "user") -> User:
    """The user of that name, however written, in an open transaction. Raises `NotFound`, or `Invalid` for no name, naming *field*."""
    try:
        user = access_rows.user_by_name(tx, folded(_checked_name(name)))
    except Invalid as error:
        raise Invalid(f"{field}: a user's {error}", field=field, code=error.code) from None
    if user is None:
        raise NotFound(f"there is no user '{name}'; add one with: pegword user add {name}", field=field)
    return user


def token_hash(token: str) -> str:
    """What is kept of a token: 256 random bits need no slow hash."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _checked_name(name: str) -> str:
    name = checked_text(name.strip(), "name", USER_NAME_CHARS_MAX, blank=False)
    bad = next((c for c in name if not c.isprintable()), "")
    if bad:
        raise Invalid(f"name holds the character U+{ord(bad):04X}, which no name may hold", field="name")
    return name
