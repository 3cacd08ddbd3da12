"""The walls between scopes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegword.core.caller import GLOBAL, Caller, Scope, Session, Visible, reach, scope_of, scopes_of, session_reach
from pegword.core.errors import Forbidden, Invalid

ALICE = Caller("aaaa", "alice", "key:1")
BOB = Caller("bbbb", "bob", "key:2")


def test_workstreams_of_two_users_never_meet() -> None:
    """A workstream's key begins with its user: the same id twice is two places."""
    assert scope_of(ALICE, "workstream", "ws1").key != scope_of(BOB, "workstream", "ws1").key


def test_a_caller_reaches_global_their_own_scope_and_their_own_workstreams() -> None:
    mine = reach(ALICE)

    assert mine.holds(GLOBAL)
    assert mine.holds(Scope("user", "aaaa", "aaaa"))
    assert mine.holds(scope_of(ALICE, "workstream", "anything"))
    assert not mine.holds(Scope("user", "bbbb", "bbbb"))
    assert not mine.holds(scope_of(BOB, "workstream", "anything"))


def test_a_session_sees_one_workstream_only() -> None:
    seen = session_reach(ALICE, Session("ws1"))

    assert {"g", "u:aaaa", "w:aaaa:ws1"} == set(seen.keys)
    assert not seen.holds(scope_of(ALICE, "workstream", "ws2"))


def test_an_empty_set_of_scopes_holds_nothing() -> None:
    assert not Visible(()).holds(GLOBAL)


@pytest.mark.parametrize(
    ("word", "scope_id", "error", "says"),
    [
        ("bogus", "", Invalid, "must be one of"),
        ("coordinator", "", Invalid, "must be one of"),
        ("project", "", Invalid, "must be one of"),
        ("mind", "", Invalid, "must be one of"),
        ("global", "x", Invalid, "not allowed with global"),
        ("workstream", " ", Invalid, "required for workstream"),
        ("workstream", "w" * 257, Invalid, "256"),
        ("workstream", "a\nb", Invalid, r"U\+000A"),
        ("user", "bbbb", Forbidden, "another user"),
        ("user", "nobody", Forbidden, "another user"),
    ],
)
def test_a_scope_that_is_not_the_callers_is_refused(word: str, scope_id: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        scope_of(ALICE, word, scope_id)


def test_an_id_without_a_scope_is_refused() -> None:
    with pytest.raises(Invalid, match="scope is required"):
        scopes_of(ALICE, "", "x")


@given(st.text(min_size=1, max_size=30))
def test_no_workstream_id_leads_out_of_its_users_range(workstream_id: str) -> None:
    """Whatever an id holds, its key lies in the range of its user and in no other's, and reads back as itself."""
    try:
        scope = scope_of(ALICE, "workstream", workstream_id)
    except Invalid:
        return
    (low, high), (other_low, other_high) = reach(ALICE).key_range, reach(BOB).key_range

    assert low <= scope.key < high
    assert not other_low <= scope.key < other_high
    assert scope == Scope.from_key(scope.key)


@pytest.mark.parametrize(
    ("right", "needed", "enough"),
    [("read", "write", False), ("write", "read", True), ("write", "approve", False), ("approve", "service", False)],
)
def test_rights_are_ordered(right: str, needed: str, enough: bool) -> None:
    caller = Caller("aaaa", "alice", "key:1", right=right)
    if enough:
        caller.require(needed)
        return
    with pytest.raises(Forbidden, match=f"'{needed}'"):
        caller.require(needed)
