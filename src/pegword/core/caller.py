"""Who asks, what they see, and where they may write: the walls between scopes, in one place.

A memory lies in a scope. A caller is a credential acting for a user, and a session is one conversation of an agent of that user.
This module answers two questions and nobody else does: which scopes may this caller read and write, in this session or outside any,
and which scope does this word mean for them. An empty set of scopes matches nothing. What lies outside answers exactly as absent, with
one exception that the reference behaviour asks for: naming another user's id for the user scope is refused, whether or not that user
exists.
"""

from dataclasses import dataclass, replace

from pegword.core.errors import Conflict, Forbidden, Invalid, NotFound

SCOPES = ("global", "user", "workstream")  # what a caller may name outside a session
SCOPES_OF_SESSIONS = (*SCOPES, "project")  # what an interactive session or a child may have
SCOPES_CLOSED = ("coordinator", "project", "mind")  # known, and refused outside a session that has them
COORDINATOR = "coordinator"
SESSION_KINDS = ("interactive", COORDINATOR, "child")
RIGHTS = ("read", "write", "approve", "service")
GLOBAL_WRITES = ("open", "restricted")  # who may write to global: whoever may write at all, or who may approve
SCOPE_ID_CHARS_MAX = 256
_LETTERS = {"user": "u", "coordinator": "c", "project": "p"}


@dataclass(frozen=True, slots=True)
class Scope:
    """One place where memories lie: *kind* is its word, *id* what it is bound to, *owner* the user whose it is ("" where it is several
    users'). *shared* marks a workstream that has members instead of an owner."""

    kind: str
    id: str = ""
    owner: str = ""
    shared: bool = False

    @property
    def key(self) -> str:
        """The scope as one text, unique over all users: what every table's key begins with."""
        if self.kind == "global":
            return "g"
        if self.kind == "workstream":
            return f"s:{self.id}" if self.shared else f"w:{self.owner}:{self.id}"
        return f"{_LETTERS[self.kind]}:{self.id}"

    @property
    def has_members(self) -> bool:
        """Whether it is several users', who may be taken in and out."""
        return self.shared or self.kind == "project"

    @classmethod
    def from_key(cls, key: str) -> "Scope":
        """The scope that *key* was made from. Raises `ValueError` for what is no key of a scope."""
        letter, _, rest = key.partition(":")
        if key == "g":
            return GLOBAL
        if letter == "u":
            return cls("user", rest, rest)
        if letter == "c":
            return coordinator_scope(rest)
        if letter == "p":
            return project_scope(rest)
        if letter == "s":
            return shared_workstream(rest)
        owner, colon, workstream_id = rest.partition(":")
        if letter != "w" or not colon:
            raise ValueError(f"{key!r} is no key of a scope")
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

    def may(self, right: str) -> bool:
        """Whether the credential has *right* or a higher one."""
        return RIGHTS.index(self.right) >= RIGHTS.index(right)

    def require(self, right: str) -> None:
        """Raise `Forbidden` unless the credential has *right* or a higher one."""
        if not self.may(right):
            raise Forbidden(f"Forbidden: token lacks '{right}' scope", code="missing_scope")


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation of an agent, as the server knows it. Nothing here comes from what a model says.

    A session without *session_id* is no record: it is that of a caller who gave none, interactive and the caller's own.
    *kind* is one of `SESSION_KINDS`. *user_id* and *user_name* are who it is for ("": the caller's own user); an *anonymous* one is
    for somebody who is no user, and has no user scope. *workstream_id* and *project_id* are "" when it has none;
    *workstream_shared* marks a workstream with members; *workstream_write* and *project_write* say whether its user may write there.
    *persona* is the name of its persona, *memory* whether that one has memories at all. *parent_id* is set for a child. *resumed* says
    that it was taken up again, *resumed_at* when. Times in microseconds since 1970.
    """

    workstream_id: str = ""
    session_id: str = ""
    kind: str = "interactive"
    user_id: str = ""
    user_name: str = ""
    project_id: str = ""
    project_write: bool = False
    workstream_shared: bool = False
    workstream_write: bool = True
    persona: str = ""
    memory: bool = True
    parent_id: str = ""
    resumed: bool = False
    resumed_at: int = 0
    anonymous: bool = False
    closed: bool = False
    created: int = 0


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
        own = bool(self.own_workstreams_of) and scope.kind == "workstream" and not scope.shared
        return (own and scope.owner == self.own_workstreams_of) or scope in self.scopes

    def covers(self, other: "Visible") -> bool:
        """Whether all that *other* may look at is among what may be read."""
        same = other.own_workstreams_of in ("", self.own_workstreams_of)
        return same and all(self.holds(scope) for scope in other.scopes)


def user_scope(caller: Caller) -> Scope:
    """The scope that follows the caller's user everywhere."""
    return Scope("user", _known(caller), caller.user_id)


def workstream_scope(caller: Caller, workstream_id: str) -> Scope:
    """The caller's own workstream of that id: ids of two users never meet."""
    return Scope("workstream", checked_scope_id(workstream_id.strip()), _known(caller))


def shared_workstream(workstream_id: str) -> Scope:
    """The workstream of that id that has members."""
    return Scope("workstream", workstream_id, shared=True)


def coordinator_scope(user_id: str) -> Scope:
    """What the coordinator sessions of a user have in common, and nobody else has."""
    return Scope(COORDINATOR, user_id, user_id)


def project_scope(project_id: str) -> Scope:
    """The project of that id."""
    return Scope("project", project_id)


def reach(caller: Caller) -> Visible:
    """Everything that the caller may read and write outside a session: global, their own user scope, their own workstreams."""
    if not caller.user_id:
        return Visible((GLOBAL,))
    return Visible((GLOBAL, user_scope(caller)), caller.user_id)


def acting(caller: Caller, session: Session) -> Caller:
    """*caller* as the user that *session* is for: the author of what is saved in it.

    Only a service acts for somebody else, and then as an agent of theirs that may write, no more; to anybody else such a session is
    absent. Raises `Conflict` when it is closed.
    """
    foreign = session.user_id not in ("", caller.user_id)
    if foreign and caller.right != "service":
        raise NotFound("Session not found", field="session")
    if session.closed:
        raise Conflict("the session is closed; resume it or make another one", field="session", code="session_closed")
    if not foreign and not session.anonymous:
        return caller
    user_id, user_name = (session.user_id, session.user_name) if foreign else (caller.user_id, caller.user_name)
    return replace(caller, user_id=user_id, user_name=user_name, human=False, right=min(caller.right, "write", key=RIGHTS.index))


def session_reach(caller: Caller, session: Session) -> Visible:
    """What *session* reads. A coordinator: the coordinator scope of its user. Any other: global, its own workstream, its user's scope,
    and the project attached to it."""
    return _session_visible(acting(caller, session), session, write=False)


def session_writes(caller: Caller, session: Session) -> Visible:
    """Where *session* may write: as it reads, but for what is shared and its user may only read."""
    return _session_visible(acting(caller, session), session, write=True)


def scope_words(session: Session) -> tuple[str, ...]:
    """The words of the scopes that *session* has: what its tool offers."""
    if session.kind == COORDINATOR:
        return (COORDINATOR,)
    known = not session.anonymous  # who is no user is no member of anything either
    has = {
        "workstream": bool(session.workstream_id.strip()) and (known or not session.workstream_shared),
        "user": known,
        "project": known and bool(session.project_id),
    }
    return ("global", *(word for word in ("workstream", "user", "project") if has[word]))


def writable_words(session: Session, *, writes_global: bool = True) -> tuple[str, ...]:
    """Those of the session's words that it may write to, the default one first; none, where it may only read.

    Without *writes_global* its user's own scope takes the place of global as the default: it too is there in every later session.
    """
    shut = {"global": not writes_global, "workstream": not session.workstream_write, "project": not session.project_write}
    words = tuple(word for word in scope_words(session) if not shut.get(word))
    return words if writes_global else tuple(sorted(words, key=lambda word: word != "user"))


def default_word(session: Session, *, writes_global: bool = True) -> str:
    """The word of the scope that is meant where none is named: one that can be written to, if there is any."""
    return (*writable_words(session, writes_global=writes_global), *scope_words(session))[0]


def session_scope(
    caller: Caller, session: Session, word: str = "", scope_id: str = "", *, write: bool = False, writes_global: bool = True
) -> Scope:
    """The one scope that *word* means in *session*; "" means the default one. *write*: it is meant as a place to write to.

    The session decides which one it is: a *scope_id* may be said only if it is that one's. *writes_global*: the caller may change what all
    users read. Raises `Invalid` naming what is valid, `Forbidden` for another user's id, and for writing where the user may only read.
    """
    who, words = acting(caller, session), scope_words(session)
    valid = writable_words(session, writes_global=writes_global) if write else words
    word, scope_id = word or default_word(session, writes_global=writes_global), scope_id.strip()
    if word not in words:
        raise Invalid(_not_here(word, valid), field="scope")
    if word == "global" and scope_id:
        raise Invalid("scope_id is not allowed with global scope", field="scope_id")
    scope = _scope_in(who, session, word)
    if scope_id not in ("", scope.id):
        if word == "user":
            raise Forbidden("Cannot access another user's memories", field="scope_id", code="foreign_user")
        raise Invalid(f"scope_id is not this session's {word}; leave it out: the session has one {word}", field="scope_id")
    if word not in valid:
        if word == "global":
            raise global_restricted(valid)
        said = f"the {word} of this session can be read, not written; use one of {', '.join(valid)}"
        raise Forbidden(said, field="scope", code="read_only")
    return scope


def global_restricted(instead: tuple[str, ...] = ()) -> Forbidden:
    """The refusal of a change to what all users read, where the policy restricts it; *instead*: the scopes that can be written to."""
    said = "global memories are changed with the right 'approve' here: policy.global_write is restricted; use another scope"
    return Forbidden(f"{said}: {', '.join(instead)}" if instead else said, field="scope", code="global_restricted")


def session_scopes(caller: Caller, session: Session, word: str = "", scope_id: str = "") -> Visible:
    """What a list or search under these filters in *session* may look at; without a *word* all that the session reads."""
    if word:
        return Visible((session_scope(caller, session, word, scope_id),))
    if scope_id.strip():
        raise Invalid("scope is required when scope_id is provided", field="scope")
    return session_reach(caller, session)


def scope_of(caller: Caller, word: str, scope_id: str) -> Scope:
    """The one scope that *word* and *scope_id* mean for this caller outside a session.

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
        return Visible((), _known(caller))
    return Visible((scope_of(caller, word, scope_id),))


def check_scope_word(word: str) -> str:
    """*word* if it is a scope that can be named outside a session, else `Invalid` with the list of those that can."""
    if word in SCOPES_CLOSED:
        raise Invalid(f"invalid scope: {word} cannot be used here; must be one of {list(SCOPES)}", field="scope")
    if word not in SCOPES:
        raise Invalid(f"invalid scope: {word[:64]}; must be one of {list(SCOPES)}", field="scope")
    return word


def checked_scope_id(scope_id: str, field: str = "scope_id") -> str:
    """*scope_id* as it is; `Invalid` when it is too long or holds a character that no id may hold."""
    if len(scope_id) > SCOPE_ID_CHARS_MAX:
        raise Invalid(f"{field} exceeds {SCOPE_ID_CHARS_MAX} character limit: it has {len(scope_id)}", field=field)
    bad = next((c for c in scope_id if ord(c) < 32 or c == "\x7f" or 0xD800 <= ord(c) <= 0xDFFF), "")
    if bad:
        raise Invalid(f"{field} holds the character U+{ord(bad):04X}, which no id may hold", field=field)
    return scope_id


def _session_visible(who: Caller, session: Session, *, write: bool) -> Visible:
    """The scopes of a session of the user *who*, one by one."""
    words = writable_words(session) if write else scope_words(session)
    return Visible(tuple(_scope_in(who, session, word) for word in words))


def _scope_in(who: Caller, session: Session, word: str) -> Scope:
    """The scope of *word*, one of the session's, for the user *who*."""
    if word == COORDINATOR:
        return coordinator_scope(_known(who))
    if word == "project":
        return project_scope(session.project_id)
    if word == "workstream":
        workstream_id = session.workstream_id.strip()
        return shared_workstream(workstream_id) if session.workstream_shared else workstream_scope(who, workstream_id)
    return user_scope(who) if word == "user" else GLOBAL


def _not_here(word: str, words: tuple[str, ...]) -> str:
    """Why *word* means no scope in a session that has *words*."""
    valid = f"must be one of {list(words)}"
    if words == (COORDINATOR,):
        if word in SCOPES_OF_SESSIONS or word == "mind":
            return f"invalid scope: {word} is not available to coordinators; leave scope out, or say coordinator"
        return f"invalid scope: {word[:64]}; {valid}"
    reasons = {
        COORDINATOR: "coordinator is for coordinator sessions only",
        "project": "no project is attached to this session",
        "workstream": "this session has no workstream",
        "user": "user needs a user, and this session is anonymous",
        "mind": "mind cannot be used here",
    }
    return f"invalid scope: {reasons.get(word, word[:64])}; {valid}"


def _known(caller: Caller) -> str:
    """The id of the caller's user; `Invalid` for a caller who is no user, so that no scope is ever made without one."""
    if not caller.user_id:
        raise Invalid("this scope requires authentication with a user identity", field="scope")
    return caller.user_id
