"""The index of a session: names without texts, the same bytes for the same memories, and honest about what it leaves out."""

import random
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegword.core.render import visible_text
from pegword.core.session_index import CLOSER, DESCRIPTION_CHARS, OPENER, PREAMBLE, READ_ONE, TAGS_SHOWN, Entry, listing


def entry(name: str = "n", **changed: object) -> Entry:
    fields: dict[str, object] = {
        "memory_id": f"id-{name}", "name": name, "kind": "project", "scope": "global", "description": "", "tags": (), "author": "",
    }  # fmt: skip
    return Entry(**{**fields, **changed})  # type: ignore[arg-type]


def text(*entries: Entry, in_scope: int | None = None, index_chars: int = 100_000, tool: bool = True) -> str:
    return listing(entries, in_scope=len(entries) if in_scope is None else in_scope, index_chars=index_chars, tool=tool).text


def test_nothing_in_scope_is_no_index() -> None:
    assert "" == text()


def test_the_whole_of_a_small_one() -> None:
    made = text(
        entry("tea", kind="user", scope="user", description='She  says\n"green".', tags=("drinks",)),
        entry("deploy", tags=("ops", "staging")),
        entry("arch", author="bob"),
    )

    assert made == (
        f"{OPENER}\n{PREAMBLE} {READ_ONE}\n"
        '  <memory name="arch" type="project" scope="global" author="bob"/>\n'
        '  <memory name="deploy" type="project" scope="global" tags="ops, staging"/>\n'
        '  <memory name="tea" type="user" scope="user" description="She says &quot;green&quot;."/>\n'
        f"{CLOSER}"
    )


@given(st.permutations([entry(f"n{i}", scope=scope) for i in range(4) for scope in ("global", "user")]))
def test_the_order_of_asking_is_not_seen(entries: list[Entry]) -> None:
    """By scope and name: the same memories give the same bytes."""
    assert text(*sorted(entries, key=lambda e: e.memory_id)) == text(*entries)


@given(st.integers(500, 3_000), st.integers(1, 60))
def test_the_size_is_kept_and_the_last_line_counts_the_rest(index_chars: int, count: int) -> None:
    made = listing(
        [entry(f"name_{i}", description="d" * (i * 7)) for i in range(count)], in_scope=count, index_chars=index_chars, tool=True
    )
    more = count - len(made.named)
    lines = made.text.splitlines()

    assert len(made.text) <= index_chars
    assert len(made.named) == len(ElementTree.fromstring(made.text))
    counted = f"{more} {'more' if made.named else 'note' if more == 1 else 'notes'} {'was' if more == 1 else 'were'} in scope"
    assert (more > 0) == lines[-2].startswith(counted)


def test_what_comes_first_stays_when_there_is_no_room_for_all() -> None:
    """And the rest is counted, those that were never offered included."""
    made = listing([entry(f"n{i:02}") for i in reversed(range(40))], in_scope=1_000, index_chars=1_000, tool=True)
    kept = len(made.named)

    assert {f"id-n{i:02}" for i in range(40 - kept, 40)} == made.named
    assert made.text.splitlines()[-2] == (
        f"{1_000 - kept} more were in scope when this list was made; find them with memory(action='search', query='...')."
    )


def test_without_a_tool_nothing_speaks_of_one() -> None:
    made = text(entry(), in_scope=3, tool=False)

    assert "action" not in made
    assert made.splitlines()[-2] == "2 more were in scope when this list was made."


def test_a_long_description_is_cut_and_says_so() -> None:
    made = text(entry(description="word " * 2_000), entry("m", tags=tuple(f"t{i}" for i in range(20))))
    shown = {child.get("name"): child for child in ElementTree.fromstring(made)}

    assert f"{('word ' * 2_000)[:DESCRIPTION_CHARS].rstrip()}…" == shown["n"].get("description")
    assert TAGS_SHOWN == len((shown["m"].get("tags") or "").split(", "))


@given(st.lists(st.tuples(st.text(max_size=80), st.text(max_size=20), st.text(max_size=20)), min_size=1, max_size=5))
def test_stored_text_cannot_leave_its_place(stored: list[tuple[str, str, str]]) -> None:
    """As many elements as memories, one a line, nothing hidden, the words intact."""
    entries = [entry(f"n{i}", description=d, tags=(tag,), author=author) for i, (d, tag, author) in enumerate(stored)]
    random.Random(1).shuffle(entries)
    made = text(*entries)
    root = ElementTree.fromstring(made)

    assert (1, 1, len(stored)) == (made.count(OPENER), made.count(CLOSER), len(root))
    assert len(stored) + 3 == len(made.splitlines())
    assert made.replace("\n", "") == visible_text(made.replace("\n", ""))
    for child, (description, _, _) in zip(root, stored, strict=True):
        assert " ".join(visible_text(description).split()) == (child.get("description") or "")


@pytest.mark.parametrize("in_scope", [1, 2])
def test_memories_of_which_none_is_listed_are_counted(in_scope: int) -> None:
    """Such as those that are doubted."""
    assert f"{in_scope} {'note was' if in_scope == 1 else 'notes were'} in scope" in text(in_scope=in_scope)
