"""Text that memory itself has shown, recognised when it comes back, so that a model does not save again what it has just read.

A block comes back in many dresses: whole or cut at either end, with its hint or without, escaped once or more for HTML, JSON or a URL,
its lines joined or broken anew. What is recognised is the form of an element (its name, type and scope in our order), wherever it
stands, not single words: a text that only speaks of ``<memories>`` is no echo. Nothing here looks at what is stored.
"""

import re
import string
from dataclasses import dataclass

from pegword.core.caller import SCOPES, SCOPES_CLOSED
from pegword.core.memory import KIND_WORDS
from pegword.core.render import LOOK_FURTHER, POINTERS, PREAMBLE
from pegword.core.session_index import FIND_THEM, READ_ONE
from pegword.core.session_index import PREAMBLE as INDEX_PREAMBLE

_CUT_TAG_CHARS_MAX = 10
_SCOPES = (*SCOPES, *SCOPES_CLOSED)
OWN_LETTERS_MIN = 20  # what is left beside an echo and has fewer letters and digits says nothing of its own

# The same character as it may come back. Runs are bounded, so that no text makes a pattern look twice at much of it.
_AMP = r"&(?:amp;){0,8}"
_LT = rf"(?:<|{_AMP}(?:lt|\#0{{0,8}}60|\#x0{{0,8}}3c);|\\{{1,8}}u003c|%3c)"
_GT = rf"(?:>|{_AMP}(?:gt|\#0{{0,8}}62|\#x0{{0,8}}3e);|\\{{1,8}}u003e|%3e)"
_QUOTE = rf"(?:\\{{0,8}}[\"'“”‘’]|{_AMP}(?:quot|apos|\#0{{0,8}}3[49]|\#x0{{0,8}}2[27]);|\\{{1,8}}u002[27]|%2[27])"
_SLASH = rf"(?:\\{{0,8}}/|{_AMP}(?:sol|\#0{{0,8}}47|\#x0{{0,8}}2f);|%2f)"
_EQUALS = rf"\s{{0,4}}(?:=|{_AMP}(?:equals|\#0{{0,8}}61|\#x0{{0,8}}3d);|\\{{1,8}}u003d|%3d)\s{{0,4}}"
_GAP = rf"(?:\s|\\{{1,8}}[nrt]|{_AMP}\#(?:9|10|13|32);|%20|%0a|\+){{1,40}}"

_TYPE_AND_SCOPE = rf"type{_EQUALS}{_QUOTE}\w{{1,32}}{_QUOTE}{_GAP}scope{_EQUALS}{_QUOTE}\w{{1,32}}{_QUOTE}"
_START = re.compile(
    rf"(?:(?P<lt>{_LT})\s{{0,4}}memory{_GAP})?name{_EQUALS}{_QUOTE}(?P<name>[^\n\"“”]{{1,400}}?){_QUOTE}{_GAP}{_TYPE_AND_SCOPE}",
    re.IGNORECASE,
)
_END = re.compile(rf"(?P<lt>{_LT}){_SLASH}\s{{0,4}}memory\s{{0,4}}{_GT}", re.IGNORECASE)
_TAG = re.compile(rf"{_LT}\s{{0,4}}memory(?!\w)", re.IGNORECASE)
_SCOPE = rf"scope{_EQUALS}{_QUOTE}(?:{'|'.join(_SCOPES)}){_QUOTE}"
_OURS = re.compile(
    rf"type{_EQUALS}{_QUOTE}(?:{'|'.join(KIND_WORDS)}){_QUOTE}{_GAP}{_SCOPE}"
    rf"|{_SCOPE}(?:{_GT}|{_GAP}(?:description|tags|verified|author|expires){_EQUALS}{_QUOTE})",
    re.IGNORECASE,
)
# The rest of an element without text, which a pointer and an entry of the index are.
_CLOSED = re.compile(
    rf"(?:{_GAP}(?:description|tags|author){_EQUALS}{_QUOTE}[^\n\"“”<>]{{0,1200}}?{_QUOTE}){{0,2}}\s{{0,4}}{_SLASH}\s{{0,4}}{_GT}",
    re.IGNORECASE,
)
_FRAME = re.compile(rf"{_LT}{_SLASH}?\s{{0,4}}memor(?:ies|y-index)\s{{0,4}}{_GT}", re.IGNORECASE)
_MARK = rf"{_AMP}(?:quot|apos|\#0{{0,8}}3[49]|\#x0{{0,8}}2[27]);|\\{{1,8}}u00[0-9a-f]{{2}}|%[0-9a-f]{{2}}"
_BETWEEN_WORDS = rf"(?:{_MARK}|\W){{1,16}}"


def _spoken(sentence: str) -> str:
    """*sentence* with anything between its words."""
    return _BETWEEN_WORDS.join(re.findall(r"\w+", sentence)) + _ending(sentence)


def _begun(sentence: str) -> str:
    """The first words of *sentence*, at least one, and all of them where they are there."""
    words: list[str] = re.findall(r"\w+", sentence)
    first, *others = words
    return first + "".join(f"(?:{_BETWEEN_WORDS}{word}" for word in others) + _ending(sentence) + ")?" * len(others)


def _ending(sentence: str) -> str:
    """What may stand after the last word of *sentence*."""
    return rf"(?:{_MARK}|[^\w\s]){{0,{len(sentence) - len(sentence.rstrip(string.punctuation))}}}"


def _then(sentence: str) -> str:
    """What may follow on a sentence of ours: *sentence*, whole or cut."""
    return rf"(?:{_BETWEEN_WORDS}{_begun(sentence)})?"


_MADE = "in scope when this list was made"
_PREAMBLE = re.compile(
    rf"{_spoken(PREAMBLE)}{_then(POINTERS)}|{_spoken(INDEX_PREAMBLE)}{_then(READ_ONE)}"
    rf"|\d{{1,12}}{_GAP}(?:more|notes?){_GAP}(?:was|were){_BETWEEN_WORDS}{_spoken(_MADE)}{_then(FIND_THEM)}",
    re.IGNORECASE,
)
_LINES = (PREAMBLE, f"{PREAMBLE} {POINTERS}", INDEX_PREAMBLE, f"{INDEX_PREAMBLE} {READ_ONE}")
_ESCAPED_BLANK = re.compile(r"%[0-9a-f]{2}|\\[nrt]|&\w{1,8};", re.IGNORECASE)
_HINT = re.compile(rf"You{_GAP}have{_GAP}\d{{1,12}}{_GAP}memor(?:y|ies){_GAP}in{_GAP}scope\.{_then(LOOK_FURTHER)}", re.IGNORECASE)
# What a cut leaves of a tag, of the hint, of the last line of an index.
_TAG_BEGUN = re.compile(rf"{_LT}(?:{_SLASH}|\s)?\s{{0,4}}m(?:e(?:m(?:o(?:r(?:y|i|\Z)|\Z)|\Z)|\Z)|\Z)[^\n]{{0,500}}\Z", re.IGNORECASE)
_MORE_BEGUN = re.compile(
    rf"(?:\A|\n)[ ]*\d{{1,12}}(?:\s+(?:more?|mo?|notes?|not?|n)(?:\s+(?:were?|was|w[ae]?)(?:\s+{_begun(_MADE)}\s*\w*)?)?)?\s*\Z"
)
_HINT_BEGUN = re.compile(r"You(?:\s+h\w{0,3}(?:\s+\d{1,12}(?:\s+mem\w{0,5}(?:\s+in?(?:\s+s\w{0,4})?)?)?)?)?\s*\Z")


@dataclass(frozen=True, slots=True)
class Echo:
    """What a text holds of an injected block: the *names* of the memories shown in it, and the *rest*, which is the text's own.

    *rest* is the text as it was when there is no echo, and "" when there is nothing but echo.
    """

    names: tuple[str, ...]
    rest: str
    found: bool


def echo(text: str) -> Echo:
    """Take out of *text* what an injected block has shown; what is left stays as it is, letter by letter."""
    if not _may_hold(text):
        return Echo((), text, False)
    spans, names = _elements(text)
    frame = [found.span() for pattern in (_FRAME, _PREAMBLE, _HINT) for found in pattern.finditer(text)]
    rest = _without_scraps(_without(text, spans + frame)) if spans or frame else text
    if not spans and (not frame or _says_something(rest)):  # it speaks of a block and holds none
        return Echo((), text, False)
    return Echo(tuple(dict.fromkeys(names)), rest.strip() if _says_something(rest) else "", True)


def _may_hold(text: str) -> bool:
    """Whether it is worth looking: nearly every text is done with here."""
    low = text.casefold()
    return "memor" in low or "scope" in low


def _elements(text: str) -> tuple[list[tuple[int, int]], list[str]]:
    """Where elements stand in *text*, and the names that they tell."""
    starts = list(_START.finditer(text))
    closed_at = max((frame.start() for frame in _FRAME.finditer(text)), default=0)
    spans = []
    for start, after in zip(starts, [*starts[1:], None], strict=False):
        limit = after.start() if after else closed_at
        closed = _CLOSED.match(text, start.end())
        if closed:
            spans.append((start.start(), closed.end()))
        else:
            spans.append((start.start(), _end_of(text, start, limit) if limit > start.end() else _end_of_last(text, start)))
    before = text[: starts[0].start() if starts else len(text)]
    cut = _cut_at_its_head(before, bool(starts) and starts[0]["lt"] is None)
    if cut:
        spans.append((0, cut))
    return spans, [start["name"] for start in starts]


def _end_of(text: str, start: re.Match[str], limit: int) -> int:
    """Where the element that begins at *start* ends, when another one or the end of the block follows at *limit*: after the last closing
    tag, for what is stored may hold one itself; when that was cut off, with its line."""
    ends = [end.end() for end in _END.finditer(text, start.end(), limit) if _alike(start, end)]
    return ends[-1] if ends else _line_end(text, start.end(), limit)


def _end_of_last(text: str, start: re.Match[str]) -> int:
    """Where the element that begins at *start* ends when no other follows: the first closing tag of its own form, on any line."""
    for end in _END.finditer(text, start.end()):
        if _alike(start, end):
            return end.end()
    return _line_end(text, start.end(), len(text))


def _alike(start: re.Match[str], end: re.Match[str]) -> bool:
    """Whether two tags are escaped alike; what is stored is escaped once more than the block. One that lost its tag may be any."""
    return start["lt"] is None or start["lt"].lower() == end["lt"].lower()


def _line_end(text: str, begin: int, limit: int) -> int:
    found = text.find("\n", begin, limit)
    return limit if found < 0 else found


def _cut_at_its_head(before: str, tagless: bool) -> int:
    """How much of *before*, which stands before the first whole start, is left of an element whose beginning was cut off.

    *tagless* says that the first start has lost its tag, so that up to ten characters before it are what is left of that.
    """
    blank = len(before) - len(before.lstrip())
    line_end = before.find("\n", blank)
    line = before if line_end < 0 else before[:line_end]
    if _TAG.search(line):
        return 0
    end = max((found.end() for found in _END.finditer(line)), default=0)
    if end:
        return end
    if _OURS.search(line) or (tagless and line_end < 0 and len(line) - blank <= _CUT_TAG_CHARS_MAX):
        return len(line)
    return 0


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    """*text* without *spans*, which may overlap, and without what stands between two of them and says nothing."""
    kept: list[str] = []
    at = 0
    for begin, end in sorted(spans):
        if begin > at and (not kept or _letters(text[at:begin])):
            kept.append(text[at:begin])
        at = max(at, end)
    return "".join([*kept, text[at:]])


def _without_scraps(rest: str) -> str:
    """*rest* without what a cut has left of the frame at its beginning and its end."""
    first, _, below = rest.strip().partition("\n")
    if first and any(line.endswith(first.strip()) for line in _LINES):
        rest = below
    rest = _MORE_BEGUN.sub("", _HINT_BEGUN.sub("", _TAG_BEGUN.sub("", rest)))
    above, _, last = rest.strip().rpartition("\n")
    return above if last and any(line.startswith(last) for line in _LINES) else rest


def _says_something(rest: str) -> bool:
    return _letters(rest) >= OWN_LETTERS_MIN


def _letters(text: str) -> int:
    """How many letters and digits *text* has, those of escapes not counted."""
    return sum(map(str.isalnum, _ESCAPED_BLANK.sub("", text)))
