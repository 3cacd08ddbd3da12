"""From the connection to the bytes of a body: its type, its size, and how much may lie in memory at once.

How long it may take is watched where the connection is.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.datastructures import Headers

from pegword.core.errors import Invalid, TooLarge
from pegword.http.failures import Overloaded, WrongMedia

BODY_BYTES_MAX = 1 << 20
BODIES_BYTES_MAX = 256 << 20
UNREAD_BYTES_MAX = 64 << 10  # of a body that nobody wants: up to this, the connection stays open

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class ClientGone(Exception):
    """The client hung up, so nobody waits for an answer."""


class Bodies:
    """Reads bodies, and counts what all of them hold in this process. Used on the event loop only."""

    def __init__(self, bytes_max: int = BODIES_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self.held = 0

    async def read(self, headers: Headers, receive: Receive, bytes_max: int) -> bytearray:
        """The whole body. Give its length back with `release`.

        Raises `WrongMedia` when it is said to be anything but JSON, `TooLarge` above *bytes_max*: before reading when the length is
        told, else as soon as it is passed. Raises `Overloaded` when all bodies together hold too much.
        """
        require_media(headers, ("application/json",))
        declared = declared_bytes(headers)
        if declared > bytes_max:
            raise _too_large(bytes_max)
        body = bytearray()
        try:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                chunk = message.get("body", b"")
                self.held += len(chunk)
                body += chunk
                if len(body) > bytes_max:
                    raise _too_large(bytes_max)
                if self.held > self._bytes_max:
                    raise Overloaded("the server holds as many request bodies as it can; try again", retry_after_s=1)
                if not message.get("more_body", False):
                    return body
        except BaseException:
            self.release(len(body))
            raise

    def release(self, count: int) -> None:
        """Say that a body of *count* bytes is done with."""
        self.held -= count


def declared_bytes(headers: Headers) -> int:
    """The Content-Length, 0 when there is none."""
    length = headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdecimal() and len(length) < 20 else 0


def leaves_much_unread(headers: Headers) -> bool:
    """Whether a body that nobody reads is so long, or of so unknown a length, that the connection is better closed."""
    return "transfer-encoding" in headers or declared_bytes(headers) > UNREAD_BYTES_MAX


def require_media(headers: Headers, media: tuple[str, ...]) -> None:
    """Refuse what says that it is none of *media*; saying nothing is taken for the first of them, which is checked anyway."""
    kinds = [value.partition(";")[0].strip().lower() for value in headers.getlist("content-type")]
    if len(kinds) > 1:
        raise Invalid("there are two Content-Type headers", code="bad_header")
    if kinds and kinds[0] not in ("", *media):
        raise WrongMedia(f"Content-Type must be {media[0]}: it is {kinds[0][:64]}")
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise WrongMedia(f"Content-Encoding must be absent: it is {encoding[:64]}")


def _too_large(bytes_max: int) -> TooLarge:
    return TooLarge(f"the body exceeds the limit of {bytes_max} bytes")
