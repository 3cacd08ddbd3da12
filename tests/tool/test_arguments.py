"""What a model sends is read where it can mean one thing only; everything else is one sentence."""

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegword.core.errors import Invalid
from pegword.core.memory import NEVER
from pegword.tool.arguments import LIMIT_DEFAULT, LIMIT_MAX, SETTLED, USES, Request, read

NOW = 1_800_000_000_000_000
ACTIONS = tuple(USES)


def reads(**arguments: Any) -> Request:
    return read(arguments, ACTIONS, NOW)


def refuses(**arguments: Any) -> str:
    with pytest.raises(Invalid) as refusal:
        reads(**arguments)
    return str(refusal.value)


@pytest.mark.parametrize("action", [" Save ", "SAVE", "save", ["save"]])
def test_an_action_is_trimmed_and_in_lower_case(action: Any) -> None:
    assert "save" == reads(action=action, name="n", content="c").action


@pytest.mark.parametrize("action", ["forget", "sav", "5", 5, "\u202esave", "save search", "x" * 10_000])
def test_an_unknown_action_is_told_which_there_are(action: Any) -> None:
    sentence = refuses(action=action)

    assert "it must be one of save, search, list, get, delete" in sentence
    assert len(sentence) < 200


@pytest.mark.parametrize("missing", [{}, {"action": None}, {"action": ""}, {"action": "  "}, {"action": []}])
def test_without_an_action_it_says_which_there_are(missing: dict[str, Any]) -> None:
    with pytest.raises(Invalid, match=r"action .*(one of save, search, list, get, delete|a list of 0)"):
        read(missing, ACTIONS, NOW)


def test_key_and_value_are_other_words_for_name_and_content() -> None:
    assert ("n", "c") == (reads(action="save", key="n", value="c").name, reads(action="save", key="n", value="c").content)
    assert "n" == reads(action="get", key="n", name="n").name
    assert "n" == reads(action="get", key="n", name=None).name


def test_two_words_for_one_thing_must_agree() -> None:
    assert "name and key mean the same and differ; give name once" == refuses(action="get", name="a", key="b")


@pytest.mark.parametrize(
    "arguments", ['{"action": "delete", "name": "a", "name": "b"}', b'{"action": "list", "name": "b", "action": "delete"}']
)
def test_one_name_twice_in_a_json_text_must_agree(arguments: str | bytes) -> None:
    """JSON's readers take the last one, and nobody knows which was meant. The same twice can mean one thing only."""
    with pytest.raises(Invalid, match=r"^(name|action) is given twice, and differs; give it once$"):
        read(arguments, ACTIONS, NOW)
    assert "n" == read('{"action": "get", "name": "n", "name": "n"}', ACTIONS, NOW).name


@pytest.mark.parametrize("spelling", ["Name", " name ", "NAME"])
def test_an_arguments_own_name_may_be_spelt_freely(spelling: str) -> None:
    assert "n" == read({"Action": "get", spelling: "n"}, ACTIONS, NOW).name


@pytest.mark.parametrize(("value", "text"), [("a", "a"), (5, "5"), (1.5, "1.5"), (-7, "-7"), (["a"], "a"), ((5,), "5")])
def test_what_can_only_be_one_text_is_that_text(value: Any, text: str) -> None:
    assert text == reads(action="save", name="n", content=value).content


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (True, "true"), (["a", "b"], "a list of 2"), ({"a": 1}, "an object"), ([["a"]], "a list of 1"), (float("nan"), "a number"),
        (10**400, "a number"), (b"x", "of type bytes"), ([True], "true"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("field", ["name", "content", "description"])
def test_what_is_no_text_is_refused_by_its_name(field: str, value: Any, what: str) -> None:
    assert f"{field} must be a text: it is {what}" == refuses(**{"action": "save", "name": "n", "content": "c", field: value})


@pytest.mark.parametrize(
    ("action", "field"), [("save", "name"), ("save", "content"), ("get", "name"), ("delete", "name"), ("search", "query")]
)
@pytest.mark.parametrize("nothing", [None, "", " \n\t "])
def test_what_an_action_cannot_do_without_is_named(action: str, field: str, nothing: Any) -> None:
    """A search without a query is sent to the list; nothing is guessed."""
    given_ = {"name": "n", "content": "c", "query": "q", field: nothing}
    also = "; use list to see the newest" if action == "search" else ""

    assert f"{action} needs a {field}{also}" == refuses(action=action, **given_)


@pytest.mark.parametrize(
    ("value", "limit"),
    [
        (None, LIMIT_DEFAULT), ("", LIMIT_DEFAULT), (5, 5), ("5", 5), (" 7 ", 7), (5.0, 5), ("5.0", 5), ("+5", 5), ("007", 7),
        (0, 1), (-3, 1), ("-3", 1),
        (51, LIMIT_MAX), ("1000", LIMIT_MAX), (10**400, LIMIT_MAX), ("9" * 5000, LIMIT_MAX),
        ("-" + "9" * 5000, 1), (-(10**400), 1), (1e300, LIMIT_MAX),
    ],
)  # fmt: skip
def test_a_limit_is_brought_within_its_bounds(value: Any, limit: int) -> None:
    assert limit == reads(action="list", limit=value).limit


@pytest.mark.parametrize("value", ["many", True, False, 2.5, "2.5", [5], {}, float("nan"), float("inf"), "5 results", "٥", "0x5", "1e3"])
def test_what_is_no_whole_number_is_no_limit(value: Any) -> None:
    assert f"limit must be a whole number from 1 to {LIMIT_MAX}: it is " in refuses(action="list", limit=value)


@pytest.mark.parametrize(
    ("value", "tags"),
    [
        (None, None), ("", None), (["a", "b"], ("a", "b")), ("a, b", ("a", "b")), ("a", ("a",)), ('["a", "b"]', ("a", "b")), ([], ()),
        ("[]", ()),
        (["a", None, " ", 5], ("a", "5")), (("a",), ("a",)), ("a,,b,", ("a", "b")), ([["a"]], ("a",)),
    ],
)  # fmt: skip
def test_tags_may_come_in_one_text(value: Any, tags: Any) -> None:
    assert tags == reads(action="save", name="n", content="c", tags=value).tags


@pytest.mark.parametrize("value", [5, True, {"a": 1}, [{"a": 1}], [["a", "b"]], "[1, 2", '["a", {}]'])
def test_what_is_no_list_of_texts_is_no_tags(value: Any) -> None:
    assert "tags must be" in refuses(action="save", name="n", content="c", tags=value)


@pytest.mark.parametrize(
    ("value", "confidence"), [(None, None), ("", None), (0, 0.0), (1, 1.0), (0.5, 0.5), ("0.8", 0.8), (" 1 ", 1.0), (".5", 0.5)]
)
def test_a_confidence_may_come_as_a_text(value: Any, confidence: float | None) -> None:
    assert confidence == reads(action="save", name="n", content="c", confidence=value).confidence


@pytest.mark.parametrize("value", [True, 1.1, -0.1, "high", "80%", [0.5], {}, float("nan"), float("inf"), 10**400, "1" * 40])
def test_a_confidence_beyond_its_bounds_is_told_the_scale(value: Any) -> None:
    sentence = refuses(action="save", name="n", content="c", confidence=value)

    assert sentence.startswith("confidence must be a number from 0.0 (doubted) to 1.0 (the user said so): it is ")


@pytest.mark.parametrize(
    ("value", "at"),
    [
        (None, None), ("", None), ("never", NEVER), ("7d", NOW + 7 * 86_400_000_000), ("2027-01-31", 1_801_353_600_000_000),
        (1_801_353_600, 1_801_353_600_000_000), ("2027-01-31T00:00:00Z", 1_801_353_600_000_000),
    ],
)  # fmt: skip
def test_an_expiry_is_a_time_or_a_duration(value: Any, at: int | None) -> None:
    assert at == reads(action="save", name="n", content="c", expires_at=value).expires_at


@pytest.mark.parametrize("value", [True, "tomorrow", [1], {}, float("nan"), 10**400, -5, "9" * 400 + "d", "1800000000"])
def test_what_is_no_time_is_no_expiry(value: Any) -> None:
    assert "expires_at" in refuses(action="save", name="n", content="c", expires_at=value)


@pytest.mark.parametrize("name", sorted(SETTLED))
def test_who_and_where_follow_from_the_session(name: str) -> None:
    """A model cannot name a user, a kind of session or an id: it has no effect, and the answer says so."""
    with_it, without = reads(action="list", **{name: "bob"}), reads(action="list")

    assert (f"Ignored: {name}; the session settles that.",) == with_it.notes
    assert without == Request(**{**_fields(with_it), "notes": (), "places": ()})


def test_an_unknown_argument_is_told_which_there_are() -> None:
    assert "Ignored: colour; the arguments are action, name, content" in reads(action="list", colour="red").notes[0]


def test_an_argument_that_the_action_does_not_use_is_named_where_it_says_something() -> None:
    """Some hosts make a model fill in every argument."""
    filled = {"name": "", "content": None, "tags": [], "query": "tea"}

    assert ("Ignored: query; list takes type, scope, limit.",) == reads(action="list", **filled).notes


def test_many_strange_names_do_not_make_a_long_answer() -> None:
    notes = read({"action": "list", **{f"\u202e{'x' * 500}\n{n}": 1 for n in range(1000)}}, ACTIONS, NOW).notes

    assert len(notes[0]) < 1_000
    assert "and 990 more" in notes[0]
    assert notes[0].isprintable()


def test_arguments_may_come_as_their_json_text() -> None:
    assert reads(action="get", name="n") == read(json.dumps({"action": "get", "name": "n"}), ACTIONS, NOW)
    assert reads(action="get", name="n") == read(b'{"action": "get", "name": "n"}', ACTIONS, NOW)


@pytest.mark.parametrize(
    "arguments", [None, [], "", "x", "[]", "5", 5, True, "{", "[" * 100_000, b"\xff", '{"a": ' + "9" * 5000 + "}", "x" * 2_000_000]
)
def test_what_is_no_object_is_told_how_one_looks(arguments: Any) -> None:
    with pytest.raises(Invalid, match=r"^the arguments (must be an object|are not valid JSON|exceed 1048576 characters)"):
        read(arguments, ACTIONS, NOW)


def _fields(request: Request) -> dict[str, Any]:
    return {name: getattr(request, name) for name in Request.__dataclass_fields__}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
NAMES = st.sampled_from(
    [
        "name",
        "content",
        "key",
        "value",
        "description",
        "type",
        "scope",
        "tags",
        "priority",
        "confidence",
        "expires_at",
        "query",
        "limit",
        "kind",
        "user_id",
        "Name",
    ]
)


@given(st.dictionaries(NAMES, JSON), st.sampled_from([*ACTIONS, None, 5]) | JSON)
def test_whatever_comes_is_read_or_refused(arguments: dict[str, Any], action: Any) -> None:
    """Never another exception, and never a sentence that cannot be written down."""
    said = _said({**arguments, "action": action})

    assert all(said)
    "".join(said).encode()


@given(JSON)
def test_whatever_stands_for_the_arguments_is_read_or_refused(arguments: Any) -> None:
    assert all(_said(arguments))


def _said(arguments: Any) -> list[str]:
    """The notes, or the refusal, that *arguments* get."""
    try:
        request = read(arguments, ACTIONS, NOW)
    except Invalid as refusal:
        return [str(refusal)]
    return [*request.notes, str(request.limit)]


# Runs of what a pattern may read in more than one way; what follows makes it try them all.
RUNS = ("0", "9", "1.", "1,000", "-", " ", "\n", "a.", "aA", "_", ",", "[", '"', "\u0301", "\u200b", "猫", "&amp;", "%20")
LONG_CHARS, LONG_S, SAID_CHARS_MAX = 30_000, 5.0, 1_000  # what takes a square of the time takes some 30 seconds


@pytest.mark.parametrize(("action", "field"), [(action, field) for action, fields in USES.items() for field in (*fields, "action", "odd")])
def test_a_long_text_takes_no_long_time_wherever_it_stands(action: str, field: str) -> None:
    """And what is said of it is short. While one pattern is looked for, nothing else of the process is done."""
    began = time.process_time()
    said = [
        _said({"name": "n", "content": "c", "query": "q", "action": action, field: run * (LONG_CHARS // len(run)) + end})
        for run in RUNS
        for end in ("", "x")
    ]

    assert time.process_time() - began < LONG_S
    assert max(len(text) for texts in said for text in texts) < SAID_CHARS_MAX
