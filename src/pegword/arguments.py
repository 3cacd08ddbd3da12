"""Arguments of the embedded library, held against their annotations before anything is done."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from pegword.core.errors import Invalid

INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1

Time = datetime | str | float
Conversation = str | Sequence[Mapping[str, Any]]
CallArguments = str | Mapping[str, Any]

P = ParamSpec("P")
R = TypeVar("R")


def checked(method: Callable[P, R]) -> Callable[P, R]:
    """*method*, with each argument held against its annotation before anything is done: `Invalid` names the one at fault."""
    form = signature(method)
    checks = {name: CHECKS[parameter.annotation] for name, parameter in form.parameters.items() if name != "self"}

    @wraps(method)
    def checking(*arguments: P.args, **named: P.kwargs) -> R:
        for name, value in form.bind(*arguments, **named).arguments.items():
            if name in checks:
                checks[name](value, name)
        return method(*arguments, **named)

    return checking


def _is(what: str, test: Callable[[Any], bool]) -> Callable[[Any, str], None]:
    """A check that an argument is *what*."""

    def check(value: Any, field: str) -> None:
        if not test(value):
            raise Invalid(f"{field} must be {what}: it is {'None' if value is None else f'of type {type(value).__name__}'}", field=field)

    return check


def _check_integer(value: Any, field: str) -> None:
    _is("an integer", _is_integer)(value, field)
    if not INTEGER_MIN <= value <= INTEGER_MAX:
        raise Invalid(f"{field} must be an integer of 64 bits", field=field)


def _check_messages(value: Any, field: str) -> None:
    _is("a text or a sequence of messages", lambda v: isinstance(v, Sequence) and not isinstance(v, bytes | bytearray))(value, field)
    for at, message in enumerate(() if isinstance(value, str) else value):
        _is("a mapping with role and content", lambda v: isinstance(v, Mapping))(message, f"{field}[{at}]")


def _is_texts(value: Any) -> bool:
    # a text is a sequence of texts too, and its letters are not what was meant
    one = isinstance(value, str | Mapping) or not isinstance(value, Collection)
    return not one and all(isinstance(part, str) for part in value)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or (_is_integer(value) and INTEGER_MIN <= value <= INTEGER_MAX)


def _or_none(check: Callable[[Any, str], None]) -> Callable[[Any, str], None]:
    return lambda value, field: None if value is None else check(value, field)


_check_text = _is("a text", lambda v: isinstance(v, str))
CHECKS: Mapping[object, Callable[[Any, str], None]] = {
    str: _check_text,
    str | None: _or_none(_check_text),
    int: _check_integer,
    int | None: _or_none(_check_integer),
    bool: _is("True or False", lambda v: isinstance(v, bool)),
    float | None: _or_none(_is("a number", _is_number)),
    Sequence[str] | None: _or_none(_is("a sequence of texts", _is_texts)),
    Time | None: _or_none(_is("a datetime, a text or a number of seconds", lambda v: isinstance(v, datetime | str) or _is_number(v))),
    Conversation: _check_messages,
    CallArguments: _is("a text or a mapping", lambda v: isinstance(v, str | Mapping)),
}
check_path = _or_none(_is("a path or a text", lambda v: isinstance(v, str | Path)))


def as_messages(conversation: Conversation) -> Sequence[Mapping[str, Any]]:
    """A conversation as messages: a text alone is what the user said."""
    return [{"role": "user", "content": conversation}] if isinstance(conversation, str) else conversation
