"""A server that is asked to end: it takes no more, finishes what it has, and keeps what it answered; asked twice, it ends at once."""

import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from pegword.http.server import DRAIN_S
from tests.faults.harness import PATIENCE_S, Tally, how_many
from tests.faults.ledger import PYTHON, SERVE, UNHURRIED, Ledger, Server, joined, writers
from tests.faults.test_kill import token as token
from tests.faults.work import look
from tests.patience import takes_connections, until
from tests.stored import held

ENDS = how_many("ENDS", 5)
WRITERS = 16
SLACK_S = 100.0  # a slow machine's

pytestmark = pytest.mark.timeout(PATIENCE_S)


def end_under_load(tally: Tally, command: Sequence[str], folder: Path, token: str, rounds: int) -> Tally:
    """Start the server, let writers write, ask it to end at a random moment; again and again, with one ledger, on one file."""
    ledger, database = Ledger(), folder / "pegword.db"
    for chance in tally.schedule(rounds):
        server = Server(command, f"sqlite:///{database}", folder)
        before = ledger.answers
        threads = writers(WRITERS, server.port, token, ledger, chance.randrange(1 << 30))
        wanted = before + chance.randrange(WRITERS, 20 * WRITERS)
        until(lambda wanted=wanted: ledger.answers >= wanted)  # type: ignore[misc]
        time.sleep(chance.uniform(0, 0.02))
        began = time.monotonic()
        code = server.stop()
        took = time.monotonic() - began
        joined(threads)
        found, wrong = look(database)
        wrong += ledger.wrong + ([f"it ended with {code}"] if code else [])
        wrong += [f"it took {took:.1f} s to end"] if took > DRAIN_S + SLACK_S else []
        wrong += [f"it said: {server.said}"] if "Traceback" in server.said else []
        lost = ledger.lost({name: content for (_, name), content in found.items()})
        tally.notes["slowest end s"] = round(max(took, tally.notes.get("slowest end s", 0)), 1)
        tally.book(acknowledged=ledger.answers - before, lost=lost, wrong=wrong)
        ledger.wrong.clear()
    return tally


def test_a_server_that_is_asked_to_end_keeps_what_it_answered_and_ends_well(folder: Path, token: str) -> None:
    """SIGTERM under 16 writers: it ends with 0 and in time, every answer holds, and a save that was given up is said to be in doubt."""
    end_under_load(Tally("SIGTERM under 16 writers"), SERVE, folder, token, ENDS).hold()


def test_a_server_that_ends_before_its_commits_is_caught(folder: Path, token: str) -> None:
    command = [PYTHON, "-m", "tests.faults.serving", "SleepySqlite", "serve"]
    end_under_load(Tally("SIGTERM, answer before commit"), command, folder, token, 3).catch()


def end_twice(tally: Tally, command: Sequence[str], folder: Path, token: str) -> Tally:
    """Ask a server to end whose writers all wait for somebody's lock, and ask again when it lets nobody in any more.

    It must be one that waits for long: on a slow machine it would else have ended before it is asked again.
    """
    ledger, database, stop = Ledger(), folder / "pegword.db", threading.Event()
    server = Server(command, f"sqlite:///{database}", folder)
    threads = writers(WRITERS, server.port, token, ledger, 1, stop)
    until(lambda: ledger.answers > 50)
    with held(database):
        until(lambda: ledger.open() >= WRITERS)
        server.process.send_signal(signal.SIGTERM)
        until(lambda: not takes_connections(server.port))
        still_there = server.process.poll() is None
        server.process.send_signal(signal.SIGTERM)
        code = server.ended()
    stop.set()
    joined(threads)
    found, wrong = look(database)
    wrong += [] if still_there else ["it ended without waiting for its writers"]
    wrong += [] if code == -signal.SIGTERM else [f"it ended with {code}, and so not by the second signal"]
    tally.book(acknowledged=ledger.answers, lost=ledger.lost({name: text for (_, name), text in found.items()}), wrong=wrong + ledger.wrong)
    return tally


def test_a_server_that_ends_takes_no_connections_and_a_second_signal_ends_it_at_once(folder: Path, token: str) -> None:
    """While it waits for saves that wait for somebody's lock, nobody new is let in; the second SIGTERM waits for nothing, and loses nothing
    that was answered."""
    end_twice(Tally("a second SIGTERM"), UNHURRIED, folder, token).hold()


def test_a_server_that_waits_on_when_it_is_asked_twice_is_caught(folder: Path, token: str) -> None:
    command = [PYTHON, "-m", "tests.faults.serving", "patient-server", "serve"]
    end_twice(Tally("a second SIGTERM, passed over"), command, folder, token).catch()
