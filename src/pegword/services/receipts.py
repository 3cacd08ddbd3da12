"""Receipts of turns: what was considered, what was shown, and why; explained later from the versions that the turn saw."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import msgspec

from pegword.core import render
from pegword.core.caller import Caller, Scope, Visible
from pegword.core.errors import Damaged, NotFound
from pegword.core.memory import Memory, Version, is_sound
from pegword.core.ranking import Part
from pegword.core.text import Analyser
from pegword.services.finding import NOT_RANKED, Findings
from pegword.store import memory_rows, receipt_rows, version_rows
from pegword.store.engine import Tx

CONSIDERED_MAX = 20  # candidates that a receipt keeps
KEPT_US = 7 * 24 * 3_600 * 1_000_000
_CHOSEN = ("critical", "newest", "relevant")
_OVER_BUDGET = "over the budget"
_BEYOND_K = "beyond k"
_BELOW_FLOOR = "below the floor"


@dataclass(frozen=True, slots=True)
class Weighed:
    """A memory that a turn read: its score, its position among the ranked (-1: not by rank), and *why* it is in or out.

    It is shown *always*, or, as a *pointer*, without its text.
    """

    memory: Memory
    score: float
    position: int
    why: str
    always: bool = False
    pointer: bool = False

    @property
    def chosen(self) -> bool:
        """Whether it belongs in the block, room allowing."""
        return self.why in _CHOSEN

    shown = chosen


@dataclass(frozen=True, slots=True)
class Frame:
    """The terms under which a turn was made. *at* in microseconds since 1970."""

    mode: str
    k: int
    budget_chars: int
    preview_chars: int
    in_scope: int
    at: int


@dataclass(frozen=True, slots=True)
class Term:
    """A term of the turn: how many visible memories hold it, its weight, and which messages (0 = newest) said it."""

    term: str
    memories: int
    idf: float
    messages: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Considered:
    """A memory that was considered, as it stood then. *parts* has one entry a message, *terms* what each term gave."""

    memory_id: str
    version: int
    name: str
    scope: Scope
    score: float
    why: str
    shown: bool
    parts: tuple[Mapping[str, float], ...]
    terms: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a turn showed what it showed. *left_out* are the first of the *left_out_n* terms above the cap; *block* is rendered again."""

    receipt: str
    frame: Frame
    terms: tuple[Term, ...]
    left_out: tuple[str, ...]
    left_out_n: int
    considered: tuple[Considered, ...]
    block: str


def with_room(weighed: Sequence[Weighed], room: Sequence[bool]) -> list[Weighed]:
    """*weighed* with those put out that the block had no room for; *room* has an entry for each that was chosen."""
    fits = iter(room)
    return [replace(w, why=_OVER_BUDGET) if w.chosen and not next(fits) else w for w in weighed]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A receipt that is ready to be written: small, whatever the size of the store. *others* are read, but where their rows were only."""

    receipt: str
    user_id: str
    at: int
    head: str
    lines: tuple[tuple[str, int, str], ...]
    others: tuple[tuple[tuple[str, int], str], ...]
    shown: tuple[str, ...]
    scopes: tuple[str, ...]


def prepared(receipt: str, caller: Caller, visible: Visible, frame: Frame, findings: Findings, weighed: Sequence[Weighed]) -> Prepared:
    """All that the receipt of a turn over *visible* will say. Nothing of the query's postings is kept alive by it."""
    read = {w.position for w in weighed}
    others = [i for i in range(min(len(findings.ranked.documents), CONSIDERED_MAX)) if i not in read]
    ranks = [w.position for w in weighed if w.position != NOT_RANKED]
    told = dict(zip([*ranks, *others], findings.term_scores([*ranks, *others]), strict=True))
    lines = [
        (
            w.memory.memory_id,
            w.memory.version,
            _body(findings, w.memory.scope.key, w.score, w.position, w.why, order, told, w),
        )
        for order, w in enumerate(weighed)
    ]
    out = []
    for order, (position, place) in enumerate(zip(others, findings.found.places_of(findings.ranked.documents[others]), strict=True)):
        why = _BEYOND_K if position in findings.eligible else _BELOW_FLOOR
        score = float(findings.ranked.scores[position])
        out.append((place, _body(findings, place[0], score, position, why, len(lines) + order, told)))
    terms = [
        [term, int(findings.ranked.frequency[i]), float(findings.ranked.idf[i]), [m for m, t in enumerate(findings.messages) if i in t]]
        for i, term in enumerate(findings.found.terms)
    ]
    seen = {"scopes": visible.keys, "workstreams_of": visible.own_workstreams_of}
    head = _dumped(
        {"frame": asdict(frame), **seen, "terms": terms, "left_out": findings.found.left_out, "left_out_n": findings.found.left_out_n}
    )
    shown = tuple(w.memory.memory_id for w in weighed if w.shown and not w.pointer)
    scopes = sorted({w.memory.scope.key for w in weighed} | {key for (key, _), _ in out})
    return Prepared(receipt, caller.user_id, frame.at, head, tuple(lines), tuple(out), shown, tuple(scopes))


def silent(receipt: str, caller: Caller, visible: Visible, frame: Frame) -> Prepared:
    """The receipt of a turn that looked at nothing, since its session has no memory."""
    seen = {"scopes": visible.keys, "workstreams_of": visible.own_workstreams_of}
    head = _dumped({"frame": asdict(frame), **seen, "terms": [], "left_out": [], "left_out_n": 0})
    return Prepared(receipt, caller.user_id, frame.at, head, (), (), (), ())


def keep(tx: Tx, many: Sequence[Prepared]) -> None:
    """Write the receipts of turns, and count an access of each memory whose text one of them showed. Their scopes are held `beside`, and
    `MANY_ROWS` alone."""
    places = dict.fromkeys(place for kept in many for place, _ in kept.others)
    named = dict.fromkeys(line[0] for kept in many for line in kept.lines)
    rows = memory_rows.still_there(tx, list(places), list(named))
    ids = {(key, slot): (memory_id, version) for key, slot, memory_id, version in rows}
    there = {memory_id for _, _, memory_id, _ in rows}
    for kept in many:
        lines = [line for line in kept.lines if line[0] in there]  # a receipt names nothing that was deleted before it was written
        lines += [(*ids[place], body) for place, body in kept.others if place in ids]
        receipt_rows.add(tx, kept.receipt, kept.user_id, kept.at, kept.head, lines)
    memory_rows.accessed(tx, [(kept.shown, kept.at) for kept in many])


def explain(tx: Tx, receipt: str, caller: Caller, visible: Visible, analyser: Analyser, now: int) -> Explanation:
    """Read a receipt of the caller's own and work out the block again from the versions that it names.

    Absent unless all that the turn looked at is *visible*: its terms and numbers tell of the scopes that they were counted in.
    """
    rows = receipt_rows.get(tx, receipt.replace("\0", ""))
    if not rows or rows[0][0] or rows[0][1] != caller.user_id or rows[0][2] < now - KEPT_US:
        raise NotFound("Receipt not found")
    head = json.loads(rows[0][4])
    if not visible.covers(Visible(tuple(map(Scope.from_key, head["scopes"])), head["workstreams_of"])):
        raise NotFound("Receipt not found")
    frame = Frame(**head["frame"])
    terms = tuple(Term(term, n, idf, tuple(messages)) for term, n, idf, messages in head["terms"])
    considered, notes = [], []
    for memory_id, _, _, number, text in sorted(rows[1:], key=lambda row: json.loads(row[4])["order"]):
        body = json.loads(text)
        try:
            then = version_rows.one(tx, body["scope_key"], memory_id, number)
        except Damaged:
            continue
        if then is None or not is_sound(then):
            continue
        scope = Scope.from_key(body["scope_key"])
        shown = body["why"] in _CHOSEN
        considered.append(
            Considered(
                memory_id,
                number,
                then.name,
                scope,
                body["score"],
                body["why"],
                shown,
                tuple(Part(*values)._asdict() for values in body["parts"]),
                body["terms"],
            )
        )
        if shown or body["why"] == _OVER_BUDGET:  # what had no room counts too: what always shows shares the room
            notes.append(_note(then, scope, caller, body))
    rendered = render.block(
        notes,
        budget_chars=frame.budget_chars,
        preview_chars=frame.preview_chars,
        weights={term.term: term.idf for term in terms},
        analyser=analyser,
    )
    return Explanation(receipt, frame, terms, tuple(head["left_out"]), head["left_out_n"], tuple(considered), rendered.text)


def _body(
    findings: Findings,
    scope_key: str,
    score: float,
    position: int,
    why: str,
    order: int,
    told: Mapping[int, Mapping[str, float]],
    read: Weighed | None = None,
) -> str:
    """What a receipt keeps of one memory beside its id and version, as JSON."""
    ranked = position != NOT_RANKED
    parts = findings.ranked.parts[:, :, position].T.tolist() if ranked else []
    shape = {"verified": read.memory.verified, "always": read.always, "pointer": read.pointer} if read else {}
    return _dumped(
        {
            "scope_key": scope_key, "score": score, "why": why, "order": order, **shape, "parts": parts,
            "terms": told[position] if ranked else {},
        }
    )  # fmt: skip


def _note(then: Version, scope: Scope, caller: Caller, body: Mapping[str, Any]) -> render.Note:
    author = "" if then.author == caller.user_name else then.author
    return render.Note(
        then.name, then.kind, scope.kind, then.description, then.content, body["verified"], author, then.expires_at,
        pointer=body["pointer"], always=body["always"],
    )  # fmt: skip


def _dumped(value: Any) -> str:
    return msgspec.json.encode(value).decode()
