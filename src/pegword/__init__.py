"""Pegword: memory for LLM agents.

    from pegword import open_memories

    with open_memories("agent.db", user="alice") as memories:
        memories.save("deploy_day", "We deploy on Tuesdays.")
        print(memories.turn("When do we deploy?").text)

Names are loaded when they are first used, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegword.core.caller import Scope, Session
    from pegword.core.errors import (
        Busy,
        Conflict,
        Damaged,
        Forbidden,
        Invalid,
        NewerDatabase,
        NotFound,
        PegwordError,
        ReadOnly,
        StorageFull,
        TooLarge,
        Unauthenticated,
        Unavailable,
        VersionMismatch,
    )
    from pegword.core.memory import Memory, Version
    from pegword.core.nudge import Nudge
    from pegword.embedded import OpenMemories, open_memories
    from pegword.services.finding import Hit
    from pegword.services.memories import Page, SearchResult
    from pegword.services.receipts import Considered, Explanation, Term
    from pegword.services.removing import Removed
    from pegword.services.turns import Shown, Turn
    from pegword.services.writing import Saved
    from pegword.session import OpenSession
    from pegword.tool.calling import ToolResult

__version__ = "0.1.0"

__all__ = [
    "Busy",
    "Conflict",
    "Considered",
    "Damaged",
    "Explanation",
    "Forbidden",
    "Hit",
    "Invalid",
    "Memory",
    "NewerDatabase",
    "NotFound",
    "Nudge",
    "OpenMemories",
    "OpenSession",
    "Page",
    "PegwordError",
    "ReadOnly",
    "Removed",
    "Saved",
    "Scope",
    "SearchResult",
    "Session",
    "Shown",
    "StorageFull",
    "Term",
    "TooLarge",
    "ToolResult",
    "Turn",
    "Unauthenticated",
    "Unavailable",
    "Version",
    "VersionMismatch",
    "__version__",
    "open_memories",
]

_ERRORS = (
    "Busy Conflict Damaged Forbidden Invalid NewerDatabase NotFound PegwordError ReadOnly StorageFull TooLarge Unauthenticated "
    "Unavailable VersionMismatch"
)
_NAMES_IN = {
    "pegword.core.caller": "Scope Session",
    "pegword.core.errors": _ERRORS,
    "pegword.core.memory": "Memory Version",
    "pegword.core.nudge": "Nudge",
    "pegword.embedded": "OpenMemories open_memories",
    "pegword.services.finding": "Hit",
    "pegword.services.memories": "Page SearchResult",
    "pegword.services.receipts": "Considered Explanation Term",
    "pegword.services.removing": "Removed",
    "pegword.services.turns": "Shown Turn",
    "pegword.services.writing": "Saved",
    "pegword.session": "OpenSession",
    "pegword.tool.calling": "ToolResult",
}
_HOME = {name: module for module, names in _NAMES_IN.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """Load a public name from where it lives."""
    if name not in _HOME:
        raise AttributeError(f"module 'pegword' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
