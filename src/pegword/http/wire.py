"""From bytes to values: strict JSON, strict query strings, and one sentence for each way in which they can be wrong.

Nothing is guessed and nothing is silently dropped: numbers are numbers, names are given once, every text can be stored as UTF-8, and
what a request names without effect comes back as a warning.
"""

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, ClassVar, TypeVar, get_args
from urllib.parse import parse_qsl

import msgspec
from starlette.datastructures import Headers

from pegword.core.errors import Invalid
from pegword.core.memory import NAME_CHARS_MAX

DEPTH_MAX = 64
CONTAINERS_MAX = 200_000
VALUES_MAX = 1_000_000
PARAMETERS_MAX = 32
WARNED_FIELDS_MAX = 20
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1

_INTEGER_CHARS_MAX = 20
_BOM = b"\xef\xbb\xbf"
# A JSON text, closed or not: possessive, so that no body makes it look twice.
_TEXTS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_NO_BRACKETS = re.compile(rb"[^][{}]+")
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN_INTEGER = re.compile(r"-?[0-9]{1,19}", re.ASCII)
_MISSING = re.compile(r"missing required field `(\w+)`")
_AT = re.compile(r" - at (?:`key` in )?`\$\.?(.*)`$")
_EXPECTED = re.compile(r"^Expected `([^`]*)`(?: (>=|<=) (-?[0-9]+)| of length (<=) ([0-9]+))?")
_NOUNS = {
    "int": "an integer", "str": "a text", "float": "a number", "bool": "true or false", "array": "a list", "object": "an object",
}  # fmt: skip
_REQUIRED = {"name": f"name is required (max {NAME_CHARS_MAX} characters)"}
# Facts about a memory that only the server states.
_READ_ONLY = frozenset(
    "memory_id created updated author version hash verified access_count last_accessed expired score outcome warnings".split()
)


class Body(msgspec.Struct, kw_only=True):
    """What a request body is read into. In `clearable` fields null means clear; in all others it means absent."""

    clearable: ClassVar[frozenset[str]] = frozenset()


BodyT = TypeVar("BodyT", bound=Body)
QueryT = TypeVar("QueryT", bound=msgspec.Struct)


def parse_object(body: bytes | bytearray) -> dict[str, Any]:
    """The JSON object that *body* holds, or `Invalid` saying what is wrong with it.

    Beyond JSON's own grammar: UTF-8 without a byte order mark, `DEPTH_MAX` levels, `VALUES_MAX` values, no name twice in an
    object, integers of 64 bits, finite numbers, whole characters.
    """
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


def body_of(kind: type[BodyT], body: bytes | bytearray) -> tuple[BodyT, tuple[str, ...]]:
    """*body* as a *kind*, and a warning for each field that it does not have. Raises `Invalid` naming the field."""
    given = parse_object(body)
    known = kind.__struct_fields__
    used = {name: given[name] for name in known if name in given and (given[name] is not None or name in kind.clearable)}
    try:
        return msgspec.convert(used, kind), _warnings(_ignored(given, kind))
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from None


def query_of(kind: type[QueryT] | None, query: bytes) -> QueryT | None:
    """The query string as a *kind* (None: it takes no parameters). Raises `Invalid` naming the parameter.

    A parameter without a value is absent; one that is unknown, or given twice, is refused.
    """
    if not query:
        return kind() if kind else None
    fields = _types(kind) if kind else {}
    given: dict[str, Any] = {}
    for name, value in _pairs(query):
        if name not in fields:
            raise _unknown(name, fields)
        if name in given:
            raise Invalid(f"{name} is given more than once", field=name)
        given[name] = value
    if kind is None:
        return None
    values = {name: _from_text(name, value, fields[name]) for name, value in given.items() if value}
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from None


def one_header(headers: Headers, name: str) -> str | None:
    """The value of a header that may be given once, None when it is not; `Invalid` when there are several."""
    values = headers.getlist(name)
    if len(values) > 1:
        raise Invalid(f"there are {len(values)} {name} headers; give one", field=name)
    return values[0] if values else None


def version_of(if_match: list[str]) -> int | None:
    """The version that an If-Match header expects, None when there is no such header."""
    if not if_match:
        return None
    tag = if_match[0].strip().removeprefix("W/")
    number = tag[1:-1] if len(tag) > 1 and tag[0] == tag[-1] == '"' else tag
    if len(if_match) > 1 or not number.isascii() or not number.isdecimal() or len(number) > 18:
        raise Invalid("If-Match must be one version number, such as the ETag of an earlier answer", field="If-Match")
    return int(number)


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
        raise Invalid(f"{_shown(twice)} is given more than once", field=_shown(twice), code="duplicate_key")
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
            raise Invalid(f"{_shown(field)} holds half of a character (U+{ord(half[0]):04X}), which is no text", field=_shown(field))
    elif isinstance(value, list):
        for part in value:
            _check_whole(part, field)
    elif isinstance(value, dict):
        for name, part in value.items():
            _check_whole(name, field)
            _check_whole(part, field)


def _ignored(given: Mapping[str, Any], kind: type[msgspec.Struct]) -> Iterator[str]:
    """The names in *given* that a *kind* does not have, and those of the objects in it, written ``object.name``."""
    names = kind.__struct_fields__
    yield from (name for name in given if name not in names)
    for name in names:
        part = given.get(name)
        if isinstance(part, dict):
            type_ = _types(kind)[name]
            inner = next((k for k in (type_, *get_args(type_)) if isinstance(k, type) and issubclass(k, msgspec.Struct)), None)
            if inner is not None:
                yield from (f"{name}.{below}" for below in _ignored(part, inner))


@cache
def _types(kind: type[msgspec.Struct]) -> Mapping[str, Any]:
    """The type of each field. To work that out took longer than to read a body."""
    return {field.name: field.type for field in msgspec.structs.fields(kind)}


def _warnings(names: Iterable[str]) -> tuple[str, ...]:
    ignored = list(names)
    warnings = [
        f"{_shown(name)}: set by the server; ignored" if name in _READ_ONLY else f"{_shown(name)}: no such field here; ignored"
        for name in ignored[:WARNED_FIELDS_MAX]
    ]
    if len(ignored) > WARNED_FIELDS_MAX:
        warnings.append(f"{len(ignored) - WARNED_FIELDS_MAX} more fields that are not known here; ignored")
    return tuple(warnings)


def _pairs(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=PARAMETERS_MAX)
    except UnicodeDecodeError:
        raise Invalid("the query string is not valid UTF-8", code="invalid_query") from None
    except ValueError:
        raise Invalid(f"the query string has more than {PARAMETERS_MAX} parameters", code="invalid_query") from None


def _unknown(name: str, fields: Mapping[str, Any]) -> Invalid:
    if not fields:
        return Invalid(f"unknown query parameter {_shown(name)}: none is taken here", field=_shown(name), code="unknown_parameter")
    near = difflib.get_close_matches(name[:64], fields, 1)
    known = f"did you mean {near[0]}?" if near else f"known are {', '.join(fields)}"
    return Invalid(f"unknown query parameter {_shown(name)}; {known}", field=_shown(name), code="unknown_parameter")


def _from_text(name: str, text: str, kind: Any) -> Any:
    """A parameter's text as the type of its field."""
    kinds = (kind, *get_args(kind))
    if bool in kinds:
        if text not in ("true", "false"):
            raise Invalid(f"{name} must be true or false", field=name)
        return text == "true"
    if int in kinds:
        if not _PLAIN_INTEGER.fullmatch(text) or not INTEGER_MIN <= int(text) <= INTEGER_MAX:
            raise Invalid(f"{name} must be an integer", field=name)
        return int(text)
    return text


def _invalid(message: str) -> Invalid:
    """One sentence for what msgspec has found."""
    missing = _MISSING.search(message)
    where = _AT.search(message)
    path = where[1] if where else ""
    if missing:
        name = f"{path}.{missing[1]}" if path else missing[1]
        return Invalid(_REQUIRED.get(name, f"{name} is required"), field=name)
    expected = _EXPECTED.match(message)
    if expected is None:
        return Invalid(f"{path or 'the body'}: {message}", field=path)
    nouns, bound, limit, _, length = expected.groups()
    if length is not None:
        sentence = f"must hold at most {length} entries"
    elif bound is not None:
        sentence = f"must be at {'least' if bound == '>=' else 'most'} {limit}"
    else:
        sentence = "must be " + " or ".join(_NOUNS.get(noun, noun) for noun in nouns.split(" | ") if noun != "null")
    return Invalid(f"{path or 'the body'} {sentence}", field=re.split(r"[.\[]", path)[0])


def _shown(name: str) -> str:
    """A name from outside as it may stand in a sentence: short, and whole."""
    return name[:64].encode("utf-8", "replace").decode()
