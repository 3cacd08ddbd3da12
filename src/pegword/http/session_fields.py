"""How a request names the session that it belongs to."""

from typing import Annotated

import msgspec
from msgspec import Meta

from pegword.core.caller import Session, checked_scope_id
from pegword.core.errors import Invalid
from pegword.http.routing import Call


class SessionRef(msgspec.Struct, kw_only=True):
    """The conversation that a request belongs to: one that was made, or just a workstream of the token's user."""

    workstream_id: Annotated[str | None, Meta(description="a workstream of the token's user, where no session was made")] = None
    id: Annotated[str | None, Meta(description="a session, as POST /v1/api/sessions answered it")] = None


def session_of(call: Call, ref: SessionRef | None) -> Session:
    """The session that *ref* names; without one, an interactive session of the token's user.

    Raises `Invalid` for an id that no workstream can have, `NotFound` for a session that there is not or that is somebody else's. A closed
    one is given as it is; whatever uses it refuses it.
    """
    if ref is None or not (ref.id or ref.workstream_id):
        return Session()
    if not ref.id:
        return Session(checked_scope_id((ref.workstream_id or "").strip(), "workstream_id"))
    if ref.workstream_id:
        raise Invalid("session: say id or workstream_id, not both; a session has its workstream", field="session")
    return call.services.sessions.get(call.caller, ref.id)
