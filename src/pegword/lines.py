"""The format of exports: JSON Lines, one memory a line, between a line that says what it is and one that says that it is whole.

    {"format": "pegword-export", "format_version": 1}
    {"name": …, "scope": …, "content": …, …}
    {"end": true, "memories": 1, "left_out": 0}

A file of memories alone, without the first and the last line, is read too: it cannot tell whether it is whole.
"""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, BinaryIO, TypeVar

from pegword.core.errors import Invalid, TooLarge
from pegword.core.memory import NEVER, SECOND_US, Memory, parse_time
from pegword.core.transfer import Line, Unusable
from pegword.strict_json import parse_object, shown

FORMAT = "pegword-export"
FORMAT_VERSION = 1
MEDIA_TYPE = "application/x-ndjson"
LINE_BYTES_MAX = 1 << 20
UNTOUCHED = "nothing was imported"

# What a line may hold. Those of the second row are the server's to say, and are read by nobody.
_USED = frozenset(
    "name content scope scope_id description type tags priority confidence source expires_at verified author updated memory_id sitting "
    "hash".split()
)
_SERVERS = frozenset("created version verified_at access_count last_accessed expired score outcome warnings".split())

T = TypeVar("T")


def head() -> bytes:
    """The line that an export begins with."""
    return _line({"format": FORMAT, "format_version": FORMAT_VERSION})


def end(memories: int, left_out: int) -> bytes:
    """The line that an export of so many memories ends with; *left_out* are those that are damaged."""
    return _line({"end": True, "memories": memories, "left_out": left_out})


def line_of(m: Memory, sitting: int) -> bytes:
    """One memory as a line. A user scope is whose it is read by, so it needs no id."""
    record: dict[str, Any] = {
        "name": m.name,
        "scope": m.scope.kind,
        "scope_id": "" if m.scope.kind == "user" else m.scope.id,
        "type": m.kind_word or m.kind,
        "description": m.description,
        "content": m.content,
        "tags": list(m.tags),
        "priority": m.priority,
        "confidence": m.confidence,
        "source": m.source,
        "author": m.author,
        "verified": m.verified,
        "expires_at": _time(m.expires_at),
        "created": _time(m.created),
        "updated": _time(m.updated),
        "version": m.version,
        "hash": m.content_hash,
        "memory_id": m.memory_id,
    }
    return _line({**record, "sitting": sitting} if sitting else record)


def read(file: BinaryIO) -> Iterator[Line | Unusable]:
    """The memories that *file* holds, in order; a line that is JSON and yet no memory is `Unusable`.

    Raises `Invalid` for a file that is no such file, or not whole, naming the line, and `TooLarge` for a line above `LINE_BYTES_MAX`: who
    reads it once to its end before doing anything knows that neither can come later.
    """
    headed, ended, memories = False, False, 0
    for number, given in _objects(file):
        if ended:
            raise Invalid(f"line {number} stands after the end of the export; {UNTOUCHED}", field="lines")
        if "format" in given and "name" not in given:
            _check_head(given, number)
            if headed or memories:
                raise Invalid(f"another export begins at line {number}: bring one at a time; {UNTOUCHED}", field="lines")
            headed = True
        elif given.get("end") is True and "name" not in given:
            ended = True
            if given.get("memories") != memories:
                told = shown(str(given.get("memories")))
                raise Invalid(f"line {number} ends an export of {told} memories, and {memories} are here; {UNTOUCHED}", field="lines")
        else:
            memories += 1
            yield _memory(given, number)
    if headed and not ended:
        raise Invalid(f"the export is cut off: it has no last line; {UNTOUCHED}", field="lines")


def _objects(file: BinaryIO) -> Iterator[tuple[int, dict[str, Any]]]:
    number = 0
    while line := file.readline(LINE_BYTES_MAX + 1):
        number += 1
        if len(line) > LINE_BYTES_MAX:
            raise TooLarge(f"line {number} exceeds the limit of {LINE_BYTES_MAX} bytes; {UNTOUCHED}", field="lines")
        if line.strip():
            try:
                yield number, parse_object(line, "it")
            except Invalid as error:
                raise Invalid(f"line {number} cannot be read: {error}; {UNTOUCHED}", field="lines", code=error.code) from None


def _check_head(given: dict[str, Any], number: int) -> None:
    name, version = given.get("format"), given.get("format_version")
    if name != FORMAT:
        raise Invalid(f"line {number} says that this is {shown(str(name))}, not {FORMAT}; {UNTOUCHED}", field="format")
    if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version <= FORMAT_VERSION:
        told = shown(str(version))
        raise Invalid(f"format_version is {told}; this program reads up to {FORMAT_VERSION}; {UNTOUCHED}", field="format_version")


def _memory(given: dict[str, Any], number: int) -> Line | Unusable:
    name = given.get("name")
    try:
        return _read(given, number)
    except Invalid as error:
        return Unusable(number, shown(name) if isinstance(name, str) else "", str(error))


def _read(given: dict[str, Any], number: int) -> Line:
    tags = _given(given, "tags", list, "a list of texts")
    if tags is not None and not all(isinstance(tag, str) for tag in tags):
        raise Invalid("tags must be a list of texts", field="tags")
    confidence = _given(given, "confidence", float, "a number")
    return Line(
        number,
        _required(given, "name"),
        _required(given, "content"),
        _text(given, "scope") or "global",
        _text(given, "scope_id") or "",
        _cleared(given, "description", _text(given, "description"), ""),
        _text(given, "type") or None,
        None if tags is None and "tags" not in given else tuple(tags or ()),
        _text(given, "priority") or None,
        confidence,
        _text(given, "source") or None,
        _cleared(given, "expires_at", _moment(given, "expires_at"), NEVER),
        _given(given, "verified", bool, "true or false"),
        _text(given, "author") or "",
        _moment(given, "updated"),
        _text(given, "memory_id") or "",
        _sitting(given),
        _text(given, "hash") or "",
        tuple(sorted(shown(field) for field in given.keys() - _USED - _SERVERS)),
    )


def _given(given: dict[str, Any], field: str, kind: type[T], noun: str) -> T | None:
    """A field of that type; None when it is absent or null."""
    value = given.get(field)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if value is not None and type(value) is not kind:
        raise Invalid(f"{field} must be {noun}", field=field)
    return value


def _text(given: dict[str, Any], field: str) -> str | None:
    return _given(given, field, str, "a text")


def _required(given: dict[str, Any], field: str) -> str:
    text = _text(given, field)
    if text is None:
        raise Invalid(f"{field} is required", field=field)
    return text


def _cleared(given: dict[str, Any], field: str, value: T | None, nothing: T) -> T | None:
    """*value*, where null is said to mean *nothing*: an export says it of whatever a memory does not have."""
    return nothing if field in given and value is None else value


def _moment(given: dict[str, Any], field: str) -> int | None:
    value = given.get(field)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise Invalid(f"{field} must be a time", field=field)
    return parse_time(value, field)


def _sitting(given: dict[str, Any]) -> int | str:
    value = given.get("sitting")
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise Invalid("sitting must be a number or a text", field="sitting")
    return value


def _time(at: int | None) -> str | None:
    if at is None:
        return None
    return datetime.fromtimestamp(at // SECOND_US, UTC).replace(microsecond=at % SECOND_US).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
