"""What a turn is about: the last user messages."""

from typing import Any

import pytest

from pegword.core.context import MESSAGE_CHARS_READ, recent_texts
from pegword.core.render import CLOSER, OPENER, PREAMBLE, hint
from pegword.core.session_index import Entry, listing


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def test_the_last_three_user_messages_count_newest_first() -> None:
    messages = [user("one"), user("two"), {"role": "assistant", "content": "no"}, user("three"), user("four")]

    assert ["four", "three", "two"] == recent_texts(messages)


@pytest.mark.parametrize(
    "silent",
    [
        user(""),
        user("   "),
        user(None),
        user([{"type": "tool_result", "tool_use_id": "t", "content": "secret"}]),
        user([{"type": "image_url", "image_url": {"url": "x"}}]),
        user("<memories>\n  <memory>old</memory>\n</memories>"),
        {"role": "tool", "content": "result"},
        {"role": "system", "content": "be kind"},
        {"content": "no role"},
        user([{"type": "text"}]),
        user(7),
    ],
)
def test_a_message_that_says_nothing_takes_no_place(silent: dict[str, Any]) -> None:
    """Tool results, our own blocks and empty synthetic messages leave the three places to real ones."""
    assert ["c", "b", "a"] == recent_texts([user("a"), silent, user("b"), silent, user("c"), silent])


def test_text_parts_of_both_shapes_are_read_and_others_are_not() -> None:
    content = [{"type": "text", "text": "look"}, {"type": "image", "source": {}}, {"type": "input_text", "text": "here"}]

    assert ["look here"] == recent_texts([user(content)])


def test_of_a_very_long_message_both_ends_are_read() -> None:
    """A question stands before or after what was pasted; no message makes a turn slow."""
    (text,) = recent_texts([user("first " + "x " * MESSAGE_CHARS_READ + "last")])

    assert len(text) <= MESSAGE_CHARS_READ + 1
    assert (True, True) == (text.startswith("first"), text.endswith("last"))


BLOCK = f'{OPENER}\n{PREAMBLE}\n  <memory name="a" type="project" scope="global">volcano</memory>\n{CLOSER}'
INDEX = listing([Entry("1", "volcano", "project", "global", "", (), "")], in_scope=5, index_chars=1_000, tool=True).text


@pytest.mark.parametrize("own", [BLOCK, f"{BLOCK}\n\n{hint(3)}", hint(1), INDEX, f"{INDEX}\n{BLOCK}", f"{BLOCK}{BLOCK}"])
def test_what_we_injected_is_not_read(own: str) -> None:
    """What was injected must not call for itself again, wherever it stands, and takes no place by itself."""
    assert [["before", "after"]] == [text.split() for text in recent_texts([user(f"before {own} after")])]
    assert ["c", "b", "a"] == recent_texts([user("a"), user([{"type": "text", "text": own}]), user("b"), user(own), user("c")])
    assert ["said"] == recent_texts([user([{"type": "text", "text": "said"}, {"type": "text", "text": own}])])


@pytest.mark.parametrize("own", [BLOCK, INDEX])
def test_one_that_was_cut_off_is_known_by_its_first_line(own: str) -> None:
    assert ["before"] == recent_texts([user(f"before {own[:-20]}")])


@pytest.mark.parametrize(
    "said", ["what does the <memories> tag do?", "is <memory-index> for the system message?", "You have 3 memories in scope. True?"]
)
def test_a_message_about_our_texts_is_read(said: str) -> None:
    assert [said] == recent_texts([user(said)])


@pytest.mark.timeout(120)
@pytest.mark.parametrize("piece", [OPENER, f"{OPENER}{CLOSER}", "<memory-index>", "You have 1 memories in scope. ", CLOSER])
def test_no_message_makes_it_look_twice_at_everything(piece: str) -> None:
    recent_texts([user(piece * (5_000_000 // len(piece)))])


# What hosts of either provider send, as their references show it.
SHAPES: dict[str, list[dict[str, Any]]] = {
    "chat completions": [
        {"role": "developer", "content": "Be brief."},
        user([
            {"type": "text", "text": "Which port has the replica?"},
            {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
            {"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}},
            {"type": "file", "file": {"file_id": "f"}},
        ]),
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "noise"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
    ],
    "responses": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Which port has the replica?"}]},
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "1", "output": "noise"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "noise"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": "x"}, {"type": "input_file", "file_id": "f"}]},
    ],
    "messages": [
        user([
            {"type": "image", "source": {"type": "base64", "data": "x"}},
            {"type": "document", "source": {"type": "text", "data": "noise"}, "title": "noise"},
            {"type": "text", "text": "Which port has the replica?", "cache_control": {"type": "ephemeral"}},
        ]),
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "noise"}, {"type": "tool_use", "id": "1", "name": "f"}]},
        user([{"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "noise"}]}]),
        user([{"type": "search_result", "source": "x", "title": "noise", "content": [{"type": "text", "text": "noise"}]}]),
    ],
}  # fmt: skip


@pytest.mark.parametrize("messages", SHAPES.values(), ids=SHAPES)
def test_of_each_providers_messages_what_the_user_wrote_is_read_and_nothing_else(messages: list[dict[str, Any]]) -> None:
    assert ["Which port has the replica?"] == recent_texts(messages)


def test_what_a_user_writes_beside_a_tools_result_is_read() -> None:
    parts = [{"type": "tool_result", "tool_use_id": "1", "content": "noise"}, {"type": "text", "text": "no, the other one"}]

    assert ["no, the other one"] == recent_texts([user(parts)])
