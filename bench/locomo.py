"""The LoCoMo set (Maharana et al., 2024) read by path: conversations, and questions with the turns that answer them.

The set is under CC BY-NC 4.0: it is measured with, and no part of it belongs to this project.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TURN_ID = re.compile(r"D\d+:\d+")
_SESSIONS_MAX = 100


@dataclass(frozen=True, slots=True)
class Item:
    """One memory of a corpus: its *text*, the *sitting* it was saved in, the *ids* of what it tells, perhaps a *name*."""

    text: str
    sitting: str
    ids: frozenset[str]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the ids of all that answer it."""

    text: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Corpus:
    """What one scope holds, in the order of saving, and what is asked of it."""

    name: str
    items: tuple[Item, ...]
    questions: tuple[Question, ...]


def turns_and_facts(path: Path) -> tuple[list[Corpus], list[Corpus]]:
    """The set at *path* as two kinds of memories: dialogue turns, and the set's own distilled facts.

    Of either kind every question is asked, of all categories, whose evidence is told by any memory of its conversation;
    evidence that no memory tells is not counted.
    """
    turns: list[Corpus] = []
    facts: list[Corpus] = []
    for record in json.loads(path.read_text(encoding="utf-8")):
        name = str(record["sample_id"])
        for corpora, items in ((turns, _turns(record["conversation"])), (facts, _facts(record["observation"]))):
            told = frozenset[str]().union(*(item.ids for item in items))
            corpora.append(Corpus(name, tuple(items), tuple(_questions(record["qa"], told))))
    return turns, facts


def _turns(conversation: dict[str, Any]) -> list[Item]:
    items = []
    for session in range(1, _SESSIONS_MAX):
        for turn in conversation.get(f"session_{session}") or ():
            text = f"{turn['speaker']}: {turn['text']}"
            if turn.get("blip_caption"):
                text += f" [image: {turn['blip_caption']}]"
            items.append(Item(text, f"session {session}", frozenset([turn["dia_id"]])))
    return items


def _facts(observation: dict[str, Any]) -> list[Item]:
    """The facts of each session in the order of the turns that they tell of, as somebody would save them who listens."""
    items = []
    for session in range(1, _SESSIONS_MAX):
        told = []
        for facts in (observation.get(f"session_{session}_observation") or {}).values():
            for text, evidence in facts:
                ids = _TURN_ID.findall(str(evidence))
                first = min((int(turn.partition(":")[2]) for turn in ids), default=0)
                told.append((first, Item(text, f"session {session}", frozenset(ids))))
        items += [item for _, item in sorted(told, key=lambda pair: pair[0])]
    return items


def _questions(records: list[dict[str, Any]], told: frozenset[str]) -> list[Question]:
    questions = []
    for record in records:
        evidence = told & frozenset(_TURN_ID.findall(" ".join(map(str, record.get("evidence") or ()))))
        if evidence:
            questions.append(Question(str(record["question"]), evidence))
    return questions
