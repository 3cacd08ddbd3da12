"""What a model can do with the tool, and what it is told."""

import re
from dataclasses import replace

import pytest

from pegword.core.caller import Caller, Session, coordinator_scope, scope_of, user_scope
from pegword.core.errors import Conflict, NotFound
from pegword.core.memory import Draft
from pegword.services.bundle import Services
from pegword.tool.calling import MemoryTool
from tests.conftest import Clock, Statements
from tests.tool.conftest import Model, ModelOf

TEA = "She drinks green tea and never coffee."


def test_a_save_tells_created_updated_and_unchanged_apart_with_id_and_version(model: Model) -> None:
    created = model("save", name="Preference Tea", content=TEA, scope="user", type="user")
    updated = model("save", name="preference_tea", content="She drinks white tea.", scope="user")
    unchanged = model("save", name="preference_tea", content="She drinks white tea.", scope="user")
    memory_id = created.memories[0].memory_id

    assert f"Saved memory 'preference_tea' (type=user, scope=user, id={memory_id}, version=1)." == created.text
    assert f"Updated memory 'preference_tea' (type=user, scope=user, id={memory_id}, version=2)." == updated.text
    assert f"Unchanged: memory 'preference_tea' (type=user, scope=user, id={memory_id}, version=2) says this already." == unchanged.text
    assert ["created", "updated", "unchanged"] == [created.outcome, updated.outcome, unchanged.outcome]


def test_a_save_without_a_scope_is_global_and_a_project_memory(model: Model, services: Services, alice: Caller) -> None:
    model.ok("save", name="n", content="c")

    stored = services.memories.get(alice, scope_of(alice, "global", ""), "n")
    assert ("project", "agent", False, 0.7) == (stored.kind, stored.source, stored.verified, stored.confidence)


def test_every_argument_of_a_save_is_stored(model: Model, clock: Clock) -> None:
    result = model(
        "save", key="n", value="c", description="about n", type="feedback", scope="workstream", tags="a, B", priority="high",
        confidence="0.5", expires_at="7d",
    )  # fmt: skip
    m = result.memories[0]

    assert ("n", "c", "about n", "feedback", ("a", "B"), "high", 0.5) == (
        m.name,
        m.content,
        m.description,
        m.kind,
        m.tags,
        m.priority,
        m.confidence,
    )
    assert ("workstream", "w1") == (m.scope.kind, m.scope.id)
    assert 0 < clock.now + 7 * 86_400_000_000 - (m.expires_at or 0) < 1_000_000


def test_an_omitted_description_and_type_keep_what_is_stored_and_an_empty_description_clears_it(model: Model) -> None:
    model.ok("save", name="n", content="c", description="d", type="reference")

    assert ("d", "reference") == _of(model("save", name="n", content="c2"))
    assert ("", "reference") == _of(model("save", name="n", content="c2", description=""))


def _of(result: object) -> tuple[str, str]:
    memory = result.memories[0]  # type: ignore[attr-defined]
    return memory.description, memory.kind


@pytest.mark.parametrize(
    ("arguments", "valid"),
    [
        ({"type": "note"}, "must be one of ['feedback', 'general', 'project', 'reference', 'user']"),
        ({"scope": "everywhere"}, "must be one of ['global', 'workstream', 'user']"),
        ({"priority": "urgent"}, "must be one of ['critical', 'high', 'normal', 'low']"),
        ({"name": "a<b"}, "letters, digits and _ . : / @ + # are allowed"),
        ({"name": "x" * 257}, "max 256 characters"),
        ({"content": "x" * 32_769}, "content exceeds 32768 character limit: it has 32769"),
        ({"description": "x" * 8_193}, "description exceeds 8192 character limit: it has 8193"),
        ({"tags": [f"t{n}" for n in range(33)]}, "exceeds the limit of 32 tags"),
        ({"tags": ["x" * 65]}, "exceeds 64 character limit"),
        ({"content": "a\x00b"}, "U+0000"),
        ({"content": "\ud800 half"}, "half of a character (U+D800)"),
    ],
)
def test_a_mistake_is_one_sentence_that_names_what_is_valid_and_nothing_is_saved(
    model: Model, arguments: dict[str, object], valid: str
) -> None:
    assert valid in model.error("save", **{"name": "n", "content": "c", **arguments})
    assert "No memories stored." == model.ok("list")


def test_a_refused_save_leaves_what_is_stored(model: Model) -> None:
    """An unknown type is no reason to change the type."""
    model.ok("save", name="n", content="c", type="feedback")
    model.error("save", name="n", content="c2", type="note")

    assert ("c", "feedback", 1) == (lambda m: (m.content, m.kind, m.version))(model("get", name="n").memories[0])


@pytest.mark.parametrize("place", ["project_id", "scope_id", "workstream", "user_id"])
def test_a_write_that_was_meant_for_some_place_is_not_done_in_the_default_one(
    model: Model, model_of: ModelOf, services: Services, alice: Caller, place: str
) -> None:
    """An argument that names a place has no effect; but what was meant for one must not become everybody's."""
    model.ok("save", name="n", content="c")
    sentence = f"Error: {place} has no effect; say with scope where it is meant: global, workstream, user"
    assert sentence == model.error("save", name="n", content="c2", **{place: "release"})
    assert sentence == model.error("delete", name="n", **{place: "release"})

    assert f"Ignored: {place}; the session settles that." in model.ok(
        "save", name="n", content="c2", scope="workstream", **{place: "release"}
    )
    coordinator = model_of(alice, services.sessions.create(alice, kind="coordinator"))
    assert "scope=coordinator" in coordinator.ok("save", name="n", content="c", **{place: "release"})


def test_content_at_the_limit_is_taken_and_the_limit_is_the_settings(services: Services, alice: Caller) -> None:
    """`memory.max_content` holds for the tool; it may change while the server runs."""
    limits = [100, 200]
    tool = MemoryTool(services, kind_word=lambda kind, *_: kind, content_chars_max=lambda: limits[0])
    model = Model(tool, alice, Session())

    assert model.ok("save", name="n", content="x" * 100)
    assert "content exceeds 100 character limit" in model.error("save", name="n", content="x" * 101)
    del limits[0]
    assert model.ok("save", name="n", content="x" * 101)


def test_an_agents_save_over_what_a_person_verified_says_that_it_is_verified_no_more(
    model: Model, services: Services, alice_herself: Caller
) -> None:
    services.memories.save(alice_herself, Draft("n", "hers", user_scope(alice_herself)))

    assert "Note: verified: cleared" in model.ok("save", name="n", content="changed", scope="user")


def test_get_shows_all_of_one_memory(model: Model) -> None:
    content = "\n".join(f"line {n}: {'x' * 90}" for n in range(20))
    model.ok("save", name="n", content=content, description="many lines", tags=["a", "b"], priority="critical")
    text = model.ok("get", name="N")

    head, facts, blank, *shown = text.split("\n")
    assert "[project:global] n — many lines" == head
    assert re.fullmatch(r"\(version 1; saved 2027-01-15T08:00:0\dZ; confidence 0.7; priority critical; tags a, b\)", facts)
    assert ("", content) == (blank, "\n".join(line[2:] for line in shown))


def test_get_and_delete_without_a_scope_mean_the_default_one_and_say_where_else_it_is(model: Model) -> None:
    model.ok("save", name="n", content="c", scope="user")
    for action in ("get", "delete"):
        assert "Error: Memory 'n' not found in scope global; there is one in scope user: name that scope." == model.error(action, name="n")
    assert "Deleted memory 'n' (scope=user)." == model.ok("delete", name="n", scope="user")
    assert "Error: Memory 'n' not found (looked in: global, workstream, user)." == model.error("get", name="n")
    assert "Error: Memory 'n' not found (looked in: user, global, workstream)." == model.error("delete", name="n", scope="user")


def test_a_delete_is_final(model: Model, services: Services) -> None:
    model.ok("save", name="n", content=TEA)

    assert "deleted" == model("delete", name="n").outcome
    assert "No memories found for 'tea'." == model.ok("search", query="tea")


def test_search_is_ranked_and_shows_beginnings(model: Model) -> None:
    """The best first, not the newest; of each at most 200 characters."""
    model.ok("save", name="replica_port", content="The postgres replica in staging listens on port 5433." + " More of it." * 100)
    for n in range(5):
        model.ok("save", name=f"diary_{n}", content=f"A day in staging, number {n}.")
    lines = model.ok("search", query="which port has the postgres replica in staging?").split("\n")

    assert "Memories (6 results):" == lines[0]
    assert "  [project:global] replica_port" == lines[1]
    assert "    The postgres replica in staging" == lines[2][:35]
    assert lines[2].endswith("...")
    assert len(lines[2].strip()) <= 200 + len("...")
    assert "Read one whole with memory(action='get', name='...', scope='...')." == lines[-1]


def test_search_takes_phrases_filters_and_a_limit(model: Model) -> None:
    model.ok("save", name="a", content="green tea", type="user", scope="user")
    model.ok("save", name="b", content="tea that is green", scope="workstream")
    model.ok("save", name="c", content="black tea")

    assert ["a"] == _names(model("search", query='"green tea"'))
    assert ["b"] == _names(model("search", query="tea", scope="workstream"))
    assert ["a"] == _names(model("search", query="tea", type="user"))
    assert "Memories (1 of 3 results):" in model.ok("search", query="tea", limit=0)


def _names(result: object) -> list[str]:
    return [memory.name for memory in result.memories]  # type: ignore[attr-defined]


def test_terms_above_the_cap_of_a_query_are_named(model: Model) -> None:
    """No word is dropped silently."""
    model.ok("save", name="n", content=" ".join(f"word{n}" for n in range(200)))

    assert "The query is too long; left out: word" in model.ok("search", query=" ".join(f"word{n}" for n in range(200)))


def test_nothing_found_and_nothing_stored_are_no_errors(model: Model) -> None:
    assert "No memories found for 'tea'." == model.ok("search", query="tea")
    assert "No memories stored." == model.ok("list")
    assert "No memories stored (type=user, scope=user)." == model.ok("list", type="user", scope="user")


def test_a_list_is_the_newest_and_says_how_many_there_are(model: Model) -> None:
    for n in range(30):
        model.ok("save", name=f"n{n}", content=f"number {n} of many")

    assert "Memories (the newest 20 of 30):" == model.ok("list").split("\n")[0]
    assert ["n29", "n28"] == _names(model("list", limit=2))
    assert 30 == len(_names(model("list", limit=1000)))


def test_marks_tell_what_a_reader_should_know(model: Model, services: Services, alice_herself: Caller, bob: Caller) -> None:
    services.memories.save(alice_herself, Draft("hers", "kept by hand", user_scope(alice_herself)))
    services.memories.save(bob, Draft("his", "from another", scope_of(bob, "global", "")))
    model.ok("save", name="ends", content="for a while", expires_at="2027-02-01")
    model.ok("save", name="unsure", content="doubted", confidence=0)
    text = model.ok("list")

    for head in (
        "[project:user] hers (verified)", "[project:global] his (by bob)",
        "[project:global] ends (expires 2027-02-01T00:00:00Z)", "[project:global] unsure (doubted)",
    ):  # fmt: skip
        assert f"  {head}" in text.split("\n")


def test_what_has_expired_is_in_no_list_and_get_says_so(model: Model, clock: Clock) -> None:
    model.ok("save", name="n", content=TEA, expires_at="1h")
    clock.pass_s(3_601)

    assert "No memories stored." == model.ok("list")
    assert "No memories found for 'tea'." == model.ok("search", query="tea")
    assert "[project:global] n (expired 2027-" in model.ok("get", name="n")


def test_search_and_get_count_as_accesses_and_a_list_does_not(model: Model, services: Services, alice: Caller) -> None:
    model.ok("save", name="n", content=TEA)
    model.ok("list")
    services.housekeeper.settle()
    scope = scope_of(alice, "global", "")
    assert 0 == services.memories.get(alice, scope, "n", counted=False).access_count
    model.ok("search", query="tea")
    model.ok("get", name="n")
    services.housekeeper.settle()

    assert 2 == services.memories.get(alice, scope, "n", counted=False).access_count


def test_what_stands_in_another_scope_for_another_user_or_workstream_is_absent(
    model: Model, model_of: ModelOf, alice: Caller, bob: Caller
) -> None:
    for scope in ("user", "workstream"):
        model.ok("save", name=f"secret_{scope}", content=f"Hidden in {scope}.", scope=scope)
    for other in (model_of(bob), model_of(bob, Session("w1"))):
        assert "No memories stored." == other.ok("list")
        assert "No memories found for 'hidden'." == other.ok("search", query="hidden")
        for scope in ("user", "workstream"):
            for action in ("get", "delete"):
                assert f"'secret_{scope}' not found (looked in: " in other.error(action, name=f"secret_{scope}", scope=scope)
    elsewhere = model_of(alice, Session("w2"))
    assert ["secret_user"] == _names(elsewhere("list"))


@pytest.mark.parametrize("action", ["save", "search", "list", "get", "delete"])
@pytest.mark.parametrize("kind", ["interactive", "child"])
def test_only_a_coordinator_reaches_the_coordinator_scope(
    model_of: ModelOf, alice: Caller, services: Services, action: str, kind: str
) -> None:
    """The kind of the session is the gate, on every action; no argument opens it."""
    parent = services.sessions.create(alice, kind="coordinator")
    session = services.sessions.create(alice, parent_id=parent.session_id) if kind == "child" else services.sessions.create(alice)
    sentence = model_of(alice, session).error(
        action, name="n", content="c", query="q", scope="coordinator", kind="coordinator", session="x"
    )

    assert "coordinator is for coordinator sessions only; must be one of ['global', 'user']" in sentence


@pytest.mark.parametrize("action", ["save", "search", "list", "get", "delete"])
@pytest.mark.parametrize("scope", ["global", "user", "workstream", "project", "mind"])
def test_a_coordinator_reaches_nothing_else(model_of: ModelOf, alice: Caller, services: Services, action: str, scope: str) -> None:
    coordinator = model_of(alice, services.sessions.create(alice, kind="coordinator"))

    assert f"{scope} is not available to coordinators; leave scope out" in coordinator.error(
        action, name="n", content="c", query="q", scope=scope
    )


def test_coordinators_of_one_user_share_their_rows_and_nobody_else_sees_them(
    model: Model, model_of: ModelOf, alice: Caller, bob: Caller, services: Services
) -> None:
    one, two = (model_of(alice, services.sessions.create(alice, kind="coordinator")) for _ in range(2))
    model.ok("save", name="noise", content="From an interactive session.", scope="user")
    one.ok("save", name="plan", content="Ship on Tuesday, then rest.")

    assert ["plan"] == _names(two("list"))
    assert ["plan"] == _names(two("search", query="tuesday"))
    assert ["noise"] == _names(model("list"))
    assert "No memories stored." == model_of(bob, services.sessions.create(bob, kind="coordinator")).ok("list")
    assert "plan" not in services.turns.turn(alice, Session("w1"), []).block
    with pytest.raises(NotFound):
        services.memories.get(alice, coordinator_scope(alice.user_id), "plan")


def test_a_read_only_credential_has_no_save_and_no_delete(model_of: ModelOf, alice: Caller, model: Model) -> None:
    model.ok("save", name="n", content=TEA)
    reader = model_of(replace(alice, right="read"))
    for arguments in ({"action": "save", "name": "n", "content": "c"}, {"action": "delete", "name": "n"}):
        assert "Error: this session may only read memory; save and delete are not possible here." == reader.error(**arguments)

    assert ["n"] == _names(reader("search", query="tea"))
    assert "must be one of search, list, get" in reader.error("forget")


def test_with_the_memory_lever_off_there_is_no_tool(model_of: ModelOf, alice: Caller, tool: MemoryTool) -> None:
    session = Session("w1", memory=False)

    assert "Error: memory is off in this session." == model_of(alice, session).error("list")
    assert tool.schema(alice, session, "openai") is None


def test_a_closed_session_is_the_hosts_concern(model_of: ModelOf, alice: Caller, services: Services, tool: MemoryTool) -> None:
    session = services.sessions.close(alice, services.sessions.create(alice).session_id)

    with pytest.raises(Conflict):
        model_of(alice, session)("list")
    with pytest.raises(Conflict):
        tool.schema(alice, session, "openai")


def test_a_service_saves_as_the_user_of_the_session(services: Services, model_of: ModelOf, alice: Caller, model: Model) -> None:
    services.access.ensure_user("host")
    host = services.access.caller_of(services.access.add_key("host", right="service")[1])
    model_of(host, services.sessions.create(host, user="alice", workstream_id="w1")).ok("save", name="n", content="c", scope="user")

    memory = model("get", name="n", scope="user").memories[0]
    assert ("alice", alice.user_id) == (memory.author, memory.scope.id)


def test_an_anonymous_session_has_no_user_scope(services: Services, model_of: ModelOf) -> None:
    services.access.ensure_user("host")
    host = services.access.caller_of(services.access.add_key("host", right="service")[1])
    model = model_of(host, services.sessions.create(host, anonymous=True))

    assert "user needs a user, and this session is anonymous; must be one of ['global']" in model.error(
        "save", name="n", content="c", scope="user"
    )
    assert model.ok("save", name="n", content="c")


def test_saves_of_one_session_are_one_sitting(services: Services, model_of: ModelOf, alice: Caller, clock: Clock) -> None:
    """However long it takes: the session names it."""
    session = services.sessions.create(alice)
    places = []
    for n in range(3):
        places.append(model_of(alice, session)("save", name=f"n{n}", content=f"number {n}").memories[0].place)
        clock.pass_s(7_200)

    assert [0, 1, 2] == places


@pytest.mark.parametrize(
    ("call", "most"),
    [
        ({"action": "save", "name": "new", "content": "brand new on tea", "tags": ["a"]}, 13),
        ({"action": "save", "name": "n1", "content": "changed on tea", "tags": ["a"]}, 13),
        ({"action": "search", "query": "tea"}, 6),
        ({"action": "list"}, 2),
        ({"action": "get", "name": "n1"}, 3),
        ({"action": "get", "name": "none"}, 3),
        ({"action": "delete", "name": "n1"}, 14),
    ],
    ids=lambda value: value["action"] if isinstance(value, dict) else None,
)
def test_how_many_statements_a_call_takes(
    model: Model, services: Services, statements: Statements, call: dict[str, object], most: int
) -> None:
    """A save looks for similar memories in one search before it; access counts come after the answer."""
    for n in range(3):
        model.ok("save", name=f"n{n}", content=f"note {n} on green tea")
    services.housekeeper.settle()
    statements.seen.clear()
    model(**call)
    services.housekeeper.settle()

    assert len(statements.seen) <= most
