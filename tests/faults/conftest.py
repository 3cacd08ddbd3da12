"""What the tests of faults stand on."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pegword.http.app import create_app
from pegword.services import health
from pegword.services.bundle import Services
from pegword.settings import load
from pegword.store import sqlite_file
from tests.faults.harness import quick_folder
from tests.wire.conftest import Site
from tests.wire.conftest import running as running


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder for stores on a disk that is pretended."""
    made = quick_folder(tmp_path)
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture
def rollback_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file lies where a write-ahead log cannot be used."""
    monkeypatch.setattr(sqlite_file, "network_file_system", lambda _: "nfs4")


@pytest.fixture
def serve(running: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Services], Site]]:
    """Puts a store into a running server, whose health looks anew each time it is asked."""
    monkeypatch.setattr(health, "PROBE_EVERY_S", 0.0)
    opened: list[Services] = []

    def put(services: Services) -> Site:
        opened.append(services)
        services.housekeeper.start()
        running.services = services
        running.app = create_app(services, load(environment={}))
        return running

    yield put
    running.reset()
    for services in opened:
        services.close()
