"""``pegword serve`` with a planted fault, named first: the tests that end servers must catch it."""

import sys

from pegword import assembly
from pegword.cli import main
from tests.faults import mutants

if __name__ == "__main__":
    assembly.SqliteEngine = getattr(mutants, sys.argv[1])  # type: ignore[misc]
    sys.argv = ["pegword", *sys.argv[2:]]
    main()
