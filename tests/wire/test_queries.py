"""Query strings and what is searched for: strict numbers, no parameter dropped, every text a legal query."""

import time

import httpx2
import pytest

from tests.wire.conftest import save

MEMORIES = "/v1/api/memories"
SEARCH = "/v1/api/memories/search"


@pytest.mark.parametrize(
    "value",
    ["-1", "0", "9223372036854775808", "1e3", "1_000", " 5", "5 ", "٣", "５", "+5", "5.0", "0x10", "abc", "1,000", "--1", "null", "true",
     "9" * 5_000, "1\x00", "²", "NaN", "∞", "%31", "-9223372036854775809"],
)  # fmt: skip
def test_a_limit_that_is_no_plain_number_from_1_is_400(alice: httpx2.Client, value: str) -> None:
    """Below 1 or not a plain integer is 400, and says which of the two."""
    save(alice)
    answer = alice.get(MEMORIES, params={"limit": value})

    assert (answer.status_code, answer.json()["field"]) == (400, "limit")
    assert answer.json()["error"] == ("limit must be at least 1" if value in ("-1", "0") else "limit must be an integer")


@pytest.mark.parametrize(("value", "count"), [("", 3), ("1", 1), ("2", 2), ("007", 3), ("200", 3), ("2147483648", 3), (str(2**63 - 1), 3)])
def test_a_limit_above_the_cap_is_capped_and_an_empty_one_is_absent(alice: httpx2.Client, value: str, count: int) -> None:
    """Above the cap is the cap."""
    for name in ("one", "two", "three"):
        save(alice, name)

    assert len(alice.get(MEMORIES, params={"limit": value}).json()["memories"]) == count


def test_the_caps_are_200_for_a_list_and_50_for_a_search(alice: httpx2.Client) -> None:
    """Defaults 100 and 20, caps 200 and 50; `total` counts all, and `truncated` says that there are more."""
    for number in range(205):
        save(alice, f"wombat_{number}", f"wombat {number}")

    def listed(**parameters: int) -> tuple[int, int, bool]:
        answer = alice.get(MEMORIES, params=parameters).json()
        return len(answer["memories"]), answer["total"], answer["truncated"]

    def found(**fields: int) -> tuple[int, int, bool]:
        answer = alice.post(SEARCH, json={"query": "wombat", **fields}).json()
        return len(answer["memories"]), answer["total"], answer["truncated"]

    assert (listed(), listed(limit=100_000), found(), found(limit=100_000)) == (
        (100, 205, True), (200, 205, True), (20, 205, True), (50, 205, True),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("abc", "limit must be an integer"),
        ("5", "limit must be an integer"),
        (5.0, "limit must be an integer"),
        (True, "limit must be an integer"),
        ([5], "limit must be an integer"),
        (0, "limit must be at least 1"),
        (-1, "limit must be at least 1"),
    ],
)
def test_a_limit_in_a_body_must_be_a_json_integer(alice: httpx2.Client, value: object, sentence: str) -> None:
    """No "5" for 5, no true for 1, no 5.0."""
    answer = alice.post(SEARCH, json={"query": "x", "limit": value})

    assert (answer.status_code, answer.json()["error"], answer.json()["field"]) == (400, sentence, "limit")


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("tpye=user", "unknown query parameter tpye; did you mean type?"),
        ("project=x", "unknown query parameter project; known are type, scope, scope_id, tag, include_expired, limit"),
        ("limits=5", "unknown query parameter limits; did you mean limit?"),
        ("offset=5", "unknown query parameter offset; known are type, scope, scope_id, tag, include_expired, limit"),
        ("=5", "unknown query parameter ; known are type, scope, scope_id, tag, include_expired, limit"),
        ("limit=1&limit=1", "limit is given more than once"),
        ("scope=&scope=", "scope is given more than once"),
        ("scope_id=x", "scope is required when scope_id is provided"),
        ("scope=global&scope_id=x", "scope_id is not allowed with global scope"),
        ("scope=bogus", "invalid scope: bogus; must be one of ['global', 'user', 'workstream']"),
        ("type=bogus", "invalid type: bogus; must be one of ['feedback', 'general', 'project', 'reference', 'user']"),
        (
            "type=user'%20OR%20'1'='1",
            "invalid type: user' OR '1'='1; must be one of ['feedback', 'general', 'project', 'reference', 'user']",
        ),
        ("include_expired=yes", "include_expired must be true or false"),
        ("include_expired=1", "include_expired must be true or false"),
        ("tag=%FF", "the query string is not valid UTF-8"),
        ("&".join(f"p{n}=1" for n in range(100)), "the query string has more than 32 parameters"),
    ],
)
def test_a_parameter_without_effect_is_refused_and_never_dropped(alice: httpx2.Client, query: str, sentence: str) -> None:
    """Unknown, repeated, impossible: 400 in one sentence that names what is valid."""
    answer = alice.get(f"{MEMORIES}?{query}")

    assert (answer.status_code, answer.json()["error"]) == (400, sentence)


def test_a_route_without_parameters_says_so(alice: httpx2.Client) -> None:
    """A filter on a route that has none is not taken for one that was applied."""
    answers = [alice.post(MEMORIES + "?scope=user", json={"name": "a", "content": "x"}), alice.get("/v1/api/memory/x?scope=user")]

    assert [a.json()["error"] for a in answers] == ["unknown query parameter scope: none is taken here"] * 2


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({}, "query is required"),
        ({"query": None}, "query is required"),
        ({"query": ""}, "query is required"),
        ({"query": " \t\n"}, "query is required"),
        ({"query": 5}, "query must be a text"),
        ({"query": ["x"]}, "query must be a text"),
        ({"query": "x", "scope_id": "z"}, "scope is required when scope_id is provided"),
        ({"query": "x", "scope": "global", "scope_id": "z"}, "scope_id is not allowed with global scope"),
        (
            {"query": "x", "scope": "coordinator"},
            "invalid scope: coordinator cannot be used here; must be one of ['global', 'user', 'workstream']",
        ),
        ({"query": "x", "include_expired": 1}, "include_expired must be true or false"),
    ],
)
def test_a_search_that_cannot_be_is_400(alice: httpx2.Client, body: dict[str, object], sentence: str) -> None:
    """The reference's sentences are kept."""
    answer = alice.post(SEARCH, json=body)

    assert (answer.status_code, answer.json()["error"]) == (400, sentence)


QUERIES = [
    '"', "'", "*", "%", "%%", "_", "____", "\\", "(", ")", "((((", "NEAR(", "NEAR(a b, 5)", "content:x", "{a b}:x", "^x", "x AND", "AND",
    "OR OR", "NOT", "-x", "--", "+x", "C++", "alpha-beta", "a/b", "a:b", "x'; DROP TABLE structured_memories; --", '"open phrase',
    '"a" "b', '""', '"" ""', '"-"', "?" * 100, "-" * 500, "x" * 70_000, "🦜", "猫", "猫が", "e\u0301", "\u202e", "\x00", "a\x00b",
    "\x1b[31m",
    "İ", "ß", "\ufeff", "\uffff", "x\u2028y", "' OR 1=1", "<script>", "</memories>", "{{7*7}}", "$x", "a" * 300 + " " + "b" * 300, "١٢٣",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467", "a\tb\nc\r\nd", "scope:user", "type:feedback tag:x", "...", "e.g.", "~", "`ls`",
]  # fmt: skip


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: ascii(query[:20]))
def test_every_text_is_a_legal_query(alice: httpx2.Client, query: str) -> None:
    """No text fails, and none widens what is found: only a blank query, or a NUL, is refused."""
    save(alice, "zebra", "zebra crossing")
    answer = alice.post(SEARCH, json={"query": query})
    turn = alice.post("/v1/api/turn", json={"messages": [{"role": "user", "content": query}]})

    assert answer.status_code == (400 if "\x00" in query else 200), answer.text
    assert turn.status_code == 200
    if answer.status_code == 200:
        assert answer.json() == {"memories": [], "total": 0, "truncated": False}


def test_a_query_of_20_000_words_is_answered_in_a_moment(alice: httpx2.Client) -> None:
    """Long queries neither fail nor slow; the terms above the cap are named, not silently dropped."""
    save(alice, "zebra", "zebra crossing")
    began = time.perf_counter()
    answer = alice.post(SEARCH, json={"query": "zebra " + " ".join(f"word{n}" for n in range(20_000))})
    turn = alice.post("/v1/api/turn", json={"messages": [{"role": "user", "content": "zebra " * 20_000}]})
    took = time.perf_counter() - began

    assert answer.status_code == turn.status_code == 200
    assert took < 100


@pytest.mark.parametrize("query", ["Zebra?", "(zebra)", "zebra's", "ZEBRA", "zébra", "zebra-crossing", "zebra/x", '"zebra', "zebra." * 3])
def test_punctuation_and_case_do_not_hide_a_match(alice: httpx2.Client, query: str) -> None:
    """What is attached to a word does not hide it."""
    save(alice, "stripes", "zebra crossing")

    assert alice.post(SEARCH, json={"query": query}).json()["total"] == 1


def test_a_phrase_finds_words_that_stand_together(alice: httpx2.Client) -> None:
    """Words in double quotes must stand together."""
    save(alice, "one", "the zebra crossing is near")
    save(alice, "two", "crossing the river a zebra drinks")
    answer = alice.post(SEARCH, json={"query": '"zebra crossing"'}).json()

    assert [m["name"] for m in answer["memories"]] == ["one"]


def test_a_filter_acts_before_the_cut(alice: httpx2.Client) -> None:
    """The one match of a kind is found behind many better ones of another."""
    save(alice, "weak", "kestrel and many other words that make this a weak match for the query", type="feedback", tags=["rare"])
    for number in range(60):
        save(alice, f"strong_{number}", "kestrel kestrel kestrel")

    for filters in ({"type": "feedback"}, {"tag": "rare"}):
        answer = alice.post(SEARCH, json={"query": "kestrel", "limit": 1, **filters}).json()
        assert [m["name"] for m in answer["memories"]] == ["weak"]
        assert answer["total"] == 1


def test_what_was_saved_is_found_at_once_and_what_was_deleted_never_again(alice: httpx2.Client) -> None:
    """The index is in the same transaction as the memory."""
    words = ["kestrel", "lemming", "ocelot", "quokka", "axolotl", "narwhal"]
    for earlier, word in zip(["", *words], words, strict=False):
        save(alice, "note", word)
        assert alice.post(SEARCH, json={"query": word}).json()["total"] == 1
        assert not earlier or alice.post(SEARCH, json={"query": earlier}).json()["total"] == 0
    alice.delete("/v1/api/memories/note")
    assert alice.post(SEARCH, json={"query": "narwhal"}).json()["total"] == 0


def test_get_changes_nothing_but_access_counts(alice: httpx2.Client) -> None:
    """GET and search are reads: crawling every one of them leaves each memory as it was."""
    saved = save(alice)
    one = f"/v1/api/memory/{saved['memory_id']}"
    for path in (MEMORIES, f"{MEMORIES}/deploy_day", one, f"{one}/versions", "/health", "/readyz", "/livez", "/openapi.json", "/docs"):
        assert alice.get(path).status_code == 200
    alice.post(SEARCH, json={"query": "deploy"})
    after = alice.get(one).json()

    counted = ("access_count", "last_accessed", "outcome")
    assert {k: v for k, v in after.items() if k not in counted} == {k: v for k, v in saved.items() if k not in counted}
