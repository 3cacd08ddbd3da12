"""Projects and workstreams with members: who has them, who may write, and how all of it can be taken away."""

from dataclasses import replace

import pytest

from pegword.core.caller import Caller, Session, session_scope
from pegword.core.errors import Forbidden, Invalid, NotFound
from pegword.core.memory import Draft
from pegword.services.bundle import Services
from tests.services.test_sessions import host

__all__ = ["host"]


@pytest.fixture
def carol(services: Services) -> Caller:
    return services.access.agent(services.access.ensure_user("carol"), "key:carol")


def project(services: Services, owner: Caller, **members: bool) -> str:
    """A project of *owner*; its id."""
    return services.sharing.create(owner, "project", "Harbour", members).scope.id


def save(services: Services, caller: Caller, session: Session, name: str = "plan", content: str = "quokka") -> str:
    scope = session_scope(caller, session, "project" if session.project_id else "workstream")
    return services.memories.save(caller, Draft(name, content, scope), session).memory.memory_id


def read(services: Services, caller: Caller, session: Session) -> str:
    scope = session_scope(caller, session, "project" if session.project_id else "workstream")
    return services.memories.get(caller, scope, "plan", session).content


def test_members_share_a_project_and_readers_only_read(services: Services, alice_herself: Caller, bob: Caller, carol: Caller) -> None:
    """What one saves the others find, in turns too; a member who may only read is refused in one sentence."""
    at = project(services, alice_herself, bob=True, carol=False)
    hers, his, carols = (services.sessions.create(c, project_id=at) for c in (alice_herself, bob, carol))
    save(services, bob, his)

    assert ["quokka"] * 3 == [read(services, c, s) for c, s in ((alice_herself, hers), (bob, his), (carol, carols))]
    assert ["plan"] == [s.memory.name for s in services.turns.turn(carol, carols, [{"role": "user", "content": "quokka"}]).shown]
    assert (True, True, False) == (hers.project_write, his.project_write, carols.project_write)
    with pytest.raises(Forbidden, match="read, not written"):
        session_scope(carol, carols, "project", write=True)
    for ask in (
        lambda: save(services, carol, carols),
        lambda: services.memories.delete(carol, session_scope(carol, carols, "project"), "plan", carols),
    ):
        with pytest.raises(NotFound):
            ask()


def test_who_is_no_member_has_no_project(services: Services, alice_herself: Caller, bob: Caller) -> None:
    """Foreign and absent answer alike; a session without one reads nothing of it."""
    at = project(services, alice_herself)
    for wrong in (at, "none", "é", at + "\u0661"):
        with pytest.raises(NotFound, match=r"^Project not found$"):
            services.sessions.create(bob, project_id=wrong)
        for ask in (
            lambda wrong=wrong: services.sharing.get(bob, "project", wrong),
            lambda wrong=wrong: services.sharing.set_member(bob, "project", wrong, "bob", write=True),
            lambda wrong=wrong: services.sharing.drop_member(bob, "project", wrong, "alice"),
            lambda wrong=wrong: services.sharing.change(bob, "project", wrong, archived=True),
            lambda wrong=wrong: services.removing.shared(bob, "project", wrong),
        ):
            with pytest.raises(NotFound, match=r"^Project not found$"):
                ask()  # type: ignore[no-untyped-call]
    assert [] == services.sharing.list(bob, "project") == services.sessions.list(bob, include_closed=True)


def test_what_is_taken_away_is_gone_at_once(services: Services, alice_herself: Caller, bob: Caller) -> None:
    """A session that was made before loses the project with the membership, the archive and the deletion; nothing fails open."""
    at = project(services, alice_herself, bob=True)
    session = services.sessions.create(bob, project_id=at)
    save(services, bob, session)

    def now() -> tuple[str, bool]:
        there = services.sessions.get(bob, session.session_id)
        return there.project_id, there.project_write

    assert (at, True) == now()
    services.sharing.set_member(alice_herself, "project", at, "bob", write=False)
    assert (at, False) == now()
    services.sharing.drop_member(alice_herself, "project", at, "bob")
    assert ("", False) == now()
    services.sharing.set_member(alice_herself, "project", at, "bob", write=True)
    services.sharing.change(alice_herself, "project", at, archived=True)
    assert ("", False) == now()
    with pytest.raises(NotFound, match="Project not found"):
        services.sessions.create(alice_herself, project_id=at)
    services.sharing.change(alice_herself, "project", at, archived=False)
    assert (at, True) == now()
    services.removing.shared(alice_herself, "project", at, with_memories=True)
    assert ("", False) == now()


def test_a_write_asks_for_the_membership_again(services: Services, alice_herself: Caller, bob: Caller) -> None:
    """A session that was read before the membership ended cannot write with it: the transaction of the save looks itself."""
    at = project(services, alice_herself, bob=True)
    stale = services.sessions.create(bob, project_id=at)
    save(services, bob, stale)
    services.sharing.drop_member(alice_herself, "project", at, "bob")

    for ask in (
        lambda: save(services, bob, stale, content="mine"),
        lambda: services.memories.delete(bob, session_scope(bob, stale, "project"), "plan", stale),
    ):
        with pytest.raises(NotFound):
            ask()


def test_a_shared_workstream_is_made_by_a_service_for_its_members(
    services: Services, host: Caller, alice: Caller, bob: Caller, alice_herself: Caller, carol: Caller
) -> None:
    """Its id is the server's, its members share it, and a private workstream of the same id is another place."""
    made = services.sharing.create(host, "workstream", "Support", {"alice": True, "bob": False})
    at = made.scope.id
    hers = services.sessions.create(host, user="alice", workstream_id=at, shared=True)
    his = services.sessions.create(bob, workstream_id=at, shared=True)
    private = services.sessions.create(alice, workstream_id=at)
    save(services, host, hers)

    assert ("s:" + at, "host", {"alice", "bob"}) == (made.scope.key, made.owner_name, {m.user_name for m in made.members})
    assert "quokka" == read(services, bob, his)
    assert (True, False) == (hers.workstream_write, his.workstream_write)
    for caller, session in ((alice, private), (host, services.sessions.create(host, user="host", workstream_id=at))):
        with pytest.raises(NotFound, match="Memory"):
            read(services, caller, session)
    for outsider, named in ((carol, ""), (host, "host")):
        with pytest.raises(NotFound, match="Workstream not found"):
            services.sessions.create(outsider, user=named, workstream_id=at, shared=True)
    for caller in (alice, alice_herself):
        with pytest.raises(Forbidden, match="'service'"):
            services.sharing.create(caller, "workstream", "Mine")


def test_a_coordinator_has_no_project_but_its_child_does(services: Services, alice_herself: Caller) -> None:
    """The project of a coordinator is there for its children; itself it reads its own scope and nothing else."""
    at = project(services, alice_herself)
    coordinator = services.sessions.create(alice_herself, kind="coordinator", project_id=at)
    child = services.sessions.create(alice_herself, parent_id=coordinator.session_id)
    save(services, alice_herself, child)

    assert "quokka" == read(services, alice_herself, child)
    with pytest.raises(Invalid, match="not available to coordinators"):
        session_scope(alice_herself, coordinator, "project")


def test_only_the_owner_changes_what_is_shared(services: Services, alice_herself: Caller, bob: Caller) -> None:
    """With the right that it takes; a member is told so, may leave, and cannot let others in or put them out."""
    at = project(services, alice_herself, bob=True)
    plain = replace(alice_herself, human=False, right="write")
    for caller, says in ((replace(bob, right="approve"), "only its owner, alice"), (plain, "'approve'")):
        for ask in (
            lambda caller=caller: services.sharing.set_member(caller, "project", at, "bob", write=True),
            lambda caller=caller: services.sharing.drop_member(caller, "project", at, "alice" if caller.user_name == "bob" else "bob"),
            lambda caller=caller: services.sharing.change(caller, "project", at, title="Mine"),
            lambda caller=caller: services.removing.shared(caller, "project", at, with_memories=True),
        ):
            with pytest.raises(Forbidden, match=says):
                ask()  # type: ignore[no-untyped-call]
    services.sharing.drop_member(bob, "project", at, "bob")

    assert ["alice"] == [m.user_name for m in services.sharing.get(alice_herself, "project", at).members]
    with pytest.raises(Forbidden, match="'approve'"):
        services.sharing.create(bob, "project", "His")


def test_a_shared_scope_says_who_its_members_are(services: Services, alice_herself: Caller, bob: Caller) -> None:
    at = project(services, alice_herself, bob=False)
    services.sharing.change(alice_herself, "project", at, title="  Pier ")
    seen = services.sharing.get(bob, "project", at)

    assert ("Pier", "alice", False, [("alice", True), ("bob", False)]) == (
        seen.title, seen.owner_name, seen.archived, [(m.user_name, m.write) for m in seen.members],
    )  # fmt: skip
    assert [seen] == services.sharing.list(bob, "project")
    assert [] == services.sharing.list(bob, "workstream")


@pytest.mark.parametrize(
    ("title", "members", "error", "says"),
    [(" ", {}, Invalid, "title"), ("t" * 129, {}, Invalid, "128"), ("ok", {"nobody": True}, NotFound, "no user 'nobody'")],
)
def test_what_cannot_be_shared_is_refused_whole(
    services: Services, alice_herself: Caller, title: str, members: dict[str, bool], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        services.sharing.create(alice_herself, "project", title, members)
    assert [] == services.sharing.list(alice_herself, "project")


def test_an_anonymous_session_is_no_member(services: Services, host: Caller, alice_herself: Caller) -> None:
    """Whoever the host is a member for, a visitor who is no user is not."""
    at = project(services, alice_herself, host=True)
    with pytest.raises(NotFound, match="Project not found"):
        services.sessions.create(host, anonymous=True, project_id=at)
