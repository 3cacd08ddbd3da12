"""``pegword serve`` with a planted fault, named first: the tests that end servers must catch it."""

import sys

from pegword import assembly
from pegword.cli import main
from pegword.store import postgres
from tests.faults import mutants

if __name__ == "__main__":
    if sys.argv[1] == "careless-postgres":
        postgres._SETTINGS += "; SET synchronous_commit = off"
    else:
        assembly.SqliteEngine = getattr(mutants, sys.argv[1])  # type: ignore[misc]
    sys.argv = ["pegword", *sys.argv[2:]]
    main()
