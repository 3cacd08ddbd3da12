"""The tool as it is offered to a model: a name, a description, and one flat JSON Schema, in the dialect of the host.

Flat: an object of plain properties with enumerations, nothing combined, nothing referred to, so that every host keeps it. What may be
asked for depends on the session and its credential; what is not offered is not described either.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pegword.core.errors import Invalid
from pegword.core.memory import CONFIDENCE_OF_AGENT, NAME_CHARS_MAX, PRIORITIES, PRIORITY_DEFAULT
from pegword.tool.arguments import LIMIT_DEFAULT, LIMIT_MAX, USES, WRITING

NAME = "memory"
DIALECTS = ("openai", "anthropic", "mcp")

_HEAD = """\
Long-term memory: short named notes that outlive this conversation. What matters for a turn is already shown to you between <memories> \
tags; use this tool to look further"""
_SAVING = """\
, to keep what is new and to correct what is wrong.
Save when the user states a preference or corrects you, when something was decided, or when you learn what a later session will need. \
Do not save what stands between <memories> tags already, what only matters now, or passwords and keys. \
Saving under a name that exists in that scope replaces its text: keep one name for a topic, and save again under it."""
_READING = ". Here it can be read, not changed."
_OF_COORDINATOR = "These are the notes of your user's coordinators: plans, procedures and lessons. Nobody else reads or writes them."
_ACTIONS = {
    "save": "save: keep a note or replace it (name, content).",
    "search": "search: notes by words, best first (query).",
    "list": "list: the newest notes.",
    "get": "get: one whole note (name).",
    "delete": "delete: remove a note for good (name).",
}
_SCOPES = {
    "global": "global: every user sees it",
    "workstream": "workstream: only this line of work",
    "user": "user: this user, everywhere",
    "project": "project: the members of this project",
    "coordinator": "coordinator: this user's coordinators",
    "mind": "mind: this mind",
}
_TYPES = {
    "user": "user: preferences and working style",
    "project": "{project}: knowledge of the work, its structure and patterns",
    "feedback": "feedback: corrections, lessons, what to avoid",
    "reference": "reference: documents and specifications",
}


@dataclass(frozen=True, slots=True)
class Offer:
    """What is offered: the *actions*, the *scopes*, those of them that are *writable* (the default one first), how type project is spelt,
    and the limit of content."""

    actions: Sequence[str]
    scopes: Sequence[str]
    writable: Sequence[str]
    project_word: str
    content_chars_max: int
    coordinator: bool = False

    @property
    def writes(self) -> bool:
        """Whether anything may be saved."""
        return "save" in self.actions

    @property
    def default(self) -> str:
        """The scope that is meant where none is named."""
        return (*self.writable, *self.scopes)[0]


def schema(offer: Offer, dialect: str) -> dict[str, Any]:
    """The tool of *offer* as a host of that *dialect* takes it. Raises `Invalid` for a dialect that is none of `DIALECTS`."""
    described, form = _description(offer), {"type": "object", "properties": _properties(offer), "required": ["action"]}
    if dialect == "openai":
        return {"type": "function", "function": {"name": NAME, "description": described, "parameters": form}}
    if dialect == "anthropic":
        return {"name": NAME, "description": described, "input_schema": form}
    if dialect == "mcp":
        hints = {
            "title": "Memory", "readOnlyHint": not offer.writes, "destructiveHint": offer.writes, "idempotentHint": False,
            "openWorldHint": False,
        }  # fmt: skip
        return {"name": NAME, "description": described, "inputSchema": form, "annotations": hints}
    raise Invalid(f"unknown dialect '{dialect[:64]}'; it must be one of {', '.join(DIALECTS)}", field="dialect")


def _description(offer: Offer) -> str:
    text = _HEAD + (_SAVING if offer.writes else _READING)
    return f"{text}\n{_OF_COORDINATOR}" if offer.coordinator else text


def _properties(offer: Offer) -> dict[str, Any]:
    """The arguments that some offered action takes."""
    types = {word: says.format(project=offer.project_word) for word, says in _TYPES.items()}
    words = [offer.project_word if word == "project" else word for word in types]
    told = f" Default for save: {offer.project_word}." if offer.writes else ""
    properties: Mapping[str, Any] = {
        "action": _enum(offer.actions, " ".join(_ACTIONS[action] for action in offer.actions)),
        "name": _text(
            "A stable name in snake_case that begins with what it is about, such as preference_communication, "
            f"project_build_command or mistake_npm_version; at most {NAME_CHARS_MAX} characters. Never change it later."
        ),
        "content": _text(f"What to remember, so that it can be understood by itself; at most {offer.content_chars_max} characters."),
        "description": _text("What it is about, in one line; helps to find it."),
        "type": _enum(words, f"{'; '.join(types.values())}.{told} In search and list a filter."),
        "scope": _enum(offer.scopes, _scopes(offer)),
        "tags": {"type": "array", "items": {"type": "string"}, "description": _TAGS},
        "priority": _enum(PRIORITIES, f"critical notes are always shown. Default: {PRIORITY_DEFAULT}."),
        "confidence": {"type": "number", "minimum": 0, "maximum": 1, "description": _CONFIDENCE},
        "expires_at": _text("When it ends, where it does: 2027-01-31T18:00:00Z, or 7d or 12h from now; never takes an end away."),
        "query": _text('What to look for: words, and "phrases" in double quotes.'),
        "limit": {
            "type": "integer", "minimum": 1, "maximum": LIMIT_MAX,
            "description": f"At most so many results. Default: {LIMIT_DEFAULT}.",
        },
    }  # fmt: skip
    used = {"action", *(name for action in offer.actions for name in USES[action])}
    return {name: form for name, form in properties.items() if name in used}


_TAGS = "2-5 tags in lower case: names of projects, topics, technologies."
_CONFIDENCE = (
    f"How sure it is: 1.0 the user said so; {CONFIDENCE_OF_AGENT} you concluded it (default); 0.5 uncertain, to be checked; "
    "0.0 doubted: kept, and not shown."
)


def _scopes(offer: Offer) -> str:
    shut = set(offer.scopes) - set(offer.writable) if offer.writes else set()
    says = "; ".join(f"{_SCOPES[scope]} (to be read only)" if scope in shut else _SCOPES[scope] for scope in offer.scopes)
    named = [action for action in ("save", "get", "delete") if action in offer.actions]
    return f"{says}. Default for {', '.join(named)}: {offer.default}; search and list look everywhere without it."


def _enum(words: Sequence[str], says: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(words), "description": says}


def _text(says: str) -> dict[str, Any]:
    return {"type": "string", "description": says}


def offered_actions(*, may_write: bool) -> tuple[str, ...]:
    """The actions that a credential may ask for."""
    return tuple(action for action in USES if may_write or action not in WRITING)
