"""The doctor finds what is wrong, names what to do, changes nothing, and is not felled by what it looks at."""

import os
import random
import shutil
import uuid
from collections import namedtuple
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import pytest

from pegword.assembly import doctor_of, open_engine, open_services, random_id
from pegword.core.caller import GLOBAL, reach
from pegword.core.errors import PegwordError
from pegword.core.memory import Draft, Memory, hash_of
from pegword.core.text import Analyser, Document
from pegword.services import doctor, doctor_file
from pegword.services.bundle import Services
from pegword.services.diagnosis import Finding
from pegword.services.doctor import Doctor
from pegword.settings import load
from pegword.store import index_check, migrate
from pegword.store.sqlite import SqliteEngine
from tests.conftest import Clock
from tests.keeping.conftest import fill, rows_of

ANALYSER = Analyser()
SETTINGS = load(environment={})


def examined(database: Path | str, *, clock: Callable[[], int] | None = None, timed: bool = False, **more: Any) -> list[Finding]:
    """What the doctor finds, but for what is so of every server that tests run on: its settings, and, unless *timed*, that its clock is not
    the test's."""
    left_out = {"engine"} if timed or isinstance(database, Path) else {"engine", "clock"}
    return [f for f in doctor_of(database, SETTINGS, clock=clock or Clock()).examine(**more) if f.check not in left_out]


def urgent(findings: list[Finding]) -> set[str]:
    return {finding.check for finding in findings if finding.must_act}


@pytest.fixture
def filled(services: Services, database: Path | str) -> Path | str:
    """A database that holds something in every table."""
    fill(services)
    return database


@pytest.mark.parametrize("whole", [False, True])
def test_a_sound_store_needs_nothing(services: Services, filled: Path | str, whole: bool) -> None:
    findings = examined(filled, clock=services.clock, whole=whole)

    assert set() == urgent(findings)
    checks = {"opening", "schema", "integrity", "memories", "index sums", "index postings", "index age"}
    assert checks <= {f.check for f in findings}
    assert [] == [f for f in findings if f.must_act and not f.fix]


@pytest.mark.parametrize("running", [False, True])
def test_the_doctor_changes_nothing(store_path: Path, clock: Clock, running: bool) -> None:
    """Not a byte of the file, and nothing is left beside it; whether a server has it open or not."""
    services = open_services(store_path, SETTINGS, clock=clock)
    fill(services)
    if not running:
        services.close()
    before = {path.name: path.read_bytes() for path in store_path.parent.iterdir() if not path.name.endswith("-shm")}
    times = store_path.stat().st_mtime_ns
    assert set() == urgent(examined(store_path, clock=clock, whole=True))

    assert before == {path.name: path.read_bytes() for path in store_path.parent.iterdir() if not path.name.endswith("-shm")}
    assert times == store_path.stat().st_mtime_ns
    services.close()


DAMAGES = {
    "an altered text": ("UPDATE structured_memories SET content = 'altered' WHERE name = 'n3'", {"memories"}),
    "an altered version": ("UPDATE memory_versions SET content = 'altered' WHERE version = 1", {"versions"}),
    "a lost version": ("DELETE FROM memory_versions WHERE name = 'n3'", {"memories"}),
    "a lost tag": ("DELETE FROM memory_tags WHERE tag_key = 't3'", {"memories"}),
    "a lost block": ("DELETE FROM ix_block WHERE term = 'tea'", {"index postings"}),
    "a lost tail row": ("DELETE FROM ix_tail", {"index sums", "index postings"}),
    "wrong sums": ("UPDATE ix_scope SET words = words + 1", {"index sums"}),
    "a lost scope": ("DELETE FROM ix_scope WHERE scope_key = 'g'", {"index sums"}),
    "a memory in a tomb": (
        "INSERT INTO ix_dead (scope_key, slot) SELECT scope_key, slot FROM structured_memories WHERE name = 'n3'",
        {"index sums", "index postings"},
    ),
    "a memory at another place": ("UPDATE structured_memories SET place = place + 1 WHERE name = 'n3'", {"index postings"}),
    "a slot that is given out twice": ("UPDATE ix_scope SET next_slot = 3 WHERE scope_key = 'g'", {"index sums"}),
    "a memory that was never placed": ("UPDATE structured_memories SET slot = -2 WHERE name = 'n3'", {"index sums", "index postings"}),
    "an unfinished copy": ("INSERT INTO facts (name, value) VALUES ('copying', '[\"another store\", \"users\", []]')", {"copy"}),
    "an older analyser": ("UPDATE ix_scope SET analyser = '0:english'", {"index age"}),
}  # fmt: skip


@pytest.mark.parametrize(("sql", "checks"), DAMAGES.values(), ids=DAMAGES.keys())
def test_each_damage_is_found_and_its_mending_named(services: Services, filled: Path | str, sql: str, checks: set[str]) -> None:
    assert services.engine.write(lambda tx: tx.run(sql))
    findings = examined(filled, clock=services.clock, whole=True)

    assert checks == urgent(findings)
    assert all(finding.fix for finding in findings if finding.must_act)


@pytest.mark.parametrize("what", [what for what, (_, checks) in DAMAGES.items() if checks <= {"index sums", "index postings", "index age"}])
def test_what_is_to_be_done_for_the_index_mends_it(services: Services, filled: Path | str, what: str) -> None:
    """The fix that is named is one that helps: pegword reindex --all."""
    services.engine.write(lambda tx: tx.run(DAMAGES[what][0]))
    services.reindexer.run(everything=True)

    assert set() == urgent(examined(filled, clock=services.clock, whole=True))


POSTINGS = {
    "another slot": b"\x01",
    "a count": b"\x00\x00\x00\x00\x01",
    "a place": b"\x00\x00\x00\x00\x00\x01",
    "a length": b"\x00\x00\x00\x00\x00\x00\x01",
}


@pytest.mark.parametrize("flip", POSTINGS.values(), ids=POSTINGS.keys())
def test_one_wrong_bit_of_one_posting_is_found(services: Services, filled: Path | str, flip: bytes) -> None:
    """Whatever it changes: the slot, the count, the place or the length."""
    mask = int.from_bytes(flip.ljust(8, b"\0"), "little")

    def work(tx: Any) -> None:
        first, data = tx.rows("SELECT first_slot, postings FROM ix_block WHERE scope_key = 'g' AND term = 'walrus'")[0]
        last = int.from_bytes(data[-8:], "little") ^ mask
        flipped = data[:-8] + last.to_bytes(8, "little")
        tx.run("UPDATE ix_block SET postings = ? WHERE scope_key = 'g' AND term = 'walrus' AND first_slot = ?", (flipped, first))

    services.engine.write(work)

    assert {"index postings"} == urgent(examined(filled, clock=services.clock, whole=True))


def test_every_part_of_a_sound_index_is_sound(services: Services, filled: Path | str) -> None:
    """A sample is a stretch of slots; wherever it lies, it accuses nobody, and it sees what is wrong within it."""

    def analyse(name: str, description: str, content: str, tags: tuple[str, ...]) -> Document:
        return ANALYSER.document(content, (name, description, *tags))

    def wrong() -> list[tuple[int, int]]:
        found = []
        with services.engine.read() as tx:
            (scope,) = [scope for scope in index_check.sums(tx, lambda _: None) if scope.key == "g"]
            for low in range(scope.next_slot):
                for high in range(low + 1, scope.next_slot + 1):
                    told: list[str] = []
                    index_check.postings(tx, scope, analyse, told.append, low=low, high=high)
                    found += [(low, high)] if told else []
        return found

    assert [] == wrong()
    with services.engine.read() as tx:
        ((slot,),) = tx.rows("SELECT slot FROM structured_memories WHERE name = 'n3'")
    services.engine.write(lambda tx: tx.run("UPDATE structured_memories SET place = place + 1 WHERE name = 'n3'"))
    caught = wrong()
    assert caught
    assert [] == [(low, high) for low, high in caught if not low <= slot < high]


def test_a_sample_looks_at_some_and_says_so(services: Services, filled: Path | str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "SAMPLED_MEMORIES", 20)
    monkeypatch.setattr(doctor, "SAMPLED_AT_ONCE", 5)
    findings = examined(filled, clock=services.clock)
    says = {f.check: f.says for f in findings}

    assert set() == urgent(findings)
    assert ["a sample of them match their hashes", "a sample of them agree with the memories"] == [says["memories"], says["index postings"]]
    services.engine.write(lambda tx: tx.run("UPDATE structured_memories SET content = 'altered'"))
    assert "memories" in urgent(examined(filled, clock=services.clock))


@pytest.mark.parametrize(("moved_s", "state"), [(-3_600, "warning"), (-30, "ok"), (10 * 365 * 86_400, "ok")])
def test_a_clock_that_is_behind_what_was_saved_is_found(
    services: Services, filled: Path | str, moved_s: int, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is ahead cannot be told from one that is right. The server's goes as the machine's does here."""
    at = services.clock() + moved_s * 10**6
    about = {**services.engine.about(), "clock_us": str(at)}
    monkeypatch.setattr(type(services.engine), "about", lambda _: about)
    if isinstance(filled, Path):
        os.utime(filled, (at / 10**6, at / 10**6))
    (finding,) = [f for f in examined(filled, clock=lambda: at, timed=True) if f.check == "clock"]

    assert state == finding.state


def test_two_clocks_that_differ_are_found(services: Services, filled: Path | str, monkeypatch: pytest.MonkeyPatch) -> None:
    about = {**services.engine.about(), "clock_us": str(services.clock() + 3_600 * 10**6)}
    monkeypatch.setattr(type(services.engine), "about", lambda _: about)
    (finding,) = [f for f in examined(filled, clock=services.clock, timed=True) if f.check == "clock"]

    assert ("warning", True) == (finding.state, "set both clocks" in finding.fix)


def test_a_clock_that_never_was_set_is_found(filled: Path | str) -> None:
    (finding,) = [f for f in examined(filled, clock=lambda: 0, timed=True) if f.check == "clock"]

    assert ("error", True) == (finding.state, "1970" in finding.says)


def test_a_newer_schema_is_found_and_nothing_else_is_guessed(services: Services, filled: Path | str) -> None:
    services.engine.write(lambda tx: tx.run("INSERT INTO schema_migrations (number, name) VALUES (9999, 'later')"))
    findings = examined(filled, clock=services.clock)
    services.engine.write(lambda tx: tx.run("DELETE FROM schema_migrations WHERE number = 9999"))

    assert {"schema"} == urgent(findings)
    assert "memories" not in {f.check for f in findings}


def test_an_older_schema_is_a_note(store_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = migrate.migrations()
    monkeypatch.setattr(migrate, "migrations", lambda: known[:1])
    SqliteEngine(store_path).close()
    engine = SqliteEngine(store_path)
    migrate.migrate(engine)
    engine.close()
    monkeypatch.setattr(migrate, "migrations", lambda: known)
    findings = examined(store_path)

    assert set() == urgent(findings)
    assert ["note"] == [f.state for f in findings if f.check == "schema"]


FILES: dict[str, Callable[[Path], object]] = {
    "absent": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "a text": lambda path: path.write_text("dear diary, " * 1_000, encoding="utf-8"),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a link": lambda path: (path.rename(path.with_name("x")), path.symlink_to(path.with_name("x"))),
    "one of two names": lambda path: path.with_name("x").hardlink_to(path),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:20_000]),
    "cut in the head": lambda path: path.write_bytes(path.read_bytes()[:50]),
    "another program's": lambda path: path.write_bytes(path.read_bytes()[:68] + b"abcd" + path.read_bytes()[72:]),
    "zeros": lambda path: path.write_bytes(bytes(path.stat().st_size)),
}


@pytest.mark.parametrize("change", FILES.values(), ids=FILES.keys())
def test_a_file_that_is_none_is_a_finding(store_path: Path, clock: Clock, change: Callable[[Path], object]) -> None:
    """Never a fault of the program, and always with what to do."""
    services = open_services(store_path, SETTINGS, clock=clock)
    fill(services)
    services.close()
    change(store_path)
    findings = examined(store_path, clock=clock, whole=True)

    assert urgent(findings)
    assert all(finding.fix for finding in findings if finding.must_act)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_altered_by_chance_is_found_and_not_served(tmp_path: Path, seed: int) -> None:
    """16 random bits of a copy are flipped. Where anything then reads otherwise, the doctor says that something must be done; and no memory
    is served that is not what was saved."""
    path = tmp_path / "a.db"
    clock, chance = Clock(), random.Random(seed)
    services = open_services(path, SETTINGS, clock=clock, new_id=lambda: str(uuid.UUID(int=chance.getrandbits(128), version=4)))
    fill(services, 20)
    before = rows_of(services.engine)
    saved = {m.memory_id: m.content_hash for m in _served(services)}
    services.close()
    data = bytearray(path.read_bytes())
    for _ in range(16):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)
    findings = examined(path, clock=clock, whole=True)
    after: dict[str, list[Any]] = {}
    served: list[Memory] = []
    with suppress(PegwordError, apsw.Error, ValueError):
        engine = SqliteEngine(path, create=False)
        after = rows_of(engine)
        engine.close()
    with suppress(PegwordError, apsw.Error, ValueError):
        opened = open_services(path, SETTINGS, clock=clock)
        served = _served(opened)
        opened.close()

    assert urgent(findings) or _guarded(before) == _guarded(after)
    assert [] == [m.name for m in served if saved.get(m.memory_id) != hash_of(m.name, m.kind, m.description, m.content, m.tags)]


def _served(services: Services) -> list[Memory]:
    """Every memory that a list gives to Alice."""
    alice = services.access.agent(services.access.ensure_user("alice"), "key:alice")
    return list(services.memories.list(alice, reach(alice), limit=200, include_expired=True).memories)


def _guarded(rows: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """What of all rows is guarded: by a hash, or by the index."""
    kept = ("structured_memories", "memory_versions", "memory_tags", "ix_block", "ix_tail", "ix_dead")
    return {name: [_told(name, row) for row in rows.get(name, [])] for name in kept}


def _told(table: str, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """What of a row is guarded: by its hash, or by the index."""
    names = {t.name: t.columns for t in doctor.copying.TABLES}[table]
    guarded = {"name", "kind", "content", "description", "tags", "content_hash", "tag_key", "postings", "counts", "marks"}
    return tuple(value for name, value in zip(names, row, strict=True) if name in guarded)


def test_a_row_of_any_table_that_cannot_be_read_is_found(store_path: Path, clock: Clock) -> None:
    """Of memories, users or receipts: what is no text stands in the way of every copy, so the table is named."""
    services = open_services(store_path, SETTINGS, clock=clock)
    fill(services)
    services.engine.write(lambda tx: tx.run("UPDATE receipts SET body = CAST(x'ff' AS TEXT)"))
    services.close()
    (finding,) = [f for f in examined(store_path, clock=clock, whole=True) if f.must_act]

    assert ("tables", True) == (finding.check, "receipts" in finding.says)


def test_a_file_that_others_may_read_is_found(store_path: Path, clock: Clock) -> None:
    open_services(store_path, SETTINGS, clock=clock).close()
    store_path.chmod(0o644)
    (finding,) = [f for f in examined(store_path, clock=clock) if f.check == "permissions"]

    assert ("warning", f"chmod 600 {store_path}") == (finding.state, finding.fix)


@pytest.mark.parametrize(("kind", "state"), [("nfs4", "warning"), ("tmpfs", "note"), ("ext4", "ok")])
def test_the_kind_of_file_system_is_told(store_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, kind: str, state: str) -> None:
    open_services(store_path, SETTINGS, clock=clock).close()
    monkeypatch.setattr(doctor_file, "file_system", lambda _: kind)
    monkeypatch.setattr(doctor_file, "network_file_system", lambda _: kind if kind == "nfs4" else "")

    assert [state] == [f.state for f in examined(store_path, clock=clock) if f.check == "file system"]


@pytest.mark.parametrize(("free", "state"), [(1 << 20, "error"), (40 << 20, "warning"), (1 << 40, "ok")])
def test_too_little_room_is_found(store_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, free: int, state: str) -> None:
    open_services(store_path, SETTINGS, clock=clock).close()
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage(1 << 41, 0, free))

    assert [state] == [f.state for f in examined(store_path, clock=clock) if f.check == "free space"]


def test_an_sqlite_that_damages_logs_is_found(store_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    open_services(store_path, SETTINGS, clock=clock).close()
    monkeypatch.setattr(doctor_file, "sqlite_version", lambda: (3, 40, 1))

    assert {"sqlite"} == urgent(examined(store_path, clock=clock))


def test_a_server_that_cannot_be_reached_is_a_finding_without_its_password() -> None:
    findings = examined("postgresql://alice:walruscanary@127.0.0.1:1/pegword")

    assert [("opening", "error", True)] == [(f.check, f.state, bool(f.fix)) for f in findings]
    assert "canary" not in str(findings)


def test_what_a_server_is_set_to_is_told(services: Services, database: Path | str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is unsafe must be mended, what could be better is a note, and a replica is told apart."""
    about = {"engine": "postgresql", "replica": "on", "data_checksums": "off"}
    monkeypatch.setattr(type(services.engine), "about", lambda _: about)
    engine = Doctor(database, lambda notice: (notice("fsync = off"), open_engine(database))[1], ANALYSER, services.clock, random_id)
    told = [(f.state, f.says) for f in engine.examine() if f.check == "engine"]

    assert ["warning", "warning", "note"] == [state for state, _ in told]
    assert [True, True, True] == [word in says for word, (_, says) in zip(("fsync", "replica", "checksums"), told, strict=True)]


def test_chance_comes_from_outside(services: Services, filled: Path | str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which part is looked at is decided by the ids that are handed in, so that a finding can be found again."""
    monkeypatch.setattr(doctor, "SAMPLED_MEMORIES", 20)
    monkeypatch.setattr(doctor, "SAMPLED_AT_ONCE", 5)
    asked: list[str] = []

    def chance() -> str:
        asked.append(str(uuid.UUID(int=random.Random(len(asked)).getrandbits(128), version=4)))
        return asked[-1]

    doctor_of(filled, SETTINGS, clock=services.clock, new_id=chance).examine()

    assert len(asked) > 4


def test_a_store_that_is_being_written_to_is_examined(services: Services, alice: Any, filled: Path | str) -> None:
    """Beside a server: each check reads one moment."""
    services.memories.save(alice, Draft("during", "walrus", GLOBAL))

    assert set() == urgent(examined(filled, clock=services.clock, whole=True))
