"""What Turnstone's own tests hold of relevance and of the block (its cases 77 to 100), said in our words and held here.

Each docstring begins with the numbers of the cases; where we differ it says so, and docs/turnstone.md says why.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from pegword.core.caller import GLOBAL, Caller, Session, reach, session_scope
from pegword.core.errors import Invalid
from pegword.core.memory import Draft
from pegword.core.render import hint
from pegword.core.text import Analyser
from pegword.services.bundle import Services
from pegword.services.turns import Turn

CASES = range(77, 101)


def save(services: Services, caller: Caller, name: str, content: str, **more: object) -> None:
    services.memories.save(caller, Draft(name, content, more.pop("scope", GLOBAL), **more))  # type: ignore[arg-type]


def found(services: Services, caller: Caller, query: str, limit: int = 20) -> list[str]:
    return [hit.memory.name for hit in services.memories.search(caller, reach(caller), query, limit=limit).hits]


def ask(services: Services, caller: Caller, *texts: str, k: int = 5) -> Turn:
    return services.turns.turn(caller, Session(), [{"role": "user", "content": text} for text in texts], k=k)


def names(turn: Turn) -> list[str]:
    return [shown.memory.name for shown in turn.shown]


@pytest.mark.parametrize("text", ["red fox", "red_fox", "red-fox", "red.fox", "red/fox", "Red_fox/x.y-z", "RED FOX"])
def test_words_are_told_apart_by_blanks_and_signs_whatever_their_case(text: str) -> None:
    """77. Blank, underscore, hyphen, dot, slash, mixed and upper case; nothing in an empty text. (Identifiers are kept whole as well.)"""
    assert {"red", "fox"} <= set(Analyser().distinct(text))
    assert [] == Analyser().distinct("")


def test_what_fits_comes_first(services: Services, alice: Caller) -> None:
    """78, 84. The memory that holds more of the question's words is before one that holds fewer, and both before none."""
    save(services, alice, "a", "The kettle is in the kitchen.")
    save(services, alice, "b", "The replica listens on a port.")
    save(services, alice, "c", "The postgres replica listens on port 5433.")

    assert ["c", "b"] == found(services, alice, "postgres replica port")
    assert "c" == names(ask(services, alice, "Which port has the postgres replica?"))[0]


def test_a_question_without_words_finds_nothing(services: Services, alice: Caller) -> None:
    """79. An empty query finds nothing: an explicit one says so in a sentence."""
    save(services, alice, "a", "The kettle is in the kitchen.")
    with pytest.raises(Invalid, match="query is required"):
        found(services, alice, " ")

    assert [] == found(services, alice, "?!")


def test_no_word_in_common_is_no_memory(services: Services, alice: Caller) -> None:
    """80, 94. Neither in a search nor in a turn, whose block is then empty."""
    save(services, alice, "a", "The kettle is in the kitchen.")

    assert [] == found(services, alice, "volcano")
    assert "" == ask(services, alice, "volcano").block


def test_no_more_than_k_are_shown(services: Services, alice: Caller) -> None:
    """81. In turns and in searches."""
    for number in range(8):
        save(services, alice, f"n{number}", f"The replica number {number}.")

    assert 3 == len(names(ask(services, alice, "replica", k=3))) == len(found(services, alice, "replica", limit=3))


def test_an_empty_store_answers_nothing(services: Services, alice: Caller) -> None:
    """82. Without an error."""
    assert ([], "", 0) == (found(services, alice, "replica"), ask(services, alice, "replica").text, ask(services, alice, "").in_scope)


def test_the_only_memory_is_found(services: Services, alice: Caller) -> None:
    """83. A word that every memory holds still counts."""
    save(services, alice, "only", "The replica listens on port 5433.")

    assert ["only"] == found(services, alice, "replica") == names(ask(services, alice, "replica port"))


def test_equal_memories_have_one_order(services: Services, alice: Caller) -> None:
    """85. Theirs keep the order of asking, which is by time; ours are told apart by time, the later first, and always the same."""
    for name in "xyz":
        save(services, alice, name, "The replica listens.", sitting=name)

    assert {("z", "y", "x")} == {tuple(found(services, alice, "replica")) for _ in range(3)}


def test_nothing_said_shows_the_newest(services: Services, alice: Caller) -> None:
    """86. As many as k."""
    for number in range(4):
        save(services, alice, f"n{number}", "text")

    assert ["n3", "n2"] == names(ask(services, alice, k=2)) == names(ask(services, alice, "  ", k=2))


def test_name_description_and_content_each_match_alone(services: Services, alice: Caller) -> None:
    """87, 88. (And tags; and the whole of a content, not its first 200 characters.)"""
    save(services, alice, "walrus_feeding", "text")
    save(services, alice, "b", "text", description="on the walrus")
    save(services, alice, "c", "text", tags=("walrus",))
    save(services, alice, "d", "filler " * 300 + "walrus")

    assert set("bcd") | {"walrus_feeding"} == set(found(services, alice, "walrus"))


def test_the_last_three_messages_of_the_user_count(services: Services, alice: Caller) -> None:
    """89, 90. A fourth does not, and nobody else's do."""
    for name in ("walrus", "quokka", "kettle", "lantern", "harbour"):
        save(services, alice, name, f"The {name} is blue.", sitting=name)
    messages = [
        {"role": "user", "content": "walrus"}, {"role": "user", "content": "quokka"}, {"role": "assistant", "content": "lantern"},
        {"role": "user", "content": "kettle"}, {"role": "tool", "content": "harbour"}, {"role": "user", "content": "and then?"},
    ]  # fmt: skip

    assert {"quokka", "kettle"} == set(names(services.turns.turn(alice, Session(), messages)))


def test_of_a_message_in_parts_the_texts_count(services: Services, alice: Caller) -> None:
    """91. (An empty synthetic message takes none of the three places here.)"""
    save(services, alice, "walrus", "The walrus is blue.")
    parts = [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "where is the walrus?"}]
    turn = services.turns.turn(alice, Session(), [{"role": "user", "content": parts}, *[{"role": "user", "content": ""}] * 5])

    assert ["walrus"] == names(turn)


def test_an_old_one_that_fits_is_before_fifty_newer_ones_that_do_not(services: Services, alice: Caller) -> None:
    """92. Every visible memory competes."""
    save(services, alice, "old", "The postgres replica in staging listens on port 5433.")
    for number in range(60):
        save(services, alice, f"day{number}", f"Day {number}: what is the state of the work in the team?")

    assert "old" == names(ask(services, alice, "What is the port of the postgres replica in staging?"))[0]


def test_a_coordinator_sees_its_own_scope_alone(services: Services, alice: Caller) -> None:
    """93. Nothing of the others, and they nothing of it."""
    coordinator = services.sessions.create(alice, kind="coordinator")
    save(services, alice, "public", "The walrus is blue.")
    services.memories.save(alice, Draft("plan", "The walrus is first.", session_scope(alice, coordinator)), coordinator)
    said = [{"role": "user", "content": "walrus"}]

    assert ["plan"] == names(services.turns.turn(alice, coordinator, said))
    assert ["public"] == names(services.turns.turn(alice, Session(), said))


def test_a_memory_is_one_element_with_attributes_and_escaped(services: Services, alice: Caller) -> None:
    """95, 96, 98. No attribute for an empty description. (In texts quotes stay, which break out of nothing there.)"""
    hostile = "& < > \" ' walrus"
    save(services, alice, "a", hostile, description=hostile)
    save(services, alice, "b", hostile)
    block = ask(services, alice, "walrus").block

    assert re.search(r"<memory name=\"b\" type=\"project\" scope=\"global\">&amp; &lt; &gt; \" ' walrus</memory>", block)
    assert [hostile, hostile] == [element.text for element in ElementTree.fromstring(block)]
    assert {hostile, None} == {element.get("description") for element in ElementTree.fromstring(block)}


def test_a_long_content_is_cut_and_marked(services: Services, alice: Caller) -> None:
    """97. Theirs at the first 500 characters; here the 500 that fit best."""
    save(services, alice, "long", "filler words " * 200 + "the walrus sleeps here " + "more filler " * 200)
    text = ElementTree.fromstring(ask(services, alice, "walrus").block)[0].text or ""

    assert "walrus sleeps" in text
    assert (True, True, True) == (text.startswith("…"), text.endswith("…"), len(text) <= 502)


def test_the_hint_counts_what_is_in_scope_and_is_there_with_the_tool_alone(services: Services, alice: Caller) -> None:
    """99. All three hundred, not the fifty newest; nothing where the model has no tool."""
    drafts = [Draft(f"n{number}", "text", GLOBAL) for number in range(300)]
    services.engine.write(lambda tx: [services.memories.writing.put(tx, alice, draft, "save") for draft in drafts])

    assert hint(300) == ask(services, alice, "walrus").hint
    assert "" == services.turns.turn(alice, Session(), [], tool=False).hint


def test_a_persona_without_memory_gets_nothing_of_it(services: Services, alice: Caller) -> None:
    """100. No block, no hint; tool and nudges are held in test_turns.py, with all four together."""
    save(services, alice, "walrus", "The walrus is blue.")
    turn = services.turns.turn(alice, Session(memory=False), [{"role": "user", "content": "walrus"}])

    assert ("", "", 0) == (turn.block, turn.hint, turn.in_scope)


def test_every_case_is_held() -> None:
    """By the numbers at the beginning of the docstrings."""
    tests = [value for name, value in vars(sys.modules[__name__]).items() if name.startswith("test_")]
    numbers = re.findall(r"\d+", " ".join((test.__doc__ or "").partition(".")[0] for test in tests))

    assert set(CASES) == set(map(int, numbers))
