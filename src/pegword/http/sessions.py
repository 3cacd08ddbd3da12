"""The face at /v1/api/sessions: conversations of agents, made by the credential that may, and ended."""

from typing import Annotated

import msgspec
from msgspec import Meta

from pegword.core.caller import SESSION_KINDS, Session, project_scope, scope_words, shared_workstream
from pegword.core.people import Seen
from pegword.http.routing import Answer, Call, Route
from pegword.http.shapes import moment
from pegword.http.wire import Body
from pegword.services.sessions import LIST_DEFAULT, LIST_MAX, PERSONA_CHARS_MAX

_KIND = "child where there is a parent_id, else interactive"


class SessionBody(Body, kw_only=True):
    """A session to be made. Nothing of it can be changed later, and no tool and no turn can say otherwise."""

    kind: Annotated[str, Meta(description=_KIND, extra_json_schema={"enum": [*SESSION_KINDS, ""]})] = ""
    user: Annotated[
        str, Meta(description="name of the user whom it is for; a key with the right service says it, or anonymous; no other key does")
    ] = ""
    anonymous: Annotated[bool, Meta(description="it is for somebody who is no user; only a key with the right service says it")] = False
    workstream_id: str = ""
    shared: Annotated[bool, Meta(description="workstream_id is that of a workstream with members")] = False
    project_id: str = ""
    persona: Annotated[str, Meta(extra_json_schema={"maxLength": PERSONA_CHARS_MAX})] = ""
    parent_id: Annotated[str, Meta(description="the session whose child it is: it has that one's user, workstream and project")] = ""
    resumed: Annotated[bool, Meta(description="the conversation began before this server knew of it")] = False


class SessionsQuery(msgspec.Struct, kw_only=True):
    """Which sessions to list."""

    include_closed: Annotated[bool, Meta(description="also those that are closed")] = False
    limit: Annotated[int, Meta(ge=1, description=f"at most {LIST_MAX}; above is capped")] = LIST_DEFAULT


class SessionRecord(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A session, with what its user may do at this moment."""

    session_id: str
    kind: str
    user: Annotated[str, Meta(description='name of the user whom it is for; "" when it is anonymous')]
    user_id: Annotated[str, Meta(description='"" when it is anonymous')]
    workstream_id: str
    shared: Annotated[bool, Meta(description="whether the workstream has members")]
    project_id: Annotated[str, Meta(description='"" also when the user is no member any more, or the project is archived')]
    project_access: Annotated[str, Meta(description="write, read, or none")]
    persona: str
    memory: Annotated[bool, Meta(description="whether the persona has memories")]
    parent_id: str
    scopes: Annotated[list[str], Meta(description="the scopes that it has; which one its tool means where none is named, the tool says")]
    resumed: bool
    closed: bool
    created: str
    warnings: list[str] = []


class SessionPage(msgspec.Struct, kw_only=True):
    """The newest sessions first."""

    sessions: list[SessionRecord]


class SessionClosed(msgspec.Struct, kw_only=True):
    """What was closed."""

    status: str
    session_id: str


def make_session(call: Call, body: SessionBody) -> Answer:
    """Make a session."""
    made = call.services.sessions.create(
        call.caller,
        kind=body.kind,
        user=body.user,
        anonymous=body.anonymous,
        workstream_id=body.workstream_id,
        shared=body.shared,
        project_id=body.project_id,
        persona=body.persona,
        parent_id=body.parent_id,
        resumed=body.resumed,
    )
    return Answer(_record(made, call.warnings), 201, seen=_seen(made))


def list_sessions(call: Call, query: SessionsQuery) -> Answer:
    """The sessions of the token's user, the newest first; of a service also those that it made."""
    found = call.services.sessions.list(call.caller, include_closed=query.include_closed, limit=query.limit)
    return Answer(SessionPage(sessions=[_record(session) for session in found]))


def get_session(call: Call) -> Answer:
    """One session, closed or not."""
    return Answer(_record(call.services.sessions.get(call.caller, call.path["session_id"])))


def resume_session(call: Call) -> Answer:
    """Take a session up again, closed or not."""
    resumed = call.services.sessions.resume(call.caller, call.path["session_id"])
    return Answer(_record(resumed), seen=_seen(resumed))


def close_session(call: Call) -> Answer:
    """Close a session and its children; memories stay."""
    closed = call.services.sessions.close(call.caller, call.path["session_id"])
    return Answer(SessionClosed(status="ok", session_id=closed.session_id))


def _seen(session: Session) -> tuple[Seen, ...]:
    """What a session's record tells of scopes with members."""
    workstream = [shared_workstream(session.workstream_id)] if session.workstream_shared and session.workstream_id else []
    project = [project_scope(session.project_id)] if session.project_id else []
    return tuple(Seen(scope.key, session.user_id) for scope in (*workstream, *project))


def _record(session: Session, warnings: tuple[str, ...] = ()) -> SessionRecord:
    access = "write" if session.project_write else "read"
    return SessionRecord(
        session_id=session.session_id, kind=session.kind, user="" if session.anonymous else session.user_name,
        user_id="" if session.anonymous else session.user_id, workstream_id=session.workstream_id, shared=session.workstream_shared,
        project_id=session.project_id, project_access=access if session.project_id else "none", persona=session.persona,
        memory=session.memory, parent_id=session.parent_id, scopes=list(scope_words(session)), resumed=session.resumed,
        closed=session.closed, created=moment(session.created), warnings=list(warnings),
    )  # fmt: skip


_ALL = "/v1/api/sessions"
_ONE = "/v1/api/sessions/{session_id}"

# fmt: off
ROUTES = (
    Route("POST", _ALL, make_session, "write", SessionRecord, SessionBody, statuses=(201,)),
    Route("GET", _ALL, list_sessions, "read", SessionPage, query=SessionsQuery),
    Route("GET", _ONE, get_session, "read", SessionRecord),
    Route("POST", _ONE + "/resume", resume_session, "write", SessionRecord),
    Route("DELETE", _ONE, close_session, "write", SessionClosed),
)
