"""The face at /v1/api/sessions/{id}/events: what a host reports of a conversation, so that a later turn can nudge."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from pegword.core.nudge_queue import CHANNELS
from pegword.http.routing import Answer, Call, Route
from pegword.http.wire import Body
from pegword.services.nudges import EVENT_KINDS, TOOL_CALL, TOOL_CHARS_MAX, VALID_S, VALID_S_MAX


class EventBody(Body, kw_only=True):
    """Something that happened in a session."""

    kind: Annotated[str, Meta(extra_json_schema={"enum": list(EVENT_KINDS)})]
    channel: Annotated[
        str, Meta(description="which seam may take it; absent: the kind's own", extra_json_schema={"enum": ["", *CHANNELS]})
    ] = ""
    valid_s: Annotated[
        int, Meta(description="seconds after which no turn takes it", extra_json_schema={"minimum": 1, "maximum": VALID_S_MAX})
    ] = VALID_S
    tool: Annotated[str, Meta(description=f"the tool of a {TOOL_CALL}, at most {TOOL_CHARS_MAX} characters")] = ""
    arguments: Annotated[str | dict[str, Any], Meta(description=f"the arguments of a {TOOL_CALL}, as a text or an object")] = ""


class EventAnswer(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Whether the event waits for a turn now."""

    kind: str
    waits: bool
    warnings: list[str] = []


def report_event(call: Call, body: EventBody) -> Answer:
    """Tell of something that happened in a session. A later turn may nudge because of it."""
    session = call.services.sessions.get(call.caller, call.path["session_id"])
    waits = call.services.nudges.report(
        call.caller, session, body.kind, channel=body.channel, valid_s=body.valid_s, tool=body.tool, arguments=body.arguments
    )
    return Answer(EventAnswer(kind=body.kind, waits=waits, warnings=list(call.warnings)))


ROUTES = (Route("POST", "/v1/api/sessions/{session_id}/events", report_event, "write", EventAnswer, EventBody),)
