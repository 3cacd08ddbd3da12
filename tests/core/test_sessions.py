"""What each kind of session reads and writes, and which scope a word means in it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegword.core.caller import (
    GLOBAL,
    SCOPES,
    SCOPES_CLOSED,
    SESSION_KINDS,
    Caller,
    Scope,
    Session,
    Visible,
    acting,
    coordinator_scope,
    project_scope,
    reach,
    scope_of,
    scope_words,
    scopes_of,
    session_reach,
    session_scope,
    session_scopes,
    session_writes,
    shared_workstream,
)
from pegword.core.errors import Conflict, Forbidden, Invalid, NotFound

ALICE = Caller("aaaa", "alice", "key:1")
BOB = Caller("bbbb", "bob", "key:2")
HOST = Caller("hhhh", "host", "key:3", right="service")
NOBODY = Caller("", "", "")

HERS = Session("ws1", "s1", "interactive", "aaaa", "alice")
IN_PROJECT = replace(HERS, project_id="p1", project_write=True)
READS_PROJECT = replace(HERS, project_id="p1")
SHARED = replace(HERS, workstream_shared=True)
COORDINATOR = replace(IN_PROJECT, kind="coordinator")
CHILD = replace(HERS, kind="child", parent_id="s0")
ANONYMOUS = Session("ws1", "s2", "interactive", "hhhh", "host", anonymous=True)
WORDS = (*SCOPES, *SCOPES_CLOSED, "bogus")


def keys(visible: Visible) -> set[str]:
    assert visible.own_workstreams_of == ""
    return set(visible.keys)


@pytest.mark.parametrize(
    ("session", "reads", "writes"),
    [
        (HERS, {"g", "u:aaaa", "w:aaaa:ws1"}, {"g", "u:aaaa", "w:aaaa:ws1"}),
        (CHILD, {"g", "u:aaaa", "w:aaaa:ws1"}, {"g", "u:aaaa", "w:aaaa:ws1"}),
        (Session(), {"g", "u:aaaa"}, {"g", "u:aaaa"}),
        (IN_PROJECT, {"g", "u:aaaa", "w:aaaa:ws1", "p:p1"}, {"g", "u:aaaa", "w:aaaa:ws1", "p:p1"}),
        (READS_PROJECT, {"g", "u:aaaa", "w:aaaa:ws1", "p:p1"}, {"g", "u:aaaa", "w:aaaa:ws1"}),
        (SHARED, {"g", "u:aaaa", "s:ws1"}, {"g", "u:aaaa", "s:ws1"}),
        (replace(SHARED, workstream_write=False), {"g", "u:aaaa", "s:ws1"}, {"g", "u:aaaa"}),
        (COORDINATOR, {"c:aaaa"}, {"c:aaaa"}),
    ],
)
def test_a_session_reads_and_writes_what_its_kind_has(session: Session, reads: set[str], writes: set[str]) -> None:
    """A coordinator: its own scope, nothing else. Any other: global, its user, its workstream, its project as far as it may."""
    assert reads == keys(session_reach(ALICE, session))
    assert writes == keys(session_writes(ALICE, session))


def test_a_service_acts_as_the_user_that_the_session_names() -> None:
    """Reach and author are the user's; the credential stays the service's, and its right is that of an agent who writes."""
    assert keys(session_reach(ALICE, IN_PROJECT)) == keys(session_reach(HOST, IN_PROJECT))
    assert Caller("aaaa", "alice", "key:3", right="write") == acting(HOST, HERS) == acting(acting(HOST, HERS), HERS)


@pytest.mark.parametrize("right", ["read", "write", "approve"])
def test_nobody_else_acts_for_another_user(right: str) -> None:
    """To anybody but a service, another user's session is absent, whatever asks."""
    for ask in (acting, session_reach, session_writes, session_scope, session_scopes):
        with pytest.raises(NotFound, match="Session not found"):
            ask(replace(BOB, right=right), HERS)  # type: ignore[operator]


def test_a_closed_session_reads_and_writes_nothing() -> None:
    for ask in (acting, session_reach, session_writes, session_scope, session_scopes):
        with pytest.raises(Conflict, match="the session is closed"):
            ask(ALICE, replace(HERS, closed=True))  # type: ignore[operator]


def test_an_anonymous_session_has_no_user_scope() -> None:
    """And, being nobody, is a member of nothing."""
    assert {"g", "w:hhhh:ws1"} == keys(session_reach(HOST, ANONYMOUS))
    assert ("global",) == scope_words(replace(ANONYMOUS, workstream_shared=True, project_id="p1", project_write=True))
    with pytest.raises(Invalid, match="anonymous"):
        session_scope(HOST, ANONYMOUS, "user")


def test_in_an_anonymous_session_nobody_has_the_right_of_a_service() -> None:
    """Nor more than the caller has: who may only read does not write there."""
    assert "write" == acting(HOST, ANONYMOUS).right
    assert "read" == acting(replace(HOST, right="read"), ANONYMOUS).right


def test_a_caller_who_is_no_user_has_no_scope_but_global() -> None:
    """No scope is ever made without a user: not one that ends in nothing, not a coordinator's."""
    assert Visible((GLOBAL,)) == reach(NOBODY)
    for ask in (
        lambda: session_reach(NOBODY, Session()),
        lambda: session_reach(NOBODY, Session(kind="coordinator")),
        lambda: scope_of(NOBODY, "user", ""),
        lambda: scope_of(NOBODY, "workstream", "ws1"),
        lambda: scopes_of(NOBODY, "workstream", ""),
    ):
        with pytest.raises(Invalid, match="requires authentication"):
            ask()


@pytest.mark.parametrize(
    ("session", "words"),
    [
        (HERS, ("global", "workstream", "user")),
        (Session(), ("global", "user")),
        (READS_PROJECT, ("global", "workstream", "user", "project")),
        (ANONYMOUS, ("global", "workstream")),
        (COORDINATOR, ("coordinator",)),
    ],
)
def test_a_session_offers_the_scopes_that_it_has(session: Session, words: tuple[str, ...]) -> None:
    """The words that its tool offers; the first of them is meant where none is said."""
    assert words == scope_words(session)


@pytest.mark.parametrize(
    ("session", "word", "key"),
    [
        (HERS, "", "g"), (HERS, "workstream", "w:aaaa:ws1"), (HERS, "user", "u:aaaa"), (SHARED, "workstream", "s:ws1"),
        (IN_PROJECT, "project", "p:p1"), (COORDINATOR, "", "c:aaaa"), (COORDINATOR, "coordinator", "c:aaaa"),
    ],
)  # fmt: skip
def test_a_word_means_the_sessions_own_scope(session: Session, word: str, key: str) -> None:
    """Which one follows from the session; its id may be said, and no other."""
    scope = session_scope(ALICE, session, word, write=True)

    assert key == scope.key
    assert scope == session_scope(ALICE, session, word, "" if word == "global" else scope.id)
    assert Visible((scope,)) == session_scopes(ALICE, session, word or scope_words(session)[0])


@pytest.mark.parametrize(
    ("session", "word", "scope_id", "error", "says"),
    [
        (HERS, "bogus", "", Invalid, r"bogus; must be one of \['global', 'workstream', 'user'\]"),
        (HERS, "coordinator", "", Invalid, "coordinator sessions only.*workstream"),
        (CHILD, "coordinator", "aaaa", Invalid, "coordinator sessions only"),
        (HERS, "project", "", Invalid, "no project is attached"),
        (HERS, "mind", "", Invalid, "mind cannot be used here"),
        (Session(), "workstream", "ws1", Invalid, "no workstream"),
        (HERS, "global", "x", Invalid, "not allowed with global"),
        (HERS, "user", "bbbb", Forbidden, "another user"),
        (HERS, "workstream", "ws2", Invalid, "not this session's workstream"),
        (READS_PROJECT, "project", "p2", Invalid, "not this session's project"),
        (COORDINATOR, "global", "", Invalid, "not available to coordinators"),
        (COORDINATOR, "workstream", "ws1", Invalid, "not available to coordinators"),
        (COORDINATOR, "user", "aaaa", Invalid, "not available to coordinators"),
        (COORDINATOR, "project", "p1", Invalid, "not available to coordinators"),
        (COORDINATOR, "coordinator", "bbbb", Invalid, "not this session's coordinator"),
    ],
)
def test_a_scope_that_a_session_does_not_have_is_refused(
    session: Session, word: str, scope_id: str, error: type[Exception], says: str
) -> None:
    """One sentence that names what is valid; for reading as for writing."""
    for ask in (session_scope, session_scopes):
        with pytest.raises(error, match=says):
            ask(ALICE, session, word, scope_id)


def test_a_project_that_can_only_be_read_is_no_place_to_write_to() -> None:
    assert project_scope("p1") == session_scope(ALICE, READS_PROJECT, "project")
    with pytest.raises(Forbidden, match="read, not written; use one of global, workstream, user"):
        session_scope(ALICE, READS_PROJECT, "project", write=True)


def test_an_id_without_a_scope_is_refused_in_a_session_too() -> None:
    with pytest.raises(Invalid, match="scope is required"):
        session_scopes(ALICE, HERS, "", "ws1")


_ids = st.text(st.characters(codec="utf-8", exclude_categories=("Cc",)), min_size=1, max_size=12).map(str.strip).filter(bool)


@given(
    st.builds(
        Session, workstream_id=_ids | st.just(""), kind=st.sampled_from(SESSION_KINDS), user_id=st.sampled_from(["", "aaaa"]),
        project_id=_ids | st.just(""), project_write=st.booleans(), workstream_shared=st.booleans(), anonymous=st.booleans(),
    ),
    st.sampled_from(WORDS),
    st.sampled_from(["", "aaaa", "bbbb", "ws1"]),
)  # fmt: skip
def test_whatever_is_asked_a_session_gets_only_what_it_reads(session: Session, word: str, scope_id: str) -> None:
    """A coordinator never leaves its scope and nobody else gets in; what is written is read; no answer reaches past the session."""
    reads, writes = session_reach(ALICE, session), session_writes(ALICE, session)
    is_coordinator = session.kind == "coordinator"

    assert reads.covers(writes)
    assert not reads.own_workstreams_of
    assert ({"coordinator"} if is_coordinator else set()) == {s.kind for s in reads.scopes if is_coordinator or s.kind == "coordinator"}
    assert not {s.owner for s in reads.scopes} - {"", "aaaa"}
    try:
        scope = session_scope(ALICE, session, word, scope_id, write=True)
    except (Invalid, Forbidden):
        return
    assert writes.holds(scope)
    assert reads.covers(session_scopes(ALICE, session, word, scope_id))


@given(st.sampled_from(["global", "user", "workstream", "shared", "coordinator", "project"]), _ids, _ids)
def test_every_key_reads_back_as_its_scope(kind: str, first: str, second: str) -> None:
    scope = {
        "global": GLOBAL, "user": Scope("user", first, first), "workstream": Scope("workstream", second, first.replace(":", "")),
        "shared": shared_workstream(first), "coordinator": coordinator_scope(first), "project": project_scope(first),
    }[kind]  # fmt: skip

    assert scope == Scope.from_key(scope.key)


def test_keys_of_different_scopes_never_meet() -> None:
    """One id in every kind of scope is as many places."""
    scopes = [
        GLOBAL, Scope("user", "x", "x"), Scope("workstream", "x", "x"), shared_workstream("x"), coordinator_scope("x"), project_scope("x"),
    ]  # fmt: skip

    assert len(scopes) == len({scope.key for scope in scopes})
    assert not any(reach(Caller("x", "x", "k")).holds(scope) for scope in scopes[3:])


@pytest.mark.parametrize("key", ["", "q:x", "w:x", "gg", "g:x", "m:x"])
def test_what_is_no_key_is_no_scope(key: str) -> None:
    with pytest.raises(ValueError, match="no key of a scope"):
        Scope.from_key(key)
