"""How each path is tried: every route of the server and every action of the tool, by its name.

A reading probe asks in every way that it can think of, and gives the answers. A changing one tries to change one place. Those of a path
that can do neither are empty, which says so.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx2

from tests.wire.isolation.world import MESSAGE, NAME, WORD, Asker, Place, World

Answers = Iterator[httpx2.Response]
Reading = Callable[[Asker, World], Answers]
Changing = Callable[[Asker, World, Place], Answers]

# What only a session may decide, as a model or a careless host might say it.
FORGED = ("kind", "session_kind", "user", "user_id", "session", "session_id", "workstream_id", "project_id", "scope_key", "owner")


def _filters(world: World) -> list[dict[str, str]]:
    """Every way to name a place: by its word, with and without its id, by its key, by the id under another word; and none at all."""
    said: list[dict[str, str]] = [{}]
    for place in world.places.values():
        said += [place.says, {"scope": place.scope.kind}]
        said += [{"scope": word, "scope_id": part} for word in ("user", "workstream") for part in (place.scope.key, place.scope.id)]
    return [dict(pairs) for pairs in dict.fromkeys(tuple(one.items()) for one in said)]


def _forged(world: World, place: Place) -> dict[str, str]:
    """Arguments that say that this is a session of another kind and user, one that has *place*."""
    values = {
        "kind": "coordinator", "session_kind": "coordinator", "user": place.keeper.user_name, "user_id": place.keeper.user_id,
        "session": world.sessions["coordinator"], "session_id": world.sessions["coordinator"], "workstream_id": place.scope.id,
        "project_id": place.scope.id, "scope_key": place.scope.key, "owner": place.scope.owner,
    }  # fmt: skip
    return {name: values[name] for name in FORGED}


def _in(asker: Asker) -> dict[str, str]:
    return {"session": asker.session} if asker.session else {}


def _tool(asker: Asker, **arguments: Any) -> httpx2.Response:
    return asker.client.post("/v1/api/tool", json={**_in(asker), "arguments": arguments})


def list_memories(asker: Asker, world: World) -> Answers:
    for said in _filters(world):
        yield asker.client.get("/v1/api/memories", params={**said, "limit": 200, "include_expired": "true"})


def search_memories(asker: Asker, world: World) -> Answers:
    for said in _filters(world):
        queries = [" ".join((WORD, *(place.secret for place in world.places.values())))]
        for query in queries if said else (*queries, f'"the {WORD}"', NAME):
            yield asker.client.post("/v1/api/memories/search", json={**said, "query": query, "limit": 50, "include_expired": True})


def get_memory(asker: Asker, world: World) -> Answers:
    for said in _filters(world):
        yield asker.client.get(f"/v1/api/memories/{NAME}", params=said)


def by_id(rest: str = "") -> Reading:
    def ask(asker: Asker, world: World) -> Answers:
        for memory_id in world.ids.values():
            for prefix in ("", "m_", "mem_"):
                yield asker.client.get(f"/v1/api/memory/{prefix}{memory_id}{rest}")

    return ask


def export_memories(asker: Asker, world: World) -> Answers:
    for said in _filters(world):
        yield asker.client.get("/v1/api/export", params={**said, "include_expired": "true"})


def import_memories(asker: Asker, world: World, place: Place) -> Answers:
    """As a memory of each word and id, with the id of the one that is there, under every policy."""
    for said in (place.says, {"scope": place.scope.kind, "scope_id": place.scope.key}, {**place.says, "owner": place.scope.owner}):
        line = {"name": NAME, "content": f"Now {asker.name}'s.", "memory_id": world.ids[place.name], "updated": "2099-01-01", **said}
        for policy in ("skip", "newer", "overwrite"):
            yield asker.client.post("/v1/api/import", params={"policy": policy}, content=json.dumps(line).encode())


def take_turn(asker: Asker, world: World) -> Answers:
    """In every mode, with and without something said, the tool offered or not."""
    body: dict[str, Any] = {"k": 50, "budget_chars": 100_000}
    if asker.session:
        for mode in ("system", "tail", "index"):
            for messages in ([MESSAGE], []):
                session = {"id": asker.session, **_forged(world, world.places["alice coordinator"]), "workstream_id": ""}
                yield asker.client.post("/v1/api/turn", json={**body, "messages": messages, "mode": mode, "session": session})
        return
    for workstream_id in ("", *(part for place in world.places.values() for part in (place.scope.id, place.scope.key))):
        for mode in ("system", "index"):
            said = {**body, "messages": [MESSAGE], "mode": mode, "session": {"workstream_id": workstream_id}}
            yield asker.client.post("/v1/api/turn", json={**said, "tool": mode == "system"})


def explain_turn(asker: Asker, world: World) -> Answers:
    """Everybody's receipts."""
    named = {"session": asker.session} if asker.session else {}
    for other in world.askers:
        if other.receipt:
            yield asker.client.get(f"/v1/api/turn/{other.receipt}", params=named)


def offer_tool(asker: Asker, _world: World) -> Answers:
    for dialect in ("openai", "anthropic", "mcp"):
        yield asker.client.get("/v1/api/tool", params={**_in(asker), "dialect": dialect})


def tool_search(asker: Asker, world: World) -> Answers:
    for word in ("", *sorted({place.scope.kind for place in world.places.values()}), "mind"):
        yield _tool(asker, action="search", query=f"{WORD} {NAME}", scope=word, limit=50)
    for place in world.places.values():
        yield _tool(asker, action="search", query=WORD, limit=50, **_forged(world, place))
        if not asker.session:
            arguments = {"action": "search", "query": WORD, "limit": 50}
            yield asker.client.post("/v1/api/tool", json={"session": {"workstream_id": place.scope.id}, "arguments": arguments})


def tool_list(asker: Asker, world: World) -> Answers:
    yield _tool(asker, action="list", limit=50)
    for place in world.places.values():
        yield _tool(asker, action="list", limit=50, **{**_forged(world, place), **place.says})
        if not asker.session:
            arguments = {"action": "list", "limit": 50}
            yield asker.client.post("/v1/api/tool", json={"session": {"workstream_id": place.scope.id}, "arguments": arguments})


def tool_get(asker: Asker, world: World) -> Answers:
    for place in world.places.values():
        yield _tool(asker, action="get", name=NAME, **{**_forged(world, place), **place.says})
        if not asker.session:
            arguments = {"action": "get", "name": NAME, "scope": place.scope.kind}
            yield asker.client.post("/v1/api/tool", json={"session": {"workstream_id": place.scope.id}, "arguments": arguments})


def tool_save(asker: Asker, world: World, place: Place) -> Answers:
    for forged in ({}, {**_forged(world, place), "scope_id": place.scope.id}):
        yield _tool(asker, action="save", name=NAME, content=f"The {WORD} is {asker.name}'s.", scope=place.scope.kind, **forged)


def tool_delete(asker: Asker, world: World, place: Place) -> Answers:
    for forged in ({}, {**_forged(world, place), "scope_id": place.scope.id}):
        yield _tool(asker, action="delete", name=NAME, scope=place.scope.kind, **forged)


def save_memory(asker: Asker, world: World, place: Place) -> Answers:
    for session in ("", world.sessions["coordinator"]):
        body = {"name": NAME, "content": f"Now {asker.name}'s.", **place.says, "session": session}
        yield asker.client.post("/v1/api/memories", json={**body, "scope_id": "" if place.scope.kind == "global" else place.scope.id})


def delete_memory(asker: Asker, _world: World, place: Place) -> Answers:
    yield asker.client.delete(f"/v1/api/memories/{NAME}", params=place.says)


def change_memory(asker: Asker, world: World, place: Place) -> Answers:
    yield asker.client.patch(f"/v1/api/memory/{world.ids[place.name]}", json={"content": f"Now {asker.name}'s."})


def revert_memory(asker: Asker, world: World, place: Place) -> Answers:
    yield asker.client.post(f"/v1/api/memory/{world.ids[place.name]}/revert", json={"version": 1})


def delete_memory_by_id(asker: Asker, world: World, place: Place) -> Answers:
    yield asker.client.delete(f"/v1/api/memory/{world.ids[place.name]}")


def delete_workstream(asker: Asker, _world: World, place: Place) -> Answers:
    for said in (place.scope.id, place.scope.key):
        yield asker.client.delete(f"/v1/api/workstreams/{said or 'none'}", params={"with_memories": "true"})


def _others(asker: Asker, world: World, place: Place) -> list[str]:
    """The paths of *place*, as if it were shared; none where *asker* may do with it as they like."""
    if world.owners.get(place.name) == asker.name:
        return []
    return [f"/v1/api/shared/{kind}/{place.scope.id or 'none'}" for kind in ("project", "workstream")]


def delete_shared(asker: Asker, world: World, place: Place) -> Answers:
    for path in _others(asker, world, place):
        yield asker.client.delete(path, params={"with_memories": "true"})


def change_shared(asker: Asker, world: World, place: Place) -> Answers:
    for path in _others(asker, world, place):
        yield asker.client.patch(path, json={"title": "Mine", "archived": False})


def set_member(asker: Asker, world: World, place: Place) -> Answers:
    for path in _others(asker, world, place):
        yield asker.client.put(f"{path}/members/{asker.user}", json={"write": True})


def drop_member(asker: Asker, world: World, place: Place) -> Answers:
    for path in _others(asker, world, place):
        for user in {"alice", "bob", "dora"} - {asker.user}:
            yield asker.client.delete(f"{path}/members/{user}")


def make_shared(asker: Asker, _world: World) -> Answers:
    yield asker.client.post("/v1/api/shared", json={"kind": "project", "title": "titlep"})
    yield asker.client.get("/v1/api/shared")


def list_shared(asker: Asker, _world: World) -> Answers:
    for kind in ("project", "workstream"):
        yield asker.client.get("/v1/api/shared", params={"kind": kind})


def get_shared(asker: Asker, world: World) -> Answers:
    for place in world.places.values():
        for kind in ("project", "workstream"):
            yield asker.client.get(f"/v1/api/shared/{kind}/{place.scope.id or 'none'}")


def list_workstreams(asker: Asker, _world: World) -> Answers:
    yield asker.client.get("/v1/api/workstreams")


def list_sessions(asker: Asker, _world: World) -> Answers:
    yield asker.client.get("/v1/api/sessions", params={"include_closed": "true", "limit": 200})


def get_session(asker: Asker, world: World) -> Answers:
    for session_id in world.sessions.values():
        yield asker.client.get(f"/v1/api/sessions/{session_id}")


def make_session(asker: Asker, world: World) -> Answers:
    """Sessions that would have each place, sessions for whose it is, and children of everybody's, each with a turn in it."""
    bodies: list[dict[str, Any]] = [{"parent_id": parent} for parent in world.sessions.values()]
    bodies += [{"kind": "coordinator"}, {"kind": "coordinator", "anonymous": True}, {"anonymous": True}]
    for place in world.places.values():
        at, owner = place.scope.id, place.keeper.user_name
        bodies += [
            {"user": owner, "kind": "coordinator"}, {"user": owner, "workstream_id": at}, {"project_id": at}, {"workstream_id": at},
            {"workstream_id": at, "shared": True}, {"workstream_id": place.scope.key}, {"anonymous": True, "project_id": at},
            {"anonymous": True, "workstream_id": at, "shared": True},
        ]  # fmt: skip
    for body in bodies:
        if "user" in body and asker.user == "host":
            continue  # which is what it is for
        made = asker.client.post("/v1/api/sessions", json=body)
        if made.status_code == 201:
            session = {"session": {"id": made.json()["session_id"]}}
            yield asker.client.post("/v1/api/turn", json={"messages": [MESSAGE], "k": 50, "budget_chars": 100_000, **session})


def report_event(asker: Asker, world: World) -> Answers:
    for session_id in world.sessions.values():
        yield asker.client.post(f"/v1/api/sessions/{session_id}/events", json={"kind": "correction"})


def close_session(asker: Asker, world: World) -> Answers:
    for session_id in world.sessions.values():
        yield asker.client.delete(f"/v1/api/sessions/{session_id}")


def resume_session(asker: Asker, world: World) -> Answers:
    for session_id in world.sessions.values():
        yield asker.client.post(f"/v1/api/sessions/{session_id}/resume")
