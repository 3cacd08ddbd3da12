"""Where the parts are put together: one opened store with its services, on which the server, the command line and the library stand."""

import time
import tomllib
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache
from importlib import resources
from pathlib import Path

from pegword.core.errors import Damaged, Invalid
from pegword.core.memory import SECOND_US
from pegword.core.nudge import NudgeSettings
from pegword.core.signs import Language, language
from pegword.core.text import Analyser
from pegword.services import once
from pegword.services.access import Access
from pegword.services.bundle import Services
from pegword.services.doctor import Doctor
from pegword.services.health import Health
from pegword.services.housekeeping import Housekeeper, Keeper
from pegword.services.memories import Memories
from pegword.services.nudges import Nudges, Remembered
from pegword.services.receipts import KEPT_US
from pegword.services.reindexing import Reindexer
from pegword.services.removing import Removing
from pegword.services.resembling import Resembling
from pegword.services.sessions import Sessions
from pegword.services.sharing import Sharing
from pegword.services.transfer import Transfer
from pegword.services.turns import TurnLimits, Turns
from pegword.services.writing import Writing
from pegword.settings import Settings
from pegword.store.copying import require_whole
from pegword.store.engine import Engine
from pegword.store.migrate import migrate, schema_of
from pegword.store.sqlite import SqliteEngine
from pegword.store.sqlite_file import Use


def clock_us() -> int:
    """The time in microseconds since 1970."""
    return time.time_ns() // 1_000


def random_id() -> str:
    """A random UUID as text."""
    return str(uuid.uuid4())


def open_services(
    database: Path | str,
    settings: Settings,
    *,
    create: bool = True,
    clock: Callable[[], int] = clock_us,
    new_id: Callable[[], str] = random_id,
    notice: Callable[[str], None] = lambda _: None,
    seen: Callable[[str], None] | None = None,
    live: Callable[[], Settings] | None = None,
) -> Services:
    """Open *database*, a file or a PostgreSQL address, bring it to this program's schema, and build the services on it.

    *live* gives the settings that are in force, where those may change. *notice* is told what an operator should know, a line each;
    *seen* is told every SQL statement.
    """
    with _named(database):
        engine = open_engine(database, create=create, notice=notice, seen=seen)
        try:
            _bring_up(engine, create=create)
            require_whole(engine)
            return build_services(engine, settings, clock=clock, new_id=new_id, live=live)
        except BaseException:
            engine.close()
            raise


def _bring_up(engine: Engine, *, create: bool) -> None:
    """Bring what *engine* has to this program's schema. Unless a store is to be made, there must be one: `Invalid`."""
    if not create and not isinstance(engine, SqliteEngine) and not schema_of(engine):  # a file without one was refused before
        raise Invalid(
            f"there is no store in {engine.url}; name the database that holds it, or make one there: pegword serve", field="database"
        )
    migrate(engine)


@contextmanager
def _named(database: Path | str) -> Iterator[None]:
    """Say of a damaged file which it is: who starts a program may have several."""
    try:
        yield
    except Damaged as error:
        raise (Damaged(f"{database}: {error}") if isinstance(database, Path) else error) from error


def doctor_of(
    database: Path | str,
    settings: Settings,
    *,
    clock: Callable[[], int] = clock_us,
    new_id: Callable[[], str] = random_id,
) -> Doctor:
    """A doctor for *database*, who opens it for reading alone."""

    def opens(notice: Callable[[str], None]) -> Engine:
        return open_engine(database, create=False, notice=notice, use=Use.LOOK)

    return Doctor(database, opens, Analyser(settings.memory_language), clock, new_id)


def open_engine(
    database: Path | str,
    *,
    create: bool = True,
    use: Use = Use.STORE,
    notice: Callable[[str], None] = lambda _: None,
    seen: Callable[[str], None] | None = None,
) -> Engine:
    """The engine for *database*, opened as it is: a file through SQLite, which *create* makes if it is absent, or a PostgreSQL address."""
    if isinstance(database, Path):
        return SqliteEngine(database, create=create, notice=notice, seen=seen, use=use)
    try:
        from pegword.store.postgres import PostgresEngine
    except ModuleNotFoundError as error:
        if error.name not in ("psycopg", "psycopg_pool"):
            raise
        raise Invalid("PostgreSQL needs one more piece; install it with: pip install 'pegword[postgres]'", field="database") from error
    return PostgresEngine(database, notice=notice, seen=seen)


@contextmanager
def opened_bare(database: Path | str, *, create: bool = False, notice: Callable[[str], None] = lambda _: None) -> Iterator[Engine]:
    """The engine for *database*, brought to this program's schema and closed afterwards: for what copies whole stores."""
    with _named(database):
        engine = open_engine(database, create=create, notice=notice)
        try:
            _bring_up(engine, create=create)
        except BaseException:
            engine.close()
            raise
    with closing(engine):
        yield engine


def build_services(
    engine: Engine,
    settings: Settings,
    *,
    clock: Callable[[], int],
    new_id: Callable[[], str],
    live: Callable[[], Settings] | None = None,
) -> Services:
    """The services on an engine that is open and migrated. *live* gives the settings that are in force, where those may change."""
    live = live or (lambda: settings)
    analyser = Analyser(settings.memory_language)
    reindexer = Reindexer(engine, analyser)

    def finish() -> None:
        """What earlier processes left undone, on the housekeeper's thread."""
        services.removing.resume()
        reindexer.run()

    housekeeper = Housekeeper(
        engine, clock=clock, reindex=finish, restore=reindexer.restore, receipts_kept_us=KEPT_US, answers_kept_us=once.KEPT_US
    )
    writing = Writing(analyser, clock=clock, new_id=new_id, global_write=lambda: live().policy_global_write)
    remembered, signs = Remembered(), cache(languages)

    def on(engine: Engine, keeper: Keeper) -> Services:
        """Every service that reads or writes the database, on *engine*: also inside of a transaction that is open, which many may be."""
        nudges = Nudges(engine, keeper, signs, remembered, clock=clock, new_id=new_id, settings=lambda: _nudge_settings(live()))
        return Services(
            engine,
            Memories(engine, analyser, writing, keeper, clock=clock),
            Turns(
                engine,
                analyser,
                keeper,
                nudges=nudges,
                clock=clock,
                new_id=new_id,
                limits=lambda: _turn_limits(live()),
                writes_global=writing.writes_global,
            ),
            Access(engine, clock=clock),
            Sessions(engine, clock=clock, new_id=new_id, has_memory=settings.has_memory),
            Sharing(engine, clock=clock),
            Removing(engine, keeper, clock=clock),
            Transfer(engine, writing, keeper, clock=clock, new_id=new_id),
            Resembling(engine, analyser, clock=clock),
            nudges,
            reindexer,
            housekeeper,
            Health(engine, clock=clock),
            clock,
            keeper,
            on,
        )

    services = on(engine, housekeeper)
    return services


def languages() -> list[Language]:
    """The signs of every language that there is a data file for, by name."""
    files = [file for file in resources.files("pegword.core").joinpath("languages").iterdir() if file.name.endswith(".toml")]
    tables = {file.name.removesuffix(".toml"): tomllib.loads(file.read_text(encoding="utf-8")) for file in files}
    return [language(name, table) for name, table in sorted(tables.items())]


def _turn_limits(settings: Settings) -> TurnLimits:
    return TurnLimits(
        settings.memory_relevance_k, settings.memory_critical_k, settings.memory_budget_chars, settings.memory_preview_chars,
        settings.memory_index_chars,
    )  # fmt: skip


def _nudge_settings(settings: Settings) -> NudgeSettings:
    return NudgeSettings(settings.memory_nudges, settings.memory_nudge_cooldown * SECOND_US)
