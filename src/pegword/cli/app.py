"""The table of commands."""

from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from pegword.cli import doctoring, keeping, people, reading, saving, serving, sessions, sharing, tooling, transfer, turning, upkeep
from pegword.cli.asking import expanded
from pegword.cli.failing import EXIT_CODES

HELP = "Memory for LLM agents: short named notes, of which the few that matter stand in the next turn."
HELP_COLUMNS = 100
COMMANDS: Mapping[str, Callable[..., None]] = {
    "serve": serving.serve,
    "save": saving.save,
    "search": reading.search,
    "list": reading.list_,
    "show": reading.show,
    "delete": saving.delete,
    "turn": turning.turn,
    "tool": tooling.tool,
    "versions": reading.versions,
    "revert": saving.revert,
    "export": transfer.export,
    "import": transfer.import_,
    "backup": keeping.backup,
    "restore": keeping.restore,
    "migrate": keeping.migrate,
    "doctor": doctoring.doctor,
    "reindex": upkeep.reindex,
    "config": upkeep.config_,
    "version": upkeep.version,
}


def _print_version(asked: bool) -> None:
    if asked:
        upkeep.version()
        raise typer.Exit


def _callback(
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.", is_eager=True, callback=_print_version)] = False,
) -> None:
    """Options before a command. `version` has done its work in its callback."""


def build() -> typer.Typer:
    """The command line as one Typer application."""
    app = typer.Typer(
        name="pegword",
        epilog=EXIT_CODES,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"max_content_width": HELP_COLUMNS, "help_option_names": ["--help", "-h"]},
    )
    app.callback(help=HELP)(_callback)
    for name, command in COMMANDS.items():
        app.command(name)(expanded(command))
    app.add_typer(people.users, name="user")
    app.add_typer(people.keys, name="key")
    app.add_typer(sessions.sessions, name="session")
    app.add_typer(sharing.projects, name="project")
    app.add_typer(sharing.workstreams, name="workstream")
    return app
