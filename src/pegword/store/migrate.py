"""Bring a database to the schema of this program: numbered files, forward only, each in one transaction."""

from functools import partial
from importlib import resources

from pegword.core.errors import NewerDatabase
from pegword.store.engine import Engine, Tx

_HISTORY = "CREATE TABLE IF NOT EXISTS schema_migrations (number BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL)"


def migrations() -> list[tuple[int, str, str]]:
    """Every migration of this program in order: its number, its name, its SQL."""
    files = resources.files("pegword.store").joinpath("migrations").iterdir()
    named = sorted((file.name, file) for file in files if file.name.endswith(".sql"))
    return [(int(name[:4]), name, file.read_text(encoding="utf-8")) for name, file in named]


def migrate(engine: Engine) -> None:
    """Apply what is missing. Raise `NewerDatabase` when the database knows more than this program."""
    done = schema_of(engine)
    for number, name, sql in migrations():
        if number > done:
            engine.write(partial(_apply, engine=engine, number=number, name=name, sql=sql))


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
    with engine.read() as tx:
        return _done(tx)


def _done(tx: Tx) -> int:
    try:
        return int(tx.rows("SELECT coalesce(max(number), 0) FROM schema_migrations")[0][0])
    except Exception as error:  # each engine has its own way to say that a table is absent
        if "schema_migrations" in str(error):
            return 0
        raise


def _apply(tx: Tx, *, engine: Engine, number: int, name: str, sql: str) -> None:
    tx.alone("schema")
    tx.run(_HISTORY)
    if _done(tx) >= number:  # another process was first
        return
    for statement in _statements(sql):
        for word, text in engine.flavor.items():
            statement = statement.replace("{" + word + "}", text)
        tx.run(statement)
    tx.run("INSERT INTO schema_migrations (number, name) VALUES (?, ?)", (number, name))


def _statements(sql: str) -> list[str]:
    lines = (line.partition("--")[0] for line in sql.splitlines())
    return [statement for part in "\n".join(lines).split(";") if (statement := part.strip())]
