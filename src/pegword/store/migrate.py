"""Bring a database to the schema of this program: numbered files, forward only, all that are missing in one transaction."""

from collections.abc import Mapping, Sequence
from functools import partial
from importlib import resources

from pegword.core.errors import NewerDatabase
from pegword.store.engine import Engine, Tx

_THERE_ALREADY = ("42P07", "42710")  # as PostgreSQL says that a table or another thing of that name is there
_NO_SUCH_COLUMN = "42703"

_HISTORY = "CREATE TABLE IF NOT EXISTS schema_migrations (number BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL)"


def migrations() -> list[tuple[int, str, str]]:
    """Every migration of this program in order: its number, its name, its SQL."""
    files = resources.files("pegword.store").joinpath("migrations").iterdir()
    named = sorted((file.name, file) for file in files if file.name.endswith(".sql"))
    return [(int(name[:4]), name, file.read_text(encoding="utf-8")) for name, file in named]


def migrate(engine: Engine) -> None:
    """Apply what is missing. Raise `NewerDatabase` when the database knows more than this program, or is another program's."""
    done = schema_of(engine)
    missing = [migration for migration in migrations() if migration[0] > done]
    if not missing:
        return
    try:
        engine.write(partial(_apply_all, flavor=engine.flavor, missing=missing))
    except Exception as error:
        if _state_of(error) in _THERE_ALREADY:
            raise _foreign(engine) from error
        raise


def schema_known() -> int:
    """The number of the last migration that this program knows."""
    return migrations()[-1][0]


def schema_of(engine: Engine) -> int:
    """The number of the last migration that was applied to a database, 0 for a new one; `NewerDatabase` when this program does not know
    it."""
    done, known = schema_there(engine), schema_known()
    if done > known:
        raise NewerDatabase(f"the database is at schema {done}, this program knows {known}: install the newer Pegword again")
    return done


def schema_there(engine: Engine) -> int:
    """The number of the last migration that was applied to a database, known to this program or not; 0 for a new one."""
    try:
        with engine.read() as tx:
            return _done(tx)
    except Exception as error:
        if _state_of(error) == _NO_SUCH_COLUMN:  # many programs have a table of that name
            raise _foreign(engine) from error
        raise


def _foreign(engine: Engine) -> NewerDatabase:
    return NewerDatabase(f"{engine.url} holds tables of another program; name a database of its own, which may be empty")


def _state_of(error: Exception) -> str:
    """The SQLSTATE of what a driver raised, "" where it has none."""
    return str(getattr(error, "sqlstate", None) or "")


def _done(tx: Tx) -> int:
    try:
        return int(tx.rows("SELECT coalesce(max(number), 0) FROM schema_migrations")[0][0])
    except Exception as error:  # each engine has its own way to say that a table is absent
        if "schema_migrations" in str(error) and _state_of(error) != _NO_SUCH_COLUMN:
            return 0
        raise


def _apply_all(tx: Tx, *, flavor: Mapping[str, str], missing: Sequence[tuple[int, str, str]]) -> None:
    tx.alone("schema")
    tx.run(_HISTORY)
    done = _done(tx)  # another process may have been first
    for number, name, sql in missing:
        if number > done:
            for statement in _statements(sql):
                for word, text in flavor.items():
                    statement = statement.replace("{" + word + "}", text)
                tx.run(statement)
            tx.run("INSERT INTO schema_migrations (number, name) VALUES (?, ?)", (number, name))


def _statements(sql: str) -> list[str]:
    lines = (line.partition("--")[0] for line in sql.splitlines())
    return [statement for part in "\n".join(lines).split(";") if (statement := part.strip())]
