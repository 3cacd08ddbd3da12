"""What happened since the model spoke last, read from the messages of a turn: what was said, what tools answered, what was called again.

Message shapes are those of OpenAI and Anthropic. What has none of their forms is passed over: nothing here can fail.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pegword.core import signs
from pegword.core.context import said_in, texts_of
from pegword.core.nudge import REPEAT_TIMES
from pegword.core.signs import Language

RESULTS_READ_MAX = 50
MESSAGES_READ_MAX = 500
RESULT_CHARS_READ = 1_000
_RESULT_ROLES = ("tool", "function")
_OF_THE_HOST = ("system", "developer")
_ERROR_STATUSES = ("error", "failed")

Message = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Happened:
    """What the messages tell: *kinds* of nudges for which they give reason, the *seams* that the conversation stands at (``user``,
    ``tool``), and how many *messages* say anything: 0, 1, or 2 for more."""

    kinds: frozenset[str]
    seams: frozenset[str]
    messages: int


@dataclass(frozen=True, slots=True)
class _Result:
    """What a tool answered: the beginning of its text, and whether the message says by itself that it failed (None: it does not say)."""

    text: str
    failed: bool | None


def happened(messages: Sequence[Message], languages: Iterable[Language]) -> Happened:
    """What *messages*, oldest first, tell of the moment at which they end."""
    languages = tuple(languages)
    since = _since_the_model_spoke(messages)
    said = next((text for message in reversed(since) if message.get("role") == "user" and (text := said_in(message))), "")
    results = [result for message in since for result in _results(message)][-RESULTS_READ_MAX:]
    kinds = set()
    if said:
        read = signs.read(said)
        # Who corrects is not content: "thanks, but that's not it".
        if signs.corrects(read, languages):
            kinds.add("correction")
        elif signs.completes(read, languages):
            kinds.add("completion")
    kinds |= {kind for result in results if (kind := _kind_of(result, languages))}
    if results and _goes_in_circles(messages):
        kinds.add("repeat")
    seams = ({"tool"} if results else set()) | ({"user"} if said or not results else set())
    return Happened(frozenset(kinds), frozenset(seams), len(list(islice(_telling(messages), 2))))


def _since_the_model_spoke(messages: Sequence[Message]) -> list[Message]:
    since: list[Message] = []
    for message in reversed(messages[-MESSAGES_READ_MAX:]):
        if message.get("role") == "assistant":
            break
        since.append(message)
    return since[::-1]


def _telling(messages: Sequence[Message]) -> Iterator[Message]:
    """The messages that say anything: not the host's own, nor a user's message that holds nothing, or our block alone."""
    for message in messages[:MESSAGES_READ_MAX]:
        role = message.get("role")
        if role not in _OF_THE_HOST and (role != "user" or said_in(message) or any(_results(message))):
            yield message


def _results(message: Message) -> Iterator[_Result]:
    """The results of tools in *message*: one as a whole (OpenAI), or parts of the user's message (Anthropic)."""
    if message.get("role") in _RESULT_ROLES:
        yield _result(message)
    content = message.get("content")
    if message.get("role") == "user" and isinstance(content, Sequence) and not isinstance(content, str):
        for part in content:
            if isinstance(part, Mapping) and part.get("type") == "tool_result":
                yield _result(part)


def _result(told: Message) -> _Result:
    flag = told.get("is_error")
    failed = flag if isinstance(flag, bool) else True if told.get("status") in _ERROR_STATUSES else None
    text = " ".join(texts_of(told.get("content"))).strip()
    return _Result(text[:RESULT_CHARS_READ], failed)


def _kind_of(result: _Result, languages: Sequence[Language]) -> str:
    """``denial``, ``tool_error``, or "" when the tool answered. What says that it did not fail is believed, but a denial is no failure."""
    read = signs.read(result.text)
    if signs.denies(read, languages):
        return "denial"
    if result.failed is None:
        return "tool_error" if signs.fails(read, languages) else ""
    return "tool_error" if result.failed else ""


def _goes_in_circles(messages: Sequence[Message]) -> bool:
    """Whether the calls that were answered last made it `REPEAT_TIMES` identical ones in a row, or twice or more that.

    A call counts whether it failed or not. What the user says begins anew: asking twice for the same is no circle.
    """
    last: tuple[str, Any] | None = None
    run = earlier = 0
    for call, newest in _calls_backwards(messages):
        if last is None:
            last = call
        if not _same(call, last):
            break
        run += 1
        earlier += not newest
    return run // REPEAT_TIMES > earlier // REPEAT_TIMES


def _calls_backwards(messages: Sequence[Message]) -> Iterator[tuple[tuple[str, Any], bool]]:
    """The calls since the user spoke, latest first, each with whether it is of the latest message that holds any."""
    newest = True
    for message in reversed(messages[-MESSAGES_READ_MAX:]):
        if message.get("role") == "user" and said_in(message):
            return
        calls = list(_calls(message))
        for call in reversed(calls):
            yield call, newest
        newest = newest and not calls


def _calls(message: Message) -> Iterator[tuple[str, Any]]:
    """The tool calls in *message*, in order, as pairs of name and arguments."""
    if message.get("role") != "assistant":
        return
    content, calls, old = message.get("content"), message.get("tool_calls"), message.get("function_call")
    for part in content if isinstance(content, Sequence) and not isinstance(content, str) else ():
        if isinstance(part, Mapping) and part.get("type") == "tool_use":
            yield str(part.get("name")), part.get("input")
    for call in calls if isinstance(calls, Sequence) and not isinstance(calls, str) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            yield str(function.get("name")), function.get("arguments")
    if isinstance(old, Mapping):
        yield str(old.get("name")), old.get("arguments")


def _same(one: tuple[str, Any], other: tuple[str, Any]) -> bool:
    try:
        return one[0] == other[0] and bool(one[1] == other[1])
    except (RecursionError, ValueError, TypeError):  # arguments that cannot be compared are not the same
        return False
