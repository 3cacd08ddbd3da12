"""Saving, finding, changing, undoing and deleting memories, as the services do it for every face."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegword.assembly import open_services
from pegword.core.caller import GLOBAL, Caller, Scope, reach, scope_of, scopes_of, user_scope
from pegword.core.errors import Forbidden, Invalid, NotFound, VersionMismatch
from pegword.core.memory import NEVER, Draft
from pegword.services.bundle import Services
from pegword.services.writing import Changes
from pegword.settings import load
from tests.conftest import Clock
from tests.stored import everything

DAY_US = 24 * 3_600 * 1_000_000


def names(services: Services, caller: Caller, query: str, **narrow: object) -> list[str]:
    found = services.memories.search(caller, reach(caller), query, **narrow)  # type: ignore[arg-type]
    return [hit.memory.name for hit in found.hits]


def test_a_save_creates_then_changes_then_finds_nothing_to_change(services: Services, alice: Caller) -> None:
    """Id and time of creation survive; each change is a version; the same again is neither."""
    draft = Draft("Project-Architecture", "hexagonal", GLOBAL)
    first = services.memories.save(alice, draft)
    second = services.memories.save(alice, replace(draft, name="project architecture", content="layered"))
    third = services.memories.save(alice, replace(draft, content="layered"))

    assert ["created", "updated", "unchanged"] == [first.outcome, second.outcome, third.outcome]
    assert {first.memory.memory_id} == {second.memory.memory_id, third.memory.memory_id}
    assert {first.memory.created} == {second.memory.created, third.memory.created}
    assert [1, 2, 2] == [first.memory.version, second.memory.version, third.memory.version]
    assert second.memory.updated < third.memory.updated


def test_what_a_save_does_not_name_stays(services: Services, alice: Caller, clock: Clock) -> None:
    """Absent keeps; this holds of every optional field."""
    services.memories.save(
        alice,
        Draft(
            "n", "one", GLOBAL, description="d", kind="feedback", tags=("a",), priority="high", confidence=0.4,
            expires_at=clock.now + DAY_US,
        ),
    )  # fmt: skip
    kept = services.memories.save(alice, Draft("n", "one", GLOBAL, priority="low")).memory

    assert ("d", "feedback", ("a",), "low", 0.4) == (kept.description, kept.kind, kept.tags, kept.priority, kept.confidence)
    assert kept.expires_at is not None


def test_what_a_change_clears_is_gone(services: Services, alice: Caller, clock: Clock) -> None:
    saved = services.memories.save(alice, Draft("n", "one", GLOBAL, description="d", tags=("a",), expires_at=clock.now + DAY_US)).memory
    cleared = services.memories.update(alice, saved.memory_id, Changes(description="", tags=(), expires_at=NEVER)).memory

    assert ("", (), None, 2) == (cleared.description, cleared.tags, cleared.expires_at, cleared.version)


@pytest.mark.parametrize(
    "changes",
    [
        Changes(content="two"), Changes(description="e"), Changes(kind="user"), Changes(tags=("b",)), Changes(priority="low"),
        Changes(confidence=0.1), Changes(expires_at=2_000_000_000_000_000),
    ],
)  # fmt: skip
def test_every_field_that_changes_makes_a_version_and_can_be_undone(services: Services, alice: Caller, changes: Changes) -> None:
    """Revert is a new version that says what the old one said."""
    first = services.memories.save(alice, Draft("n", "one", GLOBAL, description="d", tags=("a",))).memory
    second = services.memories.update(alice, first.memory_id, changes)
    back = services.memories.revert(alice, first.memory_id, 1)

    assert ["updated", "updated"] == [second.outcome, back.outcome]
    assert first.content_hash == back.memory.content_hash
    fields = ("content", "description", "kind", "tags", "priority", "confidence", "expires_at")
    assert [getattr(first, f) for f in fields] == [getattr(back.memory, f) for f in fields]
    history = [(v.version, v.action) for v in services.memories.versions(alice, first.memory_id).versions]
    assert [(3, "revert"), (2, "update"), (1, "save")] == history


def test_an_unknown_version_is_not_found(services: Services, alice: Caller) -> None:
    saved = services.memories.save(alice, Draft("n", "one", GLOBAL)).memory
    with pytest.raises(NotFound, match="no version 7"):
        services.memories.revert(alice, saved.memory_id, 7)


@pytest.mark.parametrize("parallel", [50])
@pytest.mark.usefixtures("unhurried")
def test_parallel_saves_of_one_name_make_one_memory(services: Services, alice: Caller, parallel: int) -> None:
    """One statement decides who created: one row, one creation, everybody else a change of it."""
    outcomes: list[str] = []

    def save(number: int) -> None:
        outcomes.append(services.memories.save(alice, Draft("one name", f"text {number}", GLOBAL)).outcome)

    threads = [threading.Thread(target=save, args=(number,)) for number in range(parallel)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    page = services.memories.list(alice, reach(alice))

    assert (1, 1, parallel) == (page.total, outcomes.count("created"), len(outcomes))
    assert parallel == page.memories[0].version
    assert list(range(parallel, 0, -1)) == [v.version for v in services.memories.versions(alice, page.memories[0].memory_id).versions]


def test_an_expected_version_that_is_not_the_stored_one_changes_nothing(services: Services, alice: Caller) -> None:
    """The refusal names the version to look at; 0 means: must not exist."""
    services.memories.save(alice, Draft("n", "one", GLOBAL, expected_version=0))
    services.memories.save(alice, Draft("n", "two", GLOBAL, expected_version=1))
    for expected, name, current in ((1, "n", 2), (0, "n", 2), (3, "n", 2), (4, "absent", 0)):
        with pytest.raises(VersionMismatch) as caught:
            services.memories.save(alice, Draft(name, "three", GLOBAL, expected_version=expected))
        assert current == caught.value.current

    assert ["n"] == [m.name for m in services.memories.list(alice, reach(alice)).memories]
    assert "two" == services.memories.get(alice, GLOBAL, "n").content


def test_an_agent_takes_verification_from_what_it_changes(services: Services, alice: Caller, alice_herself: Caller) -> None:
    """A human's memory is verified until an agent writes over it; the old text is still there as a version."""
    human = services.memories.save(alice_herself, Draft("n", "mine", GLOBAL)).memory
    same = services.memories.save(alice, Draft("n", "mine", GLOBAL)).memory
    saved = services.memories.save(alice, Draft("n", "its own", GLOBAL))
    again = services.memories.save(alice, Draft("n", "its own again", GLOBAL))
    agent = saved.memory

    assert [(True, "user", 1.0), (True, "user", 1.0), (False, "agent", 0.7)] == [
        (m.verified, m.source, m.confidence) for m in (human, same, agent)
    ]
    assert [["verified"], []] == [[w.partition(":")[0] for w in s.warnings] for s in (saved, again)]
    assert ["its own again", "its own", "mine"] == [v.content for v in services.memories.versions(alice, agent.memory_id).versions]
    assert [False, False, True] == [v.verified for v in services.memories.versions(alice, agent.memory_id).versions]


def test_nothing_of_alice_is_there_for_bob(services: Services, alice: Caller, bob: Caller) -> None:
    """Foreign and absent answer alike, on every path by name and by id; nothing of hers changes."""
    mine = [
        services.memories.save(alice, Draft("secret", "the canary sings", scope)).memory
        for scope in (user_scope(alice), scope_of(alice, "workstream", "ws1"))
    ]
    unknown = "00000000-0000-4000-8000-000000000000"
    for memory_id in (mine[0].memory_id, mine[1].memory_id, unknown, "not an id"):
        for attempt in (
            lambda m=memory_id: services.memories.get_by_id(bob, m),
            lambda m=memory_id: services.memories.update(bob, m, Changes(content="mine now")),
            lambda m=memory_id: services.memories.versions(bob, m),
            lambda m=memory_id: services.memories.revert(bob, m, 1),
            lambda m=memory_id: services.memories.delete_by_id(bob, m),
        ):
            with pytest.raises(NotFound, match=r"^Memory not found$"):
                attempt()
    for scope in (user_scope(bob), scope_of(bob, "workstream", "ws1"), user_scope(alice), mine[1].scope):
        with pytest.raises(NotFound):
            services.memories.get(bob, scope, "secret")
        with pytest.raises(NotFound):
            services.memories.delete(bob, scope, "secret")
    with pytest.raises(NotFound):
        services.memories.save(bob, Draft("secret", "mine now", user_scope(alice)))

    assert [] == names(services, bob, "canary")
    assert 0 == services.memories.list(bob, reach(bob)).total
    assert mine == [services.memories.get_by_id(alice, m.memory_id) for m in mine]


def test_one_users_saves_move_nothing_of_anothers_search(services: Services, alice: Caller, bob: Caller) -> None:
    """Order and scores come from what the caller may see, so nobody can read another's words from them."""
    for number in range(20):
        services.memories.save(alice, Draft(f"n{number}", f"note {number} on tea and rare words", user_scope(alice)))
    before = [(h.memory.name, h.score) for h in services.memories.search(alice, reach(alice), "rare tea 7").hits]
    for number in range(200):
        services.memories.save(bob, Draft(f"n{number}", "rare rare rare tea 7", user_scope(bob)))

    assert before == [(h.memory.name, h.score) for h in services.memories.search(alice, reach(alice), "rare tea 7").hits]


def test_the_right_memory_is_found_among_ten_thousand_better_ones_of_others(services: Services, alice: Caller, bob: Caller) -> None:
    """Filters act before the cut, never after."""
    for caller, scope in ((bob, user_scope(bob)), (alice, GLOBAL)):
        drafts = [Draft(f"n{number}", "port port port", scope) for number in range(5_000)]
        services.engine.write(lambda tx, c=caller, ds=drafts: [services.memories.writing.put(tx, c, d, "save") for d in ds])  # type: ignore[misc]
        services.housekeeper.due(scope.key)
    services.housekeeper.settle()
    services.memories.save(alice, Draft("mine", "a port, once, in many words that say little else", GLOBAL, kind="feedback", tags=("Net",)))

    assert ["mine"] == names(services, alice, "port", kind="feedback", limit=1)
    assert ["mine"] == names(services, alice, "port", tag="net", limit=1)
    assert [] == names(services, alice, "port", kind="reference")


def test_limits_are_capped_and_totals_are_true(services: Services, alice: Caller) -> None:
    for number in range(210):
        services.memories.save(alice, Draft(f"n{number}", f"wombat {number}", GLOBAL))
    page, found = (
        services.memories.list(alice, reach(alice), limit=10**6),
        services.memories.search(alice, reach(alice), "wombat", limit=10**6),
    )

    assert (200, 210) == (len(page.memories), page.total)
    assert (50, 210) == (len(found.hits), found.total)
    assert [f"n{n}" for n in range(209, 199, -1)] == [m.name for m in page.memories[:10]]


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(services: Services, alice: Caller, limit: int) -> None:
    """Never an unlimited answer by mistake."""
    with pytest.raises(Invalid, match="at least 1"):
        services.memories.list(alice, reach(alice), limit=limit)
    with pytest.raises(Invalid, match="at least 1"):
        services.memories.search(alice, reach(alice), "tea", limit=limit)


def test_what_has_expired_is_in_no_read_path_but_those_that_say_so(services: Services, alice: Caller, clock: Clock) -> None:
    """By name it is found and says expired; saving it again without an expiry revives it."""
    services.memories.save(alice, Draft("n", "meeting on mars", GLOBAL, expires_at=clock.now + DAY_US))
    services.memories.save(alice, Draft("other", "meeting on earth", GLOBAL))
    assert ["n", "other"] == sorted(names(services, alice, "meeting"))
    clock.pass_s(2 * 24 * 3_600)

    for _ in ("before the sweep", "after it"):
        assert ["other"] == names(services, alice, "meeting")
        assert ["other"] == [m.name for m in services.memories.list(alice, reach(alice)).memories]
        assert 2 == services.memories.list(alice, reach(alice), include_expired=True).total
        assert ["n", "other"] == sorted(names(services, alice, "meeting", include_expired=True))
        assert ["n"] == names(services, alice, '"meeting on mars"', include_expired=True)
        assert services.memories.get(alice, GLOBAL, "n").expired(clock.now)
        services.housekeeper.sweep()
    revived = services.memories.save(alice, Draft("n", "meeting on mars", GLOBAL))

    assert ("updated", None) == (revived.outcome, revived.memory.expires_at)
    assert ["n", "other"] == sorted(names(services, alice, "meeting"))


def test_an_expiry_in_the_past_is_kept_with_a_warning(services: Services, alice: Caller, clock: Clock) -> None:
    saved = services.memories.save(alice, Draft("n", "x", GLOBAL, expires_at=clock.now - DAY_US))

    assert "created" == saved.outcome
    assert "past" in saved.warnings[0]


def test_access_counts_move_with_reading_by_name_only(services: Services, alice: Caller) -> None:
    """A list or a search of people is no sign that an agent needed it."""
    services.memories.save(alice, Draft("n", "x", GLOBAL))
    before = services.memories.get(alice, GLOBAL, "n")
    services.memories.list(alice, reach(alice))
    names(services, alice, "x")
    services.housekeeper.settle()
    after = services.memories.get(alice, GLOBAL, "n")

    assert (0, 1) == (before.access_count, after.access_count)
    assert (before.updated, before.version) == (after.updated, after.version)


@pytest.mark.parametrize("expired_first", [False, True])
def test_a_delete_leaves_nothing(services: Services, alice: Caller, clock: Clock, expired_first: bool) -> None:
    """Row, versions, tags, index, receipts' texts: every byte of the store is searched."""
    memory = services.memories.save(alice, Draft("n", "first xylophonecanary text", GLOBAL, tags=("tagcanary",))).memory
    for number in range(300):
        services.memories.save(alice, Draft(f"other{number}", f"some other text {number}", GLOBAL))
        if number == 150:
            services.housekeeper.settle()
            services.memories.save(alice, Draft("n", "second zebracanary text", GLOBAL, description="descriptioncanary"))
    services.housekeeper.settle()
    assert ["n"] == names(services, alice, "zebracanary")
    if expired_first:
        services.memories.update(alice, memory.memory_id, Changes(content="third yakcanary text", expires_at=clock.now + DAY_US))
        clock.pass_s(2 * 24 * 3_600)
        services.housekeeper.sweep()
    services.memories.delete_by_id(alice, memory.memory_id)
    services.housekeeper.settle()

    raw = everything(services)
    assert b"some other text" in raw  # the search would find what is there
    assert b"canary" not in raw
    with pytest.raises(NotFound):
        services.memories.get_by_id(alice, memory.memory_id)


@pytest.mark.parametrize("right", ["read"])
def test_a_reader_changes_nothing(services: Services, alice: Caller, right: str) -> None:
    saved = services.memories.save(alice, Draft("n", "x", GLOBAL)).memory
    reader = replace(alice, right=right)
    for attempt in (
        lambda: services.memories.save(reader, Draft("n", "y", GLOBAL)),
        lambda: services.memories.update(reader, saved.memory_id, Changes(content="y")),
        lambda: services.memories.revert(reader, saved.memory_id, 1),
        lambda: services.memories.delete(reader, GLOBAL, "n"),
        lambda: services.memories.delete_by_id(reader, saved.memory_id),
    ):
        with pytest.raises(Forbidden, match="write"):
            attempt()

    assert "x" == services.memories.get(reader, GLOBAL, "n").content


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("hexagonal", True), ("HEXAGON", True), ("ports?", True), ("core/ports.py", True), ("ports.py", True), ("PortAdapter", True),
        ("adapter", True), ('"hexagonal architecture"', True), ('"architecture hexagonal"', False), ("don’t", False), ("cafe", True),
        ("café", True), ("strasse", True), ("STRAẞE", True), ("日", True), ("日本", True), ("本語", True), ("Kubernetes", True),
        ("集群", True), ("서울", True), ("울", True), ("C++", True), ("%%", False), ("____", False), ("(", False), ("NOT", False),
        ("*", False), ("obrien", True), ("O’Brien", True), ("nothing of this", False),
    ],
)  # fmt: skip
def test_any_string_is_a_query_and_finds_what_a_person_expects(services: Services, alice: Caller, query: str, found: bool) -> None:
    """Case, accents, ß, apostrophes, paths, identifiers, one- and two-character queries in CJK, Latin glued to it."""
    text = (
        "The hexagonal architecture keeps PortAdapter in core/ports.py; café in the Straße; O'Brien knows; 日本語 Kubernetes集群 서울 C++"
    )
    services.memories.save(alice, Draft("n", text, GLOBAL))

    assert (["n"] if found else []) == names(services, alice, query)


@given(st.text(max_size=60))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_no_query_fails(services: Services, alice: Caller, query: str) -> None:
    """Every string but a blank one is legal; what cannot be stored as text is refused by name."""
    try:
        services.memories.search(alice, reach(alice), query)
    except Invalid as error:
        assert "query" == error.field  # noqa: PT017


def test_a_query_of_20_000_words_keeps_the_rarest_and_finds_its_memory(services: Services, alice: Caller) -> None:
    """96 terms are kept, the commonest dropped first, and the answer says which were not."""
    for number in range(200):
        services.memories.save(alice, Draft(f"n{number}", " ".join(f"common{i}" for i in range(150)), GLOBAL))
    services.memories.save(alice, Draft("needle", "the haystack hides a zygote", GLOBAL))
    words = [f"absent{i}" for i in range(1_500)] + [f"common{i % 150}" for i in range(18_499)] + ["zygote"]
    result = services.memories.search(alice, reach(alice), " ".join(words))

    assert "needle" == result.hits[0].memory.name
    assert 96 == len(result.terms)
    assert "zygot" in result.terms
    assert (200, True) == (len(result.left_out), result.left_out_n > 1_000)


def test_a_search_without_a_scope_spans_every_own_workstream(services: Services, alice: Caller) -> None:
    for number in range(30):
        services.memories.save(alice, Draft("n", f"pangolin {number}", scope_of(alice, "workstream", f"ws{number}")))

    assert 30 == services.memories.search(alice, reach(alice), "pangolin").total
    assert 30 == services.memories.list(alice, scopes_of(alice, "workstream", "")).total
    assert 1 == services.memories.search(alice, scopes_of(alice, "workstream", "ws7"), "pangolin").total


def test_among_equal_matches_the_one_saved_later_comes_first(services: Services, alice: Caller) -> None:
    """The order is total: score, then the later save, then the id."""
    for number in range(60):
        scope = (GLOBAL, user_scope(alice), Scope("workstream", f"w{number % 3}", alice.user_id))[number % 3]
        services.memories.save(alice, Draft(f"n{number}", "same words", scope, sitting=str(number)))

    assert [f"n{n}" for n in range(59, 39, -1)] == names(services, alice, "same words")


def test_priority_settles_a_near_tie_and_never_a_clear_one(services: Services, alice: Caller) -> None:
    services.memories.save(alice, Draft("low", "tea with milk", GLOBAL, priority="low", sitting="a"))
    services.memories.save(alice, Draft("high", "tea with milk", GLOBAL, priority="high", sitting="b"))
    services.memories.save(alice, Draft("later", "tea with milk", GLOBAL, sitting="c"))
    services.memories.save(alice, Draft("clear", "tea tea tea with milk milk and honey", GLOBAL, priority="low", sitting="d"))

    assert ["high", "later", "low"] == [name for name in names(services, alice, "tea with milk") if name != "clear"]
    assert "clear" == names(services, alice, "tea with milk and honey")[0]


def test_an_agents_change_of_any_field_takes_the_humans_certainty_away(services: Services, alice: Caller, alice_herself: Caller) -> None:
    """Verified and full confidence are a human's word; after an agent's change the row is an agent's."""
    saved = services.memories.save(alice_herself, Draft("n", "mine", GLOBAL)).memory
    changed = services.memories.update(alice, saved.memory_id, Changes(tags=("x",))).memory

    assert (False, "agent", 0.7) == (changed.verified, changed.source, changed.confidence)


def test_deletes_are_whole_while_another_analyser_made_the_index(services: Services, alice: Caller, database: Path | str) -> None:
    """Before the re-index has come round, the words of the old analyser go too, and counts stay true."""
    saved = [services.memories.save(alice, Draft(f"n{n}", "running horsescanary", GLOBAL)).memory for n in range(300)]
    services.housekeeper.due("g")
    services.close()
    german = open_services(database, load(environment={"PEGWORD_MEMORY__LANGUAGE": "german"}))
    for memory in saved:
        german.memories.delete_by_id(alice, memory.memory_id)
    with german.engine.read() as tx:
        left = tx.rows("SELECT term FROM ix_block") + tx.rows("SELECT n, words FROM ix_scope")
    german.close()

    assert [(0, 0)] == left


def test_a_process_with_another_analyser_makes_its_scope_stale(services: Services, alice: Caller, database: Path | str) -> None:
    """What two analysers indexed is found again by whoever re-indexes."""
    services.memories.save(alice, Draft("n", "running", GLOBAL))
    german = open_services(database, load(environment={"PEGWORD_MEMORY__LANGUAGE": "german"}))
    german.reindexer.run()
    services.memories.save(alice, Draft("m", "running", GLOBAL))

    assert 2 == german.reindexer.pending()
    german.close()


def test_a_user_with_a_hundred_thousand_workstreams_searches_them_all(services: Services, alice: Caller) -> None:
    """No statement has a parameter for each scope."""
    services.memories.save(alice, Draft("n", "walrus", scope_of(alice, "workstream", "w77777")))
    rows = [(scope_of(alice, "workstream", f"w{n}").key, services.reindexer._analyser.name) for n in range(100_000) if n != 77_777]
    sql = "INSERT INTO ix_scope VALUES (?, 1, 0, 0, 0, 0, 0, '', 0, 0, ?)"
    services.engine.write(lambda tx: tx.run_many(sql, rows))

    assert ["n"] == names(services, alice, "walrus")


@pytest.mark.parametrize("strange", ["\ud800", "é", "x" * 5_000, ""])
def test_an_id_that_can_be_none_is_that_of_nothing(services: Services, alice: Caller, strange: str) -> None:
    with pytest.raises(NotFound):
        services.memories.get_by_id(alice, strange)
    with pytest.raises(NotFound):
        services.access.revoke_key(strange)


def test_numbers_beyond_64_bits_and_half_characters_are_refused_by_name(services: Services, alice: Caller) -> None:
    saved = services.memories.save(alice, Draft("n", "x", GLOBAL)).memory
    for attempt in (
        lambda: services.memories.save(alice, Draft("n", "y", GLOBAL, expected_version=10**30)),
        lambda: services.memories.revert(alice, saved.memory_id, 10**30),
        lambda: services.memories.list(alice, reach(alice), tag="\ud800"),
        lambda: services.memories.search(alice, reach(alice), "x\ud800"),
    ):
        with pytest.raises(Invalid):
            attempt()
