"""What goes wrong, as an answer: one table from error class to status, and one error body for every face and for the connection itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from pegword.core.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NewerDatabase,
    NotFound,
    PegwordError,
    StorageFull,
    TooLarge,
    Unauthenticated,
    Unavailable,
    VersionMismatch,
)

if TYPE_CHECKING:
    from pegword.http.spooling import Spool

RETRY_STORAGE_FULL_S = 30


class WrongMethod(PegwordError):
    """The path exists, but not for this method; `allowed` are the methods it takes."""

    code = "method_not_allowed"

    def __init__(self, sentence: str, *, allowed: tuple[str, ...]) -> None:
        super().__init__(sentence)
        self.allowed = allowed


class TooSlow(PegwordError):
    """The request did not arrive in time."""

    code = "request_timeout"


class PathTooLong(PegwordError):
    """The request target is above its limit."""

    code = "uri_too_long"


class WrongMedia(PegwordError):
    """The body is of a type, or in an encoding, that is not read here."""

    code = "unsupported_media_type"


class HeadersTooLarge(PegwordError):
    """The request's head is above its limit."""

    code = "headers_too_large"


class TooMany(Unavailable):
    """The credential has sent more requests than it may."""

    code = "rate_limited"


class Overloaded(Unavailable):
    """More is being worked on than this process takes at once."""

    code = "overloaded"


STATUS: Mapping[type[BaseException], int] = {
    Invalid: 400,
    Unauthenticated: 401,
    Forbidden: 403,
    NotFound: 404,
    WrongMethod: 405,
    TooSlow: 408,
    Conflict: 409,
    NewerDatabase: 409,  # nothing that a client sends makes it so, and nothing that it repeats will change it
    VersionMismatch: 412,
    TooLarge: 413,
    PathTooLong: 414,
    WrongMedia: 415,
    TooMany: 429,
    HeadersTooLarge: 431,
    Unavailable: 503,
    StorageFull: 507,
    BaseException: 500,
}


class Error(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What every failure answers: *error* is a sentence for a person, *code* a word for programs, *field* the part at fault."""

    error: str
    code: str
    field: str = ""
    current_version: int | None = None
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer ready to send: JSON, unless *headers* say another type; the bytes are in *spool* where there is one."""

    status: int
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()
    spool: "Spool | None" = None


def failure(error: PegwordError) -> Reply:
    """The answer to an error that was raised on purpose: its status is looked up along its class's ancestors."""
    status = next(STATUS[kind] for kind in type(error).__mro__ if kind in STATUS)
    body = Error(error=str(error), code=error.code, field=error.field)
    headers: tuple[tuple[str, str], ...] = ()
    if isinstance(error, VersionMismatch):
        body.current_version = error.current
    if isinstance(error, Unauthenticated):
        headers = (("WWW-Authenticate", "Bearer"),)
    if isinstance(error, WrongMethod):
        headers = (("Allow", ", ".join(error.allowed)),)
    if isinstance(error, Unavailable):
        wait = RETRY_STORAGE_FULL_S if isinstance(error, StorageFull) else error.retry_after_s
        headers = (("Retry-After", str(wait)),)
    return Reply(status, msgspec.json.encode(body), headers)


def accident(request_id: str) -> Reply:
    """The answer to an exception that nobody foresaw: it says where the log tells more, and nothing else."""
    sentence = f"The server failed on this request; its log has the reason under {request_id}"
    return Reply(500, msgspec.json.encode(Error(error=sentence, code="internal", request_id=request_id)))
