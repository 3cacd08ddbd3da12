"""Export and import: what a caller may see, written out one by one, and brought in again under their own rights."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import islice

from pegword.core.caller import Caller, Visible, reach, scope_of
from pegword.core.errors import NotFound, PegwordError, Unavailable, VersionMismatch
from pegword.core.memory import KIND_DEFAULT, Draft, Memory, Trust, checked, checked_word, hash_of
from pegword.core.transfer import (
    CREATED,
    OUTCOMES,
    POLICIES,
    REFUSED,
    SKIPPED,
    UPDATED,
    Line,
    State,
    Unusable,
    claims_not_taken,
    import_trust,
    judged,
    state_after,
)
from pegword.services.housekeeping import Keeper
from pegword.services.writing import IMPORT, Writing
from pegword.store import memory_rows, transfer_rows
from pegword.store.engine import Engine, Tx

LINES_AT_ONCE = 100  # brought in together, in one transaction
NOTES_MAX = 1_000
UNKNOWN_MAX = 20
_ATTEMPTS_MAX = 3
_UUID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class Exported:
    """How many *memories* were written out, and how many were *left_out* because they are damaged."""

    memories: int
    left_out: int


@dataclass(frozen=True, slots=True)
class Note:
    """A line of which nothing came, or not all: its number, its name, the outcome, and why."""

    line: int
    name: str
    outcome: str
    reason: str


@dataclass(slots=True)
class Report:
    """What an import did, or would do. *counts* is by outcome. *notes* are the first `NOTES_MAX` of the lines that were skipped, refused
    or came with a warning, *notes_left_out* the number of the others. *memory_ids* are those of the memories that the lines were about, as
    far as they are stored. *not_taken* counts, by field, the claims that the importer may not make; *unknown* the fields that mean nothing
    here, the first `UNKNOWN_MAX` of them."""

    dry_run: bool
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(OUTCOMES, 0))
    not_taken: dict[str, int] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)
    notes_left_out: int = 0
    memory_ids: list[str] = field(default_factory=list)
    unknown: dict[str, int] = field(default_factory=dict)

    @property
    def lines(self) -> int:
        """How many lines were read."""
        return sum(self.counts.values())

    def add(self, result: "_Result") -> None:
        """Take in what became of one line."""
        self.counts[result.outcome] += 1
        if result.memory_id:
            self.memory_ids.append(result.memory_id)
        for name in result.line.unknown if isinstance(result.line, Line) else ():
            if name in self.unknown or len(self.unknown) < UNKNOWN_MAX:
                self.unknown[name] = self.unknown.get(name, 0) + 1
        if result.outcome in (CREATED, UPDATED):
            for name in result.not_taken:
                self.not_taken[name] = self.not_taken.get(name, 0) + 1
        if result.reason and len(self.notes) < NOTES_MAX:
            self.notes.append(Note(result.line.number, result.line.name, result.outcome, result.reason))
        elif result.reason:
            self.notes_left_out += 1


@dataclass(frozen=True, slots=True)
class _Result:
    line: Line | Unusable
    outcome: str
    reason: str = ""
    not_taken: tuple[str, ...] = ()
    due: str = ""
    memory_id: str = ""


@dataclass(frozen=True, slots=True)
class _Ready:
    """A line that was checked, as a save."""

    line: Line
    draft: Draft
    trust: Trust
    warning: str = ""


# The lines that were read so far, by a number made of the memory that each means.
_Seen = dict[int, int]


class Transfer:
    """Takes memories out of one store and into it. Clock (microseconds since 1970) and ids come in from outside."""

    def __init__(
        self, engine: Engine, writing: Writing, housekeeper: Keeper, *, clock: Callable[[], int], new_id: Callable[[], str]
    ) -> None:
        self._engine = engine
        self._housekeeper = housekeeper
        self._clock = clock
        self._new_id = new_id
        self._writing = writing

    def export(self, caller: Caller, visible: Visible, write: Callable[[Memory, int], None], *, include_expired: bool = False) -> Exported:
        """Hand every memory that is *visible* to *write*, one by one, all as they were at one moment.

        The order is that of the scopes' keys, and in a scope that of the last saves. With each memory comes the number of its sitting in
        its scope, 0 for what has left the index. What has expired is left out unless *include_expired*; what is damaged always is.
        """
        caller.require("read")
        if not reach(caller).covers(visible):
            raise NotFound("Memory not found")
        now = self._clock()
        count, left_out = 0, [0]
        with self._engine.read() as tx:
            for key in transfer_rows.scopes(tx, visible):
                sitting, start = 0, -1
                for memory in transfer_rows.memories(tx, key, left_out):
                    if memory.slot - memory.place != start:
                        sitting, start = sitting + 1, memory.slot - memory.place
                    if include_expired or not memory.expired(now):
                        write(memory, sitting)
                        count += 1
                for memory in transfer_rows.expired(tx, key, left_out) if include_expired else ():
                    write(memory, 0)
                    count += 1
        return Exported(count, sum(left_out))

    def bring(
        self,
        caller: Caller,
        lines: Iterable[Line | Unusable],
        *,
        policy: str = POLICIES[0],
        dry_run: bool = False,
        at_once: int = LINES_AT_ONCE,
        progress: Callable[[int], None] = lambda _: None,
    ) -> Report:
        """Bring *lines* in, each under the caller's own rights, and say what became of each; *at_once* in a transaction, for which whatever
        is written to their scopes waits.

        A memory is known again by its scope and name. *policy* says what happens where it differs from the stored one: ``skip``,
        ``overwrite``, or ``newer`` (overwrite what was saved before the line says that it was). What is the same changes nothing, so the
        same lines may be brought again, after a failure too. *dry_run* changes nothing and reports what would be done. *progress* is told
        how many lines are done.
        """
        caller.require("write")
        checked_word(policy, "policy", POLICIES)
        report = Report(dry_run)
        run = self._new_id()[:8]
        seen: _Seen = {}
        source = iter(lines)
        while some := list(islice(source, at_once)):
            ready = [_ready(caller, line, run, seen) for line in some]
            try:
                if dry_run:
                    with self._engine.read() as tx:
                        results = [self._would(tx, one, caller, policy) for one in ready]
                else:
                    results = self._engine.write(lambda tx, ready=ready: self._bring_some(tx, caller, ready, policy))  # type: ignore[misc]
            except Unavailable as error:
                error.args = (f"{error}; the first {report.lines} lines are done: send the same again to go on",)
                raise
            for result in results:
                report.add(result)
                if result.due:
                    self._housekeeper.due(result.due)
            progress(report.lines)
        return report

    def _bring_some(self, tx: Tx, caller: Caller, ready: list[_Ready | _Result], policy: str) -> list[_Result]:
        tx.alone(*sorted({one.draft.scope.key for one in ready if isinstance(one, _Ready)}))
        return [one if isinstance(one, _Result) else self._bring(tx, caller, one, policy) for one in ready]

    def _bring(self, tx: Tx, caller: Caller, one: _Ready, policy: str) -> _Result:
        """Write one line, if it is to be written, over the very memory that it was judged by."""
        line, there = one.line, ""
        for _ in range(_ATTEMPTS_MAX):
            try:
                stored = memory_rows.by_name(tx, one.draft.scope, one.draft.name, one.draft.shelf)
                there = "" if stored is None else stored.memory_id
                outcome, reason = _judged(stored, one, policy)
                if outcome not in (CREATED, UPDATED):
                    return _Result(line, outcome, reason, memory_id=there)
                saved, due = self._writing.put(
                    tx, caller, replace(one.draft, expected_version=0 if stored is None else stored.version), IMPORT, trust=one.trust,
                    new_id=self._id_for(tx, caller, line) if stored is None else "",
                )  # fmt: skip
            except VersionMismatch:
                continue  # somebody was there in between: look again
            except Unavailable:
                raise
            except PegwordError as error:
                return _Result(line, REFUSED, str(error), memory_id=there)
            warnings = [warning for warning in (*saved.warnings, one.warning) if warning and warning not in one.trust.warnings]
            key = saved.memory.scope.key if due else ""
            not_taken = claims_not_taken(caller, line, one.trust)
            return _Result(line, saved.outcome, "; ".join(warnings), not_taken, key, saved.memory.memory_id)
        return _Result(line, SKIPPED, "somebody else kept changing it", memory_id=there)

    def _would(self, tx: Tx, one: "_Ready | _Result", caller: Caller, policy: str) -> _Result:
        """What `_bring` would do."""
        if isinstance(one, _Result):
            return one
        line = one.line
        try:
            stored = memory_rows.by_name(tx, one.draft.scope, one.draft.name, one.draft.shelf)
            outcome, reason = _judged(stored, one, policy)
            if outcome in (CREATED, UPDATED):
                self._writing.require_right(caller, one.draft.scope)
        except PegwordError as error:
            return _Result(line, REFUSED, str(error))
        return _Result(line, outcome, reason or one.warning, claims_not_taken(caller, line, one.trust))

    def _id_for(self, tx: Tx, caller: Caller, line: Line) -> str:
        """The id that a new memory keeps from its file: a human's import alone, and only what is free. "" for one of our own."""
        if not caller.human or not _UUID.fullmatch(line.memory_id) or memory_rows.by_id(tx, line.memory_id, sound=False) is not None:
            return ""
        return line.memory_id


def _ready(caller: Caller, line: Line | Unusable, run: str, seen: _Seen) -> _Ready | _Result:
    """The save that a line asks for, or why there can be none."""
    if isinstance(line, Unusable):
        return _Result(line, REFUSED, line.reason)
    try:
        draft = checked(_draft(caller, line, run))
    except PegwordError as error:
        return _Result(line, REFUSED, str(error))
    meant = int.from_bytes(blake2b(f"{draft.scope.key}\n{draft.name}".encode(), digest_size=8).digest(), "big")
    first = seen.setdefault(meant, line.number)
    if first != line.number:
        return _Result(line, REFUSED, f"line {first} is about the same memory")
    return _Ready(line, draft, import_trust(caller, draft, line), _warning(line, draft))


def _warning(line: Line, draft: Draft) -> str:
    """What is odd about a line that can be brought in all the same."""
    if not line.content_hash:
        return ""
    now = hash_of(draft.name, draft.kind or KIND_DEFAULT, draft.description or "", draft.content, draft.tags or ())
    return "" if now == line.content_hash else "it does not match its hash: it was edited, or damaged, after it was exported"


def _draft(caller: Caller, line: Line, run: str) -> Draft:
    """A line as a save. Numbers of sittings hold for one import; a line without any is a sitting of its own."""
    sitting = line.sitting if isinstance(line.sitting, str) else f"{run}:{line.sitting}"
    return Draft(
        line.name, line.content, scope_of(caller, line.scope, line.scope_id), description=line.description, kind=line.kind, tags=line.tags,
        priority=line.priority, confidence=line.confidence, source=line.source, expires_at=line.expires_at,
        sitting=sitting or f"{run}:line {line.number}", claims_verified=bool(line.verified),
    )  # fmt: skip


def _judged(stored: Memory | None, one: _Ready, policy: str) -> tuple[str, str]:
    before = None if stored is None else State.of(stored)
    after = state_after(before, one.draft, one.trust)
    return judged(before, after, policy, 0 if stored is None else stored.updated, one.line.updated)
