"""Signs: how a user's words show that they correct or are content, and how a tool's result shows that it failed or was denied.

What the signs are is data, a file a language; this module only knows how they are looked for. A phrase is a run of words and punctuation.
Case, accents, apostrophes of any shape and invisible characters make no difference, and nothing is matched inside a word. Each text is read
once from left to right, and only so much of it: the effort is bounded whatever the text is.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pegword.core import invisible
from pegword.core.errors import Invalid

HEAD_CHARS_READ, TAIL_CHARS_READ = 1_000, 400  # of a longer text
SHORT_CHARS_MAX = 80  # longer than this, thanks are only the beginning of something else
DENIAL_CHARS_MAX = 400  # longer than this, a result is what a tool found, whatever words stand in it

SECTIONS: Mapping[str, frozenset[str]] = {
    "correction": frozenset({"begins", "begins_then", "holds", "in_order", "never"}),
    "completion": frozenset({"begins", "holds", "short_begins", "short_holds", "never", "more"}),
    "denial": frozenset({"begins", "holds"}),
    "tool_error": frozenset({"begins", "never"}),
}

# Chinese, Japanese and Korean are read sign by sign; a hyphen joins words, a dash does not.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+(?:-[^\W{_UNSPACED}]+)*|[^\w\s]")
# Apostrophes of any shape, and stars of emphasis, are dropped; dashes become one.
_SMOOTHED: Mapping[int, str | None] = {
    **dict.fromkeys(map(ord, "'*`\u00b4\u02b9\u02bb\u02bc\u02bd\u02c8\u2018\u2019\u201a\u201b\u2032\u2035\ua78c\uff07")),
    **dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"), "-"),
}
_APART = "\n"  # stands for what is not looked at: no token of a text is it
_QUESTION = "?"


class _Phrases:
    """Phrases, to be looked for all at once."""

    def __init__(self, phrases: Iterable[str]) -> None:
        self._by_first: dict[str, list[tuple[str, ...]]] = {}
        for phrase in phrases:
            tokens = tuple(_tokens(phrase))
            self._by_first.setdefault(tokens[0], []).append(tokens)

    def at(self, tokens: Sequence[str], position: int) -> int:
        """How many tokens the longest phrase has that stands at *position*; 0 for none."""
        candidates = self._by_first.get(tokens[position], ()) if position < len(tokens) else ()
        return max((len(p) for p in candidates if tuple(tokens[position : position + len(p)]) == p), default=0)

    def places(self, said: "Said") -> list[int]:
        """Where phrases stand, in order."""
        if said.words.isdisjoint(self._by_first):
            return []
        return [i for i, token in enumerate(said.tokens) if token in self._by_first and self.at(said.tokens, i)]


@dataclass(frozen=True, slots=True)
class Language:
    """The signs of one language, made by `language`."""

    name: str
    phrases: Mapping[tuple[str, str], _Phrases]
    begins_then: tuple[tuple[_Phrases, frozenset[str]], ...]
    in_order: tuple[tuple[_Phrases, _Phrases], ...]

    def begins(self, section: str, key: str, said: "Said") -> bool:
        """Whether *said* begins with a phrase of that list."""
        phrases = self.phrases.get((section, key))
        return phrases is not None and phrases.at(said.tokens, said.start) > 0

    def holds(self, section: str, key: str, said: "Said") -> bool:
        """Whether *said* holds a phrase of that list."""
        phrases = self.phrases.get((section, key))
        return phrases is not None and bool(phrases.places(said))

    def without(self, section: str, key: str, said: "Said") -> "Said":
        """*said* with each phrase of that list taken out: what touches one is matched by nothing else."""
        phrases = self.phrases.get((section, key))
        places = phrases.places(said) if phrases else []
        if not phrases or not places:
            return said
        left = list(said.tokens)
        for place in places:
            length = phrases.at(said.tokens, place)
            left[place : place + length] = [_APART] * length
        return replace(said, tokens=tuple(left))


@dataclass(frozen=True, slots=True)
class Said:
    """A text, read once: its *tokens*, which *words* they are, at which of them its first word *start*s, and its length in characters."""

    tokens: tuple[str, ...]
    words: frozenset[str]
    start: int
    chars: int


def language(name: str, table: Mapping[str, Any]) -> Language:
    """The signs of the language *name*, as its data file says them.

    *table* has sections `SECTIONS`; each key holds a list of phrases, but ``begins_then`` a list of tables with ``first`` (phrases) and
    ``then`` (single words, one of which must follow), and ``in_order`` a list of pairs of phrases. Raises `Invalid` naming what is wrong.
    """
    phrases: dict[tuple[str, str], _Phrases] = {}
    then: list[tuple[_Phrases, frozenset[str]]] = []
    pairs: list[tuple[_Phrases, _Phrases]] = []
    for section, keys in table.items():
        if section not in SECTIONS or not isinstance(keys, Mapping):
            raise Invalid(f"signs of {name}: there is no section {section}; there are {sorted(SECTIONS)}", field=section)
        for key, value in keys.items():
            field = f"{section}.{key}"
            if key not in SECTIONS[section]:
                raise Invalid(f"signs of {name}: [{section}] has no key {key}; it has {sorted(SECTIONS[section])}", field=field)
            if key == "begins_then":
                for entry in _listed(name, field, value, dict):
                    first, follows = (_texts(name, f"{field}.{part}", entry.get(part)) for part in ("first", "then"))
                    then.append((_Phrases(first), frozenset(token for word in follows for token in _tokens(word))))
            elif key == "in_order":
                for pair in _listed(name, field, value, list):
                    before, after = _texts(name, field, pair, count=2)
                    pairs.append((_Phrases([before]), _Phrases([after])))
            else:
                phrases[section, key] = _Phrases(_texts(name, field, value))
    return Language(name, phrases, tuple(then), tuple(pairs))


def read(text: str) -> Said:
    """*text* as `corrects` and the others take it: its beginning, and of a long one its end."""
    tokens = _tokens(text[:HEAD_CHARS_READ] if len(text) > HEAD_CHARS_READ + TAIL_CHARS_READ else text)
    if len(text) > HEAD_CHARS_READ + TAIL_CHARS_READ:
        tokens += [_APART, *_tokens(text[-TAIL_CHARS_READ:])]
    # Bullets, quotation marks and pictures before the first word say nothing.
    start = next((position for position, token in enumerate(tokens) if token[0].isalnum()), len(tokens))
    return Said(tuple(tokens), frozenset(tokens), start, len(text))


def corrects(said: Said, languages: Iterable[Language]) -> bool:
    """Whether a user who says this corrects what was done."""
    return any(_corrects(said, signs) for signs in languages)


def completes(said: Said, languages: Iterable[Language]) -> bool:
    """Whether a user who says this is content, and wants nothing further just now.

    Languages share words of praise, so what asks for more in any of them speaks against it.
    """
    languages = tuple(languages)
    short = said.chars <= SHORT_CHARS_MAX and _QUESTION not in said.words
    if short:
        short = not any(signs.holds("completion", "more", said) for signs in languages)
    return any(_completes(said, signs, short=short) for signs in languages)


def denies(said: Said, languages: Iterable[Language]) -> bool:
    """Whether this result of a tool says that the user did not let it run."""
    return said.chars <= DENIAL_CHARS_MAX and any(
        signs.begins("denial", "begins", said) or signs.holds("denial", "holds", said) for signs in languages
    )


def fails(said: Said, languages: Iterable[Language]) -> bool:
    """Whether this result of a tool says that it failed. Here, marks before the first word count."""
    at_once = replace(said, start=0)
    for signs in languages:
        for where in (said, at_once):
            if signs.begins("tool_error", "begins", where):
                return not signs.begins("tool_error", "never", where)
    return False


def _corrects(said: Said, signs: Language) -> bool:
    left = signs.without("correction", "never", said)
    if signs.begins("correction", "begins", left) or signs.holds("correction", "holds", left):
        return True
    for first, follows in signs.begins_then:
        length = first.at(left.tokens, left.start)
        if length and left.start + length < len(left.tokens) and left.tokens[left.start + length] in follows:
            return True
    return any(_in_order(left, before, after) for before, after in signs.in_order)


def _completes(said: Said, signs: Language, *, short: bool) -> bool:
    left = signs.without("completion", "never", said)
    if signs.begins("completion", "begins", left) or signs.holds("completion", "holds", left):
        return True
    return short and (signs.begins("completion", "short_begins", left) or signs.holds("completion", "short_holds", left))


def _in_order(said: Said, before: _Phrases, after: _Phrases) -> bool:
    first, last = before.places(said), after.places(said)
    return bool(first and last) and first[0] < last[-1]


def _tokens(text: str) -> list[str]:
    if not text.isascii():
        text = invisible.PATTERN.sub("", text)
    text = text.translate(_SMOOTHED)
    if not text.isascii():
        bare = (c for c in unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text)) if not unicodedata.combining(c))
        text = unicodedata.normalize("NFC", "".join(bare))
    return _TOKEN.findall(text.casefold())


def _texts(name: str, field: str, value: Any, *, count: int | None = None) -> list[str]:
    texts = _listed(name, field, value, str)
    if not all(_tokens(text) for text in texts) or (count is not None and len(texts) != count):
        raise Invalid(f"signs of {name}: {field} must hold {count or 'at least one'} phrases, none of them blank", field=field)
    return texts


def _listed(name: str, field: str, value: Any, kind: type) -> list[Any]:
    if not isinstance(value, list) or not value or not all(isinstance(part, kind) for part in value):
        what = "phrases" if kind is str else "pairs of phrases" if kind is list else "tables with first and then"
        raise Invalid(f"signs of {name}: {field} must be a list of {what}", field=field)
    return value
