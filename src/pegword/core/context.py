"""The last user messages of a conversation: what a turn is about."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pegword.core import render, session_index
from pegword.core.nudge import TEXTS
from pegword.core.ranking import MESSAGE_WEIGHTS

USER_MESSAGES_READ = len(MESSAGE_WEIGHTS)
MESSAGE_CHARS_READ = 200_000  # of a longer message, its beginning and its end are read

_FRAMES = ((render.OPENER, render.CLOSER, render.PREAMBLE), (session_index.OPENER, session_index.CLOSER, session_index.PREAMBLE))
_OPENERS = re.compile("|".join(re.escape(opener) for opener, _, _ in _FRAMES))
_HINT = re.compile(rf"You have \d{{1,12}} memor(?:y|ies) in scope\. {re.escape(render.LOOK_FURTHER)}")


def recent_texts(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """The texts of the last `USER_MESSAGES_READ` user messages, newest first.

    Content may be a text (OpenAI) or a list of parts (both), of which the text parts count. A message that says nothing takes no
    place: tool results, our own injected blocks, empty synthetic messages.
    """
    texts: list[str] = []
    for message in reversed(messages):
        if message.get("role") != "user":
            continue
        text = said_in(message)
        if len(text) > MESSAGE_CHARS_READ:
            half = MESSAGE_CHARS_READ // 2
            text = f"{text[:half]} {text[-half:]}"
        if text:
            texts.append(text)
            if len(texts) == USER_MESSAGES_READ:
                break
    return texts


def said_in(message: Mapping[str, Any]) -> str:
    """What *message* says: its text parts, without our own blocks, hints and nudges that came along; "" when that is nothing."""
    text = _HINT.sub(" ", _without_blocks(" ".join(texts_of(message.get("content")))))
    for nudge in TEXTS.values():
        text = text.replace(nudge, " ")
    return text.strip()


def _without_blocks(text: str) -> str:
    """*text* without our own blocks and indexes; one that was cut off ends with the text, and is known by its first line.

    No text makes it look twice for a closing tag that is not there.
    """
    frames = {opener: (closer, preamble) for opener, closer, preamble in _FRAMES}
    kept: list[str] = []
    at, unclosed = 0, set[str]()
    found = _OPENERS.search(text)
    while found:
        closer, preamble = frames[found[0]]
        end = -1 if closer in unclosed else text.find(closer, found.end())
        if end >= 0:
            kept.append(text[at : found.start()])
            at = end + len(closer)
        else:
            unclosed.add(closer)
            if text.startswith(preamble, found.end() + 1):
                return " ".join([*kept, text[at : found.start()]])
        found = _OPENERS.search(text, max(at, found.end()))
    return " ".join([*kept, text[at:]])


def texts_of(content: Any) -> Iterable[str]:
    """The text parts of a message's content; a part of any other type says nothing here."""
    if isinstance(content, str):
        yield content
    elif isinstance(content, Sequence):
        for part in content:
            if isinstance(part, str):
                yield part
            elif isinstance(part, Mapping) and part.get("type") in ("text", "input_text"):
                text = part.get("text")
                if isinstance(text, str):
                    yield text
