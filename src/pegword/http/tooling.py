"""The face at /v1/api/tool: the `memory` tool as a host offers it to its model, and what the model asks of it."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from pegword.core.caller import Session, acting
from pegword.core.errors import Invalid
from pegword.core.people import Seen
from pegword.http.routing import Answer, Call, Route
from pegword.http.session_fields import SessionRef, session_of
from pegword.http.shapes import type_word
from pegword.http.wire import Body
from pegword.tool.calling import MemoryTool, ToolResult
from pegword.tool.schema import DIALECTS

_SESSION_ID = "the session's id; without one, an interactive session of the token's user"
_WORKSTREAM_ID = "without a session: the workstream that the conversation belongs to"

Dialect = Annotated[str, Meta(description="how the host writes tools", extra_json_schema={"enum": list(DIALECTS)})]


class ToolQuery(msgspec.Struct, kw_only=True):
    """For which session, and in whose dialect."""

    session: Annotated[str, Meta(description=_SESSION_ID)] = ""
    workstream_id: Annotated[str, Meta(description=_WORKSTREAM_ID)] = ""
    dialect: Dialect = "openai"


class ToolBody(Body, kw_only=True):
    """What a model asks of the tool."""

    session: Annotated[str | SessionRef | None, Meta(description="the session's id, or an object as in a turn")] = None
    arguments: Annotated[
        Any, Meta(description="as the model wrote them: an object with action, or its JSON text", extra_json_schema={"type": "object"})
    ] = None


class ToolOffered(msgspec.Struct, kw_only=True):
    """The tool in the dialect that was asked for, to be handed on as it is; null where the session's persona has no memory."""

    tool: dict[str, Any] | None


class ToolMemory(msgspec.Struct, kw_only=True):
    """A memory that an answer is about."""

    memory_id: str
    name: str
    scope: str
    scope_id: str
    type: str
    version: int


class ToolAnswer(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What goes back to the model is `text`, errors too. `outcome` is created, updated, unchanged or kept (it is there already) after a
    save, deleted after a delete."""

    text: str
    is_error: bool
    outcome: str = ""
    memories: list[ToolMemory]
    warnings: list[str] = []


def offer_tool(call: Call, query: ToolQuery) -> Answer:
    """The memory tool as a session offers it to its model."""
    return Answer(ToolOffered(tool=_tool(call).schema(call.caller, _of_query(call, query), query.dialect)))


def call_tool(call: Call, body: ToolBody) -> Answer:
    """Do what a model asks of the memory tool."""
    session = _of_body(call, body)
    result = _tool(call).call(call.caller, session, body.arguments)
    told, user_id = (*result.memories, *result.beside), acting(call.caller, session).user_id
    seen = {Seen(memory.scope.key, user_id) for memory in told if memory.scope.has_members}
    return Answer(_answer(call, result), memories=tuple(m.memory_id for m in told), lasting=result.changed, seen=tuple(seen))


def _tool(call: Call) -> MemoryTool:
    return MemoryTool(call.services, kind_word=call.settings.kind_word, content_chars_max=lambda: call.settings.memory_max_content)


def _of_query(call: Call, query: ToolQuery) -> Session:
    if query.session and query.workstream_id:
        raise Invalid("say session or workstream_id, not both; a session has its workstream", field="session")
    return session_of(call, SessionRef(id=query.session, workstream_id=query.workstream_id))


def _of_body(call: Call, body: ToolBody) -> Session:
    ref = body.session
    return session_of(call, SessionRef(id=ref) if isinstance(ref, str) else ref)


def _answer(call: Call, result: ToolResult) -> ToolAnswer:
    memories = [
        ToolMemory(
            memory_id=m.memory_id, name=m.name, scope=m.scope.kind, scope_id=m.scope.id, type=type_word(call, m.kind, m.kind_word),
            version=m.version,
        )
        for m in result.memories
    ]  # fmt: skip
    return ToolAnswer(
        text=result.text, is_error=result.is_error, outcome=result.outcome, memories=memories, warnings=list(call.warnings)
    )  # fmt: skip


_TOOL = "/v1/api/tool"

# fmt: off
ROUTES = (
    Route("GET", _TOOL, offer_tool, "read", ToolOffered, query=ToolQuery),
    Route("POST", _TOOL, call_tool, "read", ToolAnswer, ToolBody, writes=True),
)
