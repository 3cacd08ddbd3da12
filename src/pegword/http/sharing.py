"""The face at /v1/api/shared and /v1/api/workstreams: projects, workstreams with members, and whole workstreams deleted."""

from typing import Annotated

import msgspec
from msgspec import Meta

from pegword.core.errors import Invalid
from pegword.core.people import Seen, SharedScope
from pegword.http.routing import Answer, Call, Route
from pegword.http.shapes import moment
from pegword.http.wire import Body
from pegword.services.removing import Removed
from pegword.services.sharing import LIST_DEFAULT, LIST_MAX, MEMBERS_MAX, SHARED_KINDS, TITLE_CHARS_MAX

_KIND_SCHEMA = {"enum": list(SHARED_KINDS)}
Title = Annotated[str, Meta(extra_json_schema={"minLength": 1, "maxLength": TITLE_CHARS_MAX})]
Limit = Annotated[int, Meta(ge=1, description=f"at most {LIST_MAX}; above is capped")]
WithMemories = Annotated[bool, Meta(description="delete the memories too; without it, what holds memories stays as it is (409)")]
MayWrite = Annotated[bool, Meta(description="false: may only read")]


class MemberField(msgspec.Struct, kw_only=True):
    """A user who has it."""

    user: Annotated[str, Meta(description="name of the user")]
    write: MayWrite = True


class SharedBody(Body, kw_only=True):
    """A project (which takes the right approve) or a workstream with members (service) to be made."""

    kind: Annotated[str, Meta(extra_json_schema=_KIND_SCHEMA)]
    title: Title
    members: Annotated[list[MemberField], Meta(max_length=MEMBERS_MAX)] | None = None


class SharedPatch(Body, kw_only=True):
    """What to change. Null means absent."""

    title: Title | None = None
    archived: Annotated[bool | None, Meta(description="true: no session has it until it is taken out of the archive")] = None


class MemberBody(Body, kw_only=True):
    """What a member may do."""

    write: MayWrite = True


class SharedQuery(msgspec.Struct, kw_only=True):
    """Which to list."""

    kind: Annotated[str, Meta(extra_json_schema=_KIND_SCHEMA)] = "project"
    limit: Limit = LIST_DEFAULT


class WorkstreamsQuery(msgspec.Struct, kw_only=True):
    """How many to list."""

    limit: Limit = LIST_DEFAULT


class RemoveQuery(msgspec.Struct, kw_only=True):
    """What goes with it."""

    with_memories: WithMemories = False


class MemberRecord(msgspec.Struct, kw_only=True):
    """A user who has it."""

    user: str
    write: bool


class SharedRecord(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A project or a workstream with members; `id` is what a session takes as project_id or workstream_id."""

    kind: str
    id: str
    title: str
    owner: str
    members: list[MemberRecord]
    archived: bool
    created: str
    warnings: list[str] = []


class SharedPage(msgspec.Struct, kw_only=True):
    """The newest first."""

    shared: list[SharedRecord]


class WorkstreamRecord(msgspec.Struct, kw_only=True):
    """A workstream of the token's user that holds memories, and how many that have not expired."""

    workstream_id: str
    memories: int


class WorkstreamPage(msgspec.Struct, kw_only=True):
    """The user's workstreams, by id."""

    workstreams: list[WorkstreamRecord]


class RemovedAnswer(msgspec.Struct, kw_only=True):
    """What is gone, for good, and how many memories went with it."""

    status: str
    id: str
    memories: int


class MemberGone(msgspec.Struct, kw_only=True):
    """Who is a member no longer."""

    status: str
    user: str


def make_shared(call: Call, body: SharedBody) -> Answer:
    """Make a project, or a workstream with members."""
    members: dict[str, bool] = {}
    for member in body.members or ():
        if members.setdefault(member.user, member.write) != member.write:
            raise Invalid(f"members names '{member.user[:64]}' twice", field="members")
    return _answer(call, call.services.sharing.create(call.caller, body.kind, body.title, members), 201)


def list_shared(call: Call, query: SharedQuery) -> Answer:
    """The projects, or workstreams with members, that the token's user owns or is a member of."""
    found = call.services.sharing.list(call.caller, query.kind, limit=query.limit)
    return Answer(SharedPage(shared=[_record(there) for there in found]))


def get_shared(call: Call) -> Answer:
    """One project or workstream with members."""
    return Answer(_record(call.services.sharing.get(call.caller, *_at(call))))


def change_shared(call: Call, body: SharedPatch) -> Answer:
    """Change its title, or archive it; by its owner."""
    return _answer(call, call.services.sharing.change(call.caller, *_at(call), title=body.title, archived=body.archived))


def delete_shared(call: Call, query: RemoveQuery) -> Answer:
    """Delete it for good; by its owner."""
    return _removed(call.services.removing.shared(call.caller, *_at(call), with_memories=query.with_memories))


def set_member(call: Call, body: MemberBody) -> Answer:
    """Make a user a member, or change what they may do; by its owner."""
    return _answer(call, call.services.sharing.set_member(call.caller, *_at(call), call.path["user"], write=body.write))


def drop_member(call: Call) -> Answer:
    """Make a user a member no longer; by its owner, or by that user."""
    call.services.sharing.drop_member(call.caller, *_at(call), call.path["user"])
    return Answer(MemberGone(status="ok", user=call.path["user"]))


def list_workstreams(call: Call, query: WorkstreamsQuery) -> Answer:
    """The workstreams of the token's user that hold memories."""
    found = call.services.sharing.own_workstreams(call.caller, limit=query.limit)
    return Answer(WorkstreamPage(workstreams=[WorkstreamRecord(workstream_id=at, memories=count) for at, count in found]))


def delete_workstream(call: Call, query: RemoveQuery) -> Answer:
    """Delete a workstream of the token's user: its sessions close."""
    return _removed(call.services.removing.workstream(call.caller, call.path["workstream_id"], with_memories=query.with_memories))


def _at(call: Call) -> tuple[str, str]:
    return call.path["kind"], call.path["id"]


def _removed(removed: Removed) -> Answer:
    return Answer(RemovedAnswer(status="ok", id=removed.scope.id, memories=removed.memories))


def _answer(call: Call, there: SharedScope, status: int = 200) -> Answer:
    """What was made of it, for who has it."""
    seen = Seen(there.scope.key, call.caller.user_id, outside=True)
    return Answer(_record(there, call.warnings), status, seen=(seen,))


def _record(there: SharedScope, warnings: tuple[str, ...] = ()) -> SharedRecord:
    return SharedRecord(
        kind=there.scope.kind, id=there.scope.id, title=there.title, owner=there.owner_name,
        members=[MemberRecord(user=member.user_name, write=member.write) for member in there.members], archived=there.archived,
        created=moment(there.created), warnings=list(warnings),
    )  # fmt: skip


_ALL = "/v1/api/shared"
_ONE = "/v1/api/shared/{kind}/{id}"
_MEMBER = _ONE + "/members/{user:path}"
_WORKSTREAMS = "/v1/api/workstreams"

# fmt: off
ROUTES = (
    Route("POST", _ALL, make_shared, "write", SharedRecord, SharedBody, statuses=(201,)),
    Route("GET", _ALL, list_shared, "read", SharedPage, query=SharedQuery),
    Route("GET", _ONE, get_shared, "read", SharedRecord),
    Route("PATCH", _ONE, change_shared, "write", SharedRecord, SharedPatch),
    Route("DELETE", _ONE, delete_shared, "write", RemovedAnswer, query=RemoveQuery),
    Route("PUT", _MEMBER, set_member, "write", SharedRecord, MemberBody),
    Route("DELETE", _MEMBER, drop_member, "write", MemberGone),
    Route("GET", _WORKSTREAMS, list_workstreams, "read", WorkstreamPage, query=WorkstreamsQuery),
    Route("DELETE", _WORKSTREAMS + "/{workstream_id:path}", delete_workstream, "write", RemovedAnswer, query=RemoveQuery),
)
