"""Text to terms: the only tokenizer of the house.

Any string is a legal text and a legal query. What becomes of it:

- NFKC, invisible characters dropped; case folded (`ß` is `ss`).
- Words are stemmed (Snowball) after a table of irregular forms, British spelling read as American, and stop words are
  left out (`US`, `IT` and `WHO` are none). A word with accents or vowel points is also kept in a second
  form without them.
- Identifiers (``snake_case``, ``camelCase``, ``v1.2``, ``a/path.py``, ``C++``) are kept whole and split. Letters leave digits
  only in parts of three letters and more, never in runs that look like hex digits, or hashes would match each other.
- Chinese, Japanese, Korean and the scripts of South-East Asia that write no blanks become single characters and
  pairs, so that queries of one and two characters match. A symbol such as an emoji is a word of its own.

`ANALYSER_VERSION` is stored with the index: raise it whenever the terms of any text change.
"""

import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat

import Stemmer

from pegword.core.common_words import COMMON_WORDS_ENGLISH
from pegword.core.memo import Memo
from pegword.core.words import IRREGULAR_ENGLISH, NAMES_IN_CAPITALS_ENGLISH, STOP_WORDS_ENGLISH, american

ANALYSER_VERSION = 1
TERM_CHARS_MAX = 64
FIELD_WEIGHT = 3  # a word of the name, the description or a tag counts as this many of the content
COUNT_MAX = 255  # a posting keeps its count in one byte
LENGTH_MAX = 65_535  # and its length in two
LANGUAGES = tuple(sorted(Stemmer.algorithms()))

_FORMS_BYTES_MAX = 4 << 20  # remembered of words in phrases, which few searches ask for
_PHRASES_MAX = 8

# Marks that belong to letters: vowel signs, accents, points. Beyond 0xffff whole blocks are taken for letters.
_MARK_RANGES = ((0x0300, 0x2000), (0x2CEF, 0x2E00), (0xA66F, 0xAC00), (0xFE20, 0xFE30))
_MARKS = (
    "".join(chr(x) for first, end in _MARK_RANGES for x in range(first, end) if unicodedata.category(chr(x))[0] == "M")
    + "\U00010a00-\U00011fff"
)
_FLAG = "\U0001f1e6-\U0001f1ff"
_SYMBOLS = "\u00a2-\u00a5\u20a0-\u20cf\u2190-\u22ff\u2300-\u23ff\u25a0-\u27bf\u2b00-\u2bff\U0001f000-\U0001f1e5\U0001f200-\U0001faff"
_LETTER = rf"[\w{_MARKS}]"
_JOINTS = r"['.\-/:@+#\\&]"
_THOUSANDS = r"(?<=\d),(?=\d{3}(?!\d))"
_CHUNK = re.compile(rf"{_LETTER}+(?:(?:{_JOINTS}|{_THOUSANDS}){_LETTER}+)*(?:\+\+|#)?|[{_FLAG}]{{1,2}}|[{_SYMBOLS}]")
_CHUNK_ASCII = re.compile(rf"\w+(?:(?:{_JOINTS}|{_THOUSANDS})\w+)*(?:\+\+|#)?", re.ASCII)
# Unicode's normal forms take quadratic time over a long run of marks, and no writing has such a run.
_MARKS_TOO_MANY = re.compile(f"([{_MARKS}]{{8}})[{_MARKS}]+")
_PLAIN = re.compile(r"[a-z]+\Z")
_ELISION = re.compile(rf"{_LETTER}{{1,2}}'({_LETTER}{{3,}})\Z")
_CONTRACTED = re.compile(r"(?<=\w)'(?:s|m|d|re|ve|ll)\Z", re.IGNORECASE)
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
# What is not seen or only makes a letter longer or an emoji darker; and the other ways to write an apostrophe.
_SMOOTHED: dict[int, str | None] = dict.fromkeys(
    [0x00AD, 0x034F, 0x061C, 0x0640, 0x180E, 0xFEFF, *range(0x180B, 0x180E), *range(0x200B, 0x2010),
     *range(0x202A, 0x202F), *range(0x2060, 0x2070), *range(0xFE00, 0xFE10), *range(0x1F3FB, 0x1F400),
     *range(0xE0000, 0xE0080)]
) | dict.fromkeys((0x02BC, 0x2018, 0x2019, 0x201B, 0x2032), "'")  # fmt: skip
_PHRASE = re.compile('["“”„«»]([^"“”„«»]*)["“”„«»]')
_BARE_SCRIPTS = ("LATIN", "GREEK", "CYRILLIC", "ARABIC", "HEBREW")


@dataclass(frozen=True, slots=True)
class Document:
    """What the index keeps of a memory: its terms with their weighted counts, and its length in words."""

    counts: dict[str, int]
    length: int


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words that must stand together: the *forms* by which they are compared, and the *terms* that a memory must then hold."""

    forms: tuple[str, ...]
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """An explicit search: its *terms* without doubles, and its *phrases*. A phrase of stop words alone holds no term and finds nothing."""

    terms: tuple[str, ...]
    phrases: tuple[Phrase, ...] = ()


class Analyser:
    """Turns texts of one *language* (a Snowball name, default English) into terms. Safe to share between threads."""

    def __init__(self, language: str = "english") -> None:
        self.language = language
        self.name = f"{ANALYSER_VERSION}:{language}"  # what the index writes down of who made its terms
        self._english = language == "english"
        self._stop_words = STOP_WORDS_ENGLISH if self._english else frozenset[str]()
        self._stemmers = threading.local()
        self._memo = Memo()
        self._memo_of_forms = Memo(_FORMS_BYTES_MAX)

    @cached_property
    def _rarity(self) -> dict[str, float]:
        common = COMMON_WORDS_ENGLISH if self._english else {}
        return {term: rarity for word, rarity in common.items() for term in self.terms(word)}

    def terms(self, text: str) -> list[str]:
        """The terms of *text* in order, doubles and all."""
        return list(chain.from_iterable(self._terms_of(_chunks(text))))

    def distinct(self, text: str) -> list[str]:
        """The terms of *text* without doubles, in the order of their first coming."""
        return list(dict.fromkeys(chain.from_iterable(self._terms_of(dict.fromkeys(_chunks(text))))))

    def document(self, content: str, fields: Iterable[str]) -> Document:
        """What the index keeps of a memory with this *content* and these short *fields* (name, description, tags)."""
        counts: dict[str, int] = {}
        length = 0
        chunks = Counter(_chunks(content))
        for terms, times in zip(self._terms_of(chunks), chunks.values(), strict=True):
            length += times * len(terms)
            for term in terms:
                counts[term] = counts.get(term, 0) + times
        for field in fields:
            words = self.terms(field)
            length += len(words)
            for term in words:
                counts[term] = counts.get(term, 0) + FIELD_WEIGHT
        for term, count in counts.items():
            if count > COUNT_MAX:
                counts[term] = COUNT_MAX
        return Document(counts, min(length, LENGTH_MAX))

    def rarity(self, terms: Iterable[str]) -> list[float]:
        """How rare each of *terms* is in general: from 0.0, a word of every talk, to 1.0. Known for English only."""
        return list(map(self._rarity.get, terms, repeat(1.0)))

    def query(self, text: str) -> Query:
        """Read an explicit search: words, and phrases between double quotes. Everything else is no operator."""
        phrases = []
        for inside in _PHRASE.findall(text)[:_PHRASES_MAX]:
            forms = tuple(self.forms(inside))
            if len(forms) > 1:
                phrases.append(Phrase(forms, tuple(self.distinct(inside))))
        return Query(tuple(self.distinct(text)), tuple(phrases))

    def forms(self, text: str) -> list[str]:
        """Each word of *text*, stop words too, in the one form by which phrases are compared."""
        memo = self._memo_of_forms
        found: list[str] = []
        for chunk in _chunks(text):
            forms = memo.young.get(chunk) or memo.get(chunk)
            found.extend(_kept(memo, chunk, self._forms_of_chunk(chunk)) if forms is None else forms)
        return found

    def holds_phrase(self, text: str, phrase: tuple[str, ...]) -> bool:
        """Whether the words of *phrase* stand together, in order, in *text*."""
        return f" {' '.join(phrase)} " in f" {' '.join(self.forms(text))} "

    def _terms_of(self, chunks: Collection[str]) -> list[tuple[str, ...]]:
        """The terms of each of *chunks*. What is remembered of them, which is nearly all, is not looked at one by one."""
        known = list(map(self._memo.young.get, chunks))
        return [self._anew(chunk) if terms is None else terms for chunk, terms in zip(chunks, known, strict=True)]

    def _anew(self, chunk: str) -> tuple[str, ...]:
        terms = self._memo.get(chunk)
        return _kept(self._memo, chunk, self._terms_of_chunk(chunk)) if terms is None else terms

    def _forms_of_chunk(self, chunk: str) -> list[str]:
        forms: list[str] = []
        for piece in _JOINT.split(_without_apostrophe(chunk).replace(",", "")):
            for run in _UNSPACED_OR_NOT.findall(piece):
                if _UNSPACED.match(run):
                    forms.extend(run)
                else:
                    forms.append(self._stem(_without_accents(run.casefold())))
        return forms

    def _terms_of_chunk(self, chunk: str) -> list[str]:
        if _PLAIN.match(chunk):
            return self._terms_of_word(chunk)
        if _UNSPACED.search(chunk):
            return self._terms_of_unspaced(chunk)
        elided = _ELISION.match(chunk)
        bare = _without_apostrophe(chunk).replace(",", "")
        pieces = [piece for piece in _JOINT.split(bare) if piece]
        if not pieces:
            return []
        if pieces == [bare]:
            terms = self._terms_of_piece(bare)
            return _once(terms + self._terms_of_piece(elided[1])) if elided else terms
        folded = bare.casefold()
        terms = [folded] if folded not in self._stop_words else []
        if "-" in folded and len(pieces) == 2:
            terms.append(self._stem("".join(pieces).casefold()))  # e-mail is email
        for piece in pieces:
            terms.extend(self._terms_of_piece(piece))
        return _once(terms)

    def _terms_of_piece(self, piece: str) -> list[str]:
        """The terms of a run of letters and digits: itself, and its parts where it is written in several."""
        folded = piece.casefold()
        if folded in self._stop_words:
            return [folded] if piece in NAMES_IN_CAPITALS_ENGLISH else []
        terms = self._terms_of_word(folded)
        if piece.isdigit() or (_HEX.match(folded) and any(c.isdigit() for c in folded)):
            return terms
        parts = _HUMP.findall(piece) if piece.isascii() else ()
        if len(parts) > 1:
            for part in parts:
                if len(part) >= _LETTERS_MIN and not part.isdigit():
                    terms.extend(self._terms_of_word(part.casefold()))
        return _once(terms)

    def _terms_of_word(self, word: str) -> list[str]:
        if word in self._stop_words:
            return []
        if word.isascii():
            return [self._stem(word)]
        return _once([self._stem(word), self._stem(_without_accents(word))])

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
        if not self._english:
            return stemmer.stemWord(word) or word
        return american(stemmer.stemWord(IRREGULAR_ENGLISH.get(word, word))) or word


def _kept(memo: Memo, chunk: str, made: list[str]) -> tuple[str, ...]:
    """What was *made* of *chunk*, cut to what a term may have, and remembered unless the chunk is longer than that."""
    if len(chunk) > TERM_CHARS_MAX:
        return tuple([text[:TERM_CHARS_MAX] for text in made])
    return memo.keep(chunk, (chunk,) if made == [chunk] else tuple([text[:TERM_CHARS_MAX] for text in made]))


def _once(terms: list[str]) -> list[str]:
    return list(dict.fromkeys(terms)) if len(terms) > 1 else terms


def _chunks(text: str) -> list[str]:
    if text.isascii():
        return _CHUNK_ASCII.findall(text)
    text = _MARKS_TOO_MANY.sub(r"\1", text.translate(_SMOOTHED))
    return _CHUNK.findall(unicodedata.normalize("NFKC", text))


def _without_apostrophe(chunk: str) -> str:
    return _CONTRACTED.sub("", chunk).replace("'", "") if "'" in chunk else chunk


def _without_accents(word: str) -> str:
    """*word* without the accents of Latin, Greek and Cyrillic letters; in other scripts a mark makes another letter."""
    if word.isascii():
        return word
    letters: list[str] = []
    latin = False
    for letter in unicodedata.normalize("NFD", word):
        if unicodedata.combining(letter):
            if not latin:
                letters.append(letter)
            continue
        latin = letter.isascii() or unicodedata.name(letter, "").startswith(_BARE_SCRIPTS)
        letters.append(_STROKES.get(letter, letter))
    return unicodedata.normalize("NFC", "".join(letters))


# Letters that carry a stroke instead of an accent: Unicode does not take these apart.
_STROKES = {"ø": "o", "đ": "d", "ł": "l", "ħ": "h", "ı": "i", "ŧ": "t", "æ": "ae", "œ": "oe", "ð": "d", "þ": "th"}
