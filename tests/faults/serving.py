"""``pegword serve`` with a planted fault, named first: the tests that end servers must catch it."""

import sys

from pegword import assembly
from pegword.cli import main
from pegword.http import server
from pegword.store import postgres
from tests.faults import mutants

if __name__ == "__main__":
    if sys.argv[1] == "careless-postgres":
        postgres._SETTINGS += "; SET synchronous_commit = off"
    elif sys.argv[1] == "patient-server":  # asked to end twice, it goes on as if it had been asked once
        server.DRAIN_S = 2
        server.Server.handle_exit = lambda self, *_: self.stop()  # type: ignore[method-assign, misc]
    else:
        assembly.SqliteEngine = getattr(mutants, sys.argv[1])  # type: ignore[misc]
    sys.argv = ["pegword", *sys.argv[2:]]
    main()
