"""Commands for sessions."""

from typing import TYPE_CHECKING, Annotated

import typer

from pegword.cli import output, shapes
from pegword.cli.asking import AsUser, expanded
from pegword.cli.times import minute_text

if TYPE_CHECKING:
    from pegword.core.caller import Session

sessions = typer.Typer(help="Make, list and end the sessions of agents.", rich_markup_mode=None)

SessionId = Annotated[str, typer.Argument(metavar="SESSION", help="Id of the session.", show_default=False)]


@sessions.command("add")
@expanded
def add_session(
    kind: Annotated[
        str, typer.Option("--kind", metavar="KIND", help="interactive (default), coordinator or child.", show_default=False)
    ] = "",
    workstream: Annotated[
        str, typer.Option("--workstream", metavar="ID", help="The workstream that it belongs to.", show_default=False)
    ] = "",
    shared: Annotated[bool, typer.Option("--shared", help="The workstream is one with members.")] = False,
    project: Annotated[str, typer.Option("--project", metavar="ID", help="The project attached to it.", show_default=False)] = "",
    persona: Annotated[str, typer.Option("--persona", metavar="NAME", help="Its persona.", show_default=False)] = "",
    parent: Annotated[
        str,
        typer.Option("--parent", metavar="SESSION", help="The session whose child it is; it has what that one has.", show_default=False),
    ] = "",
    resumed: Annotated[bool, typer.Option("--resumed", help="The conversation began before Pegword knew of it.")] = False,
    *,
    ask: AsUser,
) -> None:
    """Make a session and print its id.

    The id stands alone on stdout. Nothing of a session can be changed later.
    """
    with ask.opened(makes=True) as store:
        made = store.services.sessions.create(
            store.caller(ask.user),
            kind=kind,
            workstream_id=workstream,
            shared=shared,
            project_id=project,
            persona=persona,
            parent_id=parent,
            resumed=resumed,
        )
        if ask.as_json:
            output.document(shapes.session(made))
            return
        output.say(made.session_id)
        output.note(_described(made))


@sessions.command("list")
@expanded
def list_sessions(
    everything: Annotated[bool, typer.Option("--all", help="Also those that are closed.")] = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most so many, at most 200.")] = 100,
    *,
    ask: AsUser,
) -> None:
    """List sessions, the newest first."""
    with ask.opened() as store:
        found = store.services.sessions.list(store.caller(ask.user), include_closed=everything, limit=limit)
        if ask.as_json:
            output.document({"sessions": [shapes.session(session) for session in found]})
        elif not found:
            output.say("no sessions")
        else:
            rows = [
                (s.session_id, s.kind, s.workstream_id, s.project_id, minute_text(s.created), "yes" if s.closed else "no") for s in found
            ]
            output.table(("SESSION", "KIND", "WORKSTREAM", "PROJECT", "MADE", "CLOSED"), rows)


@sessions.command("show")
@expanded
def show_session(session_id: SessionId, *, ask: AsUser) -> None:
    """Print a session, and what it reads and writes at this moment."""
    with ask.opened() as store:
        session = store.services.sessions.get(store.caller(ask.user), session_id)
        if ask.as_json:
            output.document(shapes.session(session))
        else:
            output.say(_described(session))


@sessions.command("close")
@expanded
def close_session(session_id: SessionId, *, ask: AsUser) -> None:
    """Close a session and its children.

    Memories stay.
    """
    with ask.opened() as store:
        closed = store.services.sessions.close(store.caller(ask.user), session_id)
        if ask.as_json:
            output.document(shapes.session(closed))
        else:
            output.say(f"closed session {closed.session_id}")


@sessions.command("resume")
@expanded
def resume_session(session_id: SessionId, *, ask: AsUser) -> None:
    """Take a session up again, closed or not."""
    with ask.opened() as store:
        resumed = store.services.sessions.resume(store.caller(ask.user), session_id)
        if ask.as_json:
            output.document(shapes.session(resumed))
        else:
            output.say(f"resumed session {resumed.session_id}")


def _described(session: "Session") -> str:
    from pegword.core.caller import scope_words

    whose = "somebody who is no user" if session.anonymous else session.user_name
    state = ", closed" if session.closed else ""
    return f"{session.kind} session of {whose} with scopes {', '.join(scope_words(session))}{state}"
