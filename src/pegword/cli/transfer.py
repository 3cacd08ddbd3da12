"""Commands that take memories out of a store and into one: export, import."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from pegword.cli import output
from pegword.cli.asking import AsUser
from pegword.cli.failing import REFUSED
from pegword.cli.inputs import STDIN_WORD
from pegword.cli.options import IncludeExpired, ScopeFilter, ScopeId
from pegword.cli.progress import progress_bar

if TYPE_CHECKING:
    from pegword.core.memory import Memory
    from pegword.services.transfer import Report

NOTES_SHOWN_MAX = 20


def export(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="The file to make; it must not exist. Default: stdout.", show_default=False)
    ] = None,
    scope: ScopeFilter = "",
    scope_id: ScopeId = "",
    include_expired: IncludeExpired = False,
    *,
    ask: AsUser,
) -> None:
    """Write memories out as JSON Lines, one a line.

    All that you see, as it is at one moment, in the order in which it was saved. Versions, users and keys stay: for a whole store there is
    pegword backup.
    """
    from pegword import lines
    from pegword.core.caller import scopes_of

    with ask.opened() as store:
        caller = store.caller(ask.user)
        visible = scopes_of(caller, scope, scope_id)
        with _made(file) as out, progress_bar() as progress:
            count = 0

            def write(memory: "Memory", sitting: int) -> None:
                nonlocal count
                out.write(lines.line_of(memory, sitting))
                count += 1
                if file is not None:
                    progress("exporting", count, 0)

            out.write(lines.head())
            done = store.services.transfer.export(caller, visible, write, include_expired=include_expired)
            out.write(lines.end(done.memories, done.left_out))
    if file is not None and ask.as_json:
        output.document({"file": str(file.absolute()), "memories": done.memories, "left_out": done.left_out})
    elif file is not None:
        output.say(f"exported {_memories(done.memories)} to {file}")
    if done.left_out:
        if not ask.as_json:
            output.note(f"{_memories(done.left_out)} left out, being damaged on disk; pegword doctor names them")
        raise typer.Exit(REFUSED)


def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file to read; - is stdin.", show_default=False)],
    policy: Annotated[
        str, typer.Option("--policy", metavar="WORD", help="What happens where a stored memory differs: skip, overwrite or newer.")
    ] = "skip",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing, and say what would be done.")] = False,
    *,
    ask: AsUser,
) -> None:
    """Bring memories in from JSON Lines.

    A memory is known again by its scope and name; what is the same changes nothing, so the same file may be brought in again, also after
    an interruption. A file that is not whole, or no such file, changes nothing at all.
    """
    from pegword import lines

    with _read(file) as source, ask.opened(makes=True) as store, progress_bar() as progress:
        total = 0
        for line in lines.read(source):
            total = line.number
            progress("reading", total, 0)
        source.seek(0)
        report = store.services.transfer.bring(
            store.caller(ask.user), lines.read(source), policy=policy, dry_run=dry_run,
            progress=lambda done: progress("importing", done, total),
        )  # fmt: skip
    if ask.as_json:
        output.document(
            {
                "dry_run": report.dry_run, "policy": policy, "lines": report.lines, **report.counts,
                "notes": [{"line": n.line, "name": n.name, "outcome": n.outcome, "reason": n.reason} for n in report.notes],
                "notes_left_out": report.notes_left_out, "not_taken": report.not_taken, "unknown": report.unknown,
            }
        )  # fmt: skip
    else:
        _tell(report)
    if report.counts["refused"]:
        raise typer.Exit(REFUSED)


def _tell(report: "Report") -> None:
    """Say what became of the lines."""
    done = ", ".join(f"{n} {outcome}" for outcome, n in report.counts.items() if n) or "nothing"
    output.say(f"{'would be' if report.dry_run else 'imported'}: {done}")
    for note in report.notes[:NOTES_SHOWN_MAX]:
        output.note(f"line {note.line} ({note.name}) {note.outcome}: {note.reason}")
    left = max(0, len(report.notes) - NOTES_SHOWN_MAX) + report.notes_left_out
    if left:
        output.note(f"and {left} lines more; --json tells of more of them")
    for name, n in report.not_taken.items():
        output.note(f"{name}: not taken from {n} {'line' if n == 1 else 'lines'}, for it is the importer's to say")
    for name, n in report.unknown.items():
        output.note(f"{name}: no such field of a memory; ignored in {n} {'line' if n == 1 else 'lines'}")


def _memories(n: int) -> str:
    return f"{n} {'memory' if n == 1 else 'memories'}"


@contextmanager
def _made(file: Path | None) -> Iterator[BinaryIO]:
    """Where an export goes: stdout, or a new private file, which is taken away again when something goes wrong."""
    from pegword.core.errors import Invalid

    if file is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        opened = os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        raise Invalid(f"{file} exists, and nothing is overwritten; name another file", field="file") from None
    except OSError as error:
        raise Invalid(f"{file} cannot be made: {error.strerror}", field="file") from error
    try:
        with os.fdopen(opened, "wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
    except BaseException:
        file.unlink(missing_ok=True)
        raise


@contextmanager
def _read(file: str) -> Iterator[BinaryIO]:
    """What is imported, so that it can be read twice: a file, or all of stdin in one without a name."""
    from pegword.core.errors import Invalid

    if file != STDIN_WORD:
        try:
            source = Path(file).open("rb")  # noqa: SIM115
        except OSError as error:
            raise Invalid(f"{file} cannot be read: {error.strerror}", field="file") from error
        with source:
            if source.seekable():
                yield source
                return
            yield from _kept(source)
            return
    yield from _kept(sys.stdin.buffer)


def _kept(stream: BinaryIO) -> Iterator[BinaryIO]:
    import shutil

    with tempfile.TemporaryFile() as kept:
        shutil.copyfileobj(stream, kept, 1 << 20)
        kept.seek(0)
        yield kept
