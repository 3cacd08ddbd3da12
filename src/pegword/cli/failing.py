"""What a command says when it fails, and the exit code that goes with it."""

import json
import sys
import traceback
from pathlib import Path
from typing import Any

from pegword.core.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    PegwordError,
    TooLarge,
    Unauthenticated,
    Unavailable,
    VersionMismatch,
)

OK, REFUSED, INVALID, DENIED, UNAVAILABLE, INTERNAL = 0, 1, 2, 3, 4, 70
INTERRUPTED, PIPE_CLOSED = 130, 141

EXIT_CODES = f"""\
\b
Exit codes:
  {OK:<4} done
  {REFUSED:<4} refused by what is stored: not found, or a conflict
  {INVALID:<4} the command, or what it was given, cannot be used
  {DENIED:<4} not allowed
  {UNAVAILABLE:<4} not now: the database is busy or read-only, the disk is full
  {INTERNAL:<4} a fault in Pegword itself
"""

_CODE_OF: tuple[tuple[type[PegwordError], int], ...] = (
    (Invalid, INVALID),
    (TooLarge, INVALID),
    (Unauthenticated, DENIED),
    (Forbidden, DENIED),
    (NotFound, REFUSED),
    (Conflict, REFUSED),
    (Unavailable, UNAVAILABLE),
)


def exit_code(error: BaseException) -> int:
    """The exit code for *error*."""
    if isinstance(error, OSError):
        return UNAVAILABLE
    return next((code for kind, code in _CODE_OF if isinstance(error, kind)), INTERNAL)


def report(error: BaseException, *, as_json: bool) -> int:
    """Say on stderr what went wrong, one sentence or the error body of the HTTP API, and return the exit code."""
    code = exit_code(error)
    if isinstance(error, PegwordError):
        body: dict[str, Any] = {"error": str(error), "code": error.code}
        if error.field:
            body["field"] = error.field
        if isinstance(error, VersionMismatch):
            body["current_version"] = error.current
    elif isinstance(error, OSError):
        body = {"error": f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}", "code": "unavailable"}
    else:
        body = {"error": f"a fault in Pegword: {_where(error)}; please report it", "code": "internal"}
    say(body, as_json=as_json)
    return code


def usage_error() -> type[BaseException]:
    """The base of all that is wrong with a command line: of Click, or of Typer's own copy of it, by Typer's release."""
    import typer

    return next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def usage(error: BaseException, *, as_json: bool) -> int:
    """Say what is wrong with the command line, and where to look."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "pegword"
    sentence = str(getattr(error, "format_message", error.__str__)()).rstrip(".")
    say({"error": f"{sentence[:1].lower()}{sentence[1:]}; see {path} --help", "code": "usage"}, as_json=as_json)
    return INVALID


def say(body: dict[str, Any], *, as_json: bool) -> None:
    """Write an error to stderr: for programs its body, for people its sentence."""
    if as_json:
        print(json.dumps(body), file=sys.stderr)
        return
    from pegword.cli.output import note

    note(body["error"])


def _where(error: BaseException) -> str:
    """What happened and in which line of which file: enough to find it, without what was stored."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" in {Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"
