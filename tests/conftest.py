"""What tests of every room stand on: a store in a folder of its own, and three people.

Alice owns, Bob must see nothing of hers, and nobody sleeps: the clock moves when a test moves it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pegword.assembly import open_services
from pegword.core.caller import Caller
from pegword.services.bundle import Services
from pegword.settings import load


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
    return tmp_path / "pegword.db"


@pytest.fixture
def services(store_path: Path, clock: Clock, statements: Statements) -> Iterator[Services]:
    """An open store without a housekeeping thread: a test calls `settle` when that work is to be done."""
    opened = open_services(store_path, load(environment={}), clock=clock, seen=statements)
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
