"""One turn: from the last user messages to the few memories that belong in the system message."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pegword.core import render
from pegword.core.caller import Caller, Session, Visible, acting, reach, session_reach
from pegword.core.context import recent_texts
from pegword.core.errors import Invalid, NotFound
from pegword.core.memory import Memory, checked_word
from pegword.core.nudge import Nudge
from pegword.core.offered import Offered, offered
from pegword.core.text import Analyser
from pegword.services import receipts
from pegword.services.finding import NOT_RANKED, Findings, find
from pegword.services.housekeeping import Keeper, Together
from pegword.services.nudges import Nudges
from pegword.services.receipts import Explanation, Frame, Weighed
from pegword.services.session_index import SessionIndexes, asked
from pegword.store import memory_rows
from pegword.store.engine import Engine
from pegword.store.memory_rows import Filters

INDEX = "index"
MODES = ("system", "tail", INDEX)
K_MAX = 50
RECEIPT_WAIT_S = 1.0
BUDGET_CHARS_MIN, BUDGET_CHARS_MAX = 200, 1_000_000


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """How much a turn shows: *k* memories and *critical_k* critical ones, within *budget_chars*, each up to *preview_chars*; and how long
    the index of a session may be."""

    k: int = 5
    critical_k: int = 3
    budget_chars: int = 8_000
    preview_chars: int = 500
    index_chars: int = 8_000


@dataclass(frozen=True, slots=True)
class Shown:
    """A memory in the block, and its score (0.0 where it stands for another reason than the words). A *pointer* is named without its
    text, since the index names it."""

    memory: Memory
    score: float
    pointer: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """What to put before the model: *block* ("" is a good answer) and *hint*. *receipt* asks later why. *nudge*, where there
    is one, goes after the last message. *index*, in mode index alone, goes into the system message, and block and hint into the tail."""

    block: str
    hint: str
    in_scope: int
    receipt: str
    shown: tuple[Shown, ...]
    nudge: Nudge | None = None
    index: str | None = None

    @property
    def text(self) -> str:
        """Block, blank line, hint: as it goes to where the mode says."""
        return "\n\n".join(part for part in (self.block, self.hint) if part)


class Turns:
    """Turns over the memories of one store. *limits* is asked at each turn, so that settings may change."""

    def __init__(
        self,
        engine: Engine,
        analyser: Analyser,
        housekeeper: Keeper,
        *,
        nudges: Nudges,
        clock: Callable[[], int],
        new_id: Callable[[], str],
        limits: Callable[[], TurnLimits],
        writes_global: Callable[[Caller], bool],
    ) -> None:
        self._engine = engine
        self._analyser = analyser
        self._housekeeper = housekeeper
        self._clock = clock
        self._new_id = new_id
        self._limits = limits
        self._writes_global = writes_global
        self._nudges = nudges
        self._indexes = SessionIndexes(engine, housekeeper, clock=clock, new_id=new_id)

    def turn(
        self,
        caller: Caller,
        session: Session,
        messages: Sequence[Mapping[str, Any]],
        *,
        mode: str = "system",
        k: int | None = None,
        budget_chars: int | None = None,
        tool: bool = True,
    ) -> Turn:
        """Choose what belongs in this turn of *session*.

        *messages* are those of the conversation so far (OpenAI or Anthropic shapes); the last three user messages count. *mode* says where
        the block will stand: in the system message; in the tail, after the user's message; or there beside a stable index in the system
        message, which points at what the index names. *k* (1 to `K_MAX`) and *budget_chars* are the limits' unless given. *tool*: the
        host offers the memory tool to its model; else nothing speaks of it, and nothing is pointed at that only the tool could read.
        With nothing said, the newest memories show; with nothing relevant, none. Where the session's persona has no memory, neither block
        nor hint nor number. Raises `Invalid` for mode index where there is neither a session nor a workstream to keep the index for.
        """
        caller.require("read")
        caller, visible = acting(caller, session), session_reach(caller, session)
        limits = self._limits()
        frame = _frame(limits, mode, k, budget_chars, self._clock())
        offer = offered(caller, session, tool=tool, writes_global=self._writes_global(caller))
        wanted = asked(caller, session, visible, tool=offer.tool, index_chars=limits.index_chars) if mode == INDEX else None
        if not offer.memory:
            return self._silent(caller, session, visible, messages, frame, offer)
        texts = recent_texts(messages)
        filters = Filters(frame.at, include_doubted=False)
        with self._engine.read() as tx:
            findings = find(tx, self._analyser, visible, texts, filters=filters, limit=frame.k, critical_k=limits.critical_k, floor=True)
            noted = self._nudges.noted(tx, caller, session)
            newest = [] if texts else memory_rows.newest(tx, visible, filters, frame.k + len(findings.critical))
            frame = replace(frame, in_scope=_in_scope(findings, frame.at))
            made = self._indexes.read(tx, wanted, frame.in_scope) if wanted else None
        index = self._indexes.settled(made) if made else None
        weighed = _weighed(findings, newest, frame.k)
        if index and offer.tool:
            weighed = [replace(w, pointer=not w.always and index.names(w.memory)) for w in weighed]
        rendered = render.block(
            [_note(w, caller) for w in weighed if w.chosen],
            budget_chars=frame.budget_chars,
            preview_chars=frame.preview_chars,
            weights=findings.weights,
            analyser=self._analyser,
        )
        weighed = receipts.with_room(weighed, rendered.shown)
        receipt = self._kept(lambda receipt: receipts.prepared(receipt, caller, visible, frame, findings, weighed))
        shown = tuple(Shown(w.memory, w.score, w.pointer) for w in weighed if w.shown)
        nudge = self._nudges.nudge(session, noted, messages, offer, memories=frame.in_scope, now=frame.at)
        hint = render.hint(frame.in_scope, tool=offer.tool)
        return Turn(rendered.text, hint, frame.in_scope, receipt, shown, nudge, index.text if index else None)

    def _silent(
        self, caller: Caller, session: Session, visible: Visible, messages: Sequence[Mapping[str, Any]], frame: Frame, offer: Offered
    ) -> Turn:
        """The turn of a session that has no memory: of the same shape, and nothing in it tells whether there is any."""
        with self._engine.read() as tx:
            noted = self._nudges.noted(tx, caller, session)
        nudge = self._nudges.nudge(session, noted, messages, offer, memories=0, now=frame.at)
        receipt = self._kept(lambda receipt: receipts.silent(receipt, caller, visible, frame))
        return Turn("", "", 0, receipt, (), nudge, "" if frame.mode == INDEX else None)

    def _kept(self, prepared: Callable[[str], receipts.Prepared]) -> str:
        """The name of a receipt that will be kept."""
        receipt = self._new_id()
        kept = prepared(receipt)
        self._housekeeper.later(Together(receipts.keep, kept, kept.scopes))
        return receipt

    def explain(self, caller: Caller, receipt: str, session: Session | None = None) -> Explanation:
        """Why a turn showed what it showed: its receipt, and the block rendered again from the versions that it saw. Kept 7 days; only for
        its own user, and what a session saw that nobody sees outside of it only in a *session* that sees it."""
        caller.require("read")
        who = caller if session is None else acting(caller, session)
        visible = reach(who) if session is None else session_reach(who, session)
        try:
            return self._explain(who, receipt, visible)
        except NotFound:  # it may be waiting to be written
            self._housekeeper.flush(RECEIPT_WAIT_S)
            return self._explain(who, receipt, visible)

    def _explain(self, caller: Caller, receipt: str, visible: Visible) -> Explanation:
        with self._engine.read() as tx:
            return receipts.explain(tx, receipt, caller, visible, self._analyser, self._clock())


def _frame(limits: TurnLimits, mode: str, k: int | None, budget_chars: int | None, now: int) -> Frame:
    """The terms of a turn, whose number in scope is not known yet. Raises `Invalid` for what cannot be."""
    checked_word(mode, "mode", MODES)
    k = limits.k if k is None else min(_at_least(k, "k", 1), K_MAX)
    budget = limits.budget_chars if budget_chars is None else _at_least(budget_chars, "budget_chars", BUDGET_CHARS_MIN)
    return Frame(mode, k, min(budget, BUDGET_CHARS_MAX), limits.preview_chars, 0, now)


def _in_scope(findings: Findings, now: int) -> int:
    """How many memories are in scope: those in the index but for those that have expired and were not swept out of it yet."""
    expired = sum(1 for m in findings.found.marked if 0 < m.expires_at <= now)
    return findings.found.postings.memories - expired


def _weighed(findings: Findings, newest: Sequence[Memory], k: int) -> list[Weighed]:
    """Everything that belongs in the block, room allowing, in the order in which it shows, each with the reason."""
    always = {memory.memory_id for memory in findings.critical}
    others = [memory for memory in newest if memory.memory_id not in always]
    weighed = [Weighed(memory, 0.0, NOT_RANKED, "critical", always=True) for memory in findings.critical]
    weighed += [Weighed(memory, 0.0, NOT_RANKED, "newest") for memory in others[:k]]
    return weighed + [Weighed(hit.memory, hit.score, hit.position, "relevant") for hit in findings.hits]


def _note(weighed: Weighed, caller: Caller) -> render.Note:
    memory = weighed.memory
    author = "" if memory.author_user == caller.user_id else memory.author
    return render.Note(
        memory.name, memory.kind, memory.scope.kind, memory.description, memory.content, memory.verified, author, memory.expires_at,
        pointer=weighed.pointer, always=weighed.always,
    )  # fmt: skip


def _at_least(value: int, field: str, least: int) -> int:
    if value < least:
        raise Invalid(f"{field} must be at least {least}: it is {value}", field=field)
    return value
