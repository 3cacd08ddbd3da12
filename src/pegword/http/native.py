"""The face at /v1/api/memory and /v1/api/turn: a memory by its id, its history, and the turn, which is what all this is for."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from pegword.core.errors import Invalid
from pegword.core.memory import NEVER, parse_time
from pegword.core.nudge import KINDS
from pegword.http.explained import Explained, explained
from pegword.http.memory_fields import (
    Claim,
    Confidence,
    Content,
    Description,
    ExpectedVersion,
    Expiry,
    Kind,
    Priority,
    SessionName,
    Sitting,
    Source,
    Tags,
    expected_version,
)
from pegword.http.routing import Answer, Call, Route
from pegword.http.session_fields import SessionRef, session_of
from pegword.http.shapes import (
    SCORE_DIGITS,
    Deleted,
    Record,
    SavedRecord,
    VersionPage,
    deleted_answer,
    record_answer,
    saved_answer,
    type_word,
    versions_answer,
)
from pegword.http.wire import Body
from pegword.services.memories import LIST_DEFAULT, LIST_MAX
from pegword.services.turns import BUDGET_CHARS_MIN, K_MAX, MODES, Turn
from pegword.services.writing import Changes

TURN_BYTES_MAX = 32 << 20


class PatchBody(Body, kw_only=True):
    """Some fields of a memory. What is absent stays; null clears description, tags and expires_at, and means absent elsewhere."""

    clearable: ClassVar[frozenset[str]] = frozenset({"description", "tags", "expires_at"})

    content: Content | None = None
    description: Description | UnsetType | None = UNSET
    type: Kind = ""
    tags: Tags | UnsetType | None = UNSET
    priority: Priority | None = None
    confidence: Confidence | None = None
    source: Source | None = None
    expires_at: Expiry | UnsetType | None = UNSET
    sitting: Sitting = ""
    session: SessionName = ""
    expected_version: ExpectedVersion | None = None
    verified: Claim = False


class RevertBody(Body, kw_only=True):
    """The version whose text is to stand again."""

    version: Annotated[int, Meta(ge=1)]
    expected_version: ExpectedVersion | None = None


class DeleteQuery(msgspec.Struct, kw_only=True):
    """At which version."""

    expected_version: ExpectedVersion | None = None


class VersionsQuery(msgspec.Struct, kw_only=True):
    """Which of the versions."""

    limit: Annotated[int, Meta(ge=1, description=f"at most {LIST_MAX}; above is capped")] = LIST_DEFAULT
    offset: Annotated[int, Meta(ge=0, description="so many of the newest are left out")] = 0


class TurnBody(Body, kw_only=True):
    """The conversation so far, of which the last three user messages count."""

    messages: Annotated[
        list[dict[str, Any]], Meta(description="in the shapes of OpenAI or Anthropic: role, and content as a text or a list of parts")
    ]
    session: SessionRef | None = None
    mode: Annotated[str, Meta(description="where the block will stand", extra_json_schema={"enum": list(MODES)})] = "system"
    k: Annotated[int | None, Meta(description=f"memories shown, 1 to {K_MAX}; above is capped", extra_json_schema={"minimum": 1})] = None
    budget_chars: Annotated[int | None, Meta(description="characters of the block", extra_json_schema={"minimum": BUDGET_CHARS_MIN})] = None
    tool: Annotated[bool | None, Meta(description="whether the model is offered the memory tool; else nothing speaks of it")] = True


class ExplainQuery(msgspec.Struct, kw_only=True):
    """In which session to explain."""

    session: Annotated[str, Meta(description="the session of the turn; needed where that one has scopes that only sessions have")] = ""


class TurnMemory(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A memory in the block; its score is 0.0 where it stands for another reason than the words."""

    memory_id: str
    name: str
    scope: str
    scope_id: str
    type: str
    score: float
    pointer: Annotated[bool, Meta(description="named in the block without its text, which the tool reads; only there when it is")] = False


class TurnNudge(msgspec.Struct, kw_only=True):
    """A reminder of the memory, or that the model goes in circles."""

    kind: Annotated[str, Meta(extra_json_schema={"enum": list(KINDS)})]
    text: Annotated[str, Meta(description="fixed for each kind: nothing that was stored or said is in it")]


class TurnAnswer(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What to put before the model: `text` is block, blank line, hint. An empty block is a good answer. `index` is there in mode index
    alone: it goes into the system message and stays the same, while `text` goes into the tail."""

    block: str
    hint: str
    text: str
    nudge: Annotated[TurnNudge | None, Meta(description="a reminder for the model, to stand after the last message; null for none")]
    in_scope: int
    receipt: Annotated[str, Meta(description="asks GET /v1/api/turn/{receipt} why")]
    memories: list[TurnMemory]
    index: str | UnsetType = UNSET
    warnings: list[str] = []


def get_memory_by_id(call: Call) -> Answer:
    """One whole memory, by id; counts an access."""
    return record_answer(call, call.services.memories.get_by_id(call.caller, call.path["memory_id"]))


def change_memory(call: Call, body: PatchBody) -> Answer:
    """Change some fields of a memory."""
    changes = Changes(
        content=body.content,
        description=_or_cleared(body.description, ""),
        kind=body.type or None,
        tags=None if body.tags is UNSET else tuple(body.tags or ()),
        priority=body.priority,
        confidence=body.confidence,
        source=body.source,
        expires_at=_expiry(body.expires_at),
        sitting=body.sitting,
        session=body.session,
        expected_version=expected_version(call, body.expected_version),
        claims_verified=body.verified,
    )
    return saved_answer(call, call.services.memories.update(call.caller, call.path["memory_id"], changes))


def delete_memory_by_id(call: Call, query: DeleteQuery) -> Answer:
    """Delete a memory for good, by id."""
    expected = expected_version(call, query.expected_version)
    return deleted_answer(call.services.memories.delete_by_id(call.caller, call.path["memory_id"], expected_version=expected))


def list_versions(call: Call, query: VersionsQuery) -> Answer:
    """The versions of a memory, newest first."""
    history = call.services.memories.versions(call.caller, call.path["memory_id"], limit=query.limit, offset=query.offset)
    return versions_answer(call, history, truncated=history.total > query.offset + min(query.limit, LIST_MAX))


def revert_memory(call: Call, body: RevertBody) -> Answer:
    """Let an old version stand again, as a new one."""
    expected = expected_version(call, body.expected_version)
    saved = call.services.memories.revert(call.caller, call.path["memory_id"], body.version, expected_version=expected)
    return saved_answer(call, saved)


def take_turn(call: Call, body: TurnBody) -> Answer:
    """The memories that belong in a turn of a conversation."""
    turn = call.services.turns.turn(
        call.caller,
        session_of(call, body.session),
        [_message(at, message) for at, message in enumerate(body.messages)],
        mode=body.mode,
        k=body.k,
        budget_chars=body.budget_chars,
        tool=body.tool is not False,
    )
    return Answer(_turn_answer(call, turn))


def explain_turn(call: Call, query: ExplainQuery) -> Answer:
    """Why a turn showed what it showed; kept 7 days."""
    session = session_of(call, SessionRef(id=query.session)) if query.session else None
    return Answer(explained(call.services.turns.explain(call.caller, call.path["receipt"], session)))


def _message(at: int, message: Mapping[str, Any]) -> Mapping[str, Any]:
    typed = isinstance(message.get("type"), str) and message["type"] != "message" and "role" not in message
    if not isinstance(message.get("role"), str) and not typed:  # what else stands among messages in one of OpenAI's shapes has a type alone
        raise Invalid(f"messages[{at}].role must be a text", field="messages")
    return message


def _or_cleared(value: str | UnsetType | None, cleared: str) -> str | None:
    """None for absent, *cleared* for null: as `Changes` reads them."""
    if value is UNSET:
        return None
    return cleared if value is None else value


def _expiry(value: str | float | UnsetType | None) -> int | None:
    if value is UNSET:
        return None
    return NEVER if value is None else parse_time(value, "expires_at")


def _turn_answer(call: Call, turn: Turn) -> TurnAnswer:
    memories = [
        TurnMemory(
            memory_id=m.memory_id, name=m.name, scope=m.scope.kind, scope_id=m.scope.id, type=type_word(call, m.kind, m.kind_word),
            score=round(shown.score, SCORE_DIGITS), pointer=shown.pointer,
        )
        for m, shown in ((shown.memory, shown) for shown in turn.shown)
    ]  # fmt: skip
    nudge = TurnNudge(kind=turn.nudge.kind, text=turn.nudge.text) if turn.nudge else None
    return TurnAnswer(
        block=turn.block, hint=turn.hint, text=turn.text, nudge=nudge, in_scope=turn.in_scope, receipt=turn.receipt, memories=memories,
        index=UNSET if turn.index is None else turn.index, warnings=list(call.warnings),
    )  # fmt: skip


_ONE = "/v1/api/memory/{memory_id}"
_TURN = "/v1/api/turn"

# fmt: off
ROUTES = (
    Route("GET", _ONE, get_memory_by_id, "read", Record),
    Route("PATCH", _ONE, change_memory, "write", SavedRecord, PatchBody, conditional=True, brief=True),
    Route("DELETE", _ONE, delete_memory_by_id, "write", Deleted, query=DeleteQuery, conditional=True, brief=True),
    Route("GET", _ONE + "/versions", list_versions, "read", VersionPage, query=VersionsQuery),
    Route("POST", _ONE + "/revert", revert_memory, "write", SavedRecord, RevertBody, conditional=True, brief=True),
    Route("POST", _TURN, take_turn, "read", TurnAnswer, TurnBody, body_bytes_max=TURN_BYTES_MAX),
    Route("GET", _TURN + "/{receipt}", explain_turn, "read", Explained, query=ExplainQuery, settles=True),
)
