"""Text to terms: the only tokenizer of the house.

Any string is a legal text and a legal query. What becomes of it:

- NFKC, invisible characters dropped; case folded (`ß` is `ss`).
- Words are stemmed (Snowball) after a table of irregular forms, and some 75 stop words are left out. A word with accents
  is also kept in a second form without them.
- Identifiers (``snake_case``, ``camelCase``, ``v1.2``, ``a/path.py``, ``C++``) are kept whole and split. Letters leave digits
  only in parts of three letters and more, never in runs that look like hex digits, or hashes would match each other.
- Chinese, Japanese, Korean and the scripts of South-East Asia that write no blanks become single characters and
  pairs, so that queries of one and two characters match. A symbol such as an emoji is a word of its own.

`ANALYSER_VERSION` is stored with the index: raise it whenever the terms of any text change.
"""

import re
import sys
import threading
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import Stemmer

from pegword.core.words import IRREGULAR_ENGLISH, STOP_WORDS_ENGLISH

ANALYSER_VERSION = 1
TERM_CHARS_MAX = 64
FIELD_WEIGHT = 3  # a word of the name, the description or a tag counts as this many of the content
COUNT_MAX = 255  # a posting keeps its count in one byte
LENGTH_MAX = 65_535  # and its length in two
LANGUAGES = tuple(sorted(Stemmer.algorithms()))

_MEMO_WORDS_MAX = 50_000
_PHRASES_MAX = 8

_MARKS = "".join(
    f"{chr(first)}-{chr(last)}"
    for first, last in (
        (0x0300, 0x036F), (0x0483, 0x0487), (0x0591, 0x05BD), (0x0610, 0x061A), (0x064B, 0x065F), (0x0670, 0x0670),
        (0x06D6, 0x06DC), (0x06DF, 0x06E4), (0x06E7, 0x06E8), (0x06EA, 0x06ED), (0x0900, 0x0963), (0x0966, 0x0DFF),
        (0x0E31, 0x0E31), (0x0E34, 0x0E3A), (0x0E47, 0x0E4E), (0x0EB1, 0x0EBC), (0x0EC8, 0x0ECE), (0x0F71, 0x0F84),
        (0x102B, 0x103E), (0x17B4, 0x17D3), (0x1AB0, 0x1AFF), (0x1DC0, 0x1DFF), (0x20D0, 0x20F0), (0xFE20, 0xFE2F),
    )
)  # fmt: skip
_SYMBOLS = "\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
_LETTER = rf"[\w{_MARKS}]"
_CHUNK = re.compile(rf"{_LETTER}+(?:['’.\-/:@+#\\&]{_LETTER}+)*(?:\+\+|#)?|[{_SYMBOLS}]")
_PLAIN = re.compile(r"[a-z]+\Z")
_ELISION = re.compile(rf"{_LETTER}{{1,2}}['’]({_LETTER}{{3,}})\Z")
_JOINT = re.compile(r"[_.\-/:@+#\\&]+")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^A-Za-z\d]+")
_HEX = re.compile(r"[0-9a-f]{6,}\Z")
_LETTERS_MIN = 3
_UNSPACED_RANGES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035"
    "\u3040-\u30ff\u3105-\u312f\u3131-\u318f\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc\U00020000-\U000323af"
)
_UNSPACED = re.compile(f"[{_UNSPACED_RANGES}]+")
_UNSPACED_OR_NOT = re.compile(f"[{_UNSPACED_RANGES}]+|[^{_UNSPACED_RANGES}]+")
_INVISIBLE = dict.fromkeys(
    [0x00AD, 0x034F, 0x061C, 0x180E, 0xFEFF, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070),
     *range(0xFE00, 0xFE10), *range(0xE0000, 0xE0080)]
)  # fmt: skip
_PHRASE = re.compile('["“”„«»]([^"“”„«»]*)["“”„«»]')
_ACCENTED_SCRIPTS = ("LATIN", "GREEK", "CYRILLIC")


@dataclass(frozen=True, slots=True)
class Document:
    """What the index keeps of a memory: its terms with their weighted counts, and its length in words."""

    counts: dict[str, int]
    length: int


@dataclass(frozen=True, slots=True)
class Query:
    """An explicit search: its *terms* without doubles, and *phrases*, each a run of word forms that must stand together."""

    terms: tuple[str, ...]
    phrases: tuple[tuple[str, ...], ...] = ()


class Analyser:
    """Turns texts of one *language* (a Snowball name, default English) into terms. Safe to share between threads."""

    def __init__(self, language: str = "english") -> None:
        self.language = language
        english = language == "english"
        self._stop_words = STOP_WORDS_ENGLISH if english else frozenset[str]()
        self._irregular = IRREGULAR_ENGLISH if english else {}
        self._stemmers = threading.local()
        self._memo: dict[str, tuple[str, ...]] = {}

    def terms(self, text: str) -> list[str]:
        """The terms of *text* in order, doubles and all."""
        memo = self._memo
        found: list[str] = []
        for chunk in _chunks(text):
            terms = memo.get(chunk)
            if terms is None:
                terms = self._remember(chunk)
            found.extend(terms)
        return found

    def distinct(self, text: str) -> list[str]:
        """The terms of *text* without doubles, in the order of their first coming."""
        return list(dict.fromkeys(self.terms(text)))

    def document(self, content: str, fields: Iterable[str]) -> Document:
        """What the index keeps of a memory with this *content* and these short *fields* (name, description, tags)."""
        counts: dict[str, int] = {}
        words = self.terms(content)
        for term in words:
            counts[term] = counts.get(term, 0) + 1
        length = len(words)
        for field in fields:
            words = self.terms(field)
            length += len(words)
            for term in words:
                counts[term] = counts.get(term, 0) + FIELD_WEIGHT
        for term, count in counts.items():
            if count > COUNT_MAX:
                counts[term] = COUNT_MAX
        return Document(counts, min(length, LENGTH_MAX))

    def query(self, text: str) -> Query:
        """Read an explicit search: words, and phrases between double quotes. Everything else is no operator."""
        phrases = []
        for inside in _PHRASE.findall(text)[:_PHRASES_MAX]:
            forms = tuple(self.forms(inside))
            if len(forms) > 1:
                phrases.append(forms)
        return Query(tuple(self.distinct(text)), tuple(phrases))

    def forms(self, text: str) -> Iterator[str]:
        """Each word of *text*, stop words too, in the one form by which phrases are compared."""
        for chunk in _chunks(text):
            for piece in _JOINT.split(_without_apostrophe(chunk)):
                for run in _UNSPACED_OR_NOT.findall(piece):
                    if _UNSPACED.match(run):
                        yield from run
                    else:
                        yield self._stem(_without_accents(run.casefold()))

    def holds_phrase(self, text: str, phrase: tuple[str, ...]) -> bool:
        """Whether the words of *phrase* stand together, in order, in *text*."""
        return f" {' '.join(phrase)} " in f" {' '.join(self.forms(text))} "

    def _remember(self, chunk: str) -> tuple[str, ...]:
        terms = tuple(term[:TERM_CHARS_MAX] for term in self._terms_of_chunk(chunk))
        if len(self._memo) >= _MEMO_WORDS_MAX:
            self._memo.clear()
        if len(chunk) <= TERM_CHARS_MAX:
            self._memo[sys.intern(chunk)] = terms
        return terms

    def _terms_of_chunk(self, chunk: str) -> list[str]:
        if _PLAIN.match(chunk):
            return self._terms_of_word(chunk)
        if _UNSPACED.search(chunk):
            return self._terms_of_unspaced(chunk)
        elided = _ELISION.match(chunk)
        bare = _without_apostrophe(chunk)
        folded = bare.casefold()
        pieces = [piece for piece in _JOINT.split(bare) if piece]
        if len(pieces) == 1 and pieces[0] == bare:
            terms = self._terms_of_piece(bare)
            return terms + self._terms_of_chunk(elided[1]) if elided else terms
        if not pieces:
            return []
        terms = [folded] if folded not in self._stop_words else []
        if "-" in folded and len(pieces) == 2:
            terms.append(self._stem("".join(pieces).casefold()))  # e-mail is email
        for piece in pieces:
            terms.extend(self._terms_of_piece(piece))
        return list(dict.fromkeys(terms))

    def _terms_of_piece(self, piece: str) -> list[str]:
        """The terms of a run of letters and digits: itself, and its parts where it is written in several."""
        folded = piece.casefold()
        terms = self._terms_of_word(folded)
        if piece.isdigit() or (_HEX.match(folded) and any(c.isdigit() for c in folded)):
            return terms
        parts = _HUMP.findall(piece) if piece.isascii() else ()
        if len(parts) > 1:
            for part in parts:
                if len(part) >= _LETTERS_MIN and not part.isdigit():
                    terms.extend(self._terms_of_word(part.casefold()))
        return list(dict.fromkeys(terms))

    def _terms_of_word(self, word: str) -> list[str]:
        if word in self._stop_words:
            return []
        stem = self._stem(self._irregular.get(word, word))
        if word.isascii():
            return [stem]
        bare = _without_accents(word)
        if bare == word:
            return [stem]
        return list(dict.fromkeys((stem, self._stem(self._irregular.get(bare, bare)))))

    def _terms_of_unspaced(self, chunk: str) -> list[str]:
        terms: list[str] = []
        for run in _UNSPACED_OR_NOT.findall(chunk):
            if not _UNSPACED.match(run):
                terms.extend(self._terms_of_chunk(run) if run != chunk else [])
                continue
            terms.extend(run)
            terms.extend(run[i : i + 2] for i in range(len(run) - 1))
        return terms

    def _stem(self, word: str) -> str:
        stemmer = getattr(self._stemmers, "stemmer", None)
        if stemmer is None:
            stemmer = self._stemmers.stemmer = Stemmer.Stemmer(self.language, 0)
        stem: str = stemmer.stemWord(word)
        return stem or word


def _chunks(text: str) -> list[str]:
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_INVISIBLE)
    return _CHUNK.findall(text)


def _without_apostrophe(chunk: str) -> str:
    if "'" not in chunk and "’" not in chunk:
        return chunk
    chunk = chunk.replace("’", "'")
    if chunk[-2:] in ("'s", "'S"):
        chunk = chunk[:-2]
    return chunk.replace("'", "")


def _without_accents(word: str) -> str:
    """*word* without the accents of Latin, Greek and Cyrillic letters; in other scripts a mark makes another letter."""
    if word.isascii():
        return word
    letters: list[str] = []
    for letter in unicodedata.normalize("NFC", word):
        if unicodedata.name(letter, "").startswith(_ACCENTED_SCRIPTS):
            letter = "".join(c for c in unicodedata.normalize("NFD", letter) if not unicodedata.combining(c))
            letter = _STROKES.get(letter, letter)
        if not unicodedata.combining(letter) or not letters or not letters[-1].isascii():
            letters.append(letter)
    return "".join(letters)


# Letters that carry a stroke instead of an accent: Unicode does not take these apart.
_STROKES = {"ø": "o", "đ": "d", "ł": "l", "ħ": "h", "ı": "i", "ŧ": "t", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th"}
