"""From bytes to values: strict JSON, strict query strings, and one sentence for each way in which they can be wrong.

Nothing is guessed and nothing is silently dropped: numbers are numbers, names are given once, every text can be stored as UTF-8, and
what a request names without effect comes back as a warning.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, ClassVar, TypeVar, get_args
from urllib.parse import parse_qsl

import msgspec
from starlette.datastructures import Headers

from pegword.core.errors import Invalid
from pegword.core.memory import NAME_CHARS_MAX
from pegword.strict_json import INTEGER_MAX, INTEGER_MIN, parse_object, shown

PARAMETERS_MAX = 32
WARNED_FIELDS_MAX = 20

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
        f"{shown(name)}: set by the server; ignored" if name in _READ_ONLY else f"{shown(name)}: no such field here; ignored"
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
        return Invalid(f"unknown query parameter {shown(name)}: none is taken here", field=shown(name), code="unknown_parameter")
    near = difflib.get_close_matches(name[:64], fields, 1)
    known = f"did you mean {near[0]}?" if near else f"known are {', '.join(fields)}"
    return Invalid(f"unknown query parameter {shown(name)}; {known}", field=shown(name), code="unknown_parameter")


def _from_text(name: str, text: str, kind: Any) -> Any:
    """A parameter's text as the type of its field."""
    kinds = _parts(kind)
    if bool in kinds:
        if text not in ("true", "false"):
            raise Invalid(f"{name} must be true or false", field=name)
        return text == "true"
    if int in kinds:
        if not _PLAIN_INTEGER.fullmatch(text) or not INTEGER_MIN <= int(text) <= INTEGER_MAX:
            raise Invalid(f"{name} must be an integer", field=name)
        return int(text)
    return text


def _parts(kind: Any) -> list[Any]:
    """A type, and all that it is made of."""
    return [kind, *(part for argument in get_args(kind) for part in _parts(argument))]


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
