"""JSON objects read strictly: nothing is guessed, and nothing that a program could stumble over later is let in."""

import json
import re
from typing import Any

from pegword.core.errors import Invalid

DEPTH_MAX = 64
CONTAINERS_MAX = 200_000
VALUES_MAX = 1_000_000
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1

_INTEGER_CHARS_MAX = 20
_BOM = b"\xef\xbb\xbf"
# A JSON text, closed or not: possessive, so that no body makes it look twice.
_TEXTS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_NO_BRACKETS = re.compile(rb"[^][{}]+")
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def parse_object(body: bytes | bytearray, what: str = "the body") -> dict[str, Any]:
    """The JSON object that *body*, called *what* for who sent it, holds; or `Invalid` saying what is wrong with it.

    Beyond JSON's own grammar: UTF-8 without a byte order mark, `DEPTH_MAX` levels, `VALUES_MAX` values, no name twice in an
    object, integers of 64 bits, finite numbers, whole characters.
    """
    try:
        return _parsed(body)
    except Invalid as error:
        raise Invalid(str(error).replace("the body", what, 1), field=error.field, code=error.code) from None


def _parsed(body: bytes | bytearray) -> dict[str, Any]:
    if body.startswith(_BOM):
        raise Invalid("the body begins with a byte order mark; send UTF-8 without one", code="invalid_json")
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise Invalid(f"the body is not valid UTF-8: see byte {error.start}", code="invalid_json") from None
    _check_shape(body)
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_int=_integer, parse_float=_number, parse_constant=_constant)
    except json.JSONDecodeError as error:
        what = error.msg.lower().removesuffix(" at")
        raise Invalid(f"Invalid JSON body: {what} at line {error.lineno} column {error.colno}", code="invalid_json") from None
    if not isinstance(value, dict):
        raise Invalid("the body must be a JSON object", code="invalid_json")
    if _ESCAPED_SURROGATE.search(body):
        for field, part in value.items():
            _check_whole(field, "a field's name")
            _check_whole(part, field)
    return value


def _check_shape(body: bytes | bytearray) -> None:
    """Refuse what is nested too deep, or holds so many values that it would fill the memory; both before any of it is built."""
    if body.count(b"[") + body.count(b"{") <= DEPTH_MAX and body.count(b",") <= VALUES_MAX:
        return
    bare = _TEXTS.sub(b"", body)
    if bare.count(b"[") + bare.count(b"{") > CONTAINERS_MAX or bare.count(b",") > VALUES_MAX:
        raise Invalid(f"the body holds more than {CONTAINERS_MAX} lists and objects or {VALUES_MAX} values", code="invalid_json")
    depth = 0
    for bracket in _NO_BRACKETS.sub(b"", bare):
        depth += 1 if bracket in b"[{" else -1
        if depth > DEPTH_MAX:
            raise Invalid(f"the body is nested deeper than {DEPTH_MAX} levels", code="invalid_json")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise Invalid(f"{shown(twice)} is given more than once", field=shown(twice), code="duplicate_key")
    return value


def _integer(text: str) -> int:
    value = int(text) if len(text) <= _INTEGER_CHARS_MAX else INTEGER_MAX + 1
    if not INTEGER_MIN <= value <= INTEGER_MAX:
        raise Invalid("the body holds an integer beyond 64 bits", code="invalid_json")
    return value


def _number(text: str) -> float:
    value = float(text)
    if value - value != 0:
        raise Invalid("the body holds a number that is too large", code="invalid_json")
    return value


def _constant(text: str) -> float:
    raise Invalid(f"the body holds {text}, which is no JSON", code="invalid_json")


def _check_whole(value: Any, field: str) -> None:
    """Refuse half of a character anywhere in *value*: it could not be stored as UTF-8."""
    if isinstance(value, str):
        half = _SURROGATE.search(value)
        if half:
            raise Invalid(f"{shown(field)} holds half of a character (U+{ord(half[0]):04X}), which is no text", field=shown(field))
    elif isinstance(value, list):
        for part in value:
            _check_whole(part, field)
    elif isinstance(value, dict):
        for name, part in value.items():
            _check_whole(name, field)
            _check_whole(part, field)


def shown(name: str) -> str:
    """A name from outside as it may stand in a sentence: short, and whole."""
    return name[:64].encode("utf-8", "replace").decode()
