"""How many SQL statements each trip takes: counted, for times would only measure the machine."""

import pytest

from pegword.core.caller import GLOBAL, Caller, Session, reach, user_scope
from pegword.core.memory import Draft
from pegword.services.bundle import Services
from tests.conftest import Statements

SAVE_MAX, TURN_MAX, SEARCH_MAX = 9, 7, 6
LONG = " ".join(f"word{n}" for n in range(300))


@pytest.fixture(params=[3, 1_500], ids=["few", "many"])
def stored(request: pytest.FixtureRequest, services: Services, alice: Caller) -> int:
    """A store with few memories and one with many, folded."""
    drafts = [
        Draft(f"n{n}", f"note {n} on tea and deploying word{n}", GLOBAL if n % 2 else user_scope(alice)) for n in range(request.param)
    ]
    services.engine.write(lambda tx: [services.memories.writing.put(tx, alice, draft, "save") for draft in drafts])
    for scope in (GLOBAL, user_scope(alice)):
        services.housekeeper.due(scope.key)
    services.housekeeper.settle()
    return int(request.param)


@pytest.mark.parametrize(
    "draft",
    [
        Draft("new", "brand new", GLOBAL, tags=("a", "b")),
        Draft("n1", "changed, tags and all", GLOBAL, description="d", tags=("a", "b"), priority="high"),
        Draft("n1", "note 1 on tea and deploying word1", GLOBAL),
        Draft("n1", "changed as expected", GLOBAL, tags=("c",), expected_version=1),
    ],
    ids=["created", "updated", "unchanged", "expected"],
)
def test_a_save_takes_at_most_nine(services: Services, alice: Caller, statements: Statements, stored: int, draft: Draft) -> None:
    statements.seen.clear()
    services.memories.save(alice, draft)

    assert len(statements.seen) <= SAVE_MAX


@pytest.mark.parametrize("query", ["deploying tea", '"tea and deploying"', LONG], ids=["words", "phrase", "above the cap"])
@pytest.mark.parametrize("narrow", [{}, {"kind": "project", "tag": "a"}], ids=["all", "filtered"])
def test_a_search_takes_at_most_six(
    services: Services, alice: Caller, statements: Statements, stored: int, query: str, narrow: dict[str, str]
) -> None:
    statements.seen.clear()
    services.memories.search(alice, reach(alice), query, **narrow)  # type: ignore[arg-type]
    services.housekeeper.settle()

    assert len(statements.seen) <= SEARCH_MAX


@pytest.mark.parametrize("said", [["deploying tea"], [LONG, "tea", LONG], []], ids=["words", "above the cap", "nothing"])
def test_a_turn_takes_at_most_seven_its_receipt_included(
    services: Services, alice: Caller, statements: Statements, stored: int, said: list[str]
) -> None:
    """Three or four before the answer, one of which reads what the session was nudged of; the receipt and the access counts after it.

    The first one also reads the tails, which are kept then. A turn that nudges writes its clock too, after the answer: once in a cool-down.
    """
    nudged = []
    for reads_tails in (True, False):
        statements.seen.clear()
        turn = services.turns.turn(alice, Session("w"), [{"role": "user", "content": text} for text in said])
        before = len(statements.seen)
        services.housekeeper.settle()
        nudged.append(turn.nudge is not None)

        assert before <= 4 + reads_tails
        assert len(statements.seen) <= TURN_MAX + nudged[-1] + reads_tails
    assert [len(said) == 1, False] == nudged


@pytest.mark.parametrize("said", [["deploying tea"], [LONG, "tea", LONG], []], ids=["words", "above the cap", "nothing"])
def test_a_turn_in_mode_index_takes_two_more(
    services: Services, alice: Caller, statements: Statements, stored: int, said: list[str]
) -> None:
    """The kept index and what it names; only the turn that makes it writes before it answers."""
    session = services.sessions.create(alice)
    messages = [{"role": "user", "content": text} for text in said]
    statements.seen.clear()
    services.turns.turn(alice, session, messages, mode="index")
    making = len(statements.seen)
    services.housekeeper.settle()
    statements.seen.clear()
    services.turns.turn(alice, session, messages, mode="index")
    before = len(statements.seen)
    services.housekeeper.settle()

    assert before <= 6
    assert len(statements.seen) <= TURN_MAX + 2
    assert making <= 13
