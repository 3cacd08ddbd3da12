"""What is wrong with a store, or soon will be, and what to do about each: for a person who has been woken up. Nothing is changed.

Every check stands by itself: one that meets what it cannot read says so, and the others go on.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from pegword.core.errors import Busy, Damaged, Invalid, NewerDatabase, PegwordError, ReadOnly
from pegword.core.memory import SECOND_US
from pegword.core.text import Analyser, Document
from pegword.services.diagnosis import ERROR, NOTE, OK, WARNING, Finding
from pegword.services.doctor_file import file_findings
from pegword.services.progress import Progress, Steps, nothing
from pegword.services.sound import HOLDING
from pegword.store import copying, index_check, soundness
from pegword.store.copying import TABLES, Table
from pegword.store.engine import Engine
from pegword.store.index_check import Indexed
from pegword.store.migrate import schema_known, schema_there

SAMPLED_MEMORIES = 1_000
SAMPLED_AT_ONCE = 100
CLOCK_SLACK_US = 60 * SECOND_US
CLOCK_LEAST_US = 1_735_689_600 * SECOND_US  # 2025: no clock that goes right is behind this

_RESTORE = "put a backup back: pegword restore FILE --to URL"
_REINDEX = "pegword reindex --all"


@dataclass(frozen=True, slots=True)
class Doctor:
    """Examines one database. *opens* opens it for reading alone, telling notices to what it is given; *clock* gives microseconds since
    1970, *chance* a new random UUID each time."""

    database: Path | str
    opens: Callable[[Callable[[str], None]], Engine]
    analyser: Analyser
    clock: Callable[[], int]
    chance: Callable[[], str]

    def examine(self, *, whole: bool = False, progress: Progress = nothing) -> list[Finding]:
        """Every finding, in the order of the checks. *whole*: look at every memory, version and posting, not at a sample of them."""
        found: list[Finding] = []
        if isinstance(self.database, Path):
            found += file_findings(self.database)
            if any(f.check == "file" and f.state == ERROR for f in found):
                return found
        notices: list[str] = []
        try:
            engine = self.opens(notices.append)
        except Exception as error:
            return [*found, _cannot_open(error)]
        try:
            found.append(Finding("opening", OK, "the database answers"))
            for check in self._checks(engine, notices, whole, progress):
                found += check
        finally:
            with suppress(Exception):
                engine.close()
        return found

    def _checks(self, engine: Engine, notices: list[str], whole: bool, progress: Progress) -> Iterator[list[Finding]]:
        yield _tried("engine", lambda: _about(engine, notices))
        schema = _tried("schema", lambda: _schema(engine))
        yield schema
        yield _tried("integrity", lambda: _integrity(engine, whole))
        if schema[-1].state in (ERROR, NOTE):
            return  # the tables are not those that the other checks look for
        yield _tried("copy", lambda: _copy(engine))
        yield _tried("clock", lambda: self._clock(engine))
        yield _tried("memories", lambda: self._rows(engine, whole, progress))
        yield from self._index(engine, whole, progress)
        if whole:
            yield from (_tried("tables", partial(_readable, engine, table)) for table in TABLES)

    def _clock(self, engine: Engine) -> list[Finding]:
        now = self.clock()
        if now < CLOCK_LEAST_US:
            return [Finding("clock", ERROR, f"the clock says {_moment(now)}", "set the clock, and keep it by NTP")]
        with engine.read() as tx:
            last = copying.last_written(tx)
        times = {"something was saved": last}
        if isinstance(self.database, Path):
            times["the file was written"] = self.database.stat().st_mtime_ns // 1_000
        server = engine.about().get("clock_us")
        if server is not None and abs(int(server) - self.clock()) > CLOCK_SLACK_US:
            says = f"the database's clock says {_moment(int(server))}, this machine's {_moment(now)}"
            return [Finding("clock", WARNING, says, "set both clocks, and keep them by NTP")]
        for what, at in times.items():
            if at > now + CLOCK_SLACK_US:
                says = f"the clock says {_moment(now)}, and {what} at {_moment(at)}"
                return [Finding("clock", WARNING, says, "set the clock, and keep it by NTP; what was saved by a wrong one keeps its time")]
        return [Finding("clock", OK, "it agrees with what was written")]

    def _rows(self, engine: Engine, whole: bool, progress: Progress) -> list[Finding]:
        """Memories, and of all of them the versions too, against their hashes."""
        memories, versions = soundness.Found(), soundness.Found()

        def told(_: int) -> None:
            progress("reading memories and versions", memories.looked_at + versions.looked_at, 0)

        with engine.read() as tx:
            every = whole or soundness.count(tx) <= SAMPLED_MEMORIES
            if every:
                soundness.memories(tx, memories, told)
            if whole:
                soundness.versions(tx, versions, told)
            if not every:
                for _ in range(SAMPLED_MEMORIES // SAMPLED_AT_ONCE):
                    soundness.memories(tx, memories, told, after=self.chance(), limit=memories.looked_at + SAMPLED_AT_ONCE)
        findings = []
        for what, found, fix in (
            ("memories", memories, "delete it, or revert it to a sound version; or take it from a backup"),
            ("versions", versions, "take it from a backup, or live without it: the memory itself is sound"),
        ):
            if found.faulty:
                more = f"; and {found.faulty - len(found.named)} more" if found.faulty > len(found.named) else ""
                findings += [Finding(what, ERROR, words + (more if words == found.named[-1] else ""), fix) for words in found.named]
            elif what == "memories" or whole:
                looked_at = "all" if every else "a sample"
                findings.append(Finding(what, OK, f"{looked_at} of them match their hashes"))
        return findings

    def _index(self, engine: Engine, whole: bool, progress: Progress) -> Iterator[list[Finding]]:
        scopes: list[Indexed] = []

        def sums() -> list[Finding]:
            wrong: list[str] = []
            with engine.read() as tx:
                scopes.extend(index_check.sums(tx, wrong.append))
            return _named("index sums", wrong, _REINDEX) or [Finding("index sums", OK, "they agree with the memories")]

        def postings() -> list[Finding]:
            wrong: list[str] = []
            with engine.read() as tx:
                step = Steps(progress, HOLDING, sum(scope.n for scope in scopes) if whole else SAMPLED_MEMORIES)
                for scope, low, high in self._parts(scopes, whole):
                    index_check.postings(tx, scope, self._document, wrong.append, low=low, high=high, progress=step)
                    if len(wrong) >= soundness.NAMED_MAX:
                        break
            says = f"{'all' if self._looks_at_all(scopes, whole) else 'a sample'} of them agree with the memories"
            return _named("index postings", wrong, _REINDEX) or [Finding("index postings", OK, says)]

        yield _tried("index sums", sums)
        yield _tried("index postings", postings)
        stale = [scope for scope in scopes if scope.n and scope.analyser != self.analyser.name]
        if stale:
            memories = sum(scope.n for scope in stale)
            says = f"{memories} memories in {len(stale)} scopes are indexed by older rules, or for another language"
            yield [Finding("index age", WARNING, says, "start the server, which does it as it runs, or: pegword reindex")]
        else:
            yield [Finding("index age", OK, "the index is made by the rules in force")]

    def _looks_at_all(self, scopes: list[Indexed], whole: bool) -> bool:
        return whole or sum(scope.n for scope in scopes) <= SAMPLED_MEMORIES

    def _parts(self, scopes: list[Indexed], whole: bool) -> Iterator[tuple[Indexed, int, int]]:
        """What of the index is looked at: scopes, and in each the slots from one up to another (0: all)."""
        known = [scope for scope in scopes if scope.n and scope.analyser == self.analyser.name]
        if self._looks_at_all(known, whole):
            yield from ((scope, 0, 0) for scope in known)
            return
        total = sum(scope.n for scope in known)
        for _ in range(SAMPLED_MEMORIES // SAMPLED_AT_ONCE):
            number = int(self.chance().replace("-", ""), 16)
            at = number % total
            for scope in known:
                if at < scope.n:
                    low = (number >> 64) % scope.next_slot
                    yield scope, low, min(low + SAMPLED_AT_ONCE, scope.next_slot)
                    break
                at -= scope.n

    def _document(self, name: str, description: str, content: str, tags: tuple[str, ...]) -> Document:
        return self.analyser.document(content, (name, description, *tags))


def _tried(check: str, work: Callable[[], list[Finding]]) -> list[Finding]:
    """The findings of one check, or that it could not be done."""
    try:
        return work()
    except Damaged as error:
        return [Finding(check, ERROR, str(error), _RESTORE)]
    except PegwordError as error:
        return [Finding(check, ERROR, str(error), "mend that, then run pegword doctor again")]
    except Exception as error:  # a table that is gone, or what nobody foresaw: the other checks go on
        return [Finding(check, ERROR, f"it cannot be looked at: {error}", _RESTORE)]


def _cannot_open(error: Exception) -> Finding:
    """Why nothing more can be found out."""
    fixes: tuple[tuple[type[Exception], str], ...] = (
        (NewerDatabase, "name the database of this program, or install the Pegword that wrote it"),
        (Damaged, _RESTORE),
        (Busy, "find out which process holds it, and let it end"),
        (ReadOnly, "open it once where it can be written to, so that what a crash has left can be finished"),
        (Invalid, "name a database that is there and that this program can use"),
        (PegwordError, "see that the server runs, and that its address, name, role and password are right; then try again"),
    )
    for kind, fix in fixes:
        if isinstance(error, kind):
            return Finding("opening", ERROR, str(error), fix)
    return Finding("opening", ERROR, f"it cannot be opened: {type(error).__name__}", "report this fault of Pegword's")


def _about(engine: Engine, notices: list[str]) -> list[Finding]:
    about = engine.about()
    if about["engine"] == "sqlite":
        return []
    findings = [Finding("engine", WARNING, notice, "set it to on in postgresql.conf, and restart the server") for notice in notices]
    if about["replica"] == "on":
        fix = "name the primary server, unless it is only read"
        findings.append(Finding("engine", WARNING, "this server is a replica: every write is refused", fix))
    if about.get("data_checksums") == "off":
        fix = "stop the server, run pg_checksums --enable on its folder"
        findings.append(Finding("engine", NOTE, "the server keeps no checksums of its pages: damage shows by hashes alone", fix))
    return findings or [Finding("engine", OK, "PostgreSQL flushes what it acknowledges, and checks its pages")]


def _schema(engine: Engine) -> list[Finding]:
    there, known = schema_there(engine), schema_known()
    if there == known:
        return [Finding("schema", OK, "it is this program's")]
    if there > known:
        return [Finding("schema", ERROR, f"it is {there}, and this program knows {known}", "install the newer Pegword again")]
    if not there:
        return [Finding("schema", ERROR, "there is no store in it", "name the database that holds it, or make one there: pegword serve")]
    fix = "back it up by the Pegword that wrote it; the next other command, or start of the server, brings it up to date"
    return [Finding("schema", NOTE, f"it is {there}, and this program's is {known}", fix)]


def _integrity(engine: Engine, whole: bool) -> list[Finding]:
    wrong = engine.integrity(thorough=whole)
    if wrong:
        return _named("integrity", wrong, f"stop the server, and {_RESTORE}")
    if engine.about()["engine"] == "postgresql":
        said = "not looked at: the server checks a page when it reads it, where it was made with checksums"
        return [Finding("integrity", NOTE, said, "pg_amcheck looks at all of them")]
    return [Finding("integrity", OK, "the engine finds nothing wrong")]


def _readable(engine: Engine, table: Table) -> list[Finding]:
    """Nothing, when every row of *table* can be read."""
    with engine.read() as tx:
        copying.fingerprint(tx, table)
    return []


def _copy(engine: Engine) -> list[Finding]:
    with engine.read() as tx:
        source = copying.unfinished(tx)
    if source:
        return [Finding("copy", ERROR, f"a copy of {source} into this database was not finished", "run the command again that made it")]
    return []


def _named(check: str, wrong: list[str], fix: str) -> list[Finding]:
    return [Finding(check, ERROR, words, fix) for words in wrong[: soundness.NAMED_MAX]]


def _moment(at: int) -> str:
    return datetime.fromtimestamp(max(0, at) // SECOND_US, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
