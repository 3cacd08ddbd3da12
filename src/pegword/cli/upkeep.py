"""Commands about Pegword itself: config, reindex, version."""

import platform
from typing import Annotated

import typer

from pegword import __version__
from pegword.cli import output
from pegword.cli.asking import OnStore
from pegword.cli.options import AsJson
from pegword.cli.progress import progress_bar


def config_(ask: OnStore) -> None:
    """Print the settings that are in force for you, as you call it.

    Each with its value, where that came from, and what it does. A server that somebody else has started may have others.
    """
    import os

    from pegword.core.address import without_password
    from pegword.settings import PERSONA_SAYS, PERSONAS, SETTINGS, config_file, database_of, load

    def shown(value: object) -> object:
        return without_password(value) if isinstance(value, str) else value

    settings = load(ask.config).with_flags(database_url=ask.database)
    entries = [
        {
            "name": f"{section}.{key}",
            "value": shown(getattr(settings, f"{section}_{key}")),
            "default": setting.default,
            "origin": settings.origin[f"{section}_{key}"],
            "says": setting.says,
        }
        for section, keys in SETTINGS.items()
        for key, setting in keys.items()
    ]
    entries += [
        {
            "name": f"{PERSONAS}.{name}.memory",
            "value": value,
            "default": True,
            "origin": settings.origin[f"{PERSONAS}_{name}"],
            "says": PERSONA_SAYS,
        }
        for name, value in sorted(settings.personas.items())
    ]
    path = without_password(str(database_of(settings.database_url)))
    file, _ = config_file(ask.config, os.environ)
    is_there = file.is_file()
    if ask.as_json:
        told = {"config_path": str(file), "config_there": is_there}
        output.document({"settings": entries, "database_path": path, **told, "warnings": list(settings.warnings)})
        return
    rows = [(e["name"], _value_text(e["value"]), e["origin"], e["says"]) for e in entries]
    output.table(("SETTING", "VALUE", "FROM", "WHAT IT DOES"), rows)
    output.say(f"\nThe config file is {file}{'' if is_there else ', which is not there'}")
    output.say(f"The database is {path}")
    output.warn(settings.warnings, as_json=False)


def reindex(
    everything: Annotated[bool, typer.Option("--all", help="All of it, due or not.")] = False,
    *,
    ask: OnStore,
) -> None:
    """Build the index anew where that is due.

    It is due after a change of memory.language, or of the rules by which words are read.
    The old index serves until the new one is there. If it is stopped, the next run goes on.
    """
    with ask.opened() as store:
        reindexer = store.services.reindexer
        pending = reindexer.pending()
        with progress_bar() as progress:
            done = reindexer.run(lambda read, of: progress("reindexing", read, of), everything=everything)
        if ask.as_json:
            output.document({"pending": pending, "reindexed": done})
        else:
            output.say(f"reindexed {done} memories" if done else "the index is up to date")


def version(as_json: AsJson = False) -> None:
    """Print the version."""
    if as_json:
        output.document({"version": __version__, "python": platform.python_version()})
    else:
        print(f"pegword {__version__}")


def _value_text(value: object) -> str:
    """A value as it would stand in the config file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if value != "" else '""'
