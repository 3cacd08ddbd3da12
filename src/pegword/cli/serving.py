"""The command serve."""

import logging
import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pegword import __version__
from pegword.cli import output
from pegword.cli.asking import OnStore

if TYPE_CHECKING:
    from pegword.services.bundle import Services
    from pegword.settings import Settings

BEYOND = "anybody who reaches this address can try tokens, and what is sent is not encrypted: put a proxy with TLS before it"


def serve(
    host: Annotated[str | None, typer.Option("--host", metavar="HOST", help="Address to listen on; default 127.0.0.1.")] = None,
    port: Annotated[
        int | None, typer.Option("--port", metavar="PORT", min=0, max=65_535, help="Port; default 8080, 0 takes a free one.")
    ] = None,
    *,
    ask: OnStore,
) -> None:
    """Serve memories over HTTP.

    It listens on this machine only, unless --host says otherwise. Ctrl-C stops it in good order.
    """
    from pegword.assembly import open_services
    from pegword.http.app import create_app
    from pegword.http.heap import keep_one_heap
    from pegword.http.server import run
    from pegword.live_settings import LiveSettings
    from pegword.settings import database_of, load

    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    settings = load(ask.config).with_flags(database_url=ask.database, server_host=host, server_port=port)
    _check_host(settings, said=host is not None)
    output.warn(settings.warnings, as_json=ask.as_json)
    live = LiveSettings(settings, ask.config, tell=output.note)
    keep_one_heap()
    services = open_services(database_of(settings.database_url), settings, notice=output.note, live=live)
    try:
        services.housekeeper.start()
        app = create_app(services, settings, live)

        def listening(on: int) -> None:
            _tell(services, settings, on, ask.config, as_json=ask.as_json)

        run(app, settings.server_host, settings.server_port, listening=listening)
    finally:
        services.close()
    output.note("stopped")


def _check_host(settings: "Settings", *, said: bool) -> None:
    """Refuse to be open to other machines by a setting alone; say what it means where it was asked for."""
    from pegword.core.errors import Invalid
    from pegword.http.auth import is_loopback

    host = settings.server_host
    if is_loopback(host):
        return
    if not said:
        raise Invalid(
            f"server.host is {host} (from {settings.origin['server_host']}), which other machines can reach;"
            f" say so at the command line too: pegword serve --host {host}",
            field="server.host",
        )
    output.note(f"listening on {host}: {BEYOND}")


def _tell(services: "Services", settings: "Settings", port: int, config: Path | None, *, as_json: bool) -> None:
    """Say where it serves from and at what address; at a first start, how to get in."""
    host = settings.server_host
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    origin = settings.origin["database_url"]
    database = services.engine.url.removeprefix("sqlite://")
    steps = _first_steps(services, settings, config)
    if as_json:
        output.document({"version": __version__, "address": address, "database": database, "database_from": origin, "first_steps": steps})
    else:
        output.say(f"Pegword {__version__}")
        output.say(f"database: {database} (from {'the default place' if origin == 'default' else origin})")
        output.say(f"address:  {address} (documentation at {address}/docs)")
        if steps:
            output.say("Nobody can get in yet. In another terminal, make what is missing; the last command prints a token:")
            for step in steps:
                output.say(f"    {step}")
        output.say("Press Ctrl-C to stop.")
    output.flush()


def _first_steps(services: "Services", settings: "Settings", config: Path | None) -> list[str]:
    """The commands that are still to be typed before the first agent can get in."""
    from pegword.settings import local_user_name

    keys = services.access.keys()
    if any(key.revoked_at is None for key in keys):
        return []
    users = services.access.users()
    name = users[0].name if users else local_user_name()
    # Where it was started by a path, from a folder that is not on PATH, that path is what the reader can type too.
    by_path = not shutil.which("pegword") and Path(sys.argv[0]).name == "pegword"
    program = shlex.quote(sys.argv[0]) if by_path else "pegword"
    flags = ""
    if settings.origin["database_url"] == "the command line":
        flags += f" --database {shlex.quote(settings.database_url)}"
    if config is not None:
        flags += f" --config {shlex.quote(str(config))}"
    add_user = [] if users else [f"{program} user add {shlex.quote(name)}{flags}"]
    return [*add_user, f"{program} key add --user {shlex.quote(name)} --scopes read,write{flags}"]
