"""What the tool answers: texts for a model, in which what is stored is data.

A memory takes one line with its scope, name and description, and below it one with the beginning of its content, further in. What is
stored stands on one line, escaped and without what no reader sees, so that no content can look like another result, like a sentence of
ours or like a block. Only `whole` shows line ends, each line of content two blanks in.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pegword.core.memory import PRIORITY_DEFAULT, Memory
from pegword.core.render import escaped, visible_text
from pegword.core.times import second_text

PREVIEW_CHARS = 200
DESCRIPTION_CHARS_SHOWN = 200
QUERY_CHARS_SHOWN = 100
NAMED_MAX = 3
CUT = "..."
GET_ONE = "Read one whole with memory(action='get', name='...', scope='...')."
ESCAPES_TOLD = "In this text &lt; &gt; &amp; stand for < > &; write them plainly when you save."


@dataclass(frozen=True, slots=True)
class Reader:
    """For whom a result is written: the session's own user, the time, and how its host spells the type of a memory."""

    user_id: str
    now: int
    type_word: Callable[[Memory], str]


def saved(memory: Memory, outcome: str, reader: Reader) -> str:
    """What a save did: created, updated or unchanged, and the id and version by which to tell."""
    facts = f"(type={reader.type_word(memory)}, scope={memory.scope.kind}, id={memory.memory_id}, version={memory.version})"
    if outcome == "unchanged":
        return f"Unchanged: memory '{memory.name}' {facts} says this already."
    return f"{'Saved' if outcome == 'created' else 'Updated'} memory '{memory.name}' {facts}."


def deleted(memory: Memory) -> str:
    """That a memory is gone."""
    return f"Deleted memory '{memory.name}' (scope={memory.scope.kind})."


def similar(memories: Sequence[Memory], reader: Reader) -> str:
    """What says nearly the same as what was just saved, for the model to compare; "" for nothing."""
    if not memories:
        return ""
    head = "Similar in this scope; if one says the same, keep one of them and delete the other:"
    return "\n".join([head, *rows(memories, reader)])


def found(memories: Sequence[Memory], total: int, query: str, left_out: Sequence[str], left_out_n: int, reader: Reader) -> str:
    """The results of a search, best first."""
    lines = [f"No memories found for '{shortened(query, QUERY_CHARS_SHOWN)}'."]
    if memories:
        count = len(memories)
        lines = [f"Memories ({count if count == total else f'{count} of {total}'} {'result' if total == 1 else 'results'}):"]
        lines += [*rows(memories, reader), GET_ONE]
    if left_out_n:
        more = f" and {left_out_n - len(left_out)} more" if left_out_n > len(left_out) else ""
        lines.append(f"The query is too long; left out: {', '.join(shortened(term, PREVIEW_CHARS) for term in left_out)}{more}.")
    return "\n".join(lines)


def listed(memories: Sequence[Memory], total: int, filters: str, reader: Reader) -> str:
    """The newest memories. *filters* says in words what was left in; "" for everything."""
    if not memories:
        return f"No memories stored{f' ({filters})' if filters else ''}."
    count = len(memories)
    head = f"Memories ({count if count == total else f'the newest {count} of {total}'}):"
    return "\n".join([head, *rows(memories, reader), GET_ONE])


def whole(memory: Memory, reader: Reader) -> str:
    """One memory with all of its content, indented, and what is known of it."""
    content = visible_text(memory.content)
    shown = [f"  {escaped(line)}" if line else "" for line in content.splitlines()]
    lines = [_head(memory, reader), _facts(memory), "", *shown]
    if any(c in content for c in "<>&"):
        lines += ["", ESCAPES_TOLD]
    return "\n".join(lines)


def rows(memories: Iterable[Memory], reader: Reader) -> list[str]:
    """Two lines for each of *memories*."""
    return [line for m in memories for line in (f"  {_head(m, reader)}", f"    {shortened(m.content, PREVIEW_CHARS)}")]


def shortened(text: str, chars: int) -> str:
    """At most *chars* characters of *text* on one line, a cut marked, escaped after the cut."""
    line = one_line(text[: 8 * chars])
    cut = len(line) > chars or len(text) > 8 * chars
    return escaped(line[:chars].rstrip()) + (CUT if cut else "")


def one_line(text: str) -> str:
    """*text* made visible, with one blank for each run of blanks and line ends."""
    return " ".join(visible_text(text).split())


def names(given: Sequence[str]) -> str:
    """Some names for a sentence, the rest counted."""
    more = f" and {len(given) - NAMED_MAX} more" if len(given) > NAMED_MAX else ""
    return ", ".join(shortened(name, 64) for name in given[:NAMED_MAX]) + more


def escapes_kept(content: str) -> tuple[str, ...]:
    """A warning where *content* holds what looks like an escape: it may have been copied from a text in which it stood for a character."""
    kept = [escape for escape in ("&lt;", "&gt;", "&amp;") if escape in content]
    return (f"content holds {' and '.join(kept)}, and is saved as it was sent; if a plain < > or & was meant, save it so",) if kept else ()


def _head(memory: Memory, reader: Reader) -> str:
    """Type, scope and name; then, between brackets that no name holds, what the reader should know of it; then the description."""
    marks = ["verified"] if memory.verified else []
    if memory.author_user != reader.user_id:
        marks.append(f"by {shortened(memory.author, 64)}")
    if memory.confidence == 0.0:
        marks.append("doubted")
    if memory.expires_at is not None:
        marks.append(f"{'expired' if memory.expired(reader.now) else 'expires'} {second_text(memory.expires_at)}")
    told = f" ({'; '.join(marks)})" if marks else ""
    description = shortened(memory.description, DESCRIPTION_CHARS_SHOWN)
    return f"[{reader.type_word(memory)}:{memory.scope.kind}] {memory.name}{told}{f' — {description}' if description else ''}"


def _facts(memory: Memory) -> str:
    """What stands beside a memory's text, on one line."""
    facts = [f"version {memory.version}", f"saved {second_text(memory.updated)}", f"confidence {memory.confidence:g}"]
    if memory.priority != PRIORITY_DEFAULT:
        facts.append(f"priority {memory.priority}")
    if memory.tags:
        facts.append(f"tags {', '.join(shortened(tag, 64) for tag in memory.tags)}")
    return f"({'; '.join(facts)})"
