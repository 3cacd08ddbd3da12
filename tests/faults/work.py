"""Work of every kind on one store, drawn from chance, with a ledger of what was asked and what was acknowledged."""

import json
import random
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import apsw

from pegword.assembly import build_services, open_services
from pegword.core.caller import GLOBAL, Caller, Scope, Session, Visible, scope_of, user_scope
from pegword.core.errors import PegwordError, Unavailable
from pegword.core.memory import Draft
from pegword.services.bundle import Services
from pegword.settings import load
from pegword.store import folding
from pegword.store.migrate import migrate
from pegword.store.sqlite import SqliteEngine
from tests.conftest import Clock
from tests.store.test_index import WORDS, check

CALLER = Caller("u1", "alice", "key:1")
SCOPES = (GLOBAL, user_scope(CALLER), scope_of(CALLER, "workstream", "w1"))
NAMES = 12
TOGETHER = 4  # saves that share a commit

# What a step may be: its weight, so that saves are most of them.
KINDS = {"save": 12, "together": 3, "delete": 3, "turn": 2, "settle": 2, "sweep": 1, "reindex": 1, "checkpoint": 1}


@dataclass
class Asked:
    """Written down before each change and after its answer, by scope and name. None stands for: deleted."""

    acknowledged: dict[tuple[str, str], str | None] = field(default_factory=dict)
    in_doubt: dict[tuple[str, str], list[str | None]] = field(default_factory=dict)
    answers: int = 0
    deaf: Callable[[], bool] = lambda: False  # whether nobody is left to hear that something was refused
    diary: Path | None = None  # where each change is written down too, for those who come after this process

    def ask(self, scope: Scope, name: str, content: str | None, change: Callable[[], object]) -> object:
        """Do *change*, which makes the memory's content *content*; book it as acknowledged, refused or in doubt."""
        key = (scope.key, name)
        self.in_doubt.setdefault(key, []).append(content)
        self._write_down("asked", key, content)
        try:
            result = change()
        except Unavailable as error:
            if error.code != "in_doubt" and not self.deaf():
                self.in_doubt[key].remove(content)
            raise
        self._acknowledge(key, content)
        self._write_down("acknowledged", key, content)
        return result

    @classmethod
    def read_from(cls, diary: Path) -> "Asked":
        """The ledger of a process that is gone."""
        asked = cls()
        for line in diary.read_text(encoding="utf-8").splitlines() if diary.exists() else ():
            word, key, content = json.loads(line)
            if word == "asked":
                asked.in_doubt.setdefault(tuple(key), []).append(content)
            else:
                asked._acknowledge(tuple(key), content)
        return asked

    def _acknowledge(self, key: tuple[str, str], content: str | None) -> None:
        self.acknowledged[key] = content
        self.in_doubt[key] = []
        self.answers += 1

    def _write_down(self, word: str, key: tuple[str, str], content: str | None) -> None:
        if self.diary is not None:
            with self.diary.open("a", encoding="utf-8") as file:
                file.write(json.dumps([word, key, content]) + "\n")

    def lost(self, stored: dict[tuple[str, str], str]) -> list[str]:
        """What *stored* shows otherwise than it was acknowledged. What is in doubt may be there or not; what was refused may not."""
        complaints = []
        for key in self.acknowledged.keys() | self.in_doubt.keys() | stored.keys():
            allowed = [self.acknowledged.get(key), *self.in_doubt.get(key, [])]
            if stored.get(key) not in allowed:
                complaints.append(f"{key}: acknowledged {str(allowed[0])[-40:]!r}, stored {str(stored.get(key))[-40:]!r}")
        return complaints


def open_on(path: Path, vfs: str, *, kind: type[SqliteEngine] = SqliteEngine, later_s: float = 0) -> Services:
    """A store as `open_services` opens it, on a disk of our own, with ids of our own and a clock that stands *later_s* seconds further."""
    engine = kind(path, vfs=vfs)
    clock = Clock()
    clock.pass_s(later_s)
    numbers = iter(range(1, 1 << 30))
    chance = random.Random(path.name)
    try:
        migrate(engine)
        return build_services(engine, load(environment={}), clock=clock, new_id=lambda: f"{chance.getrandbits(64):016x}-{next(numbers)}")
    except BaseException:
        engine.close()
        raise


def take_steps(services: Services, asked: Asked, chance: random.Random, steps: int, *, going_on: Callable[[], bool] = lambda: True) -> None:
    """Take *steps* steps of work, as long as *going_on*; what is refused as unavailable is booked, and the work goes on."""
    kinds, weights = list(KINDS), list(KINDS.values())
    for number in range(steps):
        if not going_on():
            return
        with suppress(Unavailable):
            _step(services, asked, chance, chance.choices(kinds, weights)[0], number)


def _step(services: Services, asked: Asked, chance: random.Random, kind: str, number: int) -> None:
    scope = chance.choice(SCOPES)
    name = f"n{chance.randrange(NAMES)}"
    match kind:
        case "save":
            _save(services, asked, scope, name, _text(chance, number))
        case "together":
            _save_together(services, asked, scope, [_text(chance, number) for _ in range(TOGETHER)])
        case "delete":
            if asked.acknowledged.get((scope.key, name)) is not None:
                asked.ask(scope, name, None, lambda: services.memories.delete(CALLER, scope, name))
        case "turn":
            services.turns.turn(CALLER, Session(), [{"role": "user", "content": _text(chance, number)}])
        case "settle":
            services.housekeeper.settle()
            for each in SCOPES:
                folding.tidy(services.engine, each.key)
        case "sweep":
            services.housekeeper.sweep()
        case "reindex":
            services.reindexer.run(everything=True)
        case "checkpoint":
            services.engine.checkpoint()


def _save(services: Services, asked: Asked, scope: Scope, name: str, text: str) -> None:
    asked.ask(scope, name, text, lambda: services.memories.save(CALLER, Draft(name, text, scope, tags=(text.split()[0],))))


def _save_together(services: Services, asked: Asked, scope: Scope, texts: list[str]) -> None:
    """Saves of several threads in one commit."""
    engine = services.engine

    def one(number: int, text: str) -> None:
        with suppress(PegwordError, apsw.Error):
            _save(services, asked, scope, f"t{number}", text)

    threads = [threading.Thread(target=one, args=item) for item in enumerate(texts)]
    if isinstance(engine, SqliteEngine):
        with engine._writing:
            for number, thread in enumerate(threads, 1):
                thread.start()
                while thread.is_alive() and len(engine._waiting) < number:
                    time.sleep(0)
    else:
        for thread in threads:
            thread.start()
    for thread in threads:
        thread.join()


def _text(chance: random.Random, number: int) -> str:
    return " ".join([*chance.choices(WORDS, k=chance.randrange(3, 30)), f"step {number}", f"x{chance.getrandbits(32):x}"])


def stored(services: Services) -> dict[tuple[str, str], str]:
    """Every memory's content by scope and name, read as rows and so not through the index."""
    with services.engine.read() as tx:
        return {(key, name): content for key, name, content in tx.rows("SELECT scope_key, name, content FROM structured_memories")}


def look(database: Path | str) -> tuple[dict[tuple[str, str], str], list[str]]:
    """What a store holds, and what is wrong with it if it ought to be sound: it opens as any start opens it, its pages, its index, its
    versions and its tags agree with its rows, every memory is found by its own words, and it takes a save."""
    try:
        services = open_services(database, load(environment={}))
    except Exception as error:
        return {}, [f"a start after it failed: {error!r}"]
    found: dict[tuple[str, str], str] = {}
    try:
        found = stored(services)
        complaints: list[str] = []
        with services.engine.read() as tx:
            if isinstance(database, Path):
                complaints += [f"integrity_check: {row[0]}" for row in tx.rows("PRAGMA integrity_check") if row[0] != "ok"]
            torn = _TORN if isinstance(database, Path) else _TORN.replace("m.tags", "CAST(m.tags AS json)")
            complaints += [f"a memory without its version or tags: {row}" for row in tx.rows(torn)]
        check(services)
        for (_, name), text in list(found.items())[:5]:
            mark = text.split()[-1]
            hits = services.memories.search(CALLER, Visible(SCOPES), mark, limit=50).hits
            if name not in [hit.memory.name for hit in hits]:
                complaints.append(f"{name} is not found by its word {mark}")
        services.memories.save(CALLER, Draft("afterwards", "it takes a save", SCOPES[1]))
        services.memories.delete(CALLER, SCOPES[1], "afterwards")
    except Exception as error:
        return found, [f"{type(error).__name__}: {error}"]
    finally:
        services.close()
    return found, complaints


_TORN = """
    SELECT m.name, m.version FROM structured_memories AS m
    WHERE (SELECT count(*) FROM memory_versions AS v WHERE v.scope_key = m.scope_key AND v.memory_id = m.memory_id) <> m.version
        OR (SELECT content FROM memory_versions AS v
            WHERE v.scope_key = m.scope_key AND v.memory_id = m.memory_id AND v.version = m.version) <> m.content
        OR (SELECT count(*) FROM memory_tags AS t
            WHERE t.scope_key = m.scope_key AND t.memory_id = m.memory_id) <> json_array_length(m.tags)
    UNION ALL
    SELECT v.name, v.version FROM memory_versions AS v WHERE v.memory_id NOT IN (SELECT memory_id FROM structured_memories)
"""
