"""What commands read: contents and messages, from arguments, files or stdin. Never more than a limit."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pegword.core.errors import Invalid, TooLarge

STDIN_WORD = "-"
# As the HTTP API: a save's body and a turn's.
CONTENT_BYTES_MAX = 1 << 20
MESSAGES_BYTES_MAX = 32 << 20


def check_arguments(arguments: Sequence[str]) -> None:
    """Refuse what is no text before anything is done with it: Python hands on bytes that are not UTF-8 as halves of characters."""
    for number, argument in enumerate(arguments, 1):
        half = next((ord(c) for c in argument if 0xD800 <= ord(c) <= 0xDFFF), 0)
        if 0xDC80 <= half <= 0xDCFF:
            raise Invalid(f"argument {number} is not UTF-8: it holds the byte 0x{half - 0xDC00:02x}", field="arguments")
        if half:
            raise Invalid(f"argument {number} holds half of a character (U+{half:04X}), which is no text", field="arguments")


def content_of(argument: str) -> str:
    """The content that *argument* is, or stdin for ``-`` without the line feed that closes it."""
    if argument != STDIN_WORD:
        return argument
    text = _decoded(_limited(sys.stdin.buffer.read(CONTENT_BYTES_MAX + 1), "content", CONTENT_BYTES_MAX), "content")
    return text.removesuffix("\n")


def messages_of(texts: list[str], file: str | None) -> list[dict[str, Any]]:
    """The messages of a turn, oldest first: each of *texts* said by the user, or the JSON array in *file* (``-`` is stdin)."""
    if file is None:
        return [{"role": "user", "content": text} for text in texts]
    if texts:
        raise Invalid("give messages by --message or by --messages-file, not by both", field="messages")
    try:
        messages = json.loads(_decoded(_limited(_read(file), "messages", MESSAGES_BYTES_MAX), "messages"))
    except (ValueError, RecursionError) as error:
        raise Invalid(f"messages are not valid JSON: {error}", field="messages") from None
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise Invalid("messages must be a JSON array of objects with role and content", field="messages")
    return messages


def _read(file: str) -> bytes:
    if file == STDIN_WORD:
        return sys.stdin.buffer.read(MESSAGES_BYTES_MAX + 1)
    try:
        with Path(file).open("rb") as stream:
            return stream.read(MESSAGES_BYTES_MAX + 1)
    except OSError as error:
        raise Invalid(f"{file} cannot be read: {error.strerror}", field="messages_file") from None


def _limited(data: bytes, field: str, bytes_max: int) -> bytes:
    if len(data) > bytes_max:
        raise TooLarge(f"{field} exceeds {bytes_max} bytes", field=field)
    return data


def _decoded(data: bytes, field: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Invalid(f"{field} is not UTF-8: byte {error.start} is 0x{data[error.start]:02x}", field=field) from None
