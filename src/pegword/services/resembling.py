"""What is there already when something is saved: memories that say the same, and such as say nearly the same."""

import html
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pegword.core import results
from pegword.core.caller import Caller, Session, session_reach
from pegword.core.likeness import LIKE, likeness
from pegword.core.memory import Draft, Memory, checked
from pegword.core.render import CUT
from pegword.core.text import Analyser
from pegword.services.finding import Findings, find
from pegword.store.engine import Engine
from pegword.store.memory_rows import Filters

SIMILAR_MAX = 3
CANDIDATES = 8
SAME_TERMS_MIN = 4  # of a text so short that many memories say just that, nothing is concluded
PASSAGE_CHARS_MIN = 40
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
        text = _whole(draft.name, draft.description or "", draft.tags or (), draft.content)
        terms = frozenset(self._analyser.distinct(text))
        with self._engine.read() as tx:
            visible = session_reach(caller, session)
            findings = find(tx, self._analyser, visible, [text], filters=Filters(self._clock()), limit=CANDIDATES)
        memories = [hit.memory for hit in findings.hits]
        others = [m for m in memories if (m.scope, m.name, m.shelf) != (draft.scope, draft.name, draft.shelf)]
        forms = _forms(draft.content)
        enough = len(self._analyser.distinct(draft.content)) >= SAME_TERMS_MIN
        own = next((m for m in memories if m not in others), None)
        if own is not None and _form(own.content) in forms:
            enough = False  # it says so itself, and may go on doing so
        says_it = tuple(m for m in others if enough and _form(m.content) in forms)
        passage_of = next((m for m in memories if _is_passage(forms, m)), None)
        alike = [(self._likeness(findings, terms, m), m) for m in others if m.scope == draft.scope and m not in says_it]
        best = sorted((pair for pair in alike if pair[0] >= LIKE), key=lambda pair: (-pair[0], -pair[1].updated, pair[1].memory_id))
        return Resemblance(says_it, tuple(memory for _, memory in best[:SIMILAR_MAX]), passage_of)

    def _likeness(self, findings: Findings, terms: frozenset[str], memory: Memory) -> float:
        old = self._analyser.distinct(_whole(memory.name, memory.description, memory.tags, memory.content))
        return likeness(findings.weights, findings.found.postings.memories, terms, old, self._analyser.rarity)


def _whole(name: str, description: str, tags: Iterable[str], content: str) -> str:
    """All that a memory says. Of its name the words: as a whole it is like no other."""
    return " ".join((name.replace("_", " "), description, *tags, content))


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
