"""What tests of every room stand on: a store of their own, on each engine in turn, and three people.

Alice owns, Bob must see nothing of hers, and nobody sleeps: the clock moves when a test moves it.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from pegword.assembly import open_services
from pegword.core.caller import Caller
from pegword.services.bundle import Services
from pegword.settings import load
from tests import postgres
from tests.patience import without_hurry

ENGINES = ("sqlite", "postgres")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Whoever is started in the background hears of no Ctrl-C, and neither would what the tests start.
    with suppress(ValueError):  # in a thread, where nothing is started from
        signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says what the machine does beside it, not whether the rule holds. The examples are the same in every run, so
# that a change fails for what it changed; with PEGWORD_SEEK they are drawn anew each time, to find what nobody has met yet.
settings.register_profile(
    "pegword",
    parent=settings(),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
    derandomize="PEGWORD_SEEK" not in os.environ,
)
settings.load_profile("pegword")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Whatever stands on a database runs on each engine; what asks for the path of the file is about the file."""
    if "fresh" in metafunc.fixturenames:
        engines = ENGINES[:1] if "store_path" in metafunc.fixturenames else ENGINES
        metafunc.parametrize("engine_name", engines)


@dataclass
class Clock:
    """Microseconds since 1970, standing still until moved."""

    now: int = 1_800_000_000_000_000

    def __call__(self) -> int:
        self.now += 1
        return self.now

    def pass_s(self, seconds: float) -> None:
        """Let *seconds* go by."""
        self.now += int(seconds * 1_000_000)


@dataclass
class Statements:
    """Every SQL statement that was run, in order."""

    seen: list[str] = field(default_factory=list)

    def __call__(self, sql: str) -> None:
        self.seen.append(sql)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def statements() -> Statements:
    return Statements()


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    """The file of a SQLite store: for tests of that engine alone."""
    return tmp_path / "pegword.db"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a real PostgreSQL."""
    with postgres.server() as url:
        yield url


@pytest.fixture(scope="session")
def postgres_database(postgres_server: str) -> Iterator[postgres.Database]:
    """A database on it for this run."""
    database = postgres.Database(postgres_server, f"pegword_test_{os.getpid()}")
    yield database
    database.close()


@pytest.fixture
def fresh(engine_name: str, tmp_path: Path, request: pytest.FixtureRequest) -> Callable[[], Path | str]:
    """Makes an empty database on the engine that a test is run for; on PostgreSQL, the one before is emptied for it."""
    if engine_name == "sqlite":
        paths = (tmp_path / f"pegword{number or ''}.db" for number in count())
        return lambda: next(paths)
    there: postgres.Database = request.getfixturevalue("postgres_database")

    def emptied() -> str:
        there.empty()
        return there.url

    return emptied


@pytest.fixture
def database(fresh: Callable[[], Path | str]) -> Path | str:
    """An empty database: a path or an address, as `open_services` takes it."""
    return fresh()


def url_of(database: Path | str) -> str:
    """*database* as the command line takes it."""
    return database if isinstance(database, str) else f"sqlite:///{database}"


@pytest.fixture
def unhurried() -> Iterator[None]:
    """Nobody is refused because a machine is slow. Named before what it is to hold for: with `usefixtures`."""
    with pytest.MonkeyPatch.context() as patch:
        without_hurry(patch.setattr)
        yield


@pytest.fixture
def services(database: Path | str, clock: Clock, statements: Statements) -> Iterator[Services]:
    """An open store without a housekeeping thread: a test calls `settle` when that work is to be done."""
    opened = open_services(database, load(environment={}), clock=clock, seen=statements)
    yield opened
    opened.close()


def _agent(services: Services, name: str) -> Caller:
    return services.access.agent(services.access.ensure_user(name), f"key:{name}")


@pytest.fixture
def alice(services: Services) -> Caller:
    """An agent of Alice."""
    return _agent(services, "alice")


@pytest.fixture
def bob(services: Services) -> Caller:
    """An agent of Bob."""
    return _agent(services, "bob")


@pytest.fixture
def alice_herself(services: Services) -> Caller:
    """Alice at the keyboard."""
    return services.access.person(services.access.ensure_user("alice"))
