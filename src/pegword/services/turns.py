"""One turn: from the last user messages to the few memories that belong in the system message."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pegword.core import render
from pegword.core.caller import Caller, Session, Visible, acting, reach, session_reach
from pegword.core.context import recent_texts
from pegword.core.errors import Invalid, NotFound
from pegword.core.memory import Memory, checked_word
from pegword.core.nudge import Nudge
from pegword.core.text import Analyser
from pegword.services import receipts
from pegword.services.finding import NOT_RANKED, Findings, find
from pegword.services.housekeeping import Keeper
from pegword.services.nudges import Nudges
from pegword.services.receipts import Explanation, Weighed
from pegword.store import memory_rows
from pegword.store.engine import Engine
from pegword.store.memory_rows import Filters

MODES = ("system", "tail")
K_MAX = 50
RECEIPT_WAIT_S = 1.0
BUDGET_CHARS_MIN, BUDGET_CHARS_MAX = 200, 1_000_000


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """How much a turn shows: *k* memories and *critical_k* critical ones, within *budget_chars*, each up to *preview_chars*."""

    k: int = 5
    critical_k: int = 3
    budget_chars: int = 8_000
    preview_chars: int = 500


@dataclass(frozen=True, slots=True)
class Shown:
    """A memory in the block, and its score (0.0 where it stands for another reason than the words)."""

    memory: Memory
    score: float


@dataclass(frozen=True, slots=True)
class Turn:
    """What to put before the model: *block* ("" is a good answer) and *hint*. *receipt* asks later why. *nudge*, where there
    is one, goes after the last message."""

    block: str
    hint: str
    in_scope: int
    receipt: str
    shown: tuple[Shown, ...]
    nudge: Nudge | None = None

    @property
    def text(self) -> str:
        """Block, blank line, hint: as it goes into the system message."""
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
    ) -> None:
        self._engine = engine
        self._analyser = analyser
        self._housekeeper = housekeeper
        self._clock = clock
        self._new_id = new_id
        self._limits = limits
        self._nudges = nudges

    def turn(
        self,
        caller: Caller,
        session: Session,
        messages: Sequence[Mapping[str, Any]],
        *,
        mode: str = "system",
        k: int | None = None,
        budget_chars: int | None = None,
    ) -> Turn:
        """Choose what belongs in this turn of *session*.

        *messages* are those of the conversation so far (OpenAI or Anthropic shapes); the last three user messages count. *mode* says where
        the block will stand: in the system message, or in the tail, after the user's message. *k* (1 to `K_MAX`) and *budget_chars* are the
        limits' unless given. With nothing said, the newest memories show; with nothing relevant, none.
        """
        caller.require("read")
        caller = acting(caller, session)
        checked_word(mode, "mode", MODES)
        limits = self._limits()
        k = limits.k if k is None else min(_at_least(k, "k", 1), K_MAX)
        budget = limits.budget_chars if budget_chars is None else _at_least(budget_chars, "budget_chars", BUDGET_CHARS_MIN)
        budget = min(budget, BUDGET_CHARS_MAX)
        now = self._clock()
        texts = recent_texts(messages)
        visible = session_reach(caller, session)
        filters = Filters(now, include_doubted=False)
        with self._engine.read() as tx:
            findings = find(tx, self._analyser, visible, texts, filters=filters, limit=k, critical_k=limits.critical_k, floor=True)
            noted = self._nudges.noted(tx, caller, session)
            newest = [] if texts else memory_rows.newest(tx, visible, filters, k + len(findings.critical))
        expired = sum(1 for m in findings.found.marked if 0 < m.expires_at <= now)
        in_scope = findings.found.postings.memories - expired
        weighed = _weighed(findings, newest, k)
        rendered = render.block(
            [_note(w.memory, caller) for w in weighed if w.chosen],
            budget_chars=budget,
            preview_chars=limits.preview_chars,
            weights=findings.weights,
            analyser=self._analyser,
        )
        weighed = receipts.with_room(weighed, rendered.shown)
        receipt = self._new_id()
        frame = receipts.Frame(mode, k, budget, limits.preview_chars, in_scope, now)
        kept = receipts.prepared(receipt, caller, visible, frame, findings, weighed)
        self._housekeeper.later(lambda tx: receipts.keep(tx, kept))
        shown = tuple(Shown(w.memory, w.score) for w in weighed if w.shown)
        nudge = self._nudges.nudge(caller, session, noted, messages, memories=in_scope, now=now)
        return Turn(rendered.text, render.hint(in_scope), in_scope, receipt, shown, nudge)

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


def _weighed(findings: Findings, newest: Sequence[Memory], k: int) -> list[Weighed]:
    """Everything that belongs in the block, room allowing, in the order in which it shows, each with the reason."""
    always = {memory.memory_id for memory in findings.critical}
    others = [memory for memory in newest if memory.memory_id not in always]
    weighed = [Weighed(memory, 0.0, NOT_RANKED, "critical") for memory in findings.critical]
    weighed += [Weighed(memory, 0.0, NOT_RANKED, "newest") for memory in others[:k]]
    return weighed + [Weighed(hit.memory, hit.score, hit.position, "relevant") for hit in findings.hits]


def _note(memory: Memory, caller: Caller) -> render.Note:
    author = "" if memory.author_user == caller.user_id else memory.author
    return render.Note(
        memory.name, memory.kind, memory.scope.kind, memory.description, memory.content, memory.verified, author, memory.expires_at
    )


def _at_least(value: int, field: str, least: int) -> int:
    if value < least:
        raise Invalid(f"{field} must be at least {least}: it is {value}", field=field)
    return value
