"""``pegword serve`` with a planted fault, named first: the tests that end servers must catch it. Or, without a fault, with other spans of
time than it has: where what happens must not depend on how fast a machine is."""

import sys

from pegword import assembly
from pegword.cli import main
from pegword.http import app, server
from pegword.services import health
from pegword.store import postgres, sqlite_file
from tests.faults import mutants

EVER_S = 3_600.0

if __name__ == "__main__":
    if sys.argv[1] == "careless-postgres":
        postgres._SETTINGS += "; SET synchronous_commit = off"
    elif sys.argv[1] == "patient-server":  # asked to end twice, it goes on as if it had been asked once
        server.DRAIN_S = 2
        server.Server.handle_exit = lambda self, *_: self.stop()  # type: ignore[method-assign, misc]
    elif sys.argv[1] == "unhurried":  # nobody who waits gives up before the test does, and whether it is ready is looked at each time
        sqlite_file.BUSY_WAIT_MS, app.WRITE_WAIT_S, server.DRAIN_S = int(EVER_S * 1_000), EVER_S, int(EVER_S)
        health.PROBE_EVERY_S, health.PROBE_WAIT_S = 0.0, EVER_S
    else:
        assembly.SqliteEngine = getattr(mutants, sys.argv[1])  # type: ignore[misc]
    sys.argv = ["pegword", *sys.argv[2:]]
    main()
