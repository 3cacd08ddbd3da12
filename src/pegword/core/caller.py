"""Who asks, what they see, and where they may write: the walls between scopes, in one place.

A memory lies in a scope. A caller is a credential acting for a user. This module answers two questions and
nobody else does: which scopes may this caller read, and which scope does this word mean for them. An empty set
of scopes matches nothing. What lies outside answers exactly as absent, with one exception that the reference
behaviour asks for: naming another user's id for the user scope is refused, whether or not that user exists.
"""

from dataclasses import dataclass

from pegword.core.errors import Forbidden, Invalid

SCOPES = ("global", "user", "workstream")
# Words that later rooms will open; until then they are known, and refused.
SCOPES_CLOSED = ("coordinator", "project", "mind")
RIGHTS = ("read", "write", "approve")
SCOPE_ID_CHARS_MAX = 256


@dataclass(frozen=True, slots=True)
class Scope:
    """One place where memories lie: *kind* is its word, *id* what it is bound to, *owner* the user whose it is."""

    kind: str
    id: str = ""
    owner: str = ""

    @property
    def key(self) -> str:
        """The scope as one text, unique over all users: what every table's key begins with."""
        if self.kind == "global":
            return "g"
        if self.kind == "user":
            return f"u:{self.id}"
        return f"w:{self.owner}:{self.id}"

    @classmethod
    def from_key(cls, key: str) -> "Scope":
        """The scope that *key* was made from."""
        letter, _, rest = key.partition(":")
        if letter == "g":
            return GLOBAL
        if letter == "u":
            return cls("user", rest, rest)
        owner, _, workstream_id = rest.partition(":")
        return cls("workstream", workstream_id, owner)


GLOBAL = Scope("global")


@dataclass(frozen=True, slots=True)
class Caller:
    """A credential, resolved once at the edge.

    *credential* names it (``key:…``, ``cli``, ``library``) and is the author of what it writes. *human* says that
    a person typed this, which is what lets a write count as verified. *right* is the highest of `RIGHTS`.
    *project_word* is the word ("project" or "general") that this credential's client reads for that kind, or "".
    """

    user_id: str
    user_name: str
    credential: str
    human: bool = False
    right: str = "write"
    project_word: str = ""

    def require(self, right: str) -> None:
        """Raise `Forbidden` unless the credential has *right* or a higher one."""
        if RIGHTS.index(self.right) < RIGHTS.index(right):
            raise Forbidden(f"Forbidden: token lacks '{right}' scope", code="missing_scope")


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation of an agent. *workstream_id* is "" when it belongs to none."""

    workstream_id: str = ""


@dataclass(frozen=True, slots=True)
class Visible:
    """What a read may look at: *scopes*, and with *own_workstreams_of* every workstream of that user as well."""

    scopes: tuple[Scope, ...]
    own_workstreams_of: str = ""

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of the scopes named one by one."""
        return tuple(scope.key for scope in self.scopes)

    @property
    def key_range(self) -> tuple[str, str]:
        """The half-open range of keys that holds the user's workstreams; empty when none are meant."""
        if not self.own_workstreams_of:
            return ("", "")
        return (f"w:{self.own_workstreams_of}:", f"w:{self.own_workstreams_of};")

    def holds(self, scope: Scope) -> bool:
        """Whether *scope* is among what may be read."""
        own = bool(self.own_workstreams_of) and scope.kind == "workstream" and scope.owner == self.own_workstreams_of
        return own or scope in self.scopes


def user_scope(caller: Caller) -> Scope:
    """The scope that follows the caller's user everywhere."""
    return Scope("user", caller.user_id, caller.user_id)


def workstream_scope(caller: Caller, workstream_id: str) -> Scope:
    """The caller's own workstream of that id: ids of two users never meet."""
    return Scope("workstream", _checked_id(workstream_id.strip()), caller.user_id)


def reach(caller: Caller) -> Visible:
    """Everything that the caller may read: global, their own user scope, their own workstreams."""
    return Visible((GLOBAL, user_scope(caller)), caller.user_id)


def session_reach(caller: Caller, session: Session) -> Visible:
    """What a turn of *session* sees: global, its user's scope, and its own workstream only."""
    own = (workstream_scope(caller, session.workstream_id),) if session.workstream_id.strip() else ()
    return Visible((GLOBAL, user_scope(caller), *own))


def scope_of(caller: Caller, word: str, scope_id: str) -> Scope:
    """The one scope that *word* and *scope_id* mean for this caller.

    Raises `Invalid` for a word or an id that cannot be, `Forbidden` for another user's id.
    """
    word = check_scope_word(word)
    scope_id = scope_id.strip()
    if word == "global":
        if scope_id:
            raise Invalid("scope_id is not allowed with global scope", field="scope_id")
        return GLOBAL
    if word == "user":
        if scope_id not in ("", caller.user_id):
            raise Forbidden("Cannot access another user's memories", field="scope_id", code="foreign_user")
        return user_scope(caller)
    if not scope_id:
        raise Invalid("scope_id is required for workstream scope", field="scope_id")
    return workstream_scope(caller, scope_id)


def scopes_of(caller: Caller, word: str, scope_id: str) -> Visible:
    """What a list or search under these filters may look at; without a *word* everything in reach."""
    if not word:
        if scope_id.strip():
            raise Invalid("scope is required when scope_id is provided", field="scope")
        return reach(caller)
    if check_scope_word(word) == "workstream" and not scope_id.strip():
        return Visible((), caller.user_id)
    return Visible((scope_of(caller, word, scope_id),))


def check_scope_word(word: str) -> str:
    """*word* if it is an open scope, else `Invalid` with the list of those that are."""
    if word in SCOPES_CLOSED:
        raise Invalid(f"invalid scope: {word} cannot be used here; must be one of {list(SCOPES)}", field="scope")
    if word not in SCOPES:
        raise Invalid(f"invalid scope: {word[:64]}; must be one of {list(SCOPES)}", field="scope")
    return word


def _checked_id(scope_id: str) -> str:
    if len(scope_id) > SCOPE_ID_CHARS_MAX:
        raise Invalid(f"scope_id exceeds {SCOPE_ID_CHARS_MAX} character limit: it has {len(scope_id)}", field="scope_id")
    bad = next((c for c in scope_id if ord(c) < 32 or c == "\x7f" or 0xD800 <= ord(c) <= 0xDFFF), "")
    if bad:
        raise Invalid(f"scope_id holds the character U+{ord(bad):04X}, which no id may hold", field="scope_id")
    return scope_id
