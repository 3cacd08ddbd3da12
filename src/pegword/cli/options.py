"""The options that commands share, each said once."""

from pathlib import Path
from typing import Annotated

import typer

Database = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        help="sqlite:///absolute/path.db. Default: PEGWORD_DATABASE, the config file, pegword.db in your data folder.",
    ),
]
Config = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Config file. Default: PEGWORD_CONFIG, then config.toml in your config folder."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document; errors are JSON on stderr.")]
User = Annotated[
    str | None,
    typer.Option("--user", metavar="NAME", help="Whose memories. Default: you, by the name of your account; made on first use."),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the memory, however written.", show_default=False)]
NameOrNone = Annotated[str | None, typer.Argument(metavar="NAME", help="Name of the memory, however written.", show_default=False)]
MemoryId = Annotated[str | None, typer.Option("--id", metavar="ID", help="Id of the memory, instead of its name.")]
ScopeWord = Annotated[str, typer.Option("--scope", metavar="SCOPE", help="global, user or workstream.")]
ScopeFilter = Annotated[
    str, typer.Option("--scope", metavar="SCOPE", help="Only global, user or workstream. Default: all you see.", show_default=False)
]
ScopeId = Annotated[str, typer.Option("--scope-id", metavar="ID", help="Id of the workstream, for scope workstream.", show_default=False)]
KindFilter = Annotated[str, typer.Option("--type", metavar="TYPE", help="Only user, project, feedback or reference.", show_default=False)]
TagFilter = Annotated[str, typer.Option("--tag", metavar="TAG", help="Only what has this tag.", show_default=False)]
IncludeExpired = Annotated[bool, typer.Option("--include-expired", help="Also what has expired.")]
ExpectedVersion = Annotated[
    int | None,
    typer.Option("--expected-version", metavar="N", min=0, help="Refuse if the memory is not at this version (0: must not exist)."),
]
StoredVersion = Annotated[
    int | None, typer.Option("--expected-version", metavar="N", min=1, help="Refuse if the memory is not at this version.")
]
