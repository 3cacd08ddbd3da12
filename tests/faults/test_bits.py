"""A file that was altered by nobody who may: nothing altered is served as good, and no start or request ends in an accident."""

import logging
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from pegword.assembly import open_services
from pegword.core.caller import Session, Visible, reach
from pegword.core.errors import PegwordError
from pegword.core.memory import Memory, Version
from pegword.services.bundle import Services
from pegword.settings import load
from pegword.store import memory_rows, sqlite_file
from tests.faults.dying import fill
from tests.faults.harness import PATIENCE_S, Tally, how_many
from tests.faults.test_disk import as_a_kill_leaves_it
from tests.faults.work import CALLER, SCOPES, Asked, look, open_on, take_steps
from tests.store.test_index import small_index as small_index

FLIPS = how_many("FLIPS", 100)
CUTS = how_many("CUT_FILES", 30)
FLIPPED_BYTES = 16
PAGE = 4_096

pytestmark = [pytest.mark.timeout(PATIENCE_S), pytest.mark.usefixtures("small_index")]


@pytest.fixture
def original(folder: Path) -> tuple[Path, set[object]]:
    """A closed store with something of everything, and all that may be read from it."""
    path = folder / "original.db"
    services = open_on(path, "")
    fill(services, Asked())
    for number in range(3):
        services.turns.turn(CALLER, Session(), [{"role": "user", "content": f"walrus tea honey {number}"}])
    services.housekeeper.settle()
    services.close()
    services = open_services(path, load(environment={}))
    told: set[object] = set()
    wrong = read_all(services, told.add)
    services.close()
    assert [] == wrong
    return path, told


def read_all(services: Services, serve: Callable[[object], None]) -> list[str]:
    """Read everything in every way, and hand what is served to *serve*; what ends in an accident."""
    accidents: list[str] = []

    def attempt(what: str, read: Callable[[], object]) -> object:
        try:
            return read()
        except PegwordError:  # said, in a sentence
            return None
        except Exception as error:
            accidents.append(f"{what}: {type(error).__name__} {error}")
            return None

    memories = services.memories
    page = attempt("list", lambda: memories.list(CALLER, reach(CALLER), limit=200, include_expired=True))
    listed: list[Memory] = list(page.memories) if page else []  # type: ignore[attr-defined]
    for word in ("walrus", "tea", "honey", "milk", "port", "x1"):
        found = attempt("search", lambda word=word: memories.search(CALLER, Visible(SCOPES), word, limit=50))  # type: ignore[misc]
        listed += [hit.memory for hit in found.hits] if found else []  # type: ignore[attr-defined]
    turn = attempt("turn", lambda: services.turns.turn(CALLER, Session(), [{"role": "user", "content": "walrus tea"}]))
    listed += [shown.memory for shown in turn.shown] if turn else []  # type: ignore[attr-defined]
    for memory_id in {memory.memory_id for memory in listed}:
        memory = attempt("get", lambda memory_id=memory_id: memories.get_by_id(CALLER, memory_id))  # type: ignore[misc]
        listed += [memory] if isinstance(memory, Memory) else []
        versions = attempt("versions", lambda memory_id=memory_id: memories.versions(CALLER, memory_id).versions)  # type: ignore[misc]
        for version in versions or ():  # type: ignore[attr-defined]
            serve(_said(version))
    for memory in listed:
        serve(_said(memory))
    attempt("upkeep", lambda: services.housekeeper.sweep())
    attempt("re-index", lambda: services.reindexer.run(everything=True))
    return accidents


def _said(of: Memory | Version) -> tuple[object, ...]:
    """What the hash covers."""
    return (of.name, of.kind, of.description, of.content, of.tags)


def damage(
    tally: Tally, folder: Path, original: tuple[Path, set[object]], count: int, hurt: Callable[[Path, random.Random], None]
) -> Tally:
    """*count* copies that are *hurt*, each opened and read in every way."""
    path, told = original
    for number, chance in enumerate(tally.schedule(count)):
        copy = folder / f"{number}.db"
        shutil.copyfile(path, copy)
        hurt(copy, chance)
        wrong: list[str] = []
        altered: set[object] = set()
        try:
            services = open_services(copy, load(environment={}))
        except PegwordError as error:
            tally.notes["refused at the start"] = tally.notes.get("refused at the start", 0) + 1
            wrong += [] if str(copy) in str(error) else [f"the refusal does not name the file: {error}"]
        except Exception as error:
            wrong.append(f"a start ended in an accident: {error!r}")
        else:
            wrong += read_all(services, lambda said, altered=altered: None if said in told else altered.add(said))  # type: ignore[misc]
            with suppress(PegwordError):
                services.close()
            wrong += [f"served as good: {said}" for said in altered]
        tally.book(wrong=wrong)
        for suffix in ("", "-wal", "-shm"):
            Path(f"{copy}{suffix}").unlink(missing_ok=True)
    return tally


def flip(path: Path, chance: random.Random) -> None:
    """Put sixteen bytes of chance somewhere; in half of all cases letters into a text."""
    data = bytearray(path.read_bytes())
    if chance.random() < 0.5:
        at = chance.choice(
            [at for at in range(0, len(data) - FLIPPED_BYTES, 7) if data[at : at + FLIPPED_BYTES].isascii() and data[at : at + 5].isalpha()]
        )
        data[at : at + FLIPPED_BYTES] = bytes(chance.choices(b"aeiou tnrs", k=FLIPPED_BYTES))
    else:
        at = chance.randrange(100, len(data) - FLIPPED_BYTES)
        data[at : at + FLIPPED_BYTES] = chance.randbytes(FLIPPED_BYTES)
    path.write_bytes(data)


def cut(path: Path, chance: random.Random) -> None:
    """Cut the file at a page, or in one."""
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.truncate(chance.randrange(0, size // PAGE) * PAGE + chance.choice((0, 0, 0, 100)))


def test_bytes_that_were_altered_are_never_served_as_good(
    folder: Path, original: tuple[Path, set[object]], caplog: pytest.LogCaptureFixture
) -> None:
    """Sixteen bytes anywhere: the start is refused with a sentence that names the file, or what does not match its hash is left out and
    named in the log, or the bytes meant nothing. No reading ends in an accident."""
    caplog.set_level(logging.CRITICAL)
    damage(Tally("16 bytes of a file altered"), folder, original, FLIPS, flip).hold()


def test_a_store_that_does_not_look_at_its_hashes_is_caught(
    folder: Path, original: tuple[Path, set[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_rows, "is_sound", lambda _: True)
    damage(Tally("16 bytes of a file altered, no hashes looked at", until_noticed=True), folder, original, 60, flip).catch()


def test_a_file_that_was_cut_is_refused_or_read_as_far_as_it_is_whole(folder: Path, original: tuple[Path, set[object]]) -> None:
    damage(Tally("a file cut off"), folder, original, CUTS, cut).hold()


def test_a_store_that_takes_a_file_that_was_cut_for_an_accident_is_caught(
    folder: Path, original: tuple[Path, set[object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What SQLite says of such a file means nothing to it."""
    monkeypatch.setattr(sqlite_file, "_MEANING", tuple(row for row in sqlite_file._MEANING if row[0] is not apsw.CorruptError))
    damage(Tally("a file cut off, not understood", until_noticed=True), folder, original, 15, cut).catch()


@pytest.mark.parametrize(("suffix", "loses"), [("-shm", False), ("-wal", True)])
def test_a_log_that_somebody_removed_leaves_no_mixture(folder: Path, suffix: str, loses: bool) -> None:
    """After a kill: without the map of the log nothing is lost; without the log itself the store is an older one, and as sound."""
    tally = Tally(f"{suffix} removed after a kill")
    for number, chance in enumerate(tally.schedule(how_many("REMOVED_LOGS", 10))):
        here = folder / f"{suffix}{number}"
        here.mkdir()
        asked = Asked()
        services = open_on(here / "pegword.db", "")
        take_steps(services, asked, chance, 30)
        found = as_a_kill_leaves_it(here / "pegword.db")
        services.close()
        Path(f"{found}{suffix}").unlink(missing_ok=True)
        texts, wrong = look(found)
        tally.book(acknowledged=asked.answers, lost=[] if loses else asked.lost(texts), wrong=wrong)
    tally.hold()
