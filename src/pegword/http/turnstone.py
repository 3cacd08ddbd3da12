"""The face at /v1/api/memories: Turnstone's paths, words and sentences, with the whole record in answers and more fields in requests.

A memory is named here by its name and scope; any name can stand in the path, with slashes and the word ``search`` too.
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from pegword.core.caller import scope_of, scopes_of
from pegword.core.memory import Draft, parse_time
from pegword.http.memory_fields import (
    Claim,
    Confidence,
    Content,
    Description,
    ExpectedVersion,
    Expired,
    Expiry,
    Kind,
    Name,
    OneScope,
    Priority,
    ScopeId,
    ScopeWord,
    SessionName,
    Sitting,
    Source,
    Tags,
    Type,
    expected_version,
)
from pegword.http.routing import Answer, Call, Route
from pegword.http.shapes import (
    Deleted,
    FoundPage,
    Record,
    RecordPage,
    SavedRecord,
    deleted_answer,
    found_answer,
    page_answer,
    record_answer,
    saved_answer,
)
from pegword.http.wire import Body
from pegword.services.memories import LIST_DEFAULT, LIST_MAX, SEARCH_DEFAULT, SEARCH_MAX


class ListQuery(msgspec.Struct, kw_only=True):
    """What a list leaves in."""

    type: Type = ""
    scope: ScopeWord = ""
    scope_id: ScopeId = ""
    tag: str = ""
    include_expired: Expired = False
    limit: Annotated[int, Meta(ge=1, description=f"at most {LIST_MAX}; above is capped")] = LIST_DEFAULT


class ScopeQuery(msgspec.Struct, kw_only=True):
    """Where a name is meant."""

    scope: OneScope = "global"
    scope_id: ScopeId = ""


class DeleteNamedQuery(ScopeQuery, kw_only=True):
    """Where a name is meant, and at which version."""

    expected_version: ExpectedVersion | None = None


class SaveBody(Body, kw_only=True):
    """A memory to save. What is absent or null keeps what is stored, or takes the default for a new memory."""

    name: Name
    content: Content
    description: Description | None = None
    type: Kind = ""
    scope: OneScope = "global"
    scope_id: ScopeId = ""
    tags: Tags | None = None
    priority: Priority | None = None
    confidence: Confidence | None = None
    source: Source | None = None
    expires_at: Expiry | None = None
    sitting: Sitting = ""
    session: SessionName = ""
    expected_version: ExpectedVersion | None = None
    verified: Claim = False


class SearchBody(Body, kw_only=True):
    """A search: words, and "phrases" in double quotes. Any text is legal."""

    query: Annotated[str, Meta(extra_json_schema={"minLength": 1})]
    type: Type = ""
    scope: ScopeWord = ""
    scope_id: ScopeId = ""
    tag: str = ""
    include_expired: Expired = False
    limit: Annotated[int, Meta(ge=1, description=f"at most {SEARCH_MAX}; above is capped")] = SEARCH_DEFAULT


def list_memories(call: Call, query: ListQuery) -> Answer:
    """The newest memories, newest first."""
    visible = scopes_of(call.caller, query.scope, query.scope_id)
    page = call.services.memories.list(
        call.caller, visible, kind=query.type, tag=query.tag, limit=query.limit, include_expired=query.include_expired
    )
    return page_answer(call, page)


def save_memory(call: Call, body: SaveBody) -> Answer:
    """Create or change a memory."""
    draft = Draft(
        name=body.name,
        content=body.content,
        scope=scope_of(call.caller, body.scope or "global", body.scope_id),
        description=body.description,
        kind=body.type or None,
        tags=None if body.tags is None else tuple(body.tags),
        priority=body.priority,
        confidence=body.confidence,
        source=body.source,
        expires_at=None if body.expires_at is None else parse_time(body.expires_at, "expires_at"),
        sitting=body.sitting,
        session=body.session,
        expected_version=expected_version(call, body.expected_version),
        claims_verified=body.verified,
    )
    return saved_answer(call, call.services.memories.save(call.caller, draft))


def search_memories(call: Call, body: SearchBody) -> Answer:
    """The memories that belong most to a query, best first."""
    visible = scopes_of(call.caller, body.scope, body.scope_id)
    result = call.services.memories.search(
        call.caller, visible, body.query, kind=body.type, tag=body.tag, limit=body.limit, include_expired=body.include_expired
    )
    return found_answer(call, result)


def get_memory(call: Call, query: ScopeQuery) -> Answer:
    """One whole memory, by name; counts an access."""
    scope = scope_of(call.caller, query.scope, query.scope_id)
    return record_answer(call, call.services.memories.get(call.caller, scope, call.path["name"]))


def delete_memory(call: Call, query: DeleteNamedQuery) -> Answer:
    """Delete a memory for good, by name."""
    expected = expected_version(call, query.expected_version)
    scope = scope_of(call.caller, query.scope, query.scope_id)
    return deleted_answer(call.services.memories.delete(call.caller, scope, call.path["name"], expected_version=expected))


_ALL = "/v1/api/memories"
_ONE = "/v1/api/memories/{name:path}"

# fmt: off
ROUTES = (
    Route("GET", _ALL, list_memories, "read", RecordPage, query=ListQuery),
    Route("POST", _ALL, save_memory, "write", SavedRecord, SaveBody, statuses=(201, 200), conditional=True, brief=True),
    Route("POST", _ALL + "/search", search_memories, "read", FoundPage, SearchBody),
    Route("GET", _ONE, get_memory, "read", Record, query=ScopeQuery),
    Route("DELETE", _ONE, delete_memory, "write", Deleted, query=DeleteNamedQuery, conditional=True, brief=True),
)
