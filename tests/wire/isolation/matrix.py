"""The matrix itself: what each path shows and changes for each asker, against what is written down for them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import httpx2

from pegword.core.caller import Visible
from pegword.store import removing
from tests.wire.isolation import probes
from tests.wire.isolation.world import WORD, Asker, Place, World

Shown = Callable[[World, Iterable[httpx2.Response]], set[str]]
Expected = Callable[[Asker, World], set[str]]


@dataclass(frozen=True)
class Reads:
    """A path that shows something: how it is asked, what its answers show, and what they should. *in_sessions*: it takes a session."""

    ask: probes.Reading
    shown: Shown
    expected: Expected
    in_sessions: bool = False


@dataclass(frozen=True)
class Changes:
    """A path that changes memories: how it is tried, and whether it can reach a place of the asker's at all."""

    ask: probes.Changing
    reaches: Callable[[Asker, Place], bool]
    in_sessions: bool = False


def secrets(world: World, answers: Iterable[httpx2.Response]) -> set[str]:
    """The places whose secret stands in an answer. What a request said itself comes back in no answer."""
    texts = [answer.text for answer in answers]
    return {place.name for place in world.places.values() if any(place.secret in text for text in texts)}


def titles(world: World, answers: Iterable[httpx2.Response]) -> set[str]:
    texts = [answer.text for answer in answers]
    return {name for name in "pqrst" if any(f"title{name}" in text for text in texts)}


def workstreams(_world: World, answers: Iterable[httpx2.Response]) -> set[str]:
    return {str(one["workstream_id"]) for answer in answers for one in answer.json()["workstreams"]}


def sessions(world: World, answers: Iterable[httpx2.Response]) -> set[str]:
    texts = [answer.text for answer in answers]
    return {name for name, session_id in world.sessions.items() if any(session_id in text for text in texts)}


def taken(world: World, answers: Iterable[httpx2.Response]) -> set[str]:
    """The sessions of which something was reported."""
    return {name for name, answer in zip(world.sessions, answers, strict=True) if answer.status_code == 200}


def own(asker: Asker, _world: World) -> set[str]:
    """What is written down for them."""
    return set(asker.reads)


def explained(asker: Asker, world: World) -> set[str]:
    """What the receipts of the same user tell, where the asker sees all that the turn looked at."""
    mine = (other for other in world.askers if other.receipt and other.user == asker.user)
    return {name for other in mine if _looked_at(other) <= asker.reads for name in _looked_at(other)} if not asker.gone else set()


def _looked_at(asker: Asker) -> frozenset[str]:
    """The places that a turn of theirs looks at: outside of a session it names no workstream."""
    return asker.reads if asker.session else frozenset(name for name in asker.reads if " ws " not in name)


def nothing(_asker: Asker, _world: World) -> set[str]:
    return set()


def titles_of(asker: Asker, _world: World) -> set[str]:
    return {"alice": set("prs"), "bob": set("pqst"), "host": set("st"), "dora": set()}[asker.user]


def workstreams_of(asker: Asker, _world: World) -> set[str]:
    return {"alice": {"ws1", "ws2"}, "bob": {"ws1"}}.get(asker.user, set())


def sessions_of(asker: Asker, world: World) -> set[str]:
    """A user's own, whoever made them; and a service's, whomever for."""
    hosts = {"host for alice", "host coordinator for alice", "anonymous"}
    of_others = {name for name in world.sessions if name.startswith(("bob", "dora")) or name == "anonymous"}
    return {"alice": set(world.sessions) - of_others, "host": hosts}.get(
        asker.user, {name for name in world.sessions if name.split()[0] == asker.user}
    )


def may_report(asker: Asker, world: World) -> set[str]:
    return sessions_of(asker, world) - {"closed"} if asker.writes else set()


def in_new_sessions(asker: Asker, _world: World) -> set[str]:
    """All that sessions which they may make can have: their own, what they are members of, and children of sessions that are theirs."""
    if asker.name == "alice who only reads":
        return set()
    return {
        "alice": {"global", "alice user", "alice ws one", "alice ws two", "alice coordinator", "p", "s"},
        "bob": {"global", "bob user", "bob ws one", "bob coordinator", "p", "q", "s", "t"},
        "host": {"global", "alice user", "alice ws one"},
        "dora": {"global"},
    }[asker.user]


def every_own(asker: Asker, place: Place) -> bool:
    return place.name in asker.writes


def by_tool(asker: Asker, place: Place) -> bool:
    return place.name in asker.writes and (bool(asker.session) or place.scope.kind in ("global", "user"))


def by_workstream(asker: Asker, place: Place) -> bool:
    return place.name in asker.writes and place.scope.kind == "workstream"


READS: Mapping[str, Reads] = {
    "GET /v1/api/memories": Reads(probes.list_memories, secrets, own),
    "POST /v1/api/memories/search": Reads(probes.search_memories, secrets, own),
    "GET /v1/api/memories/{name}": Reads(probes.get_memory, secrets, own),
    "GET /v1/api/memory/{memory_id}": Reads(probes.by_id(), secrets, own),
    "GET /v1/api/memory/{memory_id}/versions": Reads(probes.by_id("/versions"), secrets, own),
    "POST /v1/api/turn": Reads(probes.take_turn, secrets, own, in_sessions=True),
    "GET /v1/api/turn/{receipt}": Reads(probes.explain_turn, secrets, explained, in_sessions=True),
    "GET /v1/api/tool": Reads(probes.offer_tool, secrets, nothing, in_sessions=True),
    "tool search": Reads(probes.tool_search, secrets, own, in_sessions=True),
    "tool list": Reads(probes.tool_list, secrets, own, in_sessions=True),
    "tool get": Reads(probes.tool_get, secrets, own, in_sessions=True),
    "GET /v1/api/sessions": Reads(probes.list_sessions, sessions, sessions_of),
    "GET /v1/api/sessions/{session_id}": Reads(probes.get_session, sessions, sessions_of),
    "GET /v1/api/shared": Reads(probes.list_shared, titles, titles_of),
    "GET /v1/api/shared/{kind}/{id}": Reads(probes.get_shared, titles, titles_of),
    "GET /v1/api/workstreams": Reads(probes.list_workstreams, workstreams, workstreams_of),
    "GET /v1/api/export": Reads(probes.export_memories, secrets, own),
    "POST /v1/api/sessions/{session_id}/events": Reads(probes.report_event, taken, may_report),
    "POST /v1/api/sessions": Reads(probes.make_session, secrets, in_new_sessions),
}
CHANGES: Mapping[str, Changes] = {
    "POST /v1/api/memories": Changes(probes.save_memory, every_own),
    "POST /v1/api/import": Changes(probes.import_memories, every_own),
    "DELETE /v1/api/memories/{name}": Changes(probes.delete_memory, every_own),
    "PATCH /v1/api/memory/{memory_id}": Changes(probes.change_memory, every_own),
    "DELETE /v1/api/memory/{memory_id}": Changes(probes.delete_memory_by_id, every_own),
    "POST /v1/api/memory/{memory_id}/revert": Changes(probes.revert_memory, every_own),
    "DELETE /v1/api/workstreams/{workstream_id}": Changes(probes.delete_workstream, by_workstream),
    "tool save": Changes(probes.tool_save, by_tool, in_sessions=True),
    "tool delete": Changes(probes.tool_delete, by_tool, in_sessions=True),
    # Of what is shared, its owner's own business is left out here: these must change nothing at all.
    "DELETE /v1/api/shared/{kind}/{id}": Changes(probes.delete_shared, lambda *_: False),
    "PATCH /v1/api/shared/{kind}/{id}": Changes(probes.change_shared, lambda *_: False),
    "PUT /v1/api/shared/{kind}/{id}/members/{user}": Changes(probes.set_member, lambda *_: False),
    "DELETE /v1/api/shared/{kind}/{id}/members/{user}": Changes(probes.drop_member, lambda *_: False),
}
# What changes sessions: of nobody but those whose sessions they are.
SESSIONS: Mapping[str, probes.Reading] = {
    "DELETE /v1/api/sessions/{session_id}": probes.close_session,
    "POST /v1/api/sessions/{session_id}/resume": probes.resume_session,
}
# Paths that show and change no memory, no session and nothing that is shared; or are tried above under other names.
ELSEWHERE: Mapping[str, str] = {
    "POST /v1/api/tool": "each of its actions is tried by its name",
    "POST /v1/api/shared": "makes something new of the caller's own; tests/services/test_sharing.py",
    "GET /health": "tells nothing of anybody; tests/wire/test_health.py",
    "GET /livez": "the same",
    "GET /readyz": "the same",
}


def reading(world: World, paths: Iterable[str] = READS) -> Iterator[str]:
    """Every difference between what is shown and what should be, in a sentence."""
    for path in paths:
        row = READS[path]
        for asker in world.askers:
            if asker.session and not row.in_sessions:
                continue
            shown, expected = row.shown(world, row.ask(asker, world)), row.expected(asker, world)
            yield from (f"{path} shows {name} to {asker.name}" for name in sorted(shown - expected))
            yield from (f"{path} does not show {name} to {asker.name}" for name in sorted(expected - shown))


def changing(world: World, paths: Iterable[str] = CHANGES) -> Iterator[str]:
    """Every change that should not be, and every one that should be and is not; and what the answers show. Leaves the world as it was."""
    before = world.state()
    for path in paths:
        row = CHANGES[path]
        for asker in world.askers:
            if asker.session and not row.in_sessions:
                continue
            for place in list(world.places.values())[: 3 if asker.gone else None]:
                shown = secrets(world, row.ask(asker, world, place))
                yield from (f"{path} shows {name} to {asker.name}" for name in sorted(shown - asker.reads))
                changed = _changed(before, after := world.state())
                yield from (f"{path} changes {name} for {asker.name}" for name in sorted(changed) if not _may(world, asker, name))
                if row.reaches(asker, place) and place.name not in changed:
                    yield f"{path} does not change {place.name} for {asker.name}"
                _put_back(world, changed)
                before = world.state() if changed else after


def empty(world: World) -> Iterator[str]:
    """Everything that is found where nothing is visible."""
    services, nobody = world.services, Visible(())
    for name, caller in world.users.items():
        if services.memories.list(caller, nobody).total:
            yield f"an empty set of scopes lists memories for {name}"
        if services.memories.search(caller, nobody, WORD).total:
            yield f"an empty set of scopes finds memories for {name}"


def ending(world: World, paths: Iterable[str] = SESSIONS) -> Iterator[str]:
    """Every session of somebody else's that is closed or resumed."""
    for path in paths:
        ask = SESSIONS[path]
        for asker in world.askers:
            if asker.session:
                continue
            before = world.state()
            for _ in ask(asker, world):
                pass
            changed = _changed(before, world.state())
            may = {f"sessions {world.users[user].user_id}" for user in {"host": ("host", "alice")}.get(asker.user, (asker.user,))}
            yield from (f"{path} changes {name} for {asker.name}" for name in sorted(changed - may))
            if asker.name in ("alice", "bob", "host") and not changed:
                yield f"{path} changes nothing for {asker.name}"


def _changed(before: dict[str, object], after: dict[str, object]) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def _may(world: World, asker: Asker, name: str) -> bool:
    """Whether they may change that: a place of theirs, or a workstream of their own that they have just made."""
    user_id, writes = world.users[asker.user].user_id, bool(asker.writes)
    new = name.startswith(f"w:{user_id}:") and writes and (not asker.session or asker.name == "host in anonymous")
    no_place = name == f"u:{user_id}" and writes and asker.user in ("dora", "host")  # theirs, and nothing was kept there
    sessions_of_it = name == f"sessions {user_id}" and writes  # which a workstream that is deleted closes
    return name in asker.writes or new or no_place or sessions_of_it


def _put_back(world: World, changed: Iterable[str]) -> None:
    for name in changed:
        if name in world.places:
            world.restore(world.places[name])
        elif name.startswith(("w:", "u:")):
            world.services.engine.write(lambda tx, name=name: removing.ask(tx, name, world.services.clock()))
            removing.run(world.services.engine, name, lambda _: None)
        elif name.startswith("sessions "):
            world.reopen()
