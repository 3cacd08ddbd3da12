"""Commands for projects and workstreams: what several users share, and whole workstreams deleted."""

import functools
import inspect
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from pegword.cli import output, shapes
from pegword.cli.asking import AsUser, expanded
from pegword.cli.opening import Opened
from pegword.cli.progress import progress_bar
from pegword.cli.times import minute_text

if TYPE_CHECKING:
    from pegword.core.caller import Caller
    from pegword.core.people import SharedScope
    from pegword.services.removing import Removed

projects = typer.Typer(help="Make projects, say who their members are, delete them.", rich_markup_mode=None)
workstreams = typer.Typer(help="List and delete workstreams; make some that several users share.", rich_markup_mode=None)

SharedId = Annotated[str, typer.Argument(metavar="ID", help="Its id.", show_default=False)]
Member = Annotated[str, typer.Argument(metavar="NAME", help="Name of the user.", show_default=False)]
WithMemories = Annotated[bool, typer.Option("--with-memories", help="Delete its memories too, for good.")]


def about(kind: str, command: Callable[..., None]) -> Callable[..., None]:
    """*command* for one *kind* of what is shared: KIND in its help is that word, and it gets it as its first argument."""
    parameters = list(inspect.signature(command).parameters.values())[1:]

    @functools.wraps(command)
    def run(**given: object) -> None:
        command(kind, **given)

    run.__doc__ = (command.__doc__ or "").replace("KIND", "shared workstream" if kind == "workstream" else kind)
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return expanded(run)


def add(
    kind: str,
    title: Annotated[str, typer.Argument(metavar="TITLE", help="What it is called.", show_default=False)],
    members: Annotated[
        list[str] | None, typer.Option("--member", metavar="NAME", help="A user who has it; may be repeated.", show_default=False)
    ] = None,
    readers: Annotated[
        list[str] | None, typer.Option("--reader", metavar="NAME", help="A user who only reads; may be repeated.", show_default=False)
    ] = None,
    *,
    ask: AsUser,
) -> None:
    """Make a KIND and print its id.

    The id stands alone on stdout.
    """
    with ask.opened(makes=True) as store:
        may_write = {**dict.fromkeys(readers or (), False), **dict.fromkeys(members or (), True)}
        made = store.services.sharing.create(_caller(store, kind, ask), kind, title, may_write)
        if ask.as_json:
            output.document(shapes.shared(made))
            return
        output.say(made.scope.id)
        output.note(f"{kind} '{made.title}' of {made.owner_name}")


def show(kind: str, shared_id: SharedId, *, ask: AsUser) -> None:
    """Print a KIND and its members."""
    with ask.opened() as store:
        _show(store.services.sharing.get(store.caller(ask.user), kind, shared_id), as_json=ask.as_json)


def change(
    kind: str,
    shared_id: SharedId,
    title: Annotated[str | None, typer.Option("--title", metavar="TITLE", help="Another title.", show_default=False)] = None,
    archived: Annotated[bool | None, typer.Option("--archive/--unarchive", help="In the archive no session has it.")] = None,
    *,
    ask: AsUser,
) -> None:
    """Change the title of a KIND, or archive it."""
    with ask.opened() as store:
        there = store.services.sharing.change(_caller(store, kind, ask), kind, shared_id, title=title, archived=archived)
        _show(there, as_json=ask.as_json)


def join(
    kind: str,
    shared_id: SharedId,
    name: Member,
    read_only: Annotated[bool, typer.Option("--read-only", help="They may only read.")] = False,
    *,
    ask: AsUser,
) -> None:
    """Make a user a member of a KIND, or change what they may do."""
    with ask.opened() as store:
        there = store.services.sharing.set_member(_caller(store, kind, ask), kind, shared_id, name, write=not read_only)
        _show(there, as_json=ask.as_json)


def leave(kind: str, shared_id: SharedId, name: Member, *, ask: AsUser) -> None:
    """Make a user a member of a KIND no longer."""
    with ask.opened() as store:
        store.services.sharing.drop_member(_caller(store, kind, ask), kind, shared_id, name)
        if ask.as_json:
            output.document({"status": "ok", "user": name})
        else:
            output.say(f"{name} is no member any more")


@projects.command("list")
@expanded
def list_projects(ask: AsUser) -> None:
    """List the projects that you own or are a member of."""
    with ask.opened() as store:
        found = store.services.sharing.list(store.caller(ask.user), "project")
        if ask.as_json:
            output.document({"projects": [shapes.shared(there) for there in found]})
        elif not found:
            output.say("no projects")
        else:
            _table(found)


@projects.command("delete")
@expanded
def delete_project(shared_id: SharedId, with_memories: WithMemories = False, *, ask: AsUser) -> None:
    """Delete a project for good.

    One that holds memories is deleted only with them. If it is stopped, the same command goes on.
    """
    with ask.opened() as store, progress_bar() as bar:
        removed = store.services.removing.shared(
            _caller(store, "project", ask), "project", shared_id, with_memories=with_memories, progress=partial(bar, "deleting")
        )
    _removed(removed, as_json=ask.as_json)


@workstreams.command("list")
@expanded
def list_workstreams(ask: AsUser) -> None:
    """List your workstreams that hold memories, and the shared ones."""
    with ask.opened() as store:
        caller = store.caller(ask.user)
        own = store.services.sharing.own_workstreams(caller)
        shared = store.services.sharing.list(caller, "workstream")
        if ask.as_json:
            counts = [{"workstream_id": at, "memories": count} for at, count in own]
            output.document({"workstreams": counts, "shared": [shapes.shared(there) for there in shared]})
            return
        if own:
            output.table(("WORKSTREAM", "MEMORIES"), [(at, str(count)) for at, count in own])
        if shared:
            output.say("\nshared:" if own else "shared:")
            _table(shared)
        if not own and not shared:
            output.say("no workstreams")


@workstreams.command("delete")
@expanded
def delete_workstream(
    workstream_id: SharedId,
    with_memories: WithMemories = False,
    shared: Annotated[bool, typer.Option("--shared", help="It is one with members, which you own.")] = False,
    *,
    ask: AsUser,
) -> None:
    """Delete a workstream for good; its sessions close.

    One that holds memories is deleted only with them. If it is stopped, the same command goes on.
    """
    with ask.opened() as store, progress_bar() as bar:
        removing = store.services.removing
        if shared:
            caller = _caller(store, "workstream", ask)
            removed = removing.shared(caller, "workstream", workstream_id, with_memories=with_memories, progress=partial(bar, "deleting"))
        else:
            removed = removing.workstream(
                store.caller(ask.user), workstream_id, with_memories=with_memories, progress=partial(bar, "deleting")
            )
    _removed(removed, as_json=ask.as_json)


for _group, _kind in ((projects, "project"), (workstreams, "workstream")):
    for _name, _command in (("add", add), ("show", show), ("change", change), ("join", join), ("leave", leave)):
        _group.command(_name)(about(_kind, _command))


def _caller(store: Opened, kind: str, ask: AsUser) -> "Caller":
    """Who shares: whoever has the database may do what an agent host may."""
    return store.services.access.operator(store.user(ask.user)) if kind == "workstream" else store.caller(ask.user)


def _table(found: "list[SharedScope]") -> None:
    rows = [(s.scope.id, s.title, s.owner_name, str(len(s.members)), minute_text(s.created), "yes" if s.archived else "no") for s in found]
    output.table(("ID", "TITLE", "OWNER", "MEMBERS", "MADE", "ARCHIVED"), rows)


def _show(there: "SharedScope", *, as_json: bool) -> None:
    if as_json:
        output.document(shapes.shared(there))
        return
    archived = ", archived" if there.archived else ""
    output.say(f"{there.title}: {there.scope.kind} {there.scope.id} of {there.owner_name}{archived}")
    if there.members:
        output.table(("MEMBER", "MAY"), [(m.user_name, "read and write" if m.write else "read") for m in there.members])


def _removed(removed: "Removed", *, as_json: bool) -> None:
    if as_json:
        output.document({"status": "ok", "id": removed.scope.id, "memories": removed.memories})
    else:
        with_it = {0: "", 1: " and its memory"}.get(removed.memories, f" and its {removed.memories} memories")
        output.say(f"deleted {removed.scope.kind} {removed.scope.id}{with_it}")
