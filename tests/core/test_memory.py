"""What a memory is: names, limits, tags, times, trust."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegword.core.caller import GLOBAL, Caller
from pegword.core.errors import Invalid
from pegword.core.memory import (
    CONTENT_CHARS_MAX,
    DESCRIPTION_CHARS_MAX,
    Draft,
    checked,
    checked_tags,
    hash_of,
    normal_name,
    parse_time,
    trust_of,
)

AGENT = Caller("u1", "alice", "key:1")
HUMAN = Caller("u1", "alice", "cli", human=True)


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("My-Key Name", "my_key_name"), ("a--b", "a__b"), ("__init__", "__init__"), ("a/b", "a/b"), ("v1.2", "v1.2"),
        ("café", "café"), ("猫", "猫"), ("  x ", "x"), ("a–b", "a_b"), ("C++", "c++"), ("user@host:1", "user@host:1"), ("ＡＢ", "ab"),
        ("हिन्दी", "हिन्दी"),
    ],
)  # fmt: skip
def test_a_name_is_stored_in_its_normal_form(sent: str, stored: str) -> None:
    """NFKC, blanks cut, lower case, dashes and spaces as underscores; nothing collapsed."""
    assert stored == normal_name(sent)


@pytest.mark.parametrize(
    ("sent", "named"),
    [
        ("a<b", "U+003C"),
        ("a\tb", "U+0009"),
        ("a\0b", "U+0000"),
        ("a\ud800", "U+D800"),
        ("a\u202eb", "U+202E"),
        ("a🦜", "U+1F99C"),
        ("deploy\ufe0fday", "U+FE0F"),
        ("\u1160", "U+1160"),
        ("a\u034fb", "U+034F"),
    ],
)
def test_a_name_with_another_character_is_refused_naming_it(sent: str, named: str) -> None:
    """A name is a closed alphabet: it can be no path out, no tag, no control sequence."""
    with pytest.raises(Invalid, match=named.replace("+", r"\+")) as caught:
        normal_name(sent)

    assert "name" == caught.value.field


@given(st.text(max_size=40))
def test_the_normal_form_of_a_normal_form_is_itself(text: str) -> None:
    """What an answer calls a memory finds that memory."""
    try:
        once = normal_name(text)
    except Invalid:
        return

    assert once == normal_name(once)


@pytest.mark.parametrize("sent", ["", "   ", "n" * 257])
def test_a_name_has_one_to_256_characters(sent: str) -> None:
    with pytest.raises(Invalid, match="max 256 characters"):
        normal_name(sent)


@pytest.mark.parametrize(
    ("draft", "field", "says"),
    [
        (Draft("n", " \n ", GLOBAL), "content", "required"),
        (Draft("n", "x" * (CONTENT_CHARS_MAX + 1), GLOBAL), "content", "65536 character limit: it has 65537"),
        (Draft("n", "a\0b", GLOBAL), "content", r"U\+0000"),
        (Draft("n", "a\udc00", GLOBAL), "content", "half of a character"),
        (Draft("n", "x", GLOBAL, description="d" * (DESCRIPTION_CHARS_MAX + 1)), "description", "8192"),
        (Draft("n", "x", GLOBAL, kind="bogus"), "type", "feedback"),
        (Draft("n", "x", GLOBAL, priority="urgent"), "priority", "critical"),
        (Draft("n", "x", GLOBAL, source="mars"), "source", "agent"),
        (Draft("n", "x", GLOBAL, confidence=1.01), "confidence", "between 0.0 and 1.0"),
        (Draft("n", "x", GLOBAL, confidence=float("nan")), "confidence", "between 0.0 and 1.0"),
        (Draft("n", "x", GLOBAL, tags=tuple(map(str, range(33)))), "tags", "32"),
        (Draft("n", "x", GLOBAL, tags=("t" * 65,)), "tags", "64"),
        (Draft("n", "x", GLOBAL, tags=(" ",)), "tags", "must not be blank"),
        (Draft("n", "x", GLOBAL, sitting="s" * 65), "sitting", "64"),
    ],
)
def test_bad_input_is_refused_naming_field_and_limit(draft: Draft, field: str, says: str) -> None:
    """One sentence, the field at fault, the limit in plain digits."""
    with pytest.raises(Invalid, match=says) as caught:
        checked(draft)

    assert field == caught.value.field


def test_limits_count_characters_not_bytes() -> None:
    """65,536 emoji of four bytes each are within the limit."""
    assert "🦜" * CONTENT_CHARS_MAX == checked(Draft("n", "🦜" * CONTENT_CHARS_MAX, GLOBAL)).content


def test_tags_are_compared_folded_and_kept_in_order() -> None:
    assert ("Docker", "ß", "ops") == checked_tags(["Docker", "ß", "docker", "SS", " ops "])


def test_a_human_is_believed_and_an_agent_is_not() -> None:
    """Trust follows the credential; what an agent claims is answered with a warning and changes nothing."""
    claim = Draft("n", "x", GLOBAL, source="user", claims_verified=True)

    human, agent = trust_of(HUMAN, claim), trust_of(AGENT, claim)

    assert ("user", 1.0, "u1", ()) == (human.source, human.confidence, human.verified_by, human.warnings)
    assert ("agent", 0.7, "") == (agent.source, agent.confidence, agent.verified_by)
    assert ["source", "verified"] == [warning.partition(":")[0] for warning in agent.warnings]


@pytest.mark.parametrize("source", ["agent", "tool", "system"])
def test_an_agent_may_say_what_it_is(source: str) -> None:
    assert source == trust_of(AGENT, Draft("n", "x", GLOBAL, source=source)).source


@pytest.mark.parametrize(
    ("sent", "micros"),
    [
        ("1970-01-01T00:00:01", 1_000_000), ("1970-01-01T00:00:01Z", 1_000_000), ("1970-01-01T01:00:01+01:00", 1_000_000),
        (1.5, 1_500_000), (1, 1_000_000), ("2026-11-30", 1_795_996_800_000_000),
    ],
)  # fmt: skip
def test_times_come_as_iso_or_as_seconds(sent: str | float, micros: int) -> None:
    """A time without a zone is UTC."""
    assert micros == parse_time(sent, "expires_at")


@pytest.mark.parametrize("sent", ["soon", "", 0, -1, 1e300, float("inf"), float("nan"), "9999-12-31T23:59:59-14:00", 10**400])
def test_what_is_no_time_is_refused(sent: str | float) -> None:
    with pytest.raises(Invalid, match="expires_at"):
        parse_time(sent, "expires_at")


def test_no_two_records_have_one_hash() -> None:
    """Text cannot move from one field to the next unnoticed."""
    assert hash_of("ab", "", "", "", ()) != hash_of("a", "b", "", "", ())
    assert hash_of("a", "k", "", "", ("x", "y")) != hash_of("a", "k", "", "", ("xy",))
