"""What a model sends, read leniently where it can mean one thing only, and refused in one sentence where it cannot.

A model writes "5" for 5, a list of one for a text, null for nothing, tags in one text. That is read. What could mean two things is not
guessed. Who is asked for, and where, follows from the session: an argument that names a user, a kind of session or an id of a scope has
no effect, and the answer says so.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pegword.core.errors import Invalid
from pegword.core.memory import parse_time
from pegword.core.results import one_line
from pegword.core.times import parse_expiry

ARGUMENTS_CHARS_MAX = 1 << 20
LIMIT_DEFAULT, LIMIT_MAX = 20, 50
NAMED_MAX = 10
NAME_CHARS_SHOWN = 64

# Each action with the arguments that it uses.
USES: Mapping[str, tuple[str, ...]] = {
    "save": ("name", "content", "description", "type", "scope", "tags", "priority", "confidence", "expires_at"),
    "search": ("query", "type", "scope", "limit"),
    "list": ("type", "scope", "limit"),
    "get": ("name", "scope"),
    "delete": ("name", "scope"),
}
WRITING = ("save", "delete")
ALIASES: Mapping[str, str] = {"key": "name", "value": "content"}
# What only the session and its credential decide; the first of them say where something is meant to lie.
PLACES = frozenset(
    "user user_id user_name username owner scope_id workstream workstream_id project project_id mind mind_id coordinator".split()
)
SETTLED = PLACES | frozenset("session session_id kind session_kind author source verified credential token persona".split())

_KNOWN = ("action", *dict.fromkeys(name for names in USES.values() for name in names))
_WHOLE = re.compile(r"([+-]?)([0-9]+)(?:\.0*)?", re.ASCII)  # each character has one reading, so that no text takes long
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Request:
    """One call of the tool as it is meant. "" and None: not given.

    *notes* tell the model what had no effect, *places* are such arguments that were to say where something lies.
    """

    action: str
    name: str = ""
    content: str = ""
    query: str = ""
    description: str | None = None
    type: str = ""
    scope: str = ""
    tags: tuple[str, ...] | None = None
    priority: str = ""
    confidence: float | None = None
    expires_at: int | None = None
    limit: int = LIMIT_DEFAULT
    notes: tuple[str, ...] = ()
    places: tuple[str, ...] = ()


def read(arguments: object, actions: Sequence[str], now: int) -> Request:
    """The request that *arguments* (an object, or its JSON text) are. *now* is in microseconds since 1970.

    Raises `Invalid` with one sentence that names what is valid; *actions* are those to name when there is none such.
    """
    given, unknown = _given(_object(arguments))
    action = _word(given.pop("action", None), "action")
    if not action:
        raise Invalid(f"action is required; it must be one of {', '.join(actions)}", field="action")
    if action not in USES:
        raise Invalid(f"unknown action '{_shown(action)}'; it must be one of {', '.join(actions)}", field="action")
    used = {name: value for name, value in given.items() if name in USES[action]}
    unused = [name for name, value in given.items() if name not in USES[action] and value not in (None, "", [])]
    return Request(
        action,
        name=_required(used, "name", action),
        content=_required(used, "content", action),
        query=_required(used, "query", action),
        description=_text(used.get("description"), "description"),
        type=_word(used.get("type"), "type"),
        scope=_word(used.get("scope"), "scope"),
        tags=_tags(used.get("tags")),
        priority=_word(used.get("priority"), "priority"),
        confidence=_confidence(used.get("confidence")),
        expires_at=_expiry(used.get("expires_at"), now),
        limit=_limit(used.get("limit")),
        notes=_notes(action, unused, unknown),
        places=tuple(name for name in unknown if name in PLACES),
    )


def _object(arguments: object) -> Mapping[Any, Any]:
    """*arguments* as an object; hosts hand them on as they came, which from some models is as a JSON text."""
    if isinstance(arguments, str | bytes | bytearray):
        if len(arguments) > ARGUMENTS_CHARS_MAX:
            raise Invalid(f"the arguments exceed {ARGUMENTS_CHARS_MAX} characters", field="arguments")
        try:
            arguments = json.loads(arguments, object_pairs_hook=_pairs)
        except (ValueError, RecursionError):
            raise Invalid('the arguments are not valid JSON; send an object such as {"action": "list"}', field="arguments") from None
    if not isinstance(arguments, Mapping):
        raise Invalid(f'the arguments must be an object such as {{"action": "list"}}: they are {_what(arguments)}', field="arguments")
    return arguments


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of a JSON text. One name that stands there twice and says different things is refused."""
    read: dict[str, Any] = {}
    for name, value in pairs:
        if read.setdefault(name, value) != value:
            raise Invalid(f"{_shown(name)} is given twice, and differs; give it once", field=_shown(name))
    return read


def _given(arguments: Mapping[Any, Any]) -> tuple[dict[str, Any], list[str]]:
    """The known arguments by name, and the other names. Two spellings of one name that say different things are refused."""
    given: dict[str, Any] = {}
    spelt: dict[str, str] = {}
    unknown: list[str] = []
    for key, value in arguments.items():
        spelling = key if isinstance(key, str) else _what(key)
        plain = spelling.strip().lower().replace("-", "_")
        name = ALIASES.get(plain, plain)
        if name not in _KNOWN:
            unknown.append(plain)
        elif given.get(name) is None:
            given[name], spelt[name] = value, plain
        elif value is not None and value != given[name]:
            raise Invalid(f"{spelt[name]} and {plain} mean the same and differ; give {name} once", field=name)
    return given, unknown


def _required(used: Mapping[str, Any], name: str, action: str) -> str:
    """The text of an argument that *action* cannot do without, "" where it has no use for it."""
    if name not in USES[action]:
        return ""
    text = _text(used.get(name), name) or ""
    if not text.strip():
        also = "; use list to see the newest" if name == "query" else ""
        raise Invalid(f"{action} needs a {name}{also}", field=name)
    return text


def _text(value: Any, field: str) -> str | None:
    """A text, or what can only mean one: a number, or a list of a single text. None for nothing."""
    if isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    if value is None or isinstance(value, str):
        return value
    if _is_plain(value):
        return str(value)
    raise Invalid(f"{field} must be a text: it is {_what(value)}", field=field)


def _word(value: Any, field: str) -> str:
    return (_text(value, field) or "").strip().lower()


def _tags(value: Any) -> tuple[str, ...] | None:
    """Tags as a list, as the JSON text of one, or in one text with commas between them. Blank ones are no tags."""
    if isinstance(value, str):
        if not value.strip():
            return None
        value = _listed(value)
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        raise Invalid(f"tags must be a list of texts: it is {_what(value)}", field="tags")
    texts = [_text(tag, "each of the tags") or "" for tag in value]
    return tuple(text.strip() for text in texts if text.strip())


def _listed(text: str) -> list[Any]:
    if text.lstrip().startswith("["):
        try:
            listed = json.loads(text)
        except (ValueError, RecursionError):
            raise Invalid("tags must be a list of texts, or texts with commas between them", field="tags") from None
        if isinstance(listed, list):
            return listed
    return list(text.split(","))


def _confidence(value: Any) -> float | None:
    if value is None or value == "":
        return None
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        shown = str(value) if _is_plain(value) else _what(value)
        raise Invalid(f"confidence must be a number from 0.0 (doubted) to 1.0 (the user said so): it is {shown}", field="confidence")
    return float(value)


def _expiry(value: Any, now: int) -> int | None:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, str):
        return parse_expiry(value, now)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Invalid(f"expires_at must be a time such as 2027-01-31 or a duration such as 7d: it is {_what(value)}", field="expires_at")
    return parse_time(value, "expires_at")


def _limit(value: Any) -> int:
    """A number of results, brought within 1 and `LIMIT_MAX`."""
    if value is None or value == "":
        return LIMIT_DEFAULT
    if isinstance(value, str):
        whole = _WHOLE.fullmatch(value.strip())
        if whole is None:
            raise _no_limit(value)
        digits = whole[2].lstrip("0") or "0"
        value = LIMIT_MAX if len(digits) > 9 else int(digits)
        value = -value if whole[1] == "-" else value
    if isinstance(value, bool) or not isinstance(value, int | float) or not (isinstance(value, int) or value.is_integer()):
        raise _no_limit(value)
    return int(max(1, min(value, LIMIT_MAX)))


def _no_limit(value: Any) -> Invalid:
    shown = str(value) if _is_plain(value) else _what(value)
    return Invalid(f"limit must be a whole number from 1 to {LIMIT_MAX}: it is {shown}", field="limit")


def _notes(action: str, unused: Sequence[str], unknown: Sequence[str]) -> tuple[str, ...]:
    settled = [name for name in unknown if name in SETTLED]
    others = [name for name in unknown if name not in SETTLED]
    notes = []
    if settled:
        notes.append(f"Ignored: {_named(settled)}; the session settles that.")
    if unused:
        notes.append(f"Ignored: {_named(unused)}; {action} takes {', '.join(USES[action])}.")
    if others:
        notes.append(f"Ignored: {_named(others)}; the arguments are {', '.join(_KNOWN)}.")
    return tuple(notes)


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED_MAX} more" if len(names) > NAMED_MAX else ""
    return ", ".join(map(_shown, names[:NAMED_MAX])) + more


def _shown(text: str) -> str:
    """A text of the model as it may stand in a sentence: short, on one line, visible."""
    return one_line(text[:NAME_CHARS_SHOWN])


def _what(value: Any) -> str:
    """What kind of thing *value* is, for a sentence."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, str):
        return f"'{_shown(value)}'"
    return "a number" if isinstance(value, int | float) else f"of type {type(value).__name__}"


def _is_plain(value: Any) -> bool:
    """Whether *value* is a number that can be written out: Python refuses to spell very long ones."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -(2**63) <= value < 2**63 if isinstance(value, int) else math.isfinite(value)
