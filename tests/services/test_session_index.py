"""Mode index: a stable index for the system message, pointers and new texts for the tail."""

import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from pegword.assembly import open_services
from pegword.core import session_index
from pegword.core.caller import GLOBAL, Caller, Session, reach, session_scope, user_scope
from pegword.core.errors import Busy, Invalid, PegwordError
from pegword.core.memory import Draft
from pegword.services import session_index as session_indexes
from pegword.services.bundle import Services
from pegword.services.session_index import Asked, Made, SessionIndex, SessionIndexes
from pegword.services.turns import Turn
from pegword.services.writing import Changes
from pegword.settings import load
from pegword.store.engine import Tx
from tests.conftest import Clock
from tests.patience import PATIENCE_S

DAY_S = 24 * 3_600


def say(*texts: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text} for text in texts]


def at(services: Services, caller: Caller, session: Session, text: str = "how do we deploy?", **more: object) -> Turn:
    return services.turns.turn(caller, services.sessions.get(caller, session.session_id), say(text), mode="index", **more)  # type: ignore[arg-type]


def pointers(turn: Turn) -> list[str]:
    return [s.memory.name for s in turn.shown if s.pointer]


def texts(turn: Turn) -> list[str]:
    return [s.memory.name for s in turn.shown if not s.pointer]


def kept(services: Services, table: str = "session_indexes") -> int:
    with services.engine.read() as tx:
        return int(tx.rows(f"SELECT count(*) FROM {table}")[0][0])


@pytest.fixture
def notes(services: Services, alice: Caller) -> None:
    for name, text, scope, description in (
        ("deploy_process", "Deploy with make release; staging deploys on push to main.", GLOBAL, "how a release is made"),
        ("tea_preference", "She drinks green tea and never coffee.", user_scope(alice), ""),
        ("replica_port", "The postgres replica in staging listens on port 5433.", GLOBAL, ""),
    ):
        services.memories.save(alice, Draft(name, text, scope, description=description, tags=("notes",)))


@pytest.fixture
def session(services: Services, alice: Caller, notes: None) -> Session:
    return services.sessions.create(alice)


def test_the_index_names_what_is_in_scope_and_the_block_points_at_what_matters(services: Services, alice: Caller, session: Session) -> None:
    """No text of a memory stands in the index, and none again in the block."""
    turn = at(services, alice, session)

    assert turn.index is not None
    assert 3 == turn.index.count("<memory ")
    assert 'name="deploy_process" type="project" scope="global" description="how a release is made"/>' in turn.index
    assert not [word for word in ("make release", "green tea", "5433") if word in f"{turn.index}{turn.text}"]
    assert ["deploy_process"] == pointers(turn)
    assert '  <memory name="deploy_process" type="project" scope="global"/>\n' in turn.block
    assert f"{turn.block}\n\n{turn.hint}" == turn.text


def test_no_other_mode_has_an_index(services: Services, alice: Caller, session: Session) -> None:
    for mode in ("system", "tail"):
        turn = services.turns.turn(alice, session, say("how do we deploy?"), mode=mode)

        assert (None, []) == (turn.index, pointers(turn))
    assert 0 == kept(services)


def test_it_stays_the_same_to_the_last_byte_over_a_hundred_turns_with_saves_between(
    services: Services, alice: Caller, session: Session, clock: Clock
) -> None:
    """New memories, changed ones, folds and sweeps: the cached prefix of a conversation survives them all."""
    first = at(services, alice, session)
    for number in range(100):
        clock.pass_s(700)
        services.memories.save(alice, Draft(f"new{number}", f"The deploy note number {number}.", GLOBAL))
        if number % 10 == 0:
            services.memories.save(alice, Draft("deploy_process", f"Deploy with make release, part {number}.", GLOBAL))
            services.memories.save(alice, Draft("gone", "soon", GLOBAL, expires_at=clock.now + 1_000_000))
            services.housekeeper.due("g")
            services.housekeeper.sweep()
        services.housekeeper.settle()

        assert first.index == at(services, alice, session, f"what about deploy number {number}?").index


def test_what_was_saved_or_changed_since_shows_with_its_text(services: Services, alice: Caller, session: Session) -> None:
    """The index tells of it as it was, or not at all."""
    at(services, alice, session)
    services.memories.save(alice, Draft("deploy_day", "We deploy on Tuesdays.", GLOBAL))
    services.memories.save(alice, Draft("deploy_process", "Deploy with make ship.", GLOBAL))
    services.memories.save(alice, Draft("replica_port", "The postgres replica in staging listens on port 5433.", GLOBAL))
    turn = at(services, alice, session, "how do we deploy, and on which port is the replica?")

    assert {"deploy_day", "deploy_process"} == set(texts(turn))
    assert ["replica_port"] == pointers(turn)
    assert "make ship" in turn.block


def test_a_memory_that_is_deleted_leaves_the_index_and_the_store(services: Services, alice: Caller, session: Session) -> None:
    """At once: not only the next index is without it, no table keeps its name or its description."""
    before = at(services, alice, session)
    services.memories.delete(alice, GLOBAL, "deploy_process")
    assert (0, 0) == (kept(services), kept(services, "session_index_memories"))
    after = at(services, alice, session, "green tea")

    assert (True, False) == ("deploy_process" in (before.index or ""), "deploy_process" in (after.index or ""))
    assert after.index == at(services, alice, session).index


def test_a_memory_that_the_index_does_not_name_can_be_deleted_without_touching_it(
    services: Services, alice: Caller, session: Session
) -> None:
    first = at(services, alice, session)
    services.memories.save(alice, Draft("later", "A deploy note.", GLOBAL))
    services.memories.delete(alice, GLOBAL, "later")

    assert first.index == at(services, alice, session).index


@pytest.mark.parametrize("change", [Changes(confidence=0.0), Changes(expires_at=1)], ids=["doubted", "expired"])
@pytest.mark.parametrize("swept", [False, True])
def test_what_may_not_be_shown_any_longer_leaves_the_index(
    services: Services, alice: Caller, session: Session, change: Changes, swept: bool
) -> None:
    """Expired and doubted memories are in no turn, so in no index either."""
    memory = services.memories.get(alice, GLOBAL, "deploy_process")
    assert "deploy_process" in (at(services, alice, session).index or "")
    services.memories.update(alice, memory.memory_id, change)
    if swept:
        services.housekeeper.sweep()

    assert "deploy_process" not in (at(services, alice, session).index or "deploy_process")


def test_one_that_runs_out_by_itself_leaves_it_too(services: Services, alice: Caller, session: Session, clock: Clock) -> None:
    services.memories.save(alice, Draft("soon_over", "A deploy note.", GLOBAL, expires_at=clock.now + 60_000_000))
    before = at(services, alice, session)
    clock.pass_s(61)

    assert (True, False) == tuple("soon_over" in (text or "") for text in (before.index, at(services, alice, session).index))


def test_a_session_that_is_taken_up_again_begins_with_a_new_index(
    services: Services, alice: Caller, session: Session, clock: Clock
) -> None:
    at(services, alice, session)
    services.memories.save(alice, Draft("deploy_day", "We deploy on Tuesdays.", GLOBAL))
    clock.pass_s(10)
    services.sessions.close(alice, session.session_id)
    services.sessions.resume(alice, session.session_id)
    turn = at(services, alice, session)

    assert "deploy_day" in (turn.index or "")
    assert turn.index == at(services, alice, session).index


def test_each_session_has_its_own(services: Services, alice: Caller, session: Session) -> None:
    at(services, alice, session)
    services.memories.save(alice, Draft("deploy_day", "We deploy on Tuesdays.", GLOBAL))
    other = services.sessions.create(alice)

    assert (False, True) == tuple("deploy_day" in (at(services, alice, s).index or "") for s in (session, other))


def test_a_scope_that_the_session_has_no_longer_leaves_the_index(services: Services, alice: Caller, bob: Caller) -> None:
    """Whoever is put out of a project sees its names no more."""
    owner = replace(alice, right="approve")
    project = services.sharing.create(owner, "project", "apollo", {"bob": False}).scope.id
    mine, theirs = (services.sessions.create(who, project_id=project) for who in (alice, bob))
    services.memories.save(alice, Draft("launch", "Launch on Friday.", session_scope(alice, mine, "project")), mine)
    assert "launch" in (at(services, bob, theirs).index or "")
    services.sharing.drop_member(owner, "project", project, "bob")

    assert "" == at(services, bob, theirs).index


def test_without_a_session_it_is_kept_for_the_workstream_for_a_day(services: Services, alice: Caller, notes: None, clock: Clock) -> None:
    def index(session: Session) -> str:
        return services.turns.turn(alice, session, say("deploy"), mode="index").index or ""

    first = index(Session("w1"))
    services.memories.save(alice, Draft("deploy_day", "We deploy on Tuesdays.", GLOBAL))

    assert first == index(Session("w1"))
    assert "deploy_day" in index(Session("w2"))
    clock.pass_s(DAY_S + 1)
    assert "deploy_day" in index(Session("w1"))


def test_two_users_workstreams_of_one_id_have_nothing_in_common(services: Services, alice: Caller, bob: Caller, notes: None) -> None:
    for who, names in ((alice, 3), (bob, 2)):
        turn = services.turns.turn(who, Session("w1"), say("deploy"), mode="index")

        assert names == (turn.index or "").count("<memory ")


def test_with_neither_session_nor_workstream_it_is_refused(services: Services, alice: Caller) -> None:
    with pytest.raises(Invalid, match="mode index needs a session, or at least a workstream") as caught:
        services.turns.turn(alice, Session(), say("x"), mode="index")

    assert "session" == caught.value.field


def test_where_nothing_is_in_scope_the_index_is_empty_and_stays_so(services: Services, alice: Caller) -> None:
    session = services.sessions.create(alice)
    first = at(services, alice, session)
    services.memories.save(alice, Draft("deploy_day", "We deploy on Tuesdays.", GLOBAL))
    second = at(services, alice, session)

    assert ("", "", "") == (first.index, first.text, second.index)
    assert ["deploy_day"] == texts(second)


def test_without_a_tool_every_chosen_memory_shows_its_text(services: Services, alice: Caller, session: Session) -> None:
    """Nothing is pointed at that the model could not read, and nothing speaks of a tool."""
    turn = at(services, alice, session, tool=False)

    assert ([], ["deploy_process"]) == (pointers(turn), texts(turn))
    assert "action" not in f"{turn.index}{turn.text}"


def test_a_critical_memory_shows_its_text_although_the_index_names_it(services: Services, alice: Caller, session: Session) -> None:
    services.memories.save(alice, Draft("rule", "Never push to main.", GLOBAL, priority="critical"))
    turn = at(services, alice, session)

    assert '<memory name="rule"' in (turn.index or "")
    assert ["rule"] == texts(turn)


def test_a_pointer_counts_no_access(services: Services, alice: Caller, session: Session) -> None:
    """The text was not shown; who reads it with the tool is counted then."""
    turn = at(services, alice, session)
    services.memories.save(alice, Draft("deploy_day", "We deploy on Tuesdays.", GLOBAL))
    again = at(services, alice, session)
    services.housekeeper.settle()
    counts = {m.name: m.access_count for m in services.memories.list(alice, reach(alice)).memories}

    assert (["deploy_process"], ["deploy_day"]) == (pointers(turn), texts(again))
    assert (0, 1) == (counts["deploy_process"], counts["deploy_day"])


def test_a_receipt_renders_the_block_with_its_pointers(services: Services, alice: Caller, session: Session) -> None:
    at(services, alice, session)
    services.memories.save(alice, Draft("rule", "Never push to main. " * 30, GLOBAL, priority="critical", description="d" * 300))
    services.memories.save(alice, Draft("deploy_day", "We deploy on Tuesdays.", GLOBAL))
    for budget in (8_000, 700, 400):
        turn = at(services, alice, session, budget_chars=budget)

        assert turn.block == services.turns.explain(alice, turn.receipt, session).block


def test_what_matters_most_is_listed_when_there_is_no_room_for_all(services: Services, alice: Caller, clock: Clock) -> None:
    for number in range(300):
        priority = {0: "critical", 1: "high", 299: "low"}.get(number, "normal")
        services.memories.save(alice, Draft(f"n{number:03}", "text", GLOBAL, description="d" * 120, priority=priority))
    session = services.sessions.create(alice)
    index = at(services, alice, session).index or ""
    names = [f"n{number:03}" for number in range(300) if f'"n{number:03}"' in index]

    assert ["n000", "n001", *(f"n{number:03}" for number in range(299 - len(names) + 2, 299))] == names
    assert len(index) <= 8_000
    assert f"{300 - len(names)} more were in scope when this list was made" in index


def test_a_lever_that_is_off_gives_an_empty_turn_of_the_same_shape(services: Services, alice: Caller, session: Session) -> None:
    """S15: nothing tells whether there is anything."""
    off = Session(session.workstream_id, session.session_id, memory=False)
    turn = services.turns.turn(alice, off, say("how do we deploy?"), mode="index")

    assert ("", "", "", "", 0, ()) == (turn.block, turn.hint, turn.text, turn.index, turn.in_scope, turn.shown)
    assert services.turns.explain(alice, turn.receipt, session).considered == ()


def test_a_database_that_takes_nothing_now_is_no_reason_to_fail(
    services: Services, alice: Caller, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The turn is answered with what it made, and that is kept when the database takes it."""
    with monkeypatch.context() as patched:
        patched.setattr(type(services.engine), "write", lambda *_: (_ for _ in ()).throw(Busy("held")))
        first = services.turns.turn(alice, session, say("deploy"), mode="index")
    assert 0 == kept(services)
    services.memories.save(alice, Draft("deploy_day", "We deploy on Tuesdays.", GLOBAL))
    services.housekeeper.settle()

    assert first.index == at(services, alice, session).index


def test_of_two_that_are_made_at_once_the_first_to_be_kept_holds(
    services: Services, alice: Caller, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second answers with the first one's bytes."""
    original: Callable[..., None] = type(services.housekeeper).done_within
    first: list[Turn] = []

    def slowly(keeper: object, work: object, seconds: float) -> None:
        if not first:
            monkeypatch.setattr(type(services.housekeeper), "done_within", original)
            first.append(at(services, alice, session))
            services.memories.save(alice, Draft("deploy_day", "We deploy on Tuesdays.", GLOBAL))
        original(keeper, work, seconds)

    services.memories.save(alice, Draft("before", "A deploy note.", GLOBAL))
    monkeypatch.setattr(type(services.housekeeper), "done_within", slowly)
    second = at(services, alice, session)

    assert first[0].index == second.index
    assert 1 == kept(services)


def test_one_that_names_what_was_deleted_before_it_was_kept_is_not_kept(
    services: Services, alice: Caller, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    original: Callable[..., None] = type(services.housekeeper).done_within

    def late(keeper: object, work: object, seconds: float) -> None:
        services.memories.delete(alice, GLOBAL, "deploy_process")
        original(keeper, work, seconds)

    with monkeypatch.context() as patched:
        patched.setattr(type(services.housekeeper), "done_within", late)
        at(services, alice, session)

    assert (0, 0) == (kept(services), kept(services, "session_index_memories"))
    assert "deploy_process" not in (at(services, alice, session).index or "")


def test_a_workstream_that_is_deleted_takes_its_names_out_of_every_index(services: Services, alice: Caller) -> None:
    session = services.sessions.create(alice, workstream_id="w1")
    services.memories.save(alice, Draft("here", "A deploy note.", session_scope(alice, session, "workstream")), session)
    at(services, alice, session)
    services.removing.workstream(alice, "w1", with_memories=True)

    assert (0, 0) == (kept(services), kept(services, "session_index_memories"))


def test_indexes_are_forgotten_after_a_month(services: Services, alice: Caller, session: Session, clock: Clock) -> None:
    at(services, alice, session)
    clock.pass_s(31 * DAY_S)
    services.housekeeper.sweep()

    assert (0, 0) == (kept(services), kept(services, "session_index_memories"))


def test_the_frame_stands_once(services: Services, alice: Caller, session: Session) -> None:
    index = at(services, alice, session).index or ""

    assert (1, 1) == (index.count(session_index.OPENER), index.count(session_index.CLOSER))


def check_made_at_once(database: Path | str, monkeypatch: pytest.MonkeyPatch, *, rounds: int = 4) -> None:
    """Two processes' worth of services, several threads each, all taking the first turn of one session while somebody saves."""
    monkeypatch.setattr(session_indexes, "WAIT_S", PATIENCE_S)  # a machine that is slow must not make a second index
    with closing(open_services(database, load(environment={}))) as here, closing(open_services(database, load(environment={}))) as there:
        caller = here.access.agent(here.access.ensure_user("alice"), "key:alice")
        for number in range(20):
            here.memories.save(caller, Draft(f"n{number}", f"A deploy note, number {number}.", GLOBAL))
        for services in (here, there):
            services.housekeeper.start()
        for number in range(rounds):
            told = first_turns((here, there) * 3, caller, here.sessions.create(caller), f"new{number}", monkeypatch)

            assert (6, 1) == (len(told), len(set(told)))


def first_turns(
    asked: Sequence[Services], caller: Caller, session: Session, name: str, monkeypatch: pytest.MonkeyPatch
) -> list[str | None]:
    """What the first turn of *session* answers to each of those *asked*.

    A half of them ask at the same moment; the others when one of those has read and something was saved since, so that the index that
    they would make themselves is another.
    """
    told: list[str | None] = []
    original = SessionIndexes.read
    read, saved = threading.Event(), threading.Event()

    def reads(indexes: SessionIndexes, tx: Tx, asked_for: Asked, in_scope: int) -> SessionIndex | Made:
        made = original(indexes, tx, asked_for, in_scope)
        read.set()
        return made

    def first(services: Services, late: bool) -> None:
        if late:
            assert saved.wait(PATIENCE_S)
        told.append(services.turns.turn(caller, session, say("deploy"), mode="index").index)

    threads = [threading.Thread(target=first, args=(services, place >= len(asked) // 2)) for place, services in enumerate(asked)]
    with monkeypatch.context() as patched:
        patched.setattr(SessionIndexes, "read", reads)
        for thread in threads:
            thread.start()
        assert read.wait(PATIENCE_S)
        for number in range(5):
            asked[0].memories.save(caller, Draft(f"{name}_{number}", "Another deploy note.", GLOBAL))
            saved.set()
        for thread in threads:
            thread.join()
    return told


@pytest.mark.usefixtures("unhurried")
def test_turns_at_the_same_moment_in_two_processes_answer_one_index(database: Path | str, monkeypatch: pytest.MonkeyPatch) -> None:
    check_made_at_once(database, monkeypatch)


@pytest.mark.usefixtures("unhurried")
def test_deletions_beside_turns_leave_no_name_behind(database: Path | str) -> None:
    """Whatever comes first: what is gone is in no index, and nothing waits for another for ever."""
    services = open_services(database, load(environment={}))
    services.housekeeper.start()
    caller = services.access.agent(services.access.ensure_user("alice"), "key:alice")
    scopes = [GLOBAL, user_scope(caller)]
    for number in range(60):
        services.memories.save(caller, Draft(f"n{number}", f"A deploy note, number {number}.", scopes[number % 2]))
    sessions = [services.sessions.create(caller) for _ in range(4)]
    wrong: list[BaseException] = []

    def turns(session: Session) -> None:
        try:
            for _ in range(12):
                services.turns.turn(caller, session, say("deploy"), mode="index")
        except BaseException as error:
            wrong.append(error)

    def deletes(scope_at: int) -> None:
        try:
            for number in range(scope_at, 50, 2):
                services.memories.delete(caller, scopes[scope_at], f"n{number}")
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=turns, args=(session,)) for session in sessions]
    threads += [threading.Thread(target=deletes, args=(at,)) for at in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    services.housekeeper.flush(PATIENCE_S)
    with services.engine.read() as tx:
        bodies = [row[0] for row in tx.rows("SELECT body FROM session_indexes")]
        named = {row[0] for row in tx.rows("SELECT memory_id FROM session_index_memories")}
        there = {row[0] for row in tx.rows("SELECT memory_id FROM structured_memories")}
    services.close()

    assert [] == wrong
    assert named <= there
    assert not [body for body in bodies for number in range(50) if f'"n{number}"' in body]


# Planted faults: each makes a guard above fail


@pytest.mark.parametrize(
    ("place", "fault", "guard"),
    [
        ("pegword.store.session_index_rows.forget_memories", lambda *_: None, "deleted"),
        ("pegword.services.session_index._keep", lambda *_, **__: None, "stable"),
        ("pegword.services.session_index._still_right", lambda *_: True, "doubted"),
        ("pegword.services.session_index._still_right", lambda *_: True, "scope"),
        ("pegword.services.session_index.memory_rows.still_there", lambda _tx, _slots, ids: ids, "before it was kept"),
        ("pegword.services.session_index.SessionIndex.names", lambda *_: True, "since"),
    ],
    ids=lambda value: value if isinstance(value, str) and "." not in value else "",
)
def test_an_index_that_is_not_what_it_says_is_noticed(
    services: Services,
    alice: Caller,
    bob: Caller,
    session: Session,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    fault: Callable[..., object],
    guard: str,
) -> None:
    guards: dict[str, Callable[[], None]] = {
        "deleted": lambda: test_a_memory_that_is_deleted_leaves_the_index_and_the_store(services, alice, session),
        "stable": lambda: test_it_stays_the_same_to_the_last_byte_over_a_hundred_turns_with_saves_between(services, alice, session, clock),
        "doubted": lambda: test_what_may_not_be_shown_any_longer_leaves_the_index(
            services, alice, session, Changes(confidence=0.0), swept=False
        ),
        "scope": lambda: test_a_scope_that_the_session_has_no_longer_leaves_the_index(services, alice, bob),
        "before it was kept": lambda: test_one_that_names_what_was_deleted_before_it_was_kept_is_not_kept(
            services, alice, session, monkeypatch
        ),
        "since": lambda: test_what_was_saved_or_changed_since_shows_with_its_text(services, alice, session),
    }
    monkeypatch.setattr(place, fault)

    with pytest.raises((AssertionError, PegwordError)):
        guards[guard]()


@pytest.mark.usefixtures("unhurried")
def test_an_index_that_each_process_keeps_for_itself_is_noticed(database: Path | str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who does not look at what was kept answers its own."""

    def hasty(_: SessionIndexes, index: SessionIndex | Made) -> SessionIndex:
        return index if isinstance(index, SessionIndex) else SessionIndex(index.kept.body, index.kept.versions)

    monkeypatch.setattr(SessionIndexes, "settled", hasty)
    with pytest.raises(AssertionError, match=r"\(6, 1\) == \(6, \d\)"):
        check_made_at_once(database, monkeypatch)
