"""The face at /v1/api/export and /v1/api/import: JSON Lines, one memory a line, of any length both ways."""

from typing import Annotated

import msgspec
from msgspec import Meta

from pegword import lines
from pegword.core.caller import scopes_of
from pegword.core.errors import Invalid
from pegword.core.memory import KIND_WORDS, PRIORITIES, SOURCES
from pegword.core.transfer import POLICIES
from pegword.http.memory_fields import Expired, ScopeId, ScopeWord
from pegword.http.routing import Answer, Call, Route
from pegword.http.spooling import Spool
from pegword.services.transfer import LINES_AT_ONCE

ONCE_LINES_MAX = 1_000
FILE_NAME = "pegword-export.jsonl"


class ExportQuery(msgspec.Struct, kw_only=True):
    """What an export holds."""

    scope: ScopeWord = ""
    scope_id: ScopeId = ""
    include_expired: Expired = False


class ImportQuery(msgspec.Struct, kw_only=True):
    """How lines are brought in."""

    policy: Annotated[
        str, Meta(description="what happens to a stored memory that differs from its line", extra_json_schema={"enum": list(POLICIES)})
    ] = POLICIES[0]
    dry_run: Annotated[bool, Meta(description="change nothing, and report what would be done")] = False


class MemoryLine(msgspec.Struct, kw_only=True):
    """One memory of an export. Of a line that is imported, name and content are required; null clears, absent keeps what is stored."""

    name: str
    content: str
    scope: str = "global"
    scope_id: Annotated[str, Meta(description="of scope user: empty, for it is whoever reads it")] = ""
    type: Annotated[str, Meta(extra_json_schema={"enum": sorted(KIND_WORDS)})] = "project"
    description: str | None = ""
    tags: list[str] | None = []
    priority: Annotated[str, Meta(extra_json_schema={"enum": list(PRIORITIES)})] = "normal"
    confidence: float | None = None
    source: Annotated[str, Meta(extra_json_schema={"enum": list(SOURCES)})] = "agent"
    author: Annotated[str, Meta(description="not taken from a line: the importer is the author")] = ""
    verified: Annotated[bool, Meta(description="taken from a line when a human imports it")] = False
    expires_at: str | float | None = None
    created: Annotated[str, Meta(description="not taken from a line")] = ""
    updated: Annotated[str, Meta(description="what policy newer goes by; otherwise not taken from a line")] = ""
    version: Annotated[int, Meta(description="not taken from a line")] = 1
    hash: str = ""
    memory_id: Annotated[str, Meta(description="kept for a new memory when a human imports it, and it is free")] = ""
    sitting: Annotated[int | str, Meta(description="lines of one scope with one number are one sitting; a text is its name")] = ""


class ImportNote(msgspec.Struct, kw_only=True):
    """A line of which nothing came, or not all."""

    line: int
    name: str
    outcome: str
    reason: str


class ImportReport(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What became of the lines: how many of each outcome, and `notes` on the first of those that were skipped, refused or are odd.

    `not_taken` counts, by field, the claims that the importer may not make.
    """

    dry_run: bool
    policy: str
    lines: int
    created: int
    updated: int
    unchanged: int
    skipped: int
    refused: int
    notes: list[ImportNote]
    notes_left_out: int = 0
    not_taken: dict[str, int] = {}
    warnings: list[str] = []


def export_memories(call: Call, query: ExportQuery) -> Answer:
    """Every memory that you may see, one a line, all of one moment."""
    visible = scopes_of(call.caller, query.scope, query.scope_id)
    spool = Spool()
    try:
        spool.write(lines.head())
        done = call.services.transfer.export(
            call.caller, visible, lambda memory, sitting: spool.write(lines.line_of(memory, sitting)), include_expired=query.include_expired
        )
        spool.write(lines.end(done.memories, done.left_out))
        spool.rewind()
    except BaseException:
        spool.close()
        raise
    return Answer(spool, headers=(("Content-Type", lines.MEDIA_TYPE), ("Content-Disposition", f'attachment; filename="{FILE_NAME}"')))


def import_memories(call: Call, spool: Spool, query: ImportQuery) -> Answer:
    """Bring memories in, each under your own rights; the same lines may be sent again."""
    spool.rewind()
    count = sum(1 for _ in lines.read(spool.file))  # nothing is brought in of a file that is not whole
    if call.once_key is not None and count > ONCE_LINES_MAX:
        raise Invalid(
            f"under an Idempotency-Key an import is one transaction, of at most {ONCE_LINES_MAX} memories: there are {count};"
            " leave the key out, for an import may be repeated without one",
            field="Idempotency-Key",
        )
    spool.rewind()
    report = call.services.transfer.bring(
        call.caller,
        lines.read(spool.file),
        policy=query.policy,
        dry_run=query.dry_run,
        at_once=LINES_AT_ONCE if call.once_key is None else ONCE_LINES_MAX,  # all scopes are held first, where it is one transaction
    )
    unknown = [f"{name}: no such field of a memory; ignored in {n} lines" for name, n in report.unknown.items()]
    return Answer(
        ImportReport(
            dry_run=report.dry_run,
            policy=query.policy,
            lines=report.lines,
            **report.counts,
            notes=[ImportNote(line=n.line, name=n.name, outcome=n.outcome, reason=n.reason) for n in report.notes],
            notes_left_out=report.notes_left_out,
            not_taken=report.not_taken,
            warnings=[*unknown, *call.warnings],
        ),
        memories=tuple(report.memory_ids) if report.notes else (),  # only notes hold names
        lasting=not report.dry_run,
    )


# fmt: off
ROUTES = (
    Route("GET", "/v1/api/export", export_memories, "read", MemoryLine, query=ExportQuery, media=lines.MEDIA_TYPE, long=True),
    Route("POST", "/v1/api/import", import_memories, "write", ImportReport, query=ImportQuery, lines=MemoryLine, long=True),
)
