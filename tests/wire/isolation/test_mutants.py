"""Faults planted in the walls: each must show in the matrix, or the matrix would prove nothing."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from pegword.core import caller as walls
from pegword.core.caller import Caller, Scope, Session, Visible, coordinator_scope, project_scope, reach, scope_of
from pegword.services import memories, resembling, sessions, transfer, turns, writing
from pegword.store import memory_rows, postings, session_rows, sharing_rows, transfer_rows
from pegword.store.engine import Row, Tx
from pegword.tool.calling import MemoryTool, ToolResult
from tests.wire.conftest import Site
from tests.wire.isolation import matrix
from tests.wire.isolation.world import World, built

Plant = Callable[[pytest.MonkeyPatch, World], None]
Look = Callable[[World], Iterator[str]]
EVERYTHING: tuple[str, list[str]] = ("(1 = 1)", [])


def every_scope_is_listed(patch: pytest.MonkeyPatch, _: World) -> None:
    patch.setattr(memory_rows, "within", lambda _: EVERYTHING)


def every_scope_is_searched(patch: pytest.MonkeyPatch, _: World) -> None:
    patch.setattr(postings, "within", lambda _: EVERYTHING)


def an_empty_set_is_all(patch: pytest.MonkeyPatch, _: World) -> None:
    """As a filter that is left out where there is nothing to put into it."""
    within = postings.within
    for rows in (postings, memory_rows):
        patch.setattr(rows, "within", lambda visible: within(visible) if visible.keys or visible.key_range[0] else EVERYTHING)


def an_id_is_enough(patch: pytest.MonkeyPatch, _: World) -> None:
    patch.setattr(writing, "within_reach", lambda tx, _, memory_id, **__: memory_rows.by_id(tx, memory_id))
    patch.setattr(memories, "within_reach", writing.within_reach)


def coordinators_are_the_users_too(patch: pytest.MonkeyPatch, _: World) -> None:
    def wider(caller: Caller) -> Visible:
        return replace(seen := reach(caller), scopes=(*seen.scopes, coordinator_scope(caller.user_id)))

    patch.setattr(writing, "reach", wider)


def a_kind_argument_is_believed(patch: pytest.MonkeyPatch, _: World) -> None:
    call = MemoryTool.call

    def believing(tool: MemoryTool, caller: Caller, session: Session, arguments: Any) -> ToolResult:
        return call(tool, caller, replace(session, kind=arguments.get("kind", session.kind)), arguments)

    patch.setattr(MemoryTool, "call", believing)


def a_workstream_argument_is_believed(patch: pytest.MonkeyPatch, _: World) -> None:
    call = MemoryTool.call

    def believing(tool: MemoryTool, caller: Caller, session: Session, arguments: Any) -> ToolResult:
        return call(tool, caller, replace(session, workstream_id=arguments.get("scope_id", session.workstream_id)), arguments)

    patch.setattr(MemoryTool, "call", believing)


def a_coordinator_has_all_that_its_user_has(patch: pytest.MonkeyPatch, _: World) -> None:
    words = walls.scope_words

    def wider(session: Session) -> tuple[str, ...]:
        more = words(replace(session, kind="interactive")) if session.kind == "coordinator" else ()
        return (*words(session), *more)

    patch.setattr(walls, "scope_words", wider)


def a_session_sees_every_workstream(patch: pytest.MonkeyPatch, _: World) -> None:
    patch.setattr(turns, "session_reach", lambda caller, session: reach(walls.acting(caller, session)))


def a_session_is_whoevers_knows_its_id(patch: pytest.MonkeyPatch, _: World) -> None:
    get = session_rows.get

    def anybodys(tx: Tx, session_id: str, _user: str, *, service: bool) -> Session | None:
        owner = tx.rows("SELECT user_id FROM sessions WHERE session_id = ?", (session_id,))
        return get(tx, session_id, owner[0][0], service=service) if owner else None

    patch.setattr(session_rows, "get", anybodys)


def anybody_acts_for_anybody(patch: pytest.MonkeyPatch, world: World) -> None:
    a_session_is_whoevers_knows_its_id(patch, world)

    def acting(caller: Caller, session: Session) -> Caller:
        return replace(caller, user_id=session.user_id, user_name=session.user_name) if session.user_id else caller

    for module in (walls, memories, turns, sessions):
        patch.setattr(module, "acting", acting)


def a_membership_lasts_for_ever(patch: pytest.MonkeyPatch, _: World) -> None:
    read = session_rows._session

    def lasting(row: Row) -> Session:
        return replace(read(row), project_id=str(row[7]).removeprefix("p:"), project_write=True)

    patch.setattr(session_rows, "_session", lasting)


def whoever_reads_writes(patch: pytest.MonkeyPatch, _: World) -> None:
    patch.setattr(walls, "writable_words", lambda session, **_: walls.scope_words(session))
    patch.setattr(sharing_rows, "may_write", lambda *_: True)


def a_right_is_not_asked_for(patch: pytest.MonkeyPatch, _: World) -> None:
    patch.setattr(Caller, "require", lambda *_: None)
    patch.setattr(Caller, "may", lambda *_: True)


def every_receipt_of_a_user_is_told(patch: pytest.MonkeyPatch, _: World) -> None:
    patch.setattr(Visible, "covers", lambda *_: True)


def what_is_similar_anywhere_is_told(patch: pytest.MonkeyPatch, world: World) -> None:
    everything = Visible(tuple(place.scope for place in world.places.values()))
    patch.setattr(resembling, "session_reach", lambda *_: everything)
    patch.setattr(resembling, "LIKE", 0.0)
    find = resembling.find
    patch.setattr(resembling, "find", lambda *a, **k: _moved(find(*a, **k)))


def _moved(findings: Any) -> Any:
    """*findings* as if every memory were kept where the draft is: in global."""
    hits = tuple(replace(hit, memory=hit.memory._replace(scope=walls.GLOBAL, name=f"other_{hit.position}")) for hit in findings.hits)
    return replace(findings, hits=hits)


def an_attached_project_is_any(patch: pytest.MonkeyPatch, world: World) -> None:
    """As a project that is taken from the request and not from the membership."""
    of_bob = world.places["q"].scope
    patch.setattr(walls, "project_scope", lambda _: of_bob)
    assert of_bob == project_scope(of_bob.id)


def the_index_of_a_session_names_everything(patch: pytest.MonkeyPatch, world: World) -> None:
    everything = Visible(tuple(place.scope for place in world.places.values()))
    asked = turns.asked
    patch.setattr(turns, "asked", lambda caller, session, _, **more: asked(caller, session, everything, **more))


def every_scope_is_exported(patch: pytest.MonkeyPatch, world: World) -> None:
    patch.setattr(transfer_rows, "scopes", lambda *_: [place.scope.key for place in world.places.values()])


def an_id_that_is_a_key_is_believed(patch: pytest.MonkeyPatch, _: World) -> None:
    def believing(caller: Caller, word: str, scope_id: str) -> Scope:
        return Scope.from_key(scope_id) if scope_id[1:2] == ":" else scope_of(caller, word, scope_id)

    patch.setattr(transfer, "scope_of", believing)


def reading(*paths: str) -> Look:
    return lambda world: matrix.reading(world, paths)


def changing(*paths: str) -> Look:
    return lambda world: matrix.changing(world, paths)


@pytest.mark.parametrize(
    ("plant", "look"),
    [
        (every_scope_is_listed, reading("GET /v1/api/memories")),
        (every_scope_is_listed, reading("tool list")),
        (every_scope_is_searched, reading("POST /v1/api/memories/search")),
        (every_scope_is_searched, reading("POST /v1/api/turn")),
        (every_scope_is_searched, reading("tool search")),
        (an_empty_set_is_all, matrix.empty),
        (an_id_is_enough, reading("GET /v1/api/memory/{memory_id}")),
        (an_id_is_enough, reading("GET /v1/api/memory/{memory_id}/versions")),
        (an_id_is_enough, changing("DELETE /v1/api/memory/{memory_id}")),
        (coordinators_are_the_users_too, reading("GET /v1/api/memory/{memory_id}")),
        (coordinators_are_the_users_too, changing("PATCH /v1/api/memory/{memory_id}")),
        (coordinators_are_the_users_too, changing("POST /v1/api/memory/{memory_id}/revert")),
        (a_kind_argument_is_believed, reading("tool list")),
        (a_kind_argument_is_believed, changing("tool save")),
        (a_workstream_argument_is_believed, reading("tool get")),
        (a_coordinator_has_all_that_its_user_has, reading("POST /v1/api/turn")),
        (a_coordinator_has_all_that_its_user_has, changing("tool save")),
        (a_session_sees_every_workstream, reading("POST /v1/api/turn")),
        (a_session_is_whoevers_knows_its_id, reading("GET /v1/api/sessions/{session_id}")),
        (a_session_is_whoevers_knows_its_id, matrix.ending),
        (anybody_acts_for_anybody, reading("tool list")),
        (anybody_acts_for_anybody, changing("tool delete")),
        (a_membership_lasts_for_ever, reading("POST /v1/api/turn")),
        (whoever_reads_writes, changing("tool save")),
        (a_right_is_not_asked_for, changing("DELETE /v1/api/memories/{name}")),
        (every_receipt_of_a_user_is_told, reading("GET /v1/api/turn/{receipt}")),
        (what_is_similar_anywhere_is_told, changing("tool save")),
        (the_index_of_a_session_names_everything, reading("POST /v1/api/turn")),
        (every_scope_is_exported, reading("GET /v1/api/export")),
        (an_id_that_is_a_key_is_believed, changing("POST /v1/api/import")),
        (an_attached_project_is_any, reading("POST /v1/api/turn")),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("store_path")  # on one engine: what is planted is above both
def test_a_planted_fault_shows(server: Site, monkeypatch: pytest.MonkeyPatch, plant: Plant, look: Look) -> None:
    """As something that is shown or changed; that something is missing would not be enough."""
    world = built(server)
    plant(monkeypatch, world)

    assert "" != next((said for said in look(world) if " does not " not in said), "")
