"""The other engine: Pegword on PostgreSQL, and PostgreSQL's own full-text search over the same notes on the same server."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bench.generator import Asked, Note
from bench.store import K


class FullText:
    """A table with a tsvector column under a GIN index and an index on the scope; the best by ts_rank_cd among the rows of visible scopes.

    Which of the two indexes a query uses is the planner's choice: it knows the table's statistics.
    """

    def __init__(self, url: str, notes: Sequence[Note]) -> None:
        import psycopg  # an extra of the bench

        self._connection = psycopg.connect(url, autocommit=True)
        run = self._connection.execute
        run("CREATE TABLE note (id BIGINT PRIMARY KEY, scope TEXT NOT NULL, text TEXT NOT NULL, words TSVECTOR NOT NULL)")
        with self._connection.cursor().copy("COPY note (id, scope, text, words) FROM STDIN") as copy:
            for number, note in enumerate(notes):
                copy.write_row((number, f"s{note.scope}", note.text, ""))
        run("UPDATE note SET words = to_tsvector('english', text)")
        run("CREATE INDEX note_words ON note USING gin (words)")
        run("CREATE INDEX note_scope ON note (scope)")
        run("VACUUM FULL ANALYZE note")

    def best(self, asked: Asked) -> list[Any]:
        """The ids of the best `K`."""
        found = self._connection.execute(
            "SELECT id FROM note, to_tsquery('english', %s) AS asked WHERE scope = ANY(%s) AND words @@ asked"
            " ORDER BY ts_rank_cd(words, asked) DESC LIMIT %s",
            (" | ".join(asked.words), [f"s{scope}" for scope in asked.scopes], K),
            prepare=True,
        ).fetchall()
        return [row[0] for row in found]

    def close(self) -> None:
        """Give the connection back."""
        self._connection.close()


def analyse(url: str) -> None:
    """Let the server know the statistics of what was filled in, as its own housekeeping would within a minute."""
    import psycopg  # an extra of the bench

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


def cpu_clock(url: str) -> Callable[[], float]:
    """A clock of the CPU time of this process and of those that serve its open connections to *url*, in seconds.

    On Linux, which tells the time of another process to the nanosecond.
    """
    import psycopg  # an extra of the bench

    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'"
            " AND pid <> pg_backend_pid()"
        ).fetchall()
    told = [Path(f"/proc/{pid}/schedstat") for (pid,) in rows]
    return lambda: time.process_time() + sum(int(path.read_bytes().split()[0]) for path in told) / 1e9
