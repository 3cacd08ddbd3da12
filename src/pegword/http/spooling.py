"""Bodies and answers that may be long: they lie in a file without a name, and pass through the memory piece by piece."""

import errno
import hashlib
import tempfile
from collections.abc import MutableMapping
from functools import partial
from typing import Any, BinaryIO

from starlette.datastructures import Headers

from pegword.core.errors import StorageFull, TooLarge, Unavailable
from pegword.http.failures import WrongMedia
from pegword.http.reading import ClientGone, Receive, declared_bytes, require_media
from pegword.http.threads import Threads
from pegword.lines import LINE_BYTES_MAX, MEDIA_TYPE, UNTOUCHED

SPOOL_BYTES_MAX = 256 << 20
LINES_MAX = 100_000
PIECE_BYTES = 256 << 10

_MEDIA = (MEDIA_TYPE, "application/jsonl", "application/json-lines", "application/json")


class Spool:
    """Bytes in a file without a name, first written, then read. It is gone when it is closed, and with the process."""

    def __init__(self) -> None:
        self.file: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115
        self.size = 0
        self._hash = hashlib.sha256()

    def write(self, data: bytes) -> None:
        """Add *data*. Raises `StorageFull` when there is no room for it."""
        try:
            self.file.write(data)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise StorageFull("there is no room for this in the folder for temporary files; nothing was changed") from error
            raise Unavailable("the folder for temporary files does not take it; nothing was changed") from error
        self.size += len(data)
        self._hash.update(data)

    def digest(self) -> bytes:
        """The SHA-256 of what was written."""
        return self._hash.digest()

    def rewind(self) -> None:
        """Go back to the beginning, to read."""
        self.file.seek(0)

    def piece(self) -> bytes:
        """The next bytes, none at the end."""
        return self.file.read(PIECE_BYTES)

    def close(self) -> None:
        """Give the file back."""
        self.file.close()


async def spooled(headers: Headers, receive: Receive, threads: Threads) -> Spool:
    """The whole body, in a spool that is ready to be read. The disk is used on *threads*.

    Raises `WrongMedia` when it is said to be anything but JSON Lines or begins like something else; `TooLarge` as soon as it is known to be
    above `SPOOL_BYTES_MAX`, to have more than `LINES_MAX` lines, or one above `LINE_BYTES_MAX`.
    """
    require_media(headers, _MEDIA)
    if declared_bytes(headers) > SPOOL_BYTES_MAX:
        raise _too_large()
    spool = await threads.run(Spool)
    watch = _Watch()
    piece = bytearray()
    try:
        while True:
            message: MutableMapping[str, Any] = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            chunk = message.get("body", b"")
            watch.see(chunk)
            piece += chunk
            more = message.get("more_body", False)
            if len(piece) >= PIECE_BYTES or not more:
                await threads.run(partial(spool.write, bytes(piece)))
                piece.clear()
            if not more:
                await threads.run(spool.rewind)
                return spool
    except BaseException:
        spool.close()
        raise


class _Watch:
    """Looks at a body as it comes in, and refuses it as soon as it can be no good."""

    def __init__(self) -> None:
        self._bytes = self._lines = self._line_bytes = 0
        self._begun = False

    def see(self, chunk: bytes) -> None:
        """Take the next bytes into account."""
        self._bytes += len(chunk)
        if self._bytes > SPOOL_BYTES_MAX:
            raise _too_large()
        if not self._begun and (start := chunk.lstrip()):
            self._begun = True
            if start[:1] != b"{":
                raise WrongMedia(f"the body is no JSON Lines: it does not begin with an object; {UNTOUCHED}")
        first, *rest = chunk.split(b"\n")
        self._line_bytes += len(first)
        longest = max([self._line_bytes, *map(len, rest)])
        if longest > LINE_BYTES_MAX:
            raise TooLarge(f"line {self._lines + 1} or a later one exceeds the limit of {LINE_BYTES_MAX} bytes; {UNTOUCHED}")
        if rest:
            self._lines += len(rest)
            self._line_bytes = len(rest[-1])
        if self._lines > LINES_MAX:
            raise TooLarge(f"the body has more than {LINES_MAX} lines; {UNTOUCHED}: send it in parts, without its first and its last line")


def _too_large() -> TooLarge:
    return TooLarge(f"the body exceeds the limit of {SPOOL_BYTES_MAX} bytes; {UNTOUCHED}")
