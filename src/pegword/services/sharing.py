"""What users share: projects, and workstreams with members. Every method takes a caller first.

Sharing gives nobody anything unasked: a member's sessions have a project or a shared workstream only where the credential that makes
them says so. Who may do what is read anew each time, so that what is taken away is gone at once.
"""

import secrets
from collections.abc import Callable, Mapping, Sequence

from pegword.core.caller import SCOPE_ID_CHARS_MAX, Caller, Scope, project_scope, reach, shared_workstream
from pegword.core.errors import Forbidden, Invalid, NotFound
from pegword.core.memory import checked_text, checked_word
from pegword.core.people import SharedScope
from pegword.services.access import found_user
from pegword.store import sharing_rows
from pegword.store.engine import Engine, Tx

SHARED_KINDS = ("project", "workstream")
TITLE_CHARS_MAX = 128
MEMBERS_MAX = 1_000
LIST_DEFAULT, LIST_MAX = 100, 200
# A project is its members' business, a shared workstream an agent host's.
RIGHT_TO_SHARE: Mapping[str, str] = {"project": "approve", "workstream": "service"}
_ID_BYTES = 8


class Sharing:
    """The projects and shared workstreams of one store. Clock in microseconds since 1970."""

    def __init__(self, engine: Engine, *, clock: Callable[[], int]) -> None:
        self._engine = engine
        self._clock = clock

    def create(self, caller: Caller, kind: str, title: str, members: Mapping[str, bool] | None = None) -> SharedScope:
        """Make a project or a workstream with members. Its id is made here, so that none can be guessed or taken.

        *members* says of each user's name whether they may write. Who makes a project is a member that may; a workstream's maker is an
        agent host, and none. Raises `NotFound` for a name that is no user's.
        """
        caller.require(RIGHT_TO_SHARE[checked_word(kind, "kind", SHARED_KINDS)])
        title = checked_text(title.strip(), "title", TITLE_CHARS_MAX, blank=False)
        members = members or {}
        if len(members) > MEMBERS_MAX:
            raise Invalid(f"members exceeds {MEMBERS_MAX} users: it has {len(members)}", field="members")
        scope = scope_shared(kind, secrets.token_hex(_ID_BYTES))

        def work(tx: Tx) -> SharedScope:
            sharing_rows.add(tx, scope, caller.user_id, title, self._clock())
            if kind == "project":
                sharing_rows.set_member(tx, scope, caller.user_id, write=True)
            for name, write in members.items():
                sharing_rows.set_member(tx, scope, found_user(tx, name, "members").user_id, write=write)
            return found_shared(tx, caller, scope)

        return self._engine.write(work)

    def get(self, caller: Caller, kind: str, scope_id: str) -> SharedScope:
        """A project or shared workstream that the caller's user owns or is a member of. Raises `NotFound`."""
        caller.require("read")
        with self._engine.read() as tx:
            return found_shared(tx, caller, scope_shared(kind, scope_id))

    def list(self, caller: Caller, kind: str, *, limit: int = LIST_DEFAULT) -> list[SharedScope]:
        """Those that `get` would give, the newest first, archived ones too. At most `LIST_MAX`."""
        caller.require("read")
        if limit < 1:
            raise Invalid(f"limit must be at least 1: it is {limit}", field="limit")
        letter = scope_shared(kind, "").key[0]
        with self._engine.read() as tx:
            return sharing_rows.newest(tx, letter, caller.user_id, min(limit, LIST_MAX))

    def own_workstreams(self, caller: Caller, *, limit: int = LIST_DEFAULT) -> Sequence[tuple[str, int]]:
        """The ids of the workstreams of the caller's user that hold memories, by id, and how many each holds that are indexed."""
        caller.require("read")
        if limit < 1:
            raise Invalid(f"limit must be at least 1: it is {limit}", field="limit")
        with self._engine.read() as tx:
            found = sharing_rows.held_by(tx, *reach(caller).key_range, limit=min(limit, LIST_MAX))
        return [(Scope.from_key(key).id, count) for key, count in found]

    def set_member(self, caller: Caller, kind: str, scope_id: str, user: str, *, write: bool) -> SharedScope:
        """Make a user a member, or change what they may do."""

        def work(tx: Tx, scope: Scope, there: SharedScope) -> None:
            member = found_user(tx, user, "user")
            if len(there.members) >= MEMBERS_MAX and all(m.user_id != member.user_id for m in there.members):
                raise Invalid(f"members exceeds {MEMBERS_MAX} users", field="user")
            sharing_rows.set_member(tx, scope, member.user_id, write=write)

        return self._change(caller, kind, scope_id, work)

    def drop_member(self, caller: Caller, kind: str, scope_id: str, user: str) -> None:
        """Make a user a member no longer: by the owner, or by that user. Raises `NotFound` when they are none."""
        caller.require("write")
        scope = scope_shared(kind, scope_id)

        def work(tx: Tx) -> None:
            tx.alone(scope.key)
            there = found_shared(tx, caller, scope)
            member = found_user(tx, user, "user")
            if member.user_id != caller.user_id:
                require_owner(caller, kind, there)
            if not sharing_rows.drop_member(tx, scope, member.user_id):
                raise NotFound(f"'{member.name}' is no member", field="user")

        self._engine.write(work)

    def change(self, caller: Caller, kind: str, scope_id: str, *, title: str | None = None, archived: bool | None = None) -> SharedScope:
        """Give it another title, archive it (no session has it then) or take it out of the archive. None leaves things as they are."""
        new_title = None if title is None else checked_text(title.strip(), "title", TITLE_CHARS_MAX, blank=False)

        def work(tx: Tx, scope: Scope, there: SharedScope) -> None:
            is_archived = there.archived if archived is None else archived
            sharing_rows.change(tx, scope, new_title or there.title, self._clock() if is_archived else None)

        return self._change(caller, kind, scope_id, work)

    def _change(self, caller: Caller, kind: str, scope_id: str, work: Callable[[Tx, Scope, SharedScope], None]) -> SharedScope:
        """Do *work*, as the owner, while nobody else changes the scope; how it then stands."""
        caller.require("write")
        scope = scope_shared(kind, scope_id)

        def change(tx: Tx) -> SharedScope:
            tx.alone(scope.key)
            there = found_shared(tx, caller, scope)
            require_owner(caller, kind, there)
            work(tx, scope, there)
            return found_shared(tx, caller, scope)

        return self._engine.write(change)


def scope_shared(kind: str, scope_id: str) -> Scope:
    """The scope of a project or a shared workstream; an id that cannot be is that of nothing."""
    checked_word(kind, "kind", SHARED_KINDS)
    scope_id = scope_id if scope_id.isascii() and scope_id.isalnum() and len(scope_id) <= SCOPE_ID_CHARS_MAX else ""
    return project_scope(scope_id) if kind == "project" else shared_workstream(scope_id)


def found_shared(tx: Tx, caller: Caller, scope: Scope) -> SharedScope:
    """What is at *scope*, if the caller's user owns it or is a member; else it is absent."""
    there = sharing_rows.get(tx, scope, caller.user_id) if scope.id else None
    if there is None:
        raise NotFound(f"{scope.kind.capitalize()} not found", field=f"{scope.kind}_id")
    return there


def require_owner(caller: Caller, kind: str, there: SharedScope) -> None:
    """Only the owner changes it, with the right that making one takes. A member knows of it, so they are told."""
    if there.owner != caller.user_id:
        raise Forbidden(f"only its owner, {there.owner_name}, may change this {kind}", code="not_owner")
    caller.require(RIGHT_TO_SHARE[kind])
