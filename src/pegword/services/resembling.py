"""What is there already when something is saved: memories that say the same, and such as say nearly the same."""

import html
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pegword.core import results
from pegword.core.caller import Caller, Session, session_reach
from pegword.core.likeness import LIKE, Likeness
from pegword.core.memory import Draft, Memory, checked
from pegword.core.render import CUT
from pegword.core.text import Analyser
from pegword.services.finding import Findings, Hit, find
from pegword.store.engine import Engine
from pegword.store.memory_rows import Filters

SIMILAR_MAX = 3
CANDIDATES = 8
SAME_TERMS_MIN = 4  # of a text so short that many memories say just that, nothing is concluded
PASSAGE_CHARS_MIN = 40
BEGINNING_CHARS = 400
LOOKED_AT_CHARS = 8_000  # of a memory, before it is read whole to be compared
_ESCAPED_TIMES_MAX = 4


@dataclass(frozen=True, slots=True)
class Resemblance:
    """*says_it* are other visible memories with the same text; *similar* those of the same scope that say nearly the same, best first.

    *passage_of* is the memory of which the text is only a passage, as blocks show it, cuts and all.
    """

    says_it: tuple[Memory, ...] = ()
    similar: tuple[Memory, ...] = ()
    passage_of: Memory | None = None


class Resembling:
    """Compares drafts with the memories of one store. Clock in microseconds since 1970."""

    def __init__(self, engine: Engine, analyser: Analyser, *, clock: Callable[[], int]) -> None:
        self._engine = engine
        self._analyser = analyser
        self._clock = clock

    def of(self, caller: Caller, session: Session, draft: Draft) -> Resemblance:
        """What *draft* resembles among all that *session* reads; the memory that it would change is none of it. Takes one search."""
        caller.require("read")
        draft = checked(draft)
        terms = self._analyser.distinct(_whole(draft.name, draft.description or "", draft.tags or (), draft.content))
        with self._engine.read() as tx:
            visible = session_reach(caller, session)
            findings = find(tx, self._analyser, visible, [terms], filters=Filters(self._clock()), limit=CANDIDATES)
        memories = [hit.memory for hit in findings.hits]
        others = [m for m in memories if (m.scope, m.name, m.shelf) != (draft.scope, draft.name, draft.shelf)]
        forms = _forms(draft.content)
        enough = self._says_enough(draft.content)
        own = next((m for m in memories if m not in others), None)
        if own is not None and _form(own.content) in forms:
            enough = False  # it says so itself, and may go on doing so
        says_it = tuple(m for m in others if enough and _form(m.content) in forms)
        passage_of = next((m for m in memories if _is_passage(forms, m)), None)
        near = [hit for hit in findings.hits if hit.memory in others and hit.memory.scope == draft.scope and hit.memory not in says_it]
        alike = self._alike(findings, terms, near) if near else []
        best = sorted((pair for pair in alike if pair[0] >= LIKE), key=lambda pair: (-pair[0], -pair[1].updated, pair[1].memory_id))
        return Resemblance(says_it, tuple(memory for _, memory in best[:SIMILAR_MAX]), passage_of)

    def _alike(self, findings: Findings, terms: Sequence[str], near: Sequence[Hit]) -> list[tuple[float, Memory]]:
        """The memories of *near* that may be like one of *terms*, each after how alike it is."""
        new = Likeness(findings.weights, findings.found.postings.memories, terms, self._analyser.rarity)
        told = []
        for hit, scores in zip(near, findings.term_scores([hit.position for hit in near]), strict=True):
            memory = hit.memory
            label = _whole(memory.name, memory.description, memory.tags, "")
            begun = _beginning(memory.content, LOOKED_AT_CHARS)
            held = {*scores, *self._analyser.distinct(label)}  # the index has names in one piece, so their words are looked at here
            if not begun or new.may_be_like(held, self._analyser.distinct(begun)):
                told.append((new.to(self._analyser.distinct(label + memory.content)), memory))
        return told

    def _says_enough(self, content: str) -> bool:
        """Whether a text has so many terms that something may be concluded from it; of a long one mostly the beginning tells."""
        return any(len(self._analyser.distinct(part)) >= SAME_TERMS_MIN for part in (_beginning(content, BEGINNING_CHARS), content))


def _whole(name: str, description: str, tags: Iterable[str], content: str) -> str:
    """All that a memory says. Of its name the words: as a whole it is like no other."""
    return " ".join((name.replace("_", " "), description, *tags, content))


def _beginning(text: str, chars: int) -> str:
    """The first words of a *text* that is longer than so many characters; "" of one that is not, or whose first word is."""
    return text[:chars].rpartition(" ")[0] if len(text) > chars else ""


def _form(text: str) -> str:
    """*text* as it is compared: as a block shows it, on one line."""
    return results.one_line(text)


def _forms(text: str) -> set[str]:
    """The forms of a text that may have been escaped on its way back."""
    forms = {_form(text)}
    for _ in range(_ESCAPED_TIMES_MAX):
        plain = html.unescape(text)
        if plain == text:
            break
        text = plain
        forms.add(_form(text))
    return forms


def _is_passage(forms: set[str], memory: Memory) -> bool:
    """Whether one of *forms* is a part of the memory's content with the marks of a cut."""
    for form in forms:
        if form.startswith(CUT) or form.endswith(CUT):
            part = form.removeprefix(CUT).removesuffix(CUT).strip()
            if len(part) >= PASSAGE_CHARS_MIN and part in _form(memory.content):
                return True
    return False
