"""The table of commands."""

from typing import Annotated

import typer

from pegword.cli import people, reading, saving, serving, turning, upkeep
from pegword.cli.failing import EXIT_CODES

HELP = "Memory for LLM agents: short named notes, of which the few that matter stand in the next turn."
HELP_COLUMNS = 100


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
    app.command("serve")(serving.serve)
    app.command("save")(saving.save)
    app.command("search")(reading.search)
    app.command("list")(reading.list_)
    app.command("show")(reading.show)
    app.command("delete")(saving.delete)
    app.command("turn")(turning.turn)
    app.command("versions")(reading.versions)
    app.command("revert")(saving.revert)
    app.command("reindex")(upkeep.reindex)
    app.add_typer(people.users, name="user")
    app.add_typer(people.keys, name="key")
    app.command("config")(upkeep.config_)
    app.command("version")(upkeep.version)
    return app
