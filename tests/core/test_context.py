"""What a turn is about: the last user messages."""

from typing import Any

import pytest

from pegword.core.context import MESSAGE_CHARS_READ, recent_texts


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


def test_our_own_block_inside_a_message_is_not_read() -> None:
    """What was injected must not call for itself again; an unclosed block is cut to the end."""
    assert ["before   after"] == recent_texts([user("before <memories>x</memories> after")])
    assert ["before"] == recent_texts([user("before <memories>x")])
