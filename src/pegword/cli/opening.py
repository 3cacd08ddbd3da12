"""Open the store that a command works on, and find out for whom. Everything heavy is imported here, when it is needed."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pegword.cli import output

if TYPE_CHECKING:
    from pegword.core.caller import Caller, Session
    from pegword.core.people import User
    from pegword.services.bundle import Services
    from pegword.settings import Settings


@dataclass(frozen=True, slots=True)
class Opened:
    """A store that is open for a command."""

    services: "Services"
    settings: "Settings"

    def user(self, name: str | None) -> "User":
        """The user of that name; without one, the person at the keyboard, added on first use."""
        from pegword.settings import local_user_name

        return self.services.access.ensure_user(local_user_name()) if name is None else self.services.access.user(name)

    def caller(self, name: str | None) -> "Caller":
        """Who a command acts for: a person typed it, so it is a human's."""
        return self.services.access.person(self.user(name))

    def session(self, caller: "Caller", session_id: str, workstream: str) -> "Session":
        """The session that was named, or an interactive one in the workstream that was."""
        from pegword.core.caller import Session
        from pegword.core.errors import Invalid

        if session_id and workstream:
            raise Invalid("say --session or --workstream, not both; a session has its workstream", field="session")
        return self.services.sessions.get(caller, session_id) if session_id else Session(workstream)


@contextmanager
def opened(database: str | None, config: Path | None, *, makes: bool = False, quiet: bool = False) -> Iterator[Opened]:
    """Open the store; close it afterwards, which does what waits.

    A database at its default place is made when it is absent. One that was named is made only by a command that *makes* something:
    a mistyped path must not answer as an empty store. *quiet*: tell nothing beside the result.
    """
    from pegword.assembly import open_services
    from pegword.settings import database_of, load

    settings = load(config).with_flags(database_url=database)
    output.warn(settings.warnings, as_json=quiet)
    place = database_of(settings.database_url)
    notice = _nothing if quiet else output.note
    is_new = isinstance(place, Path) and not place.exists()
    services = open_services(place, settings, create=makes or not settings.database_url, notice=notice)
    try:
        yield Opened(services, settings)
        if is_new:
            notice(f"made a new database at {place}")
    finally:
        services.close()


def _nothing(_line: str) -> None:
    """Tell nothing."""
