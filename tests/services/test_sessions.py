"""Sessions as records: who makes them, what they have, how they end."""

import contextlib
import threading
from typing import Any

import pytest

from pegword.core.caller import Caller, Session, scope_of, session_scope
from pegword.core.errors import Conflict, Forbidden, Invalid, NotFound
from pegword.core.memory import Draft
from pegword.services.bundle import Services
from tests.patience import PATIENCE_S


@pytest.fixture
def host(services: Services) -> Caller:
    """A service: an agent host that acts for many users."""
    services.access.ensure_user("host")
    return services.access.caller_of(services.access.add_key("host", right="service")[1])


def test_a_session_is_its_users_with_all_that_was_said(services: Services, alice: Caller) -> None:
    made = services.sessions.create(alice, workstream_id=" ws1 ", persona="scribe", resumed=True)

    assert ("interactive", "alice", "ws1", "scribe", True, False) == (
        made.kind, made.user_name, made.workstream_id, made.persona, made.resumed, made.closed,
    )  # fmt: skip
    assert made == services.sessions.get(alice, made.session_id)


def test_to_everybody_else_it_is_absent(services: Services, alice: Caller, bob: Caller, host: Caller) -> None:
    """Foreign and unknown answer alike, to another user and to a service that did not make it."""
    hers = services.sessions.create(alice).session_id
    for caller in (bob, host):
        for session_id in (hers, "none", "é", "\0"):
            for ask in (services.sessions.get, services.sessions.close, services.sessions.resume):
                with pytest.raises(NotFound, match=r"^Session not found$"):
                    ask(caller, session_id)
        with pytest.raises(NotFound, match="Parent session not found"):
            services.sessions.create(caller, parent_id=hers)
        assert [] == services.sessions.list(caller)


def test_a_service_names_the_user_and_nobody_else_does(services: Services, alice: Caller, alice_herself: Caller, host: Caller) -> None:
    """The session is the named user's; what is saved in it is theirs, by the service's credential."""
    session = services.sessions.create(host, user="Alice", workstream_id="ws1")
    saved = services.memories.save(host, Draft("a", "x", session_scope(host, session, "user")), session).memory

    assert ("u:" + alice.user_id, "alice", host.credential) == (saved.scope.key, saved.author, saved.credential)
    assert saved.memory_id == services.memories.get(alice, scope_of(alice, "user", ""), "a").memory_id
    assert session == services.sessions.get(host, session.session_id) == services.sessions.get(alice, session.session_id)
    for caller in (alice, alice_herself):
        for said in ({"user": "alice"}, {"user": "nobody"}, {"anonymous": True}):
            with pytest.raises(Forbidden, match="'service'"):
                services.sessions.create(caller, **said)  # type: ignore[arg-type]
    with pytest.raises(NotFound, match="no user 'nobody'"):
        services.sessions.create(host, user="nobody")


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({"kind": "admin"}, "kind"),
        ({"kind": "child"}, "needs a parent"),
        ({"kind": "coordinator", "anonymous": True}, "anonymous coordinator cannot be"),
        ({"user": "alice", "anonymous": True}, "say user or anonymous"),
        ({"parent_id": "x", "kind": "coordinator"}, "of kind child"),
        ({"parent_id": "x", "user": "alice"}, "the user and the workstream of its parent"),
        ({"shared": True}, "workstream_id is required"),
        ({"workstream_id": "a\nb"}, "U\\+000A"),
        ({"workstream_id": "w" * 257}, "256"),
        ({"persona": "p" * 65}, "64"),
    ],
)
def test_what_cannot_be_a_session_is_refused(services: Services, alice: Caller, host: Caller, said: dict[str, Any], says: str) -> None:
    assert alice
    with pytest.raises(Invalid, match=says):
        services.sessions.create(host, **said)
    assert [] == services.sessions.list(host, include_closed=True)


@pytest.mark.parametrize("kind", ["interactive", "coordinator"])
def test_a_child_has_what_its_parent_has_and_never_more(services: Services, alice: Caller, host: Caller, kind: str) -> None:
    """User, workstream and persona come from the parent; another workstream or project is refused."""
    parent = services.sessions.create(host, kind=kind, user="alice", workstream_id="ws1", persona="scribe")
    child = services.sessions.create(host, parent_id=parent.session_id)

    assert ("child", alice.user_id, "ws1", "scribe", parent.session_id) == (
        child.kind, child.user_id, child.workstream_id, child.persona, child.parent_id,
    )  # fmt: skip
    assert child.workstream_id == services.sessions.create(host, parent_id=child.session_id, workstream_id="ws1").workstream_id
    for more in ({"workstream_id": "ws2"}, {"project_id": "p1"}):
        with pytest.raises(Invalid, match="that of its parent"):
            services.sessions.create(host, parent_id=parent.session_id, **more)  # type: ignore[arg-type]


def test_closing_closes_the_children_and_keeps_the_record(services: Services, alice: Caller) -> None:
    """No child outlives its parent; a closed session begets none; closing again changes nothing."""
    parent = services.sessions.create(alice)
    child = services.sessions.create(alice, parent_id=parent.session_id)
    grandchild = services.sessions.create(alice, parent_id=child.session_id)
    other = services.sessions.create(alice)
    for _ in range(2):
        assert services.sessions.close(alice, parent.session_id).closed

    assert [True, True, True, False] == [
        services.sessions.get(alice, s.session_id).closed for s in (parent, child, grandchild, other)
    ]  # fmt: skip
    assert [other] == services.sessions.list(alice)
    assert 4 == len(services.sessions.list(alice, include_closed=True))
    with pytest.raises(Conflict, match="closed"):
        services.sessions.create(alice, parent_id=child.session_id)


def test_a_session_can_be_taken_up_again_but_not_under_a_closed_parent(services: Services, alice: Caller) -> None:
    parent = services.sessions.create(alice)
    child = services.sessions.create(alice, parent_id=parent.session_id)
    services.sessions.close(alice, parent.session_id)
    with pytest.raises(Conflict, match="parent is closed"):
        services.sessions.resume(alice, child.session_id)
    services.sessions.resume(alice, parent.session_id)
    resumed = services.sessions.resume(alice, child.session_id)

    assert (True, False) == (resumed.resumed, resumed.closed)
    assert resumed == services.sessions.get(alice, child.session_id)


def test_in_a_closed_session_nothing_is_read_or_written(services: Services, alice: Caller) -> None:
    session = services.sessions.create(alice, workstream_id="ws1")
    scope = session_scope(alice, session, "workstream")
    closed = services.sessions.close(alice, session.session_id)
    for ask in (
        lambda: services.memories.save(alice, Draft("a", "x", scope), closed),
        lambda: services.memories.get(alice, scope, "a", closed),
        lambda: services.memories.delete(alice, scope, "a", closed),
        lambda: services.turns.turn(alice, closed, []),
    ):
        with pytest.raises(Conflict, match="the session is closed"):
            ask()


def test_two_coordinators_of_a_user_share_what_no_other_session_sees(services: Services, alice: Caller, bob: Caller) -> None:
    """Written by a coordinator session alone: by no other session of the user, and outside of sessions by nobody."""
    first, second = (services.sessions.create(alice, kind="coordinator") for _ in range(2))
    scope = session_scope(alice, first)
    saved = services.memories.save(alice, Draft("plan", "quokka", scope), first).memory
    his = services.sessions.create(bob, kind="coordinator")

    assert saved.memory_id == services.memories.get(alice, scope, "plan", second).memory_id
    for caller, session in ((alice, None), (alice, Session()), (alice, services.sessions.create(alice)), (bob, his), (bob, None)):
        for ask in (
            lambda caller=caller, session=session: services.memories.get(caller, scope, "plan", session),
            lambda caller=caller, session=session: services.memories.save(caller, Draft("plan", "mine", scope), session),
            lambda caller=caller, session=session: services.memories.delete(caller, scope, "plan", session),
        ):
            with pytest.raises(NotFound):
                ask()  # type: ignore[no-untyped-call]
    with pytest.raises(NotFound):
        services.memories.get_by_id(alice, saved.memory_id)


def test_what_a_session_saw_is_explained_to_those_who_see_it(services: Services, alice: Caller, bob: Caller, host: Caller) -> None:
    """A receipt tells of words and numbers: a coordinator's is absent outside of coordinators, an interactive one's inside of them."""
    coordinator = services.sessions.create(host, kind="coordinator", user="alice")
    interactive = services.sessions.create(host, user="alice", workstream_id="ws1")
    services.memories.save(host, Draft("plan", "quokka", session_scope(host, coordinator)), coordinator)
    ask = [{"role": "user", "content": "quokka"}]
    theirs, hers = (services.turns.turn(host, session, ask).receipt for session in (coordinator, interactive))

    assert ["plan"] == [c.name for c in services.turns.explain(host, theirs, coordinator).considered]
    assert theirs == services.turns.explain(alice, theirs, coordinator).receipt
    assert hers == services.turns.explain(alice, hers).receipt == services.turns.explain(host, hers, interactive).receipt
    for caller, receipt, session in (
        (alice, theirs, None), (alice, theirs, interactive), (host, theirs, interactive), (host, theirs, None), (host, hers, None),
        (alice, hers, coordinator), (bob, hers, None), (bob, theirs, services.sessions.create(bob, kind="coordinator")),
    ):  # fmt: skip
        with pytest.raises(NotFound, match="Receipt not found"):
            services.turns.explain(caller, receipt, session)


@pytest.mark.usefixtures("unhurried")
def test_no_child_is_left_open_by_a_close_beside_its_making(services: Services, alice: Caller) -> None:
    """Whichever comes first: the child is closed with its parent, or there is none."""
    for _ in range(5):
        parent = services.sessions.create(alice).session_id
        start = threading.Barrier(5)

        def beget(parent: str = parent, start: threading.Barrier = start) -> None:
            start.wait(PATIENCE_S)
            with contextlib.suppress(Conflict):
                services.sessions.create(alice, parent_id=services.sessions.create(alice, parent_id=parent).session_id)

        threads = [threading.Thread(target=beget) for _ in range(4)]
        for thread in threads:
            thread.start()
        start.wait(PATIENCE_S)
        services.sessions.close(alice, parent)
        for thread in threads:
            thread.join(PATIENCE_S)

    assert [] == services.sessions.list(alice)
