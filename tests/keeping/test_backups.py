"""A backup is one file of one moment, there only when it was tried; and what is put back is what was kept."""

import errno
import fcntl
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from pegword.core.caller import GLOBAL, reach
from pegword.core.errors import Conflict, Damaged, Invalid, StorageFull
from pegword.core.memory import Draft
from pegword.core.text import Analyser
from pegword.services import moving
from pegword.services.backups import back_up, restore
from pegword.services.bundle import Services
from pegword.store import migrate
from pegword.store.engine import Engine, Tx
from pegword.store.sqlite import SqliteEngine
from tests.conftest import Clock
from tests.faults.disk import Disk
from tests.keeping.conftest import after, fill, rows_of
from tests.patience import until
from tests.store.test_index import check

WRITERS = 16
Open = Callable[[Path | str], Services]
Bare = Callable[[Path | str], Engine]


def made(services: Services, path: Path, **more: Any) -> Any:
    return back_up(services.engine, path, Analyser(), clock=services.clock, **more)


def put_back(path: Path, target: Engine, **more: Any) -> Any:
    return restore(path, target, Analyser(), clock=Clock(), **more)


@pytest.fixture
def kept(services: Services, tmp_path: Path) -> Path:
    """A backup of a store that holds something in every table."""
    fill(services)
    made(services, tmp_path / "kept.backup")
    return tmp_path / "kept.backup"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """Where a store can be put back to."""
    return tmp_path / "elsewhere.db"


def test_a_backup_holds_every_row_and_can_be_served_as_it_is(services: Services, kept: Path, opened: Open) -> None:
    before = rows_of(services.engine)
    there = opened(kept)
    bob = there.access.agent(there.access.user("alice"), "key:x")

    assert before == rows_of(there.engine)
    assert there.memories.search(bob, reach(bob), "walrus", limit=50).total > 20
    check(there)


def test_a_backup_is_private_and_one_file(kept: Path) -> None:
    assert 0o600 == kept.stat().st_mode & 0o777
    assert [kept.name] == [path.name for path in kept.parent.iterdir() if path.name.startswith("kept")]


@pytest.mark.usefixtures("unhurried")
def test_a_backup_made_while_16_write_is_of_one_moment(services: Services, alice: Any, tmp_path: Path, opened: Open) -> None:
    """Everything that was acknowledged before it began is in it, and the index agrees with the rows."""
    acknowledged: list[str] = []
    stop = threading.Event()

    def write(writer: int) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            name = f"w{writer}_{number}"
            services.memories.save(alice, Draft(name, f"walrus {number}", GLOBAL))
            if number % 5 == 0:
                services.memories.save(alice, Draft(name, f"changed {number}", GLOBAL))
            acknowledged.append(name)

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(WRITERS)]
    for thread in threads:
        thread.start()
    try:
        while len(acknowledged) < 100:
            stop.wait(0.005)
        before = set(acknowledged)

        def beside(*_: object) -> None:
            seen = len(acknowledged)
            until(lambda: len(acknowledged) > seen + WRITERS)  # so one of them was begun and is done since

        result = made(services, tmp_path / "b", progress=beside)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    there = opened(tmp_path / "b")
    with there.engine.read() as tx:
        names = {name for (name,) in tx.rows("SELECT name FROM structured_memories")}

    assert before <= names <= set(acknowledged)
    assert names != set(acknowledged)  # they did write meanwhile
    assert () == result.faults
    check(there)


@pytest.mark.parametrize("what", ["a file", "a link", "a folder"])
def test_nothing_is_ever_overwritten(services: Services, tmp_path: Path, what: str) -> None:
    path = tmp_path / "b"
    if what == "a file":
        path.write_text("mine", encoding="utf-8")
    elif what == "a link":
        path.symlink_to(tmp_path / "nowhere")
    else:
        path.mkdir()
    with pytest.raises(Invalid, match="exists"):
        made(services, path)

    assert what != "a file" or path.read_text(encoding="utf-8") == "mine"


def test_a_file_that_comes_into_being_meanwhile_is_not_overwritten(services: Services, tmp_path: Path) -> None:
    path = tmp_path / "b"
    with pytest.raises(Invalid, match="exists now"):
        made(services, path, progress=lambda *_: path.write_text("mine", encoding="utf-8"))

    assert "mine" == path.read_text(encoding="utf-8")


def test_what_a_broken_off_backup_left_is_no_backup_and_in_nobodys_way(services: Services, tmp_path: Path) -> None:
    fill(services)
    path = tmp_path / "b"
    with pytest.raises(KeyboardInterrupt):
        made(services, path, progress=after(3))
    assert not path.exists()
    Path(f"{path}.partial").write_bytes(b"left by a process that was killed")
    Path(f"{path}.partial-wal").write_bytes(b"and its log")
    made(services, path)

    assert ["b"] == sorted(p.name for p in tmp_path.iterdir() if p.name.startswith("b"))


def test_two_backups_to_one_file_do_not_mix(services: Services, tmp_path: Path) -> None:
    partial = tmp_path / "b.partial"
    held = os.open(partial, os.O_CREAT | os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    with pytest.raises(Conflict, match="somebody else"):
        made(services, tmp_path / "b")
    os.close(held)

    assert partial.exists()


def test_a_copy_that_is_not_what_was_read_gets_no_name(services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault changes one text in the copy before it is compared."""
    fill(services)
    compared = moving.compared

    def after_the_fault(source: Tx, target: Engine, *rest: Any) -> moving.Prints:
        target.write(lambda tx: tx.run("UPDATE structured_memories SET content = 'x' WHERE name = 'n3'"))
        return compared(source, target, *rest)

    monkeypatch.setattr(moving, "compared", after_the_fault)
    with pytest.raises(Damaged, match="structured_memories"):
        made(services, tmp_path / "b")

    assert not (tmp_path / "b").exists()


def test_what_is_damaged_is_kept_as_it_is_and_named(services: Services, alice: Any, tmp_path: Path) -> None:
    """One bad row keeps nobody from a backup of the rest, and nobody is told that all is well."""
    services.memories.save(alice, Draft("n", "walrus", GLOBAL))
    services.engine.write(lambda tx: tx.run("UPDATE structured_memories SET content = 'altered'"))
    services.engine.write(lambda tx: tx.run("UPDATE ix_scope SET words = 7"))
    result = made(services, tmp_path / "b")

    assert (tmp_path / "b").exists()
    assert [True, True] == [any(what in fault for fault in result.faults) for what in ("does not match its hash", "7 words")]


def test_what_cannot_be_read_is_named_by_its_table_and_leaves_no_file(store_path: Path, clock: Clock, opened: Open, tmp_path: Path) -> None:
    services = opened(store_path)
    fill(services)
    services.engine.write(lambda tx: tx.run("UPDATE receipts SET body = CAST(x'ff' AS TEXT)"))
    with pytest.raises(Damaged, match="receipts"):
        made(services, tmp_path / "b")

    assert [] == [path.name for path in tmp_path.iterdir() if path.name.startswith("b")]


def test_a_backup_that_does_not_fit_leaves_nothing_and_says_so(services: Services, alice: Any, tmp_path: Path) -> None:
    """The store goes on; when there is room, the same command makes the backup."""
    fill(services)

    def full(action: str, name: str) -> None:
        if action == "write" and name.startswith("b.partial"):
            disk.fail(action, errno.ENOSPC)

    disk = Disk(full, over="unix")
    usual = apsw.vfs_names()[0]
    apsw.set_default_vfs(disk.name)
    try:
        with pytest.raises(StorageFull):
            made(services, tmp_path / "b")
    finally:
        apsw.set_default_vfs(usual)
        disk.unregister()
    left = [path.name for path in tmp_path.iterdir() if path.name.startswith("b")]
    services.memories.save(alice, Draft("goes_on", "walrus", GLOBAL))
    made(services, tmp_path / "b")

    assert [] == left


def test_what_was_deleted_is_not_in_a_backup(services: Services, alice: Any, tmp_path: Path) -> None:
    services.memories.delete(alice, GLOBAL, services.memories.save(alice, Draft("n", "walruscanary", GLOBAL)).memory.name)
    made(services, tmp_path / "b")

    assert b"canary" not in (tmp_path / "b").read_bytes()


def test_a_backup_is_put_back_into_an_empty_store(services: Services, kept: Path, elsewhere: Path, opened: Open, engine_of: Bare) -> None:
    before, bytes_before = rows_of(services.engine), kept.read_bytes()
    done = put_back(kept, engine_of(elsewhere))

    assert before == rows_of(opened(elsewhere).engine)
    assert (None, False, ()) == (done.before, done.moved.behind, done.moved.faults)
    assert bytes_before == kept.read_bytes()
    assert [kept.name] == [path.name for path in kept.parent.iterdir() if path.name.startswith("kept")]


def test_a_store_is_put_back_into_itself_after_a_loss(services: Services, alice: Any, kept: Path) -> None:
    """Into the engine that it came from; what is there is backed up first."""
    before = rows_of(services.engine)
    for name in ("n3", "n6", "n9"):
        services.memories.delete(alice, GLOBAL, name)
    services.memories.save(alice, Draft("later", "walrus", GLOBAL))
    lost = rows_of(services.engine)
    with pytest.raises(Conflict, match="not empty"):
        put_back(kept, services.engine)
    assert lost == rows_of(services.engine)
    done = put_back(kept, services.engine, replace=True)

    assert before == rows_of(services.engine)
    assert lost == rows_of(SqliteEngine(done.before))
    check(services)


@pytest.mark.parametrize("calls", [20, 45, 60])
def test_a_replacing_restore_that_is_broken_off_leaves_the_old(
    services: Services, alice: Any, kept: Path, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    """It is one transaction: the old or the new, never between."""
    services.memories.save(alice, Draft("later", "walrus", GLOBAL))
    before = rows_of(services.engine)
    told: list[str] = []

    def progress(what: str, _done: int, _of: int) -> None:
        told.append(what)
        if told.count("replacing") > calls // 10:
            raise RuntimeError("broken off")

    with pytest.raises(RuntimeError):
        put_back(kept, services.engine, replace=True, progress=progress)

    assert before == rows_of(services.engine)
    check(services)


def test_what_is_saved_after_the_safety_copy_is_not_lost(services: Services, alice: Any, kept: Path) -> None:
    """Who writes during a restore keeps it from going on, rather than losing what was acknowledged."""
    written: list[object] = []

    def progress(what: str, _done: int, _of: int) -> None:
        if what == "checking the file" and not written:
            written.append(services.memories.save(alice, Draft("later", "walrus", GLOBAL)))

    with pytest.raises(Conflict, match="stop who uses it"):
        put_back(kept, services.engine, replace=True, progress=progress)

    assert "walrus" == services.memories.get(alice, GLOBAL, "later").content


@pytest.mark.parametrize("at", [3, 5, 9])
def test_a_damaged_backup_is_refused(kept: Path, elsewhere: Path, engine_of: Bare, at: int) -> None:
    """Nothing of it is put anywhere."""
    data = bytearray(kept.read_bytes())
    middle = len(data) * at // 10
    data[middle : middle + 4_096] = os.urandom(4_096)
    kept.write_bytes(data)
    target = engine_of(elsewhere)
    with pytest.raises(Damaged):
        put_back(kept, target)

    assert {} == {name: rows for name, rows in rows_of(target).items() if rows}


@pytest.mark.parametrize("what", ["absent", "empty", "a text"])
def test_what_is_no_backup_is_refused(tmp_path: Path, elsewhere: Path, engine_of: Bare, what: str) -> None:
    path = tmp_path / "b"
    if what != "absent":
        path.write_text("" if what == "empty" else "dear diary, " * 1_000, encoding="utf-8")
    with pytest.raises((Invalid, Damaged)):
        put_back(path, engine_of(elsewhere))

    assert what == "absent" or path.stat().st_size == (0 if what == "empty" else 12_000)


def test_a_backup_of_an_older_schema_is_brought_up_to_date_in_a_copy(
    tmp_path: Path, elsewhere: Path, engine_of: Bare, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An old backup is good for ever, and stays the file that it was."""
    old = tmp_path / "old.backup"
    all_of_them = migrate.migrations()
    monkeypatch.setattr(migrate, "migrations", lambda: all_of_them[:2])
    engine = engine_of(old)
    engine.write(lambda tx: tx.run("INSERT INTO facts (name, value) VALUES ('a', 'b')"))
    engine.close()
    monkeypatch.setattr(migrate, "migrations", lambda: all_of_them)
    before = old.read_bytes()
    target = engine_of(elsewhere)
    put_back(old, target)

    assert [("a", "b")] == rows_of(target)["facts"]
    assert before == old.read_bytes()
    assert 2 == migrate.schema_of(SqliteEngine(old))
