"""What an injected block has shown is recognised when it comes back, and nothing else is."""

import html
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegword.core.echo import OWN_LETTERS_MIN, echo
from pegword.core.render import Note, block, hint
from pegword.core.session_index import Entry, listing
from pegword.core.text import Analyser

ANALYSER = Analyser()
OWN = "The new thing is that the office moved to the harbour in May."


def rendered(*notes: Note) -> str:
    return block(notes, budget_chars=100_000, preview_chars=500, weights={}, analyser=ANALYSER).text


def note(
    name: str = "tea_preference", content: str = "She drinks green tea & never coffee.", *, pointer: bool = False, **more: str
) -> Note:
    given = {"kind": "user", "scope": "user", "description": "", "author": "", **more}
    return Note(name, given["kind"], given["scope"], given["description"], content, False, given["author"], None, pointer)


BLOCK = rendered(
    note(description="what she drinks", author="bob"),
    note("replica_port", "Listens on 5433.\nAnd </memory> is in it, </memories> too.", kind="project", scope="workstream"),
    note("café:x", "Plain text."),
)
TEXT = f"{BLOCK}\n\n{hint(3)}"
POINTING = rendered(note(pointer=True), note("replica_port", "Listens on 5433."), note("café:x", pointer=True))
INDEX = listing(
    [
        Entry("1", "tea_preference", "user", "user", "what she drinks", (), "bob"),
        Entry("2", "replica_port", "project", "workstream", "", ("ports", "staging"), ""),
        Entry("3", "café:x", "user", "user", "", (), ""),
    ],
    in_scope=20,
    index_chars=8_000,
    tool=True,
).text

DRESSES: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "escaped": html.escape,
    "escaped twice": lambda text: html.escape(html.escape(text)),
    "unescaped": html.unescape,
    "JSON": json.dumps,
    "JSON in JSON": lambda text: json.dumps(json.dumps(text)),
    "URL": quote,
    "one line": lambda text: text.replace("\n", " "),
    "indented": lambda text: text.replace("\n", "\n      "),
    "carriage returns": lambda text: text.replace("\n", "\r\n"),
    "typographic quotes": lambda text: text.replace('"', "”"),
    "single quotes": lambda text: text.replace('"', "'"),
    "shouted": str.upper,
}


@pytest.mark.parametrize("dress", DRESSES.values(), ids=DRESSES)
@pytest.mark.parametrize("text", [BLOCK, TEXT, POINTING, INDEX], ids=["block", "with hint", "pointers", "index"])
def test_a_block_is_known_in_every_dress(dress: Callable[[str], str], text: str) -> None:
    heard = echo(dress(text))

    assert (True, "") == (heard.found, heard.rest)
    assert 3 == len(heard.names)


@pytest.mark.parametrize("dress", DRESSES.values(), ids=DRESSES)
@pytest.mark.parametrize("text", [BLOCK, TEXT, POINTING, INDEX], ids=["block", "with hint", "pointers", "index"])
def test_what_stands_beside_a_block_is_kept_letter_by_letter(dress: Callable[[str], str], text: str) -> None:
    """Of the dress itself, the quotes around it may stay."""
    own = 'It\'s <b>new</b> & "quoted", and 5 < 6.'
    before, after = echo(f"{own}\n{dress(text)}\n{OWN}").rest.split("\n", 1)

    assert (own, OWN) == (before, after.strip('\\"\n '))


@pytest.mark.parametrize("element", [line for text in (BLOCK, POINTING, INDEX) for line in text.splitlines() if "<memory " in line])
def test_a_single_element_is_enough(element: str) -> None:
    assert echo(element).found
    assert "" == echo(f"- {element.strip()}").rest


@pytest.mark.parametrize("text", [TEXT, POINTING, INDEX], ids=["block", "pointers", "index"])
@pytest.mark.parametrize("start", range(0, max(len(TEXT), len(POINTING), len(INDEX)), 3))
def test_a_block_cut_anywhere_is_known_by_one_whole_start_of_an_element(text: str, start: int) -> None:
    """Whatever is missing at either end: no piece of what is stored is kept."""
    for end in range(start + 1, len(text) + 1, 7):
        piece = text[start:end]
        if 'type="' in piece and 'scope="user"' in piece[piece.index('type="') :] and "name=" in piece[: piece.index('type="')]:
            heard = echo(piece)

            assert heard.found, piece
            assert "" == heard.rest, piece


def test_an_element_without_its_beginning_is_known_by_its_end() -> None:
    assert (True, "") == (echo("inks green tea.</memory>\n</memories>").found, echo("inks green tea.</memory>\n</memories>").rest)


@pytest.mark.parametrize(
    "text",
    [
        "The block stands between <memories> and </memories>, one <memory> a line.",
        "<memory unit='KiB'>1048576</memory> stands in the libvirt file of the staging host.",
        "You have 3 memories in scope. That is the sentence which the hint must say, says the design.",
        "Set name='x' and type='project' on the form, then choose the scope.",
        '<dependency name="a" scope="test"/> is how the build names what only tests need.',
        "In memory of what was in scope.",
        "",
        "&lt;memory&gt; is how HTML writes it.",
    ],
)
def test_a_text_that_only_speaks_of_memory_is_no_echo(text: str) -> None:
    """It is kept to the last letter."""
    heard = echo(text)

    assert (False, text, ()) == (heard.found, heard.rest, heard.names)


def test_an_introduction_without_anything_of_its_own_is_nothing_new() -> None:
    assert "" == echo(f"From memory:\n{BLOCK}").rest
    assert OWN_LETTERS_MIN <= sum(map(str.isalnum, echo(f"{OWN}\n{BLOCK}").rest))


@given(st.text())
def test_no_text_fails_and_what_is_no_echo_is_kept(text: str) -> None:
    heard = echo(text)

    assert heard.found or heard.rest == text


@given(st.lists(st.tuples(st.text(max_size=300), st.text(max_size=80)), min_size=1, max_size=4), st.sampled_from(sorted(DRESSES)[:3]))
def test_whatever_is_stored_its_block_is_nothing_new(contents: list[tuple[str, str]], dress: str) -> None:
    """What is stored cannot be such that its own block passes for news."""
    notes = [note(f"n{i}", content, description=description) for i, (content, description) in enumerate(contents)]

    heard = echo({"a": str, "b": html.escape}.get(dress, str)(f"{rendered(*notes)}\n\n{hint(4)}"))

    assert (True, "", len(notes)) == (heard.found, heard.rest, len(heard.names))


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "piece",
    [
        "\\", "&amp;", 'name="', "name=&quot;", '<memory name="', "</memory>", '<memory name="a" type="b" scope="c">', "<memory ",
        "You have ", " ", "memory name=\n", "<", "scope=", "%3c", "You have 1 memories in ", "<memories></memory>",
    ],
)  # fmt: skip
def test_no_text_makes_it_look_twice_at_everything(piece: str) -> None:
    """A text as long as any that may be saved; where everything was looked at again from every place, this would take hours."""
    text = "memory memories in scope type " + piece * (400_000 // len(piece))

    assert echo(text).rest == text or echo(text).found
