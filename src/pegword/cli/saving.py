"""Commands that change memories: save, delete, revert."""

from typing import Annotated, Any

import typer

from pegword.cli import output, shapes
from pegword.cli.asking import AsUser, Which
from pegword.cli.inputs import content_of
from pegword.cli.opening import Opened
from pegword.cli.options import ExpectedVersion, Name, ScopeId, ScopeWord, StoredVersion


def save(
    name: Name,
    content: Annotated[str, typer.Argument(metavar="CONTENT", help="What to remember; - reads it from stdin.", show_default=False)],
    description: Annotated[str | None, typer.Option("--description", metavar="TEXT", help="What it is about; '' clears it.")] = None,
    kind: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="user, project, feedback or reference. New ones: project.")
    ] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", metavar="TAG", help="A tag; may be repeated. One '' clears all.")] = None,
    priority: Annotated[
        str | None, typer.Option("--priority", metavar="WORD", help="critical, high, normal or low. New ones: normal.")
    ] = None,
    confidence: Annotated[
        float | None, typer.Option("--confidence", metavar="NUMBER", help="0.0 (doubted) to 1.0. A person's save: 1.0.")
    ] = None,
    expires: Annotated[
        str | None, typer.Option("--expires", metavar="WHEN", help="2027-01-31, 2027-01-31T12:00Z, 90d, 12h, 30m, or never.")
    ] = None,
    sitting: Annotated[
        str, typer.Option("--sitting", metavar="NAME", help="What it was saved together with, such as a date.", show_default=False)
    ] = "",
    expected_version: ExpectedVersion = None,
    scope: ScopeWord = "global",
    scope_id: ScopeId = "",
    *,
    ask: AsUser,
) -> None:
    """Save a memory: make it, or change the one of that name.

    What you do not name stays as it is stored. Every change is kept as a version. What a person saves counts as verified.
    """
    from pegword.assembly import clock_us
    from pegword.core.caller import scope_of
    from pegword.core.memory import Draft
    from pegword.core.times import parse_expiry

    text = content_of(content)
    tags = None if tag is None else tuple(t for t in tag if t)
    expires_at = parse_expiry(expires, clock_us(), "expires")
    with ask.opened(makes=True) as store:
        caller = store.caller(ask.user)
        draft = Draft(
            name, text, scope_of(caller, scope, scope_id), description=description, kind=kind, tags=tags, priority=priority,
            confidence=confidence, expires_at=expires_at, sitting=sitting, expected_version=expected_version,
        )  # fmt: skip
        _tell(store, store.services.memories.save(caller, draft), ask.as_json)


def delete(which: Which, expected_version: StoredVersion = None, *, ask: AsUser) -> None:
    """Delete a memory for good.

    Its versions, its place in the index and the receipts that name it go with it.
    """
    with ask.opened() as store:
        caller = store.caller(ask.user)
        plain_name = which.plain_name()
        if which.memory_id is not None:
            gone = store.services.memories.delete_by_id(caller, which.memory_id, expected_version=expected_version)
        else:
            gone = store.services.memories.delete(caller, which.where(caller), plain_name, expected_version=expected_version)
        if ask.as_json:
            output.document(
                {"status": "ok", "name": gone.name, "memory_id": gone.memory_id, "scope": gone.scope.kind, "scope_id": gone.scope.id}
            )
        else:
            output.say(f"deleted {gone.name} from {gone.scope.kind}")


def revert(
    to: Annotated[int, typer.Option("--to", metavar="N", help="The version to go back to.", show_default=False)],
    which: Which,
    expected_version: StoredVersion = None,
    *,
    ask: AsUser,
) -> None:
    """Bring back an old version of a memory.

    What it said then is saved again as a new version; nothing between is lost.
    """
    with ask.opened() as store:
        caller = store.caller(ask.user)
        wanted = which.id_in(store, caller)
        _tell(store, store.services.memories.revert(caller, wanted, to, expected_version=expected_version), ask.as_json)


def _tell(store: Opened, result: Any, as_json: bool) -> None:
    """Say what a save did."""
    if as_json:
        output.document(shapes.saved(result, store.settings))
        return
    memory = result.memory
    output.say(f"{result.outcome} {memory.name} in {memory.scope.kind}, version {memory.version}")
    for warning in result.warnings:
        output.note(warning)
