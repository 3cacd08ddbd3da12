"""What is there already when a model saves: told where it says nearly the same, not saved again where it is the same."""

import html
import json
from collections.abc import Callable

import pytest

from pegword.core.caller import GLOBAL, Caller, Session, user_scope
from pegword.core.memory import Draft
from pegword.services.bundle import Services
from tests.tool.conftest import Model, ModelOf

PORT = "The postgres replica in staging listens on port 5433."
LONG = " ".join(f"Fact number {n} of a long memory about machine{n}." for n in range(60))


def names_told(text: str) -> list[str]:
    """The names in the rows of similar memories."""
    return [line.split("] ")[1].split(" ")[0] for line in text.split("\n") if line.startswith("  [")]


def stored(services: Services, caller: Caller, model: Model) -> list[str]:
    return sorted(memory.name for memory in model("list", limit=50).memories)


def test_a_save_tells_up_to_three_similar_memories_of_the_same_scope(model: Model) -> None:
    """The model decides what to do about them: nothing is merged or deleted by inference."""
    model.ok("save", name="elsewhere", content=PORT.replace("5433", "5439"), scope="user")
    for n in range(5):
        model.ok("save", name=f"replica_port_{n}", content=f"The staging postgres replica uses port 543{n}.")
    for n in range(20):
        model.ok("save", name=f"diary_{n}", content=f"Entry {n}: we walked along the river and talked about house{n}.")
    text = model.ok("save", name="db_replica", content=PORT)

    assert "Similar in this scope; if one says the same, keep one of them and delete the other:" == text.split("\n")[1]
    told = names_told(text)
    assert 3 == len(told)
    assert all(name.startswith("replica_port_") for name in told)


def test_it_is_silent_where_nothing_is_similar(model: Model) -> None:
    model.ok("save", name="tea", content="She drinks green tea and never coffee.")
    model.ok("save", name="deploy", content="We deploy on Tuesdays, never on Fridays.")

    assert 1 == len(model.ok("save", name="replica", content=PORT).split("\n"))


def test_what_was_saved_together_is_not_similar_for_that(model_of: ModelOf, services: Services, alice: Caller) -> None:
    """Company speaks for memories in the ranking; it makes none alike."""
    model = model_of(alice, services.sessions.create(alice))
    for n, text in enumerate(
        ("green tea in the office", "the car of the office is a blue Volvo", "her office lies in Lyon", "the office has no lift")
    ):
        assert 1 == len(model.ok("save", name=f"n{n}", content=text).split("\n"))


def test_the_memory_that_is_changed_is_not_similar_to_itself(model: Model) -> None:
    model.ok("save", name="replica", content=PORT)

    assert 1 == len(model.ok("save", name="replica", content=PORT.replace("5433", "5434")).split("\n"))


def test_nobody_elses_memories_are_told(model: Model, model_of: ModelOf, bob: Caller) -> None:
    for scope in ("user", "workstream"):
        model_of(bob).ok("save", name=f"bobs_{scope}", content=PORT, scope=scope)
        assert 1 == len(model.ok("save", name=f"alices_{scope}", content=PORT.replace("on", "at"), scope=scope).split("\n"))


def test_a_text_that_another_memory_of_the_scope_has_is_not_saved_again(model: Model) -> None:
    model.ok("save", name="replica_port", content=PORT)
    result = model("save", name="other_name", content=f"  {PORT}\n")

    assert (
        "Not saved: 'replica_port' (scope=global) says exactly this already. To give it another name, delete that one first." == result.text
    )
    assert ("kept", False) == (result.outcome, result.is_error)
    model.ok("delete", name="replica_port")
    assert "Saved memory 'other_name'" in model.ok("save", name="other_name", content=PORT)


@pytest.mark.parametrize("name", ["replica_port", "other_name"])
def test_a_text_of_another_scope_is_not_saved_into_the_default_one_unless_that_is_named(model: Model, name: str) -> None:
    """A model that says again what it was shown, and no scope, would make it everybody's."""
    model.ok("save", name="replica_port", content=PORT, scope="user")

    assert "Not saved: 'replica_port' (scope=user) says exactly this already. To keep it in scope global too, name that scope." == model.ok(
        "save", name=name, content=PORT
    )
    assert "Saved memory" in model.ok("save", name=name, content=PORT, scope="global")


def test_a_memory_that_says_the_same_as_another_may_go_on_saying_it(model: Model, services: Services, alice: Caller) -> None:
    for name in ("one", "two"):
        services.memories.save(alice, Draft(name, PORT, GLOBAL))

    assert "Unchanged: memory 'one'" in model.ok("save", name="one", content=PORT)
    assert ("a",) == model("save", name="one", content=PORT, tags=["a"]).memories[0].tags


def test_short_texts_may_be_the_same(model: Model) -> None:
    """Two ports are both 5432, two switches are both on."""
    for n, content in enumerate(("true", "5432", "port 5432")):
        for name in ("a", "b"):
            assert "Saved" in model.ok("save", name=f"{name}{n}", content=content)


ESCAPES: dict[str, Callable[[str], str]] = {
    "as it is": str, "escaped": html.escape, "escaped twice": lambda text: html.escape(html.escape(text)), "JSON": json.dumps,
    "unescaped": html.unescape,
}  # fmt: skip


@pytest.fixture
def turn(services: Services, alice: Caller) -> Callable[[str], str]:
    """What a turn of Alice's puts before the model."""
    services.memories.save(
        alice, Draft("tea_preference", "She drinks green tea & <never> coffee.", user_scope(alice), description="drinks")
    )
    services.memories.save(alice, Draft("replica_port", PORT, GLOBAL))
    services.memories.save(alice, Draft("machines", LONG, GLOBAL))
    return lambda said: services.turns.turn(alice, Session("w1"), [{"role": "user", "content": said}]).text


@pytest.mark.parametrize("escape", ESCAPES.values(), ids=ESCAPES)
@pytest.mark.parametrize("said", ["Does she drink green tea or coffee?", "Which port has the postgres replica?", "fact 30 about machine30"])
def test_what_a_turn_has_shown_is_not_saved_again(
    model: Model, services: Services, alice: Caller, turn: Callable[[str], str], said: str, escape: Callable[[str], str]
) -> None:
    """Whole, by single lines, and by the text between the tags: the store stays as it is."""
    shown = turn(said)
    assert "<memory " in shown
    before = stored(services, alice, model)
    for text in (shown, *(line for line in shown.split("\n") if "<memory " in line)):
        result = model("save", name="echo", content=escape(text))
        assert ("kept", False) == (result.outcome, result.is_error), result.text
        assert result.text.startswith("Not saved: this is text that memory itself has shown (")
    if escape is not ESCAPES["JSON"]:
        for line in shown.split("\n"):
            if "<memory " in line:
                inside = line.partition('">')[2].removesuffix("</memory>")
                assert "kept" == model("save", name="echo", content=escape(inside)).outcome, inside

    assert before == stored(services, alice, model)


def test_what_is_new_beside_a_block_is_saved_without_it(model: Model, turn: Callable[[str], str]) -> None:
    shown = turn("Which port has the postgres replica?")
    text = model.ok("save", name="office", content=f"{shown}\n\nThe office moved to the harbour in May.", description=shown)

    assert "Left out: text that memory itself has shown (replica_port)." in text
    assert "\n  The office moved to the harbour in May." in model.ok("get", name="office")
    assert "harbour" in model.ok("list").split("\n")[2]


def test_a_passage_that_was_shown_does_not_take_the_place_of_the_whole(model: Model, turn: Callable[[str], str]) -> None:
    """Under its own name it would cut the memory down to what fitted into the block."""
    shown = turn("fact 30 about machine30")
    inside = shown.partition('">')[2].partition("</memory>")[0]
    assert inside.startswith("…")
    text = model.ok("save", name="machines", content=inside)

    assert "Not saved: this is a passage that memory has shown of 'machines' (scope=global)." in text
    assert LONG[:200] in model.ok("get", name="machines")


def test_a_memory_about_blocks_is_saved_as_it_is(model: Model) -> None:
    content = "A block stands between <memories> and </memories>; each <memory> takes a line."
    model.ok("save", name="block_format", content=content)

    assert content == model("get", name="block_format").memories[0].content


def test_what_is_saved_past_the_tool_is_nobodys_echo(services: Services, alice: Caller) -> None:
    """Only the tool stands behind a block; an importer may store one."""
    block = '<memory name="a" type="user" scope="user">b</memory>'

    assert block == services.memories.save(alice, Draft("n", block, GLOBAL)).memory.content
