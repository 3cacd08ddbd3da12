"""Whatever a face hands in: no service reads or writes a place that is not the caller's, in a session or outside of any."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from pegword.core.caller import Caller, Scope, Session, Visible, coordinator_scope, project_scope, shared_workstream
from pegword.core.errors import NotFound
from pegword.core.memory import Draft
from pegword.services.bundle import Services
from pegword.services.memories import Memories
from pegword.services.writing import Changes

Call = Callable[[Services, Caller, Scope, str, Session | None], Any]

# Each method with a call of it for a foreign place: the scope of a memory, and its id.
CALLS: dict[str, Call] = {
    "save": lambda s, who, scope, _, session: s.memories.save(who, Draft("plan", "mine", scope), session),
    "get": lambda s, who, scope, _, session: s.memories.get(who, scope, "plan", session),
    "list": lambda s, who, scope, _, session: s.memories.list(who, Visible((scope,)), session),
    "search": lambda s, who, scope, _, session: s.memories.search(who, Visible((scope,)), "quokka", session),
    "delete": lambda s, who, scope, _, session: s.memories.delete(who, scope, "plan", session),
    "get_by_id": lambda s, who, _, memory_id, __: s.memories.get_by_id(who, memory_id),
    "update": lambda s, who, _, memory_id, __: s.memories.update(who, memory_id, Changes(content="mine")),
    "versions": lambda s, who, _, memory_id, __: s.memories.versions(who, memory_id),
    "revert": lambda s, who, _, memory_id, __: s.memories.revert(who, memory_id, 1),
    "delete_by_id": lambda s, who, _, memory_id, __: s.memories.delete_by_id(who, memory_id),
}


def kept(services: Services, alice: Caller) -> dict[str, tuple[Scope, str]]:
    """A memory in each kind of place that is not Bob's, put there past all services."""
    project = services.sharing.create(services.access.person(services.access.user("alice")), "project", "Harbour").scope
    host = services.access.operator(services.access.user("alice"))
    shared = services.sharing.create(host, "workstream", "Support", {"alice": True}).scope
    places = {
        "user": Scope("user", alice.user_id, alice.user_id), "workstream": Scope("workstream", "ws1", alice.user_id),
        "coordinator": coordinator_scope(alice.user_id), "project": project, "shared": shared,
    }  # fmt: skip
    assert (project, shared) == (project_scope(project.id), shared_workstream(shared.id))
    put = services.memories.writing.put
    return {
        name: (
            scope,
            services.engine.write(lambda tx, scope=scope: put(tx, alice, Draft("plan", "quokka", scope), "save"))[0].memory.memory_id,
        )
        for name, scope in places.items()
    }


@pytest.mark.parametrize("method", list(CALLS))
def test_a_foreign_place_is_absent_for_every_method(services: Services, alice: Caller, bob: Caller, method: str) -> None:
    """To Bob, whatever he hands in; to Alice herself, what only sessions have; and in a session, what that one has not."""
    places = kept(services, alice)
    his = services.sessions.create(bob, workstream_id="ws1")
    hers = services.sessions.create(alice, workstream_id="ws2")
    closed_outside = {"coordinator", "project", "shared"}
    asked = [(bob, session, name) for name in places for session in (None, his)]
    asked += [(alice, None, name) for name in closed_outside] + [(alice, hers, name) for name in (*closed_outside, "workstream")]
    if method.endswith(("_by_id", "update", "versions", "revert")):
        asked = [(who, session, name) for who, session, name in asked if session is None]
    for who, session, name in asked:
        with pytest.raises(NotFound):
            CALLS[method](services, who, *places[name], session)


def test_those_are_all_methods() -> None:
    """A new one is tried too."""
    public = {name for name, value in vars(Memories).items() if inspect.isfunction(value) and not name.startswith("_")}

    assert public == set(CALLS)
