"""A server with a planted fault: it answers before it commits. The crash test must catch it."""

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from pegword.cli import main
from pegword.store.sqlite import SqliteEngine, _Job

HASTE_S = 0.05


def hasty_write(self: SqliteEngine, work: Callable[[Any], Any]) -> Any:
    """Do the work, answer, and commit a little later with whatever else has come."""
    job = _Job(work)
    with self._writing:
        if not self._writer.in_transaction:
            self._writer.execute("BEGIN IMMEDIATE")
            threading.Thread(target=commit_later, args=(self,), daemon=True).start()
        self._do(self_tx(self), job, alone=False)
    if job.error is not None:
        raise job.error
    return job.result


def self_tx(engine: SqliteEngine) -> Any:
    from pegword.store.sqlite import SqliteTx

    return SqliteTx(engine._writer, None)


def commit_later(engine: SqliteEngine) -> None:
    time.sleep(HASTE_S)
    with engine._writing:
        if engine._writer.in_transaction:
            engine._writer.execute("COMMIT")


if __name__ == "__main__":
    SqliteEngine.write = hasty_write  # type: ignore[method-assign]
    sys.argv = ["pegword", *sys.argv[1:]]
    main()
