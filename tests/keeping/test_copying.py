"""The list of tables that copies go by, held against the migrations."""

from pathlib import Path

from pegword.store import copying
from pegword.store.migrate import migrate
from pegword.store.sqlite import SqliteEngine


def test_every_table_of_the_migrations_is_copied_whole(store_path: Path) -> None:
    """A table or a column that a migration adds and this list forgets would be lost in every copy, backup and restore."""
    engine = SqliteEngine(store_path)
    migrate(engine)
    with engine.read() as tx:
        names = [name for (name,) in tx.rows("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")]
        columns = {name: {row[1] for row in tx.rows(f"PRAGMA table_info({name})")} for name in names}
        unique = {
            name: {
                frozenset(row[2] for row in tx.rows(f"PRAGMA index_info({index[1]})"))
                for index in tx.rows(f"PRAGMA index_list({name})")
                if index[2]
            }
            for name in names
        }
    engine.close()
    columns.pop("schema_migrations")

    assert len(columns) == len(copying.TABLES)
    assert columns == {table.name: set(table.columns) for table in copying.TABLES}
    assert [] == [table.name for table in copying.TABLES if frozenset(table.key) not in unique[table.name]]
    assert [] == [name for name in copying.MOVING if name not in columns]
