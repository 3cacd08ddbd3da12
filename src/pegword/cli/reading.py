"""Commands that look: search, list, show, versions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from pegword.cli import output, shapes
from pegword.cli.asking import AsUser, Narrowed, Which
from pegword.cli.times import minute_text

if TYPE_CHECKING:
    from pegword.core.memory import Memory
    from pegword.settings import Settings


def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help='Words, and "phrases" in double quotes.', show_default=False)],
    narrowed: Narrowed,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="At most this many; default 20, at most 50.")] = None,
    *,
    ask: AsUser,
) -> None:
    """Search memories by words, best first."""
    from pegword.services.memories import SEARCH_DEFAULT

    with ask.opened() as store:
        caller = store.caller(ask.user)
        found = store.services.memories.search(
            caller, narrowed.visible(caller), query, kind=narrowed.kind, tag=narrowed.tag, limit=limit or SEARCH_DEFAULT,
            include_expired=narrowed.include_expired,
        )  # fmt: skip
        if ask.as_json:
            output.document(shapes.search(found, store.settings))
            return
        rows = [
            (f"{hit.score:.2f}", hit.memory.name, store.settings.kind_word(hit.memory.kind, hit.memory.kind_word), _scope(hit.memory),
             output.shortened(hit.memory.content))
            for hit in found.hits
        ]  # fmt: skip
        _table_of(("SCORE", "NAME", "TYPE", "SCOPE", "CONTENT"), rows, found.total)
        if found.left_out:
            output.note(f"the query is long: {found.left_out_n} of its words were left out, first of all {', '.join(found.left_out)}")
        if found.cut:
            output.note("phrases were looked for in the best candidates only")


def list_(
    narrowed: Narrowed,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="At most this many; default 100, at most 200.")] = None,
    *,
    ask: AsUser,
) -> None:
    """List memories, the last saved first."""
    from pegword.services.memories import LIST_DEFAULT

    with ask.opened() as store:
        caller = store.caller(ask.user)
        page = store.services.memories.list(
            caller, narrowed.visible(caller), kind=narrowed.kind, tag=narrowed.tag, limit=limit or LIST_DEFAULT,
            include_expired=narrowed.include_expired,
        )  # fmt: skip
        if ask.as_json:
            output.document(shapes.page(page, store.settings))
            return
        rows = [
            (m.name, store.settings.kind_word(m.kind, m.kind_word), _scope(m), minute_text(m.updated), output.shortened(m.content))
            for m in page.memories
        ]
        _table_of(("NAME", "TYPE", "SCOPE", "SAVED", "CONTENT"), rows, page.total)


def show(
    which: Which,
    content: Annotated[bool, typer.Option("--content", help="Only the content, as it is stored.")] = False,
    *,
    ask: AsUser,
) -> None:
    """Show one memory whole, expired or not."""
    with ask.opened() as store:
        caller = store.caller(ask.user)
        plain_name = which.plain_name()
        if which.memory_id is not None:
            memory = store.services.memories.get_by_id(caller, which.memory_id)
        else:
            memory = store.services.memories.get(caller, which.where(caller), plain_name)
        if ask.as_json:
            output.document(shapes.memory(memory, store.settings))
        elif content:
            output.verbatim(memory.content)
        else:
            _show(memory, store.settings)


def versions(
    which: Which,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most so many, at most 200.")] = 100,
    offset: Annotated[int, typer.Option("--offset", metavar="N", min=0, help="Leave so many of the newest out.")] = 0,
    *,
    ask: AsUser,
) -> None:
    """List the versions of a memory.

    The newest comes first: it is how the memory stands.
    """
    with ask.opened() as store:
        caller = store.caller(ask.user)
        history = store.services.memories.versions(caller, which.id_in(store, caller), limit=limit, offset=offset)
        if ask.as_json:
            output.document(shapes.history(history, store.settings))
            return
        rows = [
            (str(v.version), v.action, minute_text(v.saved), v.author, "yes" if v.verified else "no", output.shortened(v.content))
            for v in history.versions
        ]
        if rows:
            output.table(("VERSION", "ACTION", "SAVED", "AUTHOR", "VERIFIED", "CONTENT"), rows)
        if history.total > len(rows):
            output.note(f"{len(rows)} of {history.total} shown")


def _show(memory: "Memory", settings: "Settings") -> None:
    from pegword.assembly import clock_us

    expiry = minute_text(memory.expires_at)
    rows = [
        ("name", memory.name),
        ("id", memory.memory_id),
        ("scope", _scope(memory)),
        ("type", settings.kind_word(memory.kind, memory.kind_word)),
        ("description", memory.description),
        ("tags", ", ".join(memory.tags)),
        ("priority", memory.priority),
        ("source", f"{memory.source}, saved by {memory.author}"),
        ("verified", minute_text(memory.verified_at) or "no"),
        ("confidence", f"{memory.confidence:g}"),
        ("expires", expiry and f"{expiry}{' (expired)' if memory.expired(clock_us()) else ''}"),
        ("saved", minute_text(memory.updated)),
        ("version", str(memory.version)),
    ]
    for label, value in rows:
        if value:
            output.say(f"{label + ':':<13}{output.one_line(value)}")
    output.say()
    output.say(memory.content)


def _scope(memory: "Memory") -> str:
    return f"workstream {memory.scope.id}" if memory.scope.kind == "workstream" else memory.scope.kind


def _table_of(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]], total: int) -> None:
    """A table of memories, and how many there are beyond it; a sentence when there is none."""
    if not rows:
        output.say("no memories found" if not total else f"none shown of {total}")
        return
    output.table(columns, rows)
    if total > len(rows):
        output.note(f"{len(rows)} of {total} shown")
