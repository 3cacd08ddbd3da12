"""What the messages of a turn tell of the moment at which they end, in the shapes of OpenAI and Anthropic."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegword.core.context import recent_texts
from pegword.core.happened import Happened, happened
from pegword.core.nudge import KINDS, TEXTS
from tests.core.languages import LANGUAGES

Messages = list[dict[str, Any]]


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def model(text: str = "well") -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def openai(name: str = "run", arguments: str = '{"a": 1}', result: str = "42", **more: Any) -> Messages:
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return [{"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c1", "content": result, **more}]


def anthropic(name: str = "run", arguments: Any = None, result: Any = "42", **more: Any) -> Messages:
    call = {"type": "tool_use", "id": "t1", "name": name, "input": {"a": 1} if arguments is None else arguments}
    return [
        {"role": "assistant", "content": [{"type": "text", "text": "let me see"}, call]},
        user([{"type": "tool_result", "tool_use_id": "t1", "content": result, **more}]),
    ]


def told(messages: Messages) -> Happened:
    return happened(messages, LANGUAGES)


def kinds(messages: Messages) -> "set[str]":
    return set(told(messages).kinds)


SHAPES = pytest.mark.parametrize("shape", [openai, anthropic])


@pytest.mark.parametrize(("text", "kind"), [("no, use tabs", "correction"), ("thanks!", "completion"), ("which port?", "")])
def test_what_the_user_says_is_read(text: str, kind: str) -> None:
    for content in (text, [{"type": "text", "text": text}], [{"type": "image"}, {"type": "input_text", "text": text}]):
        assert ({kind} if kind else set()) == kinds([user("write it"), model(), user(content)])


def test_who_corrects_is_not_content() -> None:
    assert {"correction"} == kinds([user("a"), model(), user("thanks, that's not it")])


def test_what_was_said_before_the_model_spoke_is_past() -> None:
    assert set() == kinds([user("no, use tabs"), model()])
    assert set() == kinds([user("no, use tabs"), model(), user("which port?")])
    assert set() == kinds([user("no, use tabs"), *openai()])


def test_of_several_messages_of_the_user_the_last_is_read() -> None:
    assert set() == kinds([user("a"), model(), user("no, use tabs"), user("which port?")])


def test_what_the_host_put_in_is_not_what_the_user_says() -> None:
    """System messages, our own block, and our own nudges."""
    block = '<memories>\n  <memory name="a">no, that\'s not it</memory>\n</memories>'
    for last in (
        {"role": "system", "content": "no, stop"},
        {"role": "developer", "content": "no, stop"},
        user(block),
        user(TEXTS["denial"]),
    ):
        assert set() == kinds([user("a"), model(), last])
    assert set() == kinds([user("a"), model(), user([{"type": "text", "text": "which port?"}, {"type": "text", "text": TEXTS["denial"]}])])


def test_a_nudge_in_a_message_is_not_searched_for_either() -> None:
    assert ["which port?"] == recent_texts([user(f"which port?\n{TEXTS['correction']}"), user(TEXTS["start"])])


@SHAPES
def test_a_result_that_says_that_it_failed_is_an_error(shape: Any) -> None:
    assert {"tool_error"} == kinds([user("a"), *shape(result="no such file", is_error=True)])
    assert {"tool_error"} == kinds([user("a"), *shape(result="no such file", status="error")])
    assert {"tool_error"} == kinds([user("a"), *shape(result="Error: no such file")])
    assert {"tool_error"} == kinds([user("a"), *shape(result=[{"type": "text", "text": "Error: no such file"}])])


@SHAPES
def test_a_result_that_says_that_it_did_not_fail_is_believed(shape: Any) -> None:
    assert set() == kinds([user("a"), *shape(result="Error: this is what the log says", is_error=False)])
    assert set() == kinds([user("a"), *shape(result="42")])
    assert set() == kinds([user("a"), *shape(result=None)])


@SHAPES
def test_a_denial_is_no_failure(shape: Any) -> None:
    assert {"denial"} == kinds([user("a"), *shape(result="User denied the tool call", is_error=True)])
    assert {"denial"} == kinds([user("a"), *shape(result="User denied the tool call")])


@SHAPES
def test_an_error_before_the_model_spoke_again_is_past(shape: Any) -> None:
    assert set() == kinds([user("a"), *shape(result="Error: no such file"), *shape(name="other")])
    assert set() == kinds([user("a"), *shape(result="Error: no such file"), model(), user("go on")])


@SHAPES
def test_one_failure_in_a_batch_is_enough(shape: Any) -> None:
    assert {"tool_error"} == kinds([user("a"), *shape(), shape(result="Error: no")[1], shape()[1]])


@SHAPES
@pytest.mark.parametrize("result", ["42", "Error: no such file"])
def test_the_third_identical_call_in_a_row_is_a_circle(shape: Any, result: str) -> None:
    """Whether it failed or not; the fourth and fifth are not told again, the sixth is."""
    told_at = [n for n in range(1, 8) if "repeat" in kinds([user("a"), *shape(result=result) * n])]

    assert [3, 6] == told_at


@SHAPES
@pytest.mark.parametrize(
    "between",
    [
        lambda shape: shape(name="other"),
        lambda shape: shape(arguments={"a": 2} if shape is anthropic else '{"a": 2}'),
        lambda _: [user("once more")],
    ],
    ids=["tool", "arguments", "user"],
)
def test_another_call_or_a_word_of_the_user_begins_anew(shape: Any, between: Any) -> None:
    assert "repeat" not in kinds([user("a"), *shape() * 2, *between(shape), *shape() * 2])
    assert "repeat" in kinds([user("a"), *shape() * 2, *between(shape), *shape() * 3])


def test_a_circle_within_one_message_is_one() -> None:
    """Parallel calls; also when another call came first in the same message, and when the third is not the last."""
    call = {"id": "c", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    other = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    for calls, is_one in (
        ([call] * 3, True),
        ([other, *[call] * 3], True),
        ([call] * 4, True),
        ([call] * 2, False),
        ([call, call, other], False),
    ):
        messages = [user("a"), {"role": "assistant", "tool_calls": calls}, {"role": "tool", "content": "1"}]
        assert is_one == ("repeat" in kinds(messages))


def test_a_circle_that_is_past_is_not_told() -> None:
    assert "repeat" not in kinds([user("a"), *openai() * 3, model(), user("go on")])
    assert "repeat" not in kinds([user("a"), *openai() * 3, model()])


def test_arguments_that_cannot_be_compared_are_not_the_same() -> None:
    deep: Any = []
    other: Any = []
    for _ in range(100_000):
        deep, other = [deep], [other]

    assert "repeat" not in kinds([user("a"), *anthropic(arguments=deep), *anthropic(arguments=other), *anthropic(arguments=deep)])


def test_the_old_form_of_a_call_is_known() -> None:
    call = [
        {"role": "assistant", "function_call": {"name": "run", "arguments": "{}"}},
        {"role": "function", "name": "run", "content": "Error: no"},
    ]

    assert {"repeat", "tool_error"} == kinds([user("a"), *call * 3])


@pytest.mark.parametrize(
    ("messages", "seams"),
    [
        ([], {"user"}),
        ([user("a")], {"user"}),
        ([user("a"), model()], {"user"}),
        ([user("a"), *openai()], {"tool"}),
        ([user("a"), *anthropic()], {"tool"}),
        ([user("a"), *openai(), user("stop")], {"user", "tool"}),
        ([user("a"), anthropic()[0], user([*anthropic()[1]["content"], {"type": "text", "text": "and b"}])], {"user", "tool"}),
    ],
)
def test_the_seams_are_those_at_which_the_messages_end(messages: Messages, seams: "set[str]") -> None:
    assert seams == set(told(messages).seams)


@pytest.mark.parametrize(
    ("messages", "count"),
    [
        ([], 0),
        ([{"role": "system", "content": "be good"}], 0),
        ([user("")], 0),
        ([user("<memories>\n</memories>")], 0),
        ([{"role": "system", "content": "be good"}, user("a")], 1),
        ([user("a"), user("  ")], 1),
        ([user("a"), model()], 2),
        ([user("a"), *anthropic()], 2),
        ([user("a")] * 1_000, 2),
    ],
)
def test_messages_that_say_nothing_are_not_counted(messages: Messages, count: int) -> None:
    assert count == told(messages).messages


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
MESSAGE = st.dictionaries(
    st.sampled_from(["role", "content", "tool_calls", "function_call", "is_error", "status"]),
    st.sampled_from(["user", "assistant", "tool", "function", "system", "error"]) | JSON,
) | st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant"]),
        "content": st.lists(
            st.fixed_dictionaries(
                {"type": st.sampled_from(["text", "tool_result", "tool_use"]), "content": JSON, "text": JSON, "input": JSON}
            ),
            max_size=3,
        ),
    }
)


@given(st.lists(MESSAGE, max_size=8))
def test_no_messages_make_it_fail(messages: Messages) -> None:
    out = told(messages)

    assert out.kinds <= set(KINDS)
    assert out.seams <= {"user", "tool"}
    assert out.seams
