"""What explains a turn: its terms, what was considered, and why each memory was in or out."""

import msgspec

from pegword.http.shapes import moment
from pegword.services.receipts import Considered, Explanation


class ExplainedTerm(msgspec.Struct, kw_only=True):
    """A term of the turn: how many visible memories held it, its weight, and which messages (0 = newest) said it."""

    term: str
    memories: int
    idf: float
    messages: list[int]


class ExplainedMemory(msgspec.Struct, kw_only=True):
    """A memory as it stood then. `parts` has one entry a message, `terms` says what each term gave."""

    memory_id: str
    version: int
    name: str
    scope: str
    scope_id: str
    score: float
    why: str
    shown: bool
    parts: list[dict[str, float]]
    terms: dict[str, float]


class Explained(msgspec.Struct, kw_only=True):
    """Why a turn showed what it showed, as its receipt says, and the block, rendered again from the versions that it saw."""

    receipt: str
    at: str
    mode: str
    k: int
    budget_chars: int
    preview_chars: int
    in_scope: int
    terms: list[ExplainedTerm]
    left_out: list[str]
    left_out_n: int
    considered: list[ExplainedMemory]
    block: str


def explained(explanation: Explanation) -> Explained:
    """*explanation* as it is sent."""
    frame = explanation.frame
    return Explained(
        receipt=explanation.receipt,
        at=moment(frame.at),
        mode=frame.mode,
        k=frame.k,
        budget_chars=frame.budget_chars,
        preview_chars=frame.preview_chars,
        in_scope=frame.in_scope,
        terms=[ExplainedTerm(term=t.term, memories=t.memories, idf=t.idf, messages=list(t.messages)) for t in explanation.terms],
        left_out=list(explanation.left_out),
        left_out_n=explanation.left_out_n,
        considered=[_considered(c) for c in explanation.considered],
        block=explanation.block,
    )


def _considered(c: Considered) -> ExplainedMemory:
    return ExplainedMemory(
        memory_id=c.memory_id, version=c.version, name=c.name, scope=c.scope.kind, scope_id=c.scope.id, score=c.score, why=c.why,
        shown=c.shown, parts=[dict(part) for part in c.parts], terms=dict(c.terms),
    )  # fmt: skip
