"""Sessions: conversations of agents as records, each with what it may read and write. Every method takes a caller first.

The credential that makes a session says what it is; from then on nothing changes that, and no argument of a tool or a turn can.
"""

from collections.abc import Callable
from dataclasses import replace

from pegword.core.caller import (
    COORDINATOR,
    SESSION_KINDS,
    Caller,
    Scope,
    Session,
    acting,
    checked_scope_id,
    project_scope,
    shared_workstream,
    workstream_scope,
)
from pegword.core.errors import Conflict, Forbidden, Invalid, NotFound
from pegword.core.memory import checked_text, checked_word
from pegword.services.access import found_user
from pegword.store import session_rows
from pegword.store.engine import Engine, Tx
from pegword.store.session_rows import Made

PERSONA_CHARS_MAX = 64
LIST_DEFAULT, LIST_MAX = 100, 200


class Sessions:
    """The sessions of one store. Clock in microseconds since 1970; *has_memory* says of a persona's name whether it has memories."""

    def __init__(
        self, engine: Engine, *, clock: Callable[[], int], new_id: Callable[[], str], has_memory: Callable[[str], bool] = lambda _: True
    ) -> None:
        self._engine = engine
        self._clock = clock
        self._new_id = new_id
        self._has_memory = has_memory

    def create(
        self,
        caller: Caller,
        *,
        kind: str = "",
        user: str = "",
        anonymous: bool = False,
        workstream_id: str = "",
        shared: bool = False,
        project_id: str = "",
        persona: str = "",
        parent_id: str = "",
        resumed: bool = False,
    ) -> Session:
        """Make a session.

        *kind* is interactive, coordinator or child ("": child where there is a parent, else interactive). *user* names who it is for,
        and *anonymous* says that it is for somebody who is no user: only a service says either, and it says one of them, its own name
        too, so that nothing of a user's is ever kept as the host's for want of a word. *shared*: the workstream is one with
        members. A child has the user, the workstream and the project of its parent, and never more. *resumed*: the conversation began
        before this server knew of it.
        Raises `Invalid`, `Forbidden` for what this credential may not say, `NotFound` for a user, a workstream with members, a project
        or a parent that there is not, or that is not theirs.
        """
        caller.require("write")
        kind = checked_word(kind or ("child" if parent_id else "interactive"), "kind", SESSION_KINDS)
        persona = checked_text(persona.strip(), "persona", PERSONA_CHARS_MAX)
        workstream_id = checked_scope_id(workstream_id.strip(), "workstream_id")
        _check_form(caller, kind, user, anonymous, workstream_id, shared, parent_id)
        asked = Session(
            workstream_id, self._new_id(), kind, caller.user_id, caller.user_name, project_id=checked_scope_id(project_id, "project_id"),
            workstream_shared=shared, persona=persona, memory=self._has_memory(persona), parent_id=parent_id, resumed=resumed,
            anonymous=anonymous, created=self._clock(),
        )  # fmt: skip
        return self._engine.write(lambda tx: self._add(tx, caller, asked, user))

    def get(self, caller: Caller, session_id: str) -> Session:
        """The session of that id, closed or not, with what its user may do now. Raises `NotFound` for one that is not the caller's."""
        caller.require("read")
        with self._engine.read() as tx:
            return _found(tx, caller, session_id)

    def list(self, caller: Caller, *, include_closed: bool = False, limit: int = LIST_DEFAULT) -> list[Session]:
        """The caller's sessions, the newest first; of a service also those that it made for others. At most `LIST_MAX`."""
        caller.require("read")
        if limit < 1:
            raise Invalid(f"limit must be at least 1: it is {limit}", field="limit")
        with self._engine.read() as tx:
            return session_rows.newest(tx, caller.user_id, service=_is_service(caller), closed=include_closed, limit=min(limit, LIST_MAX))

    def close(self, caller: Caller, session_id: str) -> Session:
        """Close a session and its children. Its memories stay. Closing a closed one changes nothing."""
        caller.require("write")

        def work(tx: Tx) -> Session:
            session = _held(tx, caller, session_id)
            session_rows.close(tx, session.session_id, self._clock())
            return replace(session, closed=True)

        return self._engine.write(work)

    def resume(self, caller: Caller, session_id: str) -> Session:
        """Take a session up again, closed or not. Its children stay as they are. Raises `Conflict` for a child of a closed one."""
        caller.require("write")

        def work(tx: Tx) -> Session:
            session = _held(tx, caller, session_id)
            if session.parent_id and not _is_open(tx, caller, session.parent_id):
                raise Conflict("the session's parent is closed; resume that first", field="session", code="session_closed")
            now = self._clock()
            session_rows.resume(tx, session.session_id, now)
            return replace(session, resumed=True, resumed_at=now, closed=False)

        return self._engine.write(work)

    def _add(self, tx: Tx, caller: Caller, asked: Session, user: str) -> Session:
        """Add the session that was *asked* for, in a transaction; as it then is."""
        session = asked
        if session.parent_id:
            session = self._child(tx, caller, asked)
        elif user:
            owner = found_user(tx, user)
            session = replace(asked, user_id=owner.user_id, user_name=owner.name)
        workstream, project = _places(caller, session)
        made = Made(caller.user_id, caller.credential, workstream.key if workstream else "", project.key if project else "")
        session_rows.add(tx, session, made)
        added = _found(tx, caller, session.session_id)
        if added.project_id != session.project_id:
            raise NotFound("Project not found", field="project_id")
        if added.workstream_id != session.workstream_id:
            raise NotFound("Workstream not found", field="workstream_id")
        return added

    def _child(self, tx: Tx, caller: Caller, asked: Session) -> Session:
        """The child that was *asked* for, with what its parent has."""
        parent = _held(tx, caller, asked.parent_id, what="Parent session")
        acting(caller, parent)  # which must be open
        for field, said, has in (
            ("workstream_id", asked.workstream_id, parent.workstream_id), ("project_id", asked.project_id, parent.project_id),
        ):  # fmt: skip
            if said not in ("", has):
                raise Invalid(f"{field} of a child is that of its parent; leave it out", field=field)
        persona = asked.persona or parent.persona
        return replace(
            asked, user_id=parent.user_id, user_name=parent.user_name, anonymous=parent.anonymous, workstream_id=parent.workstream_id,
            workstream_shared=parent.workstream_shared, project_id=parent.project_id, persona=persona,
            memory=parent.memory and (asked.memory if asked.persona else True),
        )  # fmt: skip


def _check_form(caller: Caller, kind: str, user: str, anonymous: bool, workstream_id: str, shared: bool, parent_id: str) -> None:
    """Refuse what cannot be a session, and what this credential may not say."""
    if (user or anonymous) and not _is_service(caller):
        field = "user" if user else "anonymous"
        raise Forbidden(f"{field}: only a key with the right 'service' says who a session is for", field=field, code="missing_scope")
    if user and anonymous:
        raise Invalid("an anonymous session is for no user; say user or anonymous", field="user")
    if kind == COORDINATOR and anonymous:
        raise Invalid("an anonymous coordinator cannot be; say which user it is for", field="user")
    if parent_id and kind != "child":
        raise Invalid("a session with a parent is of kind child", field="kind")
    if kind == "child" and not parent_id:
        raise Invalid("a child needs a parent; say which session that is", field="parent_id")
    if parent_id and (user or anonymous or shared):
        raise Invalid("a child has the user and the workstream of its parent; leave user, anonymous and shared out", field="parent_id")
    if shared and not workstream_id:
        raise Invalid("workstream_id is required for a shared workstream", field="workstream_id")
    if _is_service(caller) and not (user or anonymous or parent_id):
        said = "user: a key with the right 'service' acts for many users; say whom the session is for, by name, or that it is anonymous"
        raise Invalid(said, field="user", code="no_acting_user")


def _places(caller: Caller, session: Session) -> tuple[Scope | None, Scope | None]:
    """The workstream and the project of a session, whatever its kind."""
    workstream = project = None
    if session.workstream_id:
        own = shared_workstream if session.workstream_shared else lambda at: workstream_scope(acting(caller, session), at)
        workstream = own(session.workstream_id)
    if session.project_id:
        project = project_scope(session.project_id)
    return workstream, project


def _found(tx: Tx, caller: Caller, session_id: str, what: str = "Session") -> Session:
    sound = session_id.isascii() and session_id.isprintable()
    session = session_rows.get(tx, session_id, caller.user_id, service=_is_service(caller)) if sound else None
    if session is None:
        raise NotFound(f"{what} not found", field="session")
    return session


def _held(tx: Tx, caller: Caller, session_id: str, what: str = "Session") -> Session:
    """As `_found`, and nobody closes or resumes sessions of its user before the transaction ends."""
    session_rows.alone(tx, _found(tx, caller, session_id, what).user_id)
    return _found(tx, caller, session_id, what)  # it may have changed while we waited


def _is_open(tx: Tx, caller: Caller, session_id: str) -> bool:
    """Whether there is such a session, and it is not closed; one that was closed long ago is there no more."""
    session = session_rows.get(tx, session_id, caller.user_id, service=_is_service(caller))
    return session is not None and not session.closed


def _is_service(caller: Caller) -> bool:
    return caller.right == "service"
