"""What a memory is: its fields, its words, its limits, and how what was sent becomes what may be stored.

Texts are counted in code points. Times are whole microseconds since 1970 in UTC. Nothing here reads a clock.
"""

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from pegword.core.caller import Caller, Scope
from pegword.core.errors import Invalid
from pegword.core.invisible import is_invisible
from pegword.core.versions import Expected, checked_expected

NAME_CHARS_MAX = 256
CONTENT_CHARS_MAX = 65_536
DESCRIPTION_CHARS_MAX = 8_192
TAGS_MAX = 32
TAG_CHARS_MAX = 64
SITTING_CHARS_MAX = 64

KINDS = ("user", "project", "feedback", "reference")
# `general` is what later clients of the reference call `project`; a row keeps which word it was last saved with.
KIND_WORDS = {**{kind: kind for kind in KINDS}, "general": "project"}
KIND_DEFAULT = "project"
PRIORITIES = ("critical", "high", "normal", "low")
PRIORITY_DEFAULT = "normal"
SOURCES = ("user", "agent", "tool", "system")
AGENT_SOURCES = ("agent", "tool", "system")
CONFIDENCE_OF_HUMAN = 1.0
CONFIDENCE_OF_AGENT = 0.7

# For `Draft.expires_at`: take the expiry away. (None keeps what is stored.)
NEVER = 0
SECOND_US = 1_000_000
TIME_US_MAX = 253_402_300_799 * SECOND_US  # the end of the year 9999

_NAME_PUNCTUATION = frozenset("_.:/@+#")
_PLAIN_NAME = re.compile(rf"[a-z0-9_]{{1,{NAME_CHARS_MAX}}}", re.ASCII)
_DASHES = frozenset("-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d")


@dataclass(frozen=True, slots=True)
class Draft:
    """What a caller asks to save. None means: keep what is stored, or take the default for a new memory."""

    name: str
    content: str
    scope: Scope
    description: str | None = None
    kind: str | None = None
    kind_word: str = ""
    tags: tuple[str, ...] | None = None
    priority: str | None = None
    confidence: float | None = None
    source: str | None = None
    expires_at: int | None = None
    sitting: str = ""
    session: str = ""
    expected_version: Expected = None
    claims_verified: bool = False
    shelf: str = ""


class Memory(NamedTuple):
    """One memory as stored. *slot* and *place* are its number in its scope and its place in its sitting.

    A named tuple, since a list makes hundreds of them: a frozen dataclass of so many fields takes five times as long to make.
    """

    memory_id: str
    scope: Scope
    shelf: str
    name: str
    kind: str
    kind_word: str
    description: str
    content: str
    tags: tuple[str, ...]
    priority: str
    source: str
    author: str
    author_user: str
    credential: str
    verified_by: str
    verified_at: int | None
    confidence: float
    expires_at: int | None
    created: int
    updated: int
    version: int
    content_hash: str
    access_count: int
    last_accessed: int | None
    slot: int
    place: int
    length: int

    def expired(self, now: int) -> bool:
        """Whether the memory has run out at *now*."""
        return self.expires_at is not None and self.expires_at <= now

    @property
    def verified(self) -> bool:
        """Whether a human has confirmed the memory as it stands."""
        return self.verified_at is not None


@dataclass(frozen=True, slots=True)
class Version:
    """A memory as it stood after one change. *action* is what made it: save, update, revert or import."""

    memory_id: str
    version: int
    action: str
    name: str
    kind: str
    description: str
    content: str
    tags: tuple[str, ...]
    priority: str
    source: str
    author: str
    credential: str
    verified: bool
    confidence: float
    expires_at: int | None
    saved: int
    content_hash: str


@dataclass(frozen=True, slots=True)
class Trust:
    """What a write may say of itself, and what it was told that it may not."""

    source: str
    confidence: float
    verified_by: str
    warnings: tuple[str, ...] = ()


def normal_name(text: str) -> str:
    """Return the normal form of a name, by which it is stored and found; the same again for a normal form.

    NFKC, outer blanks cut, lower case, each dash and each space an underscore. Then 1 to `NAME_CHARS_MAX` letters and
    digits of any script and ``_ . : / @ + #``, else `Invalid` naming the character. Nothing is collapsed.
    """
    if _PLAIN_NAME.fullmatch(text):
        return text
    name = text
    for _ in range(4):  # lower case can undo NFKC and the other way round; it settles at once in practice
        before = name
        name = unicodedata.normalize("NFKC", name).strip().lower()
        if name == before:
            break
    name = "".join("_" if c in _DASHES or c == " " else c for c in name)
    if not name or len(name) > NAME_CHARS_MAX:
        length = f": it has {len(name)}" if name else ""
        raise Invalid(f"name is required (max {NAME_CHARS_MAX} characters){length}", field="name")
    for position, c in enumerate(name):
        marks_a_letter = unicodedata.category(c)[0] == "M" and position > 0
        if is_invisible(c) or not (c.isalnum() or c in _NAME_PUNCTUATION or marks_a_letter):
            shown = f" {c!r}" if c.isprintable() and not 0xD800 <= ord(c) <= 0xDFFF else ""
            raise Invalid(
                f"name holds the character U+{ord(c):04X}{shown}; letters, digits and _ . : / @ + # are allowed",
                field="name",
            )
    return name


def checked(draft: Draft) -> Draft:
    """Return *draft* with every field in its normal form, or raise `Invalid` naming the field and the limit."""
    kind, word = (None, "") if draft.kind is None else checked_kind(draft.kind)
    description = draft.description
    return Draft(
        normal_name(draft.name),
        checked_text(draft.content, "content", CONTENT_CHARS_MAX, blank=False),
        draft.scope,
        None if description is None else checked_text(description, "description", DESCRIPTION_CHARS_MAX),
        kind,
        word,
        None if draft.tags is None else checked_tags(draft.tags),
        None if draft.priority is None else checked_word(draft.priority, "priority", PRIORITIES),
        None if draft.confidence is None else _checked_confidence(draft.confidence),
        None if draft.source is None else checked_word(draft.source, "source", SOURCES),
        draft.expires_at,
        checked_text(draft.sitting.strip(), "sitting", SITTING_CHARS_MAX),
        checked_text(draft.session.strip(), "session", NAME_CHARS_MAX),
        checked_expected(draft.expected_version),
        draft.claims_verified,
        draft.shelf,
    )


def checked_kind(word: str) -> tuple[str, str]:
    """The kind that *word* means and the word itself; `Invalid` lists the valid ones."""
    if word not in KIND_WORDS:
        raise Invalid(f"invalid type: {word[:64]}; must be one of {sorted(KIND_WORDS)}", field="type")
    return KIND_WORDS[word], word


def checked_word(word: str, field: str, words: tuple[str, ...]) -> str:
    """*word* if it is among *words*, else `Invalid` with the list."""
    if word not in words:
        raise Invalid(f"invalid {field}: {word[:64]}; must be one of {list(words)}", field=field)
    return word


def checked_text(text: str, field: str, chars_max: int, *, blank: bool = True) -> str:
    """*text* as it is, or `Invalid`: too long, blank where that is not allowed, or not storable as UTF-8."""
    if not blank and not text.strip():
        raise Invalid(f"{field} is required", field=field)
    if len(text) > chars_max:
        raise Invalid(f"{field} exceeds {chars_max} character limit: it has {len(text)}", field=field, code="too_long")
    if "\x00" in text:
        raise Invalid(f"{field} holds the character U+0000, which cannot be stored", field=field)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise Invalid(f"{field} holds half of a character (U+{ord(text[error.start]):04X}), which is no text", field=field) from None
    return text


def checked_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """*tags* without outer blanks and doubles (compared folded), in their given order."""
    kept: dict[str, str] = {}
    for tag in tags:
        tag = checked_text(tag.strip(), "tags", TAG_CHARS_MAX)
        if not tag:
            raise Invalid("tags: a tag must not be blank", field="tags")
        kept.setdefault(folded(tag), tag)
    if len(kept) > TAGS_MAX:
        raise Invalid(f"tags exceeds the limit of {TAGS_MAX} tags: there are {len(kept)}", field="tags")
    return tuple(kept.values())


def folded(text: str) -> str:
    """*text* as it is compared where case and width do not matter."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def trust_of(caller: Caller, draft: Draft) -> Trust:
    """What this caller's write says of itself: trust follows the credential, not the text.

    A human's write is verified and of source user unless it says agent. An agent's is neither, whatever it claims;
    a claim is answered with a warning and the write goes through.
    """
    confidence = CONFIDENCE_OF_HUMAN if caller.human else CONFIDENCE_OF_AGENT
    if draft.confidence is not None:
        confidence = draft.confidence
    if caller.human:
        source = draft.source if draft.source in ("user", "agent") else "user"
        return Trust(source, confidence, caller.user_id)
    warnings = []
    if draft.source == "user":
        warnings.append("source: an agent's credential cannot save as user; saved as agent")
    if draft.claims_verified:
        warnings.append("verified: only a human can verify; saved as not verified")
    source = draft.source if draft.source in AGENT_SOURCES else "agent"
    return Trust(source, confidence, "", tuple(warnings))


def hash_of(name: str, kind: str, description: str, content: str, tags: tuple[str, ...]) -> str:
    """The SHA-256 of what a reader of the memory sees, in hex: 64 characters."""
    parts = (name, kind, description, content, *tags)
    # The length in bytes first, so that no two records read alike. Most are ASCII, where it is that in characters: encoded at once.
    told = "".join([f"{len(part)}:{part}" for part in parts])
    if not told.isascii():
        return hashlib.sha256(b"".join([b"%d:%b" % (len(part), part) for part in map(str.encode, parts)])).hexdigest()
    return hashlib.sha256(told.encode()).hexdigest()


_NUMBERS = (int, float)


def is_sound(saved: Memory | Version) -> bool:
    """Whether what is stored matches the hash that was made when it was saved, and holds beside it nothing that cannot be."""
    if saved.priority not in PRIORITIES or saved.source not in SOURCES:
        return False
    if not (isinstance(saved.version, _NUMBERS) and isinstance(saved.confidence, _NUMBERS) and isinstance(saved.expires_at or 0, _NUMBERS)):
        return False
    if isinstance(saved, Memory):
        if not (isinstance(saved.created, _NUMBERS) and isinstance(saved.updated, _NUMBERS) and isinstance(saved.slot, _NUMBERS)):
            return False
    elif not isinstance(saved.saved, _NUMBERS):
        return False
    try:
        return saved.content_hash == hash_of(saved.name, saved.kind, saved.description, saved.content, saved.tags)
    except (TypeError, AttributeError):  # a text that is none
        return False


def hashed(memory: Memory) -> Memory:
    """*memory* with the hash of what it says now."""
    return memory._replace(content_hash=hash_of(memory.name, memory.kind, memory.description, memory.content, memory.tags))


def parse_time(value: str | float, field: str) -> int:
    """Microseconds since 1970 for an ISO 8601 text (without a zone: UTC) or a number of seconds since 1970."""
    refusal = Invalid(f"{field} must be an ISO 8601 time or seconds since 1970, up to the year 9999", field=field)
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip())
        except ValueError:
            raise refusal from None
        try:
            moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        except OverflowError:
            raise refusal from None
        delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
        micros = (delta.days * 86_400 + delta.seconds) * SECOND_US + delta.microseconds
    else:
        if not -TIME_US_MAX <= value * SECOND_US <= TIME_US_MAX:  # false for NaN too
            raise refusal
        micros = round(value * SECOND_US)
    if not 0 < micros <= TIME_US_MAX:
        raise refusal
    return micros


def _checked_confidence(value: float) -> float:
    if not 0.0 <= value <= 1.0:
        raise Invalid(f"confidence must be between 0.0 and 1.0: it is {value}", field="confidence")
    return float(value)
