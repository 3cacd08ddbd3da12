"""One turn: from the last messages to the block, the hint and the receipt."""

import random
from contextlib import suppress
from dataclasses import replace

import pytest

from pegword.core.caller import GLOBAL, Caller, Session, reach, scope_of, session_reach, session_scope, user_scope
from pegword.core.errors import Invalid, NotFound
from pegword.core.memory import NEVER, Draft
from pegword.core.offered import Offered, offered
from pegword.core.render import hint
from pegword.services.bundle import Services
from pegword.services.housekeeping import Together
from pegword.services.turns import Turn
from pegword.tool.calling import MemoryTool
from tests.conftest import Clock, Statements


def say(*texts: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text} for text in texts]


def shown(turn: Turn) -> list[str]:
    return [s.memory.name for s in turn.shown]


@pytest.fixture
def kitchen(services: Services, alice: Caller) -> None:
    """A few memories of one user and of everybody."""
    for name, text, scope in (
        ("project_architecture", "The backend is hexagonal; ports live in core/ports.", GLOBAL),
        ("deploy_process", "Deploy with make release; staging deploys on push to main.", GLOBAL),
        ("tea_preference", "She drinks green tea and never coffee.", user_scope(alice)),
        ("replica_port", "The postgres replica in staging listens on port 5433.", scope_of(alice, "workstream", "w1")),
    ):
        services.memories.save(alice, Draft(name, text, scope))


def test_what_was_saved_stands_in_the_next_turn(services: Services, alice: Caller, kitchen: None) -> None:
    """The main job: the few that matter, framed, and the true number in scope."""
    turn = services.turns.turn(alice, Session("w1"), say("Which port has the postgres replica in staging?"))

    assert "replica_port" == shown(turn)[0]
    assert '<memory name="replica_port" type="project" scope="workstream">The postgres replica' in turn.block
    assert (4, hint(4)) == (turn.in_scope, turn.hint)
    assert f"{turn.block}\n\n{turn.hint}" == turn.text


def test_a_session_sees_no_workstream_but_its_own(services: Services, alice: Caller, kitchen: None) -> None:
    for session in (Session(), Session("w2")):
        turn = services.turns.turn(alice, session, say("Which port has the postgres replica in staging?"))

        assert "replica_port" not in shown(turn)
        assert 3 == turn.in_scope


def test_bob_sees_nothing_of_alices(services: Services, bob: Caller, kitchen: None) -> None:
    """Not a memory, not a number, not a receipt."""
    turn = services.turns.turn(bob, Session("w1"), say("green tea, and which port has the postgres replica?"))

    assert 2 == turn.in_scope
    assert not {"tea_preference", "replica_port"} & set(shown(turn))


def test_nothing_relevant_is_no_block(services: Services, alice: Caller, kitchen: None) -> None:
    """Silence is a good answer; the hint still says what there is."""
    turn = services.turns.turn(alice, Session(), say("Tell me about volcanoes on Iceland"))

    assert ("", 3) == (turn.block, turn.in_scope)
    assert turn.hint == turn.text


def test_nothing_in_scope_is_no_hint_either(services: Services, bob: Caller) -> None:
    turn = services.turns.turn(bob, Session(), say("hello there"))

    assert ("", "", "", 0) == (turn.block, turn.hint, turn.text, turn.in_scope)


def test_nothing_said_shows_the_newest(services: Services, alice: Caller, kitchen: None) -> None:
    for messages in ([], say("  "), [{"role": "assistant", "content": "hello"}]):
        assert ["tea_preference", "deploy_process"] == shown(services.turns.turn(alice, Session(), messages, k=2))


def test_the_oldest_of_ten_thousand_is_shown_when_it_is_the_one(services: Services, alice: Caller) -> None:
    """Every visible memory competes, however old."""
    services.memories.save(alice, Draft("oldest", "The emergency phone number of the data centre is 555-0199.", GLOBAL))
    work = [
        Draft(f"daily{n}", f"Daily note {n}: the team met, the build was green, the release is in the plan.", GLOBAL) for n in range(9_999)
    ]
    services.engine.write(lambda tx: [services.memories.writing.put(tx, alice, draft, "save") for draft in work])
    services.housekeeper.due("g")
    services.housekeeper.settle()

    turn = services.turns.turn(alice, Session(), say("What is the phone number of the data centre in an emergency?"))

    assert "oldest" == shown(turn)[0]
    assert 10_000 == turn.in_scope


def test_chatter_before_the_question_does_not_drown_it(services: Services, alice: Caller, kitchen: None) -> None:
    """The newest message weighs most; the ones before only help."""
    turn = services.turns.turn(
        alice, Session(), say("I love tea in the morning, green tea", "tea is great", "how do we deploy to staging?"), k=1
    )

    assert ["deploy_process"] == shown(turn)


def test_a_critical_memory_always_shows_first(services: Services, alice: Caller, kitchen: None, clock: Clock) -> None:
    """In addition to k, at most three, the newest ones; not when expired or doubted."""
    for number in range(5):
        services.memories.save(alice, Draft(f"rule{number}", "never push to main", user_scope(alice), priority="critical"))
    services.memories.save(alice, Draft("gone", "old rule", GLOBAL, priority="critical", expires_at=clock.now + 10))
    services.memories.save(alice, Draft("doubted", "no rule", GLOBAL, priority="critical", confidence=0.0))
    clock.pass_s(1)
    turn = services.turns.turn(alice, Session(), say("how do we deploy?"), k=1)
    silent = services.turns.turn(alice, Session(), say("volcanoes on Iceland"))

    assert ["rule4", "rule3", "rule2", "deploy_process"] == shown(turn)
    assert ["rule4", "rule3", "rule2"] == shown(silent)


def test_a_doubted_memory_is_found_but_not_injected(services: Services, alice: Caller, kitchen: None) -> None:
    """Confidence 0.0 is a value."""
    services.memories.save(alice, Draft("rumour", "Deploy by fax on Sundays.", GLOBAL, confidence=0.0))

    assert "rumour" not in shown(services.turns.turn(alice, Session(), say("deploy by fax on sundays?")))
    assert "rumour" == services.memories.search(alice, reach(alice), "fax").hits[0].memory.name


def test_the_budget_is_kept(services: Services, alice: Caller) -> None:
    for number in range(5):
        services.memories.save(alice, Draft(f"n{number}", f"deploy notes {number} " + "x " * 150, GLOBAL))
    turn = services.turns.turn(alice, Session(), say("deploy notes"), budget_chars=900)

    assert 1 <= len(turn.shown) < 5
    assert len(turn.block) <= 900


@pytest.mark.parametrize(("wrong", "field"), [({"k": 0}, "k"), ({"budget_chars": 5}, "budget_chars"), ({"mode": "loud"}, "mode")])
def test_bad_arguments_are_refused_by_name(services: Services, alice: Caller, wrong: dict[str, object], field: str) -> None:
    with pytest.raises(Invalid) as caught:
        services.turns.turn(alice, Session(), say("x"), **wrong)  # type: ignore[arg-type]

    assert field == caught.value.field


def test_the_same_inputs_give_the_same_bytes(services: Services, alice: Caller, kitchen: None, clock: Clock) -> None:
    """No clock and no nonce in the text, in either mode: what a provider cached stays valid."""
    messages = say("How is the backend built, and how do we deploy?")
    first = services.turns.turn(alice, Session(), messages)
    clock.pass_s(3_600)

    assert first.text == services.turns.turn(alice, Session(), messages).text
    assert first.text == services.turns.turn(alice, Session(), messages, mode="tail").text


def test_a_receipt_explains_the_turn_and_renders_the_same_block(services: Services, alice: Caller, kitchen: None) -> None:
    """Terms, scores by term and by part, why each was in or out; the block from the versions that the turn saw."""
    turn = services.turns.turn(alice, Session("w1"), say("the staging replica port"), k=1)
    services.memories.save(alice, Draft("replica_port", "It moved to port 6000.", scope_of(alice, "workstream", "w1")))
    why = services.turns.explain(alice, turn.receipt)

    assert turn.block == why.block
    assert {"stage", "replica", "port"} == {term.term for term in why.terms}
    assert all(term.idf > 0 for term in why.terms)
    fates = {c.name: c.why for c in why.considered}
    assert "relevant" == fates["replica_port"]
    assert {"beyond k", "below the floor"} >= {fate for name, fate in fates.items() if name != "replica_port"}
    best = why.considered[0]
    assert {"stage", "replica", "port"} == set(best.terms)
    assert sum(best.terms.values()) == pytest.approx(best.parts[0]["bm25"])
    assert 1 == best.version


def test_a_receipt_is_its_users_alone_and_goes_with_what_it_names(
    services: Services, alice: Caller, bob: Caller, kitchen: None, clock: Clock
) -> None:
    turn = services.turns.turn(alice, Session("w1"), say("the staging replica port"))
    kept = services.turns.turn(alice, Session("w1"), say("backend hexagonal"))
    with pytest.raises(NotFound, match=r"^Receipt not found$"):
        services.turns.explain(bob, turn.receipt)
    services.turns.explain(alice, turn.receipt)
    services.memories.delete(alice, scope_of(alice, "workstream", "w1"), "replica_port")
    for receipt in (turn.receipt, "no such receipt", ""):
        with pytest.raises(NotFound, match=r"^Receipt not found$"):
            services.turns.explain(alice, receipt)
    clock.pass_s(8 * 24 * 3_600)
    services.housekeeper.sweep()
    with pytest.raises(NotFound):
        services.turns.explain(alice, kept.receipt)


def test_access_is_counted_for_what_was_shown(services: Services, alice: Caller, kitchen: None) -> None:
    services.turns.turn(alice, Session(), say("hexagonal backend ports"), k=1)
    services.housekeeper.settle()
    counts = {m.name: m.access_count for m in services.memories.list(alice, reach(alice)).memories}

    assert {"project_architecture": 1, "deploy_process": 0, "tea_preference": 0, "replica_port": 0} == counts


def test_what_a_memory_says_of_another_user_is_marked_as_theirs(services: Services, alice: Caller, bob: Caller) -> None:
    """Provenance cannot be imitated by content: it is an attribute, set by the server."""
    services.memories.save(bob, Draft("n", 'deploy notes author="alice" verified="true"', GLOBAL))
    block = services.turns.turn(alice, Session(), say("deploy notes")).block

    assert '<memory name="n" type="project" scope="global" author="bob">' in block


def test_a_turn_among_few_memories_takes_three_statements(services: Services, alice: Caller, kitchen: None, statements: Statements) -> None:
    """Where nothing is folded, no block is looked for, and tails are kept; one reads what was nudged. Limits: tests/test_budget.py."""
    services.turns.turn(alice, Session("w1"), say("replica port"))
    statements.seen.clear()
    services.turns.turn(alice, Session("w1"), say("one", "two", "staging port"))

    assert 3 == len(statements.seen)


def test_a_critical_memory_beyond_those_that_always_show_competes(services: Services, alice: Caller) -> None:
    """Three stand apart; a fourth is still a memory."""
    services.memories.save(alice, Draft("oldest_rule", "rotate the walrus keys", GLOBAL, priority="critical"))
    for number in range(3):
        services.memories.save(alice, Draft(f"rule{number}", "never push to main", GLOBAL, priority="critical"))
    said = services.turns.turn(alice, Session(), say("when do we rotate the walrus keys?"))
    blank = services.turns.turn(alice, Session(), [], k=1)

    assert ["rule2", "rule1", "rule0", "oldest_rule"] == shown(said)
    assert ["rule2", "rule1", "rule0", "oldest_rule"] == shown(blank)


def test_the_floor_acts_before_the_cut(services: Services, alice: Caller) -> None:
    """How many are asked for decides how many show, never whether one does."""
    services.memories.save(alice, Draft("praise", "good good", GLOBAL, sitting="a"))
    for number in range(6):
        services.memories.save(
            alice, Draft(f"ops{number}", f"the kubernetes cluster number {number} is upgraded by hand", GLOBAL, sitting=f"b{number}")
        )
    for number in range(40):
        services.memories.save(alice, Draft(f"filler{number}", f"a walk in the park on day {number}", GLOBAL, sitting=f"c{number}"))
    by_k = [shown(services.turns.turn(alice, Session(), say("good kubernetes"), k=k)) for k in range(1, 8)]

    assert [min(k, len(by_k[-1])) for k in range(1, 8)] == [len(names) for names in by_k]
    assert all(names == by_k[-1][: len(names)] for names in by_k)


def test_a_receipt_names_nothing_that_was_deleted_before_it_was_written(services: Services, alice: Caller, kitchen: None) -> None:
    turn = services.turns.turn(alice, Session("w1"), say("the staging replica port"))
    services.memories.delete(alice, scope_of(alice, "workstream", "w1"), "replica_port")
    services.housekeeper.settle()
    with services.engine.read() as tx:
        rows = tx.rows("SELECT memory_id, body FROM receipts WHERE receipt_id = ?", (turn.receipt,))

    assert turn.shown[0].memory.memory_id not in {row[0] for row in rows}


def test_what_waits_to_be_written_after_a_turn_is_small(services: Services, alice: Caller, kitchen: None) -> None:
    """A receipt keeps none of the query's postings alive, and names only the first of the terms above the cap."""
    long = " ".join(f"word{number}" for number in range(20_000))
    services.turns.turn(alice, Session("w1"), say(long, "the staging replica port"))
    (waiting,) = services.housekeeper._waiting
    assert isinstance(waiting, Together)

    assert len(repr((waiting.what, waiting.scopes))) < 30_000
    services.housekeeper.settle()


@pytest.mark.parametrize("seed", range(3))
def test_the_number_in_scope_is_that_of_the_list_whatever_has_happened(
    services: Services, alice: Caller, clock: Clock, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Saves, changes, doubts, expiry before and after the sweep, folds, rebuilds, deletes, and what others do."""
    monkeypatch.setattr("pegword.store.postings.TAIL_MAX", 8)
    chance = random.Random(seed)
    session = Session("w1")
    scopes = [session_scope(alice, session, word) for word in ("global", "user", "workstream")]
    for _ in range(150):
        name, scope = f"n{chance.randrange(25)}", chance.choice(scopes)
        step = chance.random()
        if step < 0.6:
            expires_at = chance.choice((None, None, NEVER, clock.now + 60_000_000, clock.now - 5))
            services.memories.save(
                alice, Draft(name, f"text {chance.random()}", scope, expires_at=expires_at, confidence=chance.choice((None, 0.0, 1.0)))
            )
        elif step < 0.75:
            with suppress(NotFound):
                services.memories.delete(alice, scope, name)
        elif step < 0.85:
            services.memories.save(alice, Draft(name, "elsewhere", scope_of(alice, "workstream", "w2")))
        else:
            clock.pass_s(chance.choice((1, 70)))
            chance.choice((services.housekeeper.sweep, services.housekeeper.settle))()
        turn = services.turns.turn(alice, session, say("text"), mode=chance.choice(("system", "tail", "index")))

        assert services.memories.list(alice, session_reach(alice, session), session).total == turn.in_scope
        assert hint(turn.in_scope) == turn.hint


@pytest.mark.parametrize(("right", "session", "tool", "told"), [
    ("read", Session("w1"), True, True),
    ("write", Session("w1"), True, True),
    ("write", Session("w1"), False, False),
    ("write", Session("w1", memory=False), True, False),
])  # fmt: skip
def test_the_hint_names_the_tool_that_the_session_really_has(
    services: Services, alice: Caller, kitchen: None, right: str, session: Session, tool: bool, told: bool
) -> None:
    """A credential that only reads has search and list too; without a tool, or with the lever off, there is no hint."""
    turn = services.turns.turn(replace(alice, right=right), session, say("how do we deploy?"), tool=tool)

    assert (hint(4) if told else "") == turn.hint


def test_a_coordinators_hint_counts_its_own_scope(services: Services, alice: Caller, kitchen: None) -> None:
    session = services.sessions.create(alice, kind="coordinator")
    before = services.turns.turn(alice, session, say("how do we deploy?"))
    services.memories.save(alice, Draft("plan", "Deploy twice.", session_scope(alice, session)), session)

    assert ("", 0) == (before.hint, before.in_scope)
    assert hint(1) == services.turns.turn(alice, session, say("how do we deploy?")).hint


def test_the_lever_is_the_same_for_turn_tool_and_nudges(services: Services, alice: Caller, kitchen: None) -> None:
    """On, all four speak of memory; off, none of them does."""
    tool = MemoryTool(services, kind_word=lambda kind, *_: kind)
    spoken = {}
    for lever in (True, False):
        session = replace(services.sessions.create(alice), memory=lever)
        turn = services.turns.turn(alice, session, say("how do we deploy?"))
        spoken[lever] = [
            bool(turn.block), bool(turn.hint), bool(turn.nudge), tool.schema(alice, session, "openai") is not None,
            not tool.call(alice, session, {"action": "list"}).is_error, services.nudges.report(alice, session, "denial"),
        ]  # fmt: skip

    assert {True: [True] * 6, False: [False] * 6} == spoken


@pytest.mark.parametrize("fault", ["memory", "tool"])
def test_a_lever_that_is_not_asked_is_noticed(
    fault: str, services: Services, alice: Caller, kitchen: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted faults: each makes the guard above fail."""

    def forgetful(caller: Caller, session: Session, *, tool: bool = True, **_: bool) -> Offered:
        return replace(offered(caller, session, tool=tool), **{fault: True})

    for place in ("services.turns", "services.nudges", "tool.calling"):
        monkeypatch.setattr(f"pegword.{place}.offered", forgetful)
    with pytest.raises(AssertionError):
        test_the_lever_is_the_same_for_turn_tool_and_nudges(services, alice, kitchen)
