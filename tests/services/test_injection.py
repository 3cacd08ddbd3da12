"""Whatever is stored stays data in all that a model reads: S01, S03, S08, S13 and S14 over generated texts, in every mode and answer."""

import re
import unicodedata
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegword.core import nudge, render, session_index
from pegword.core.caller import Caller, Session, user_scope
from pegword.core.errors import Invalid
from pegword.core.invisible import PATTERN
from pegword.core.memory import TAG_CHARS_MAX, Draft
from pegword.core.render import Note, block, hint, visible_text
from pegword.core.results import ESCAPES_TOLD, PREVIEW_CHARS
from pegword.core.session_index import Entry, listing
from pegword.core.text import Analyser
from pegword.services.bundle import Services
from pegword.services.turns import MODES, Turn
from pegword.settings import load
from pegword.tool.calling import MemoryTool
from tests.hostile import PARTS, payloads

PAYLOADS = payloads()
AT_ONCE = 50
GROUPS = ("walrus", "quokka", "kettle", "lantern", "harbour", "meadow", "saddle", "anvil")[: -(-len(PAYLOADS) // AT_ONCE)]
ANALYSER = Analyser()
HINT = re.compile(rf"You have {len(PAYLOADS)} memories in scope\. {re.escape(render.LOOK_FURTHER)}")
ROW = re.compile(r"  \[project:user\] n\d+\S*(?: \(by [^()]*\))?(?: — .*)?")


def check_hides_nothing(text: str) -> None:
    """Neither control nor bidi nor any character that no reader sees, but line ends, tabs and what holds a picture together."""
    hidden = [c for c in text if c not in "\n\t" and unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and c != "\u200d"]

    assert [] == hidden
    assert [] == [c for c in PATTERN.findall(text) if c not in "\u200d\ufe0f"]
    assert text == visible_text(text)


def check_frame(text: str, frame: tuple[str, str], chosen: int) -> list[ElementTree.Element]:
    """One opener, one closer, a memory a line, and as many for an XML parser as were chosen."""
    opener, closer = frame
    root = ElementTree.fromstring(text)
    lines = text.split("\n")

    assert (1, 1) == (text.count(opener), text.count(closer))
    assert (opener, closer) == (lines[0], lines[-1])
    assert ["memory"] * chosen == [child.tag for child in root]
    assert chosen == sum(line.startswith("  <memory ") for line in lines)
    assert [] == [line for line in lines[2:-1] if not line.startswith("  <memory ") and "when this list was made" not in line]
    check_hides_nothing(text)
    return list(root)


BLOCK = (render.OPENER, render.CLOSER)
INDEX = (session_index.OPENER, session_index.CLOSER)


@dataclass
class Stored:
    """A store full of what means ill, and the user whose it is."""

    services: Services
    caller: Caller
    session: Session


@pytest.fixture
def stored(services: Services, alice: Caller) -> Stored:
    """Each payload as content, description and tag of one memory; every third of another author, whose name means ill too."""
    mallory = Caller(alice.user_id, "mallory", "key:mallory")
    drafts = [
        Draft(
            f"n{n}", f"{GROUPS[n // AT_ONCE]} {text}", user_scope(alice), description=text,
            tags=(" ".join(text.split())[:TAG_CHARS_MAX] or "t",),
        )
        for n, text in enumerate(PAYLOADS)
    ]  # fmt: skip
    services.engine.write(
        lambda tx: [services.memories.writing.put(tx, mallory if n % 3 else alice, draft, "save") for n, draft in enumerate(drafts)]
    )
    return Stored(services, alice, services.sessions.create(alice))


def turns(stored: Stored, mode: str, *, tool: bool = True) -> list[Turn]:
    """Turns that choose every payload between them."""
    return [
        stored.services.turns.turn(
            stored.caller, stored.session, [{"role": "user", "content": group}], mode=mode, k=AT_ONCE, budget_chars=1_000_000,
            tool=tool,
        )
        for group in GROUPS
    ]  # fmt: skip


def check_turn(turn: Turn) -> None:
    chosen = [shown.memory for shown in turn.shown]
    for element, shown in zip(check_frame(turn.block, BLOCK, len(chosen)), turn.shown, strict=True):
        assert shown.memory.name == element.get("name")
        if shown.pointer:
            assert (None, {"name", "type", "scope"}) == (element.text, set(element.keys()))
        elif len(shown.memory.content) <= 500:
            assert visible_text(shown.memory.content) == element.text
            assert visible_text(shown.memory.description) == (element.get("description") or "")
        else:
            assert element.text is not None
            assert all(visible_text(piece) in visible_text(shown.memory.content) for piece in [element.text.strip(render.CUT)])
    if turn.index:
        check_frame(turn.index, INDEX, turn.index.count("\n  <memory "))


@pytest.mark.parametrize("mode", MODES)
def test_nothing_that_is_stored_leaves_its_place_in_a_turn(stored: Stored, mode: str) -> None:
    """In every mode: block, pointers and index; and the hint is one of ours, whatever was stored."""
    every = turns(stored, mode)
    told = [shown.memory.name for turn in every for shown in turn.shown]

    assert sorted(f"n{n}" for n in range(len(PAYLOADS))) == sorted(told)
    for turn in every:
        check_turn(turn)
        assert HINT.fullmatch(turn.hint)
        assert f"{turn.block}\n\n{turn.hint}" == turn.text


def test_nothing_that_is_stored_leaves_its_place_where_there_is_no_tool(stored: Stored) -> None:
    for turn in turns(stored, "index", tool=False):
        check_turn(turn)
        assert "" == turn.hint


def test_nothing_that_is_stored_is_ever_in_a_nudge(stored: Stored) -> None:
    """S14: fixed texts, whatever was stored or said."""
    told = set()
    for text in (*PARTS, "No, that's wrong!", "thanks, that's all"):
        session = stored.services.sessions.create(stored.caller)
        for said in (text, f"no, {text}"):
            turn = stored.services.turns.turn(stored.caller, session, [{"role": "user", "content": said}])
            told.add(turn.nudge and turn.nudge.text)

    assert {None} < told <= {None, *nudge.TEXTS.values()}


def test_nothing_that_is_stored_leaves_its_place_in_an_answer_of_the_tool(stored: Stored) -> None:
    """S13: searches and lists have two lines a memory and no other row; one memory stands further in than anything of ours."""
    tool = MemoryTool(stored.services, kind_word=load(environment={}).kind_word)

    def call(**arguments: object) -> str:
        text = tool.call(stored.caller, stored.session, arguments).text.replace(ESCAPES_TOLD, "")
        check_hides_nothing(text)
        assert not set("<>") & set(text)
        return text

    for number, group in enumerate(GROUPS):
        lines = call(action="search", query=group, limit=AT_ONCE).split("\n")
        rows = [line for line in lines if line.startswith("  ") and not line.startswith("    ")]
        assert min(AT_ONCE, len(PAYLOADS) - number * AT_ONCE) == sum(ROW.fullmatch(row) is not None for row in rows) == len(rows)
        assert 2 + 2 * len(rows) == len(lines)
        assert all(len(unescape(line)) <= PREVIEW_CHARS + 10 for line in lines if line.startswith("    "))
    for n, text in enumerate(PAYLOADS):
        head, _, _, *body = call(action="get", name=f"n{n}", scope="user").split("\n")
        assert ROW.fullmatch(f"  {head}"), head
        assert [] == [line for line in body if line and not line.startswith("  ")]
        shown = unescape("\n".join(line[2:] for line in body)).rstrip("\n")
        assert "".join(visible_text(f"{GROUPS[n // AT_ONCE]} {text}").split()) == "".join(shown.split())
        assert 1 == len(call(action="delete", name=f"n{n}", scope="user").split("\n"))


def test_what_means_ill_is_stored_as_it_was_sent(stored: Stored) -> None:
    """S08: the way to the model changes it, never the store."""
    for n, text in enumerate(PAYLOADS):
        memory = stored.services.memories.get(stored.caller, user_scope(stored.caller), f"n{n}")

        assert (f"{GROUPS[n // AT_ONCE]} {text}", text) == (memory.content, memory.description)


def test_no_name_can_mean_ill(services: Services, alice: Caller) -> None:
    """S03: what is a name at all cannot leave an attribute, a line or a pair of brackets."""
    saved = []
    for part in PARTS:
        with suppress(Invalid):
            saved.append(services.memories.save(alice, Draft(part, "x", user_scope(alice))).memory.name)

    assert ["human:", "error:", "you_have_9_memories_in_scope."] == saved


WILD = st.one_of(st.text(max_size=120), st.lists(st.sampled_from(PARTS), max_size=6).map("".join))


@given(st.lists(st.tuples(WILD, WILD, WILD, WILD, st.booleans(), st.booleans()), min_size=1, max_size=6))
def test_no_text_at_all_leaves_its_place(stored: list[tuple[str, str, str, str, bool, bool]]) -> None:
    notes = [
        Note(f"n{n}", "project", "global", description, content, False, author, None, pointer=pointer, always=always and not pointer)
        for n, (content, description, author, _, pointer, always) in enumerate(stored)
    ]
    notes.sort(key=lambda note: not note.always)
    made = block(notes, budget_chars=1_000_000, preview_chars=0, weights={}, analyser=ANALYSER)
    for element, note in zip(check_frame(made.text, BLOCK, len(notes)), notes, strict=True):
        assert (None if note.pointer else visible_text(note.content) or None) == element.text

    entries = [Entry(f"{n}", f"n{n}", "project", "global", d, (tag,), a) for n, (_, d, a, tag, *_) in enumerate(stored)]
    check_frame(listing(entries, in_scope=len(entries) + 3, index_chars=100_000, tool=True).text, INDEX, len(entries))
    assert hint(len(stored)).isascii()


# Planted faults: each makes a guard above fail


def _unescaped(text: str) -> str:
    return text


@pytest.mark.parametrize("fault", ["no escaping in text", "no escaping in attributes", "what is hidden stays", "line ends stay"])
def test_a_way_out_is_noticed(fault: str, stored: Stored, monkeypatch: pytest.MonkeyPatch) -> None:
    planted: dict[str, tuple[str, object]] = {
        "no escaping in text": ("_IN_TEXT", {}),
        "no escaping in attributes": ("_IN_ATTRIBUTE", {}),
        "what is hidden stays": ("visible_text", _unescaped),
        "line ends stay": ("_IN_TEXT", {ord("&"): "&amp;", ord("<"): "&lt;", ord(">"): "&gt;"}),
    }
    monkeypatch.setattr(render, *planted[fault])
    check: Callable[[Stored, str], None] = test_nothing_that_is_stored_leaves_its_place_in_a_turn

    with pytest.raises((AssertionError, ElementTree.ParseError)):
        check(stored, "tail")
