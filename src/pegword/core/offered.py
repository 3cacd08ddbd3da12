"""What a session has of memory: the lever of its persona, and the tool that its model is really offered. Turn, tool and nudges ask here."""

from dataclasses import dataclass

from pegword.core.caller import Caller, Session, writable_words


@dataclass(frozen=True, slots=True)
class Offered:
    """What there is for one session.

    *memory* is the lever: without it there is no block, no hint, no tool, and no nudge that speaks of memory. *tool* says that the model
    can look further by itself, *saves* that it can also save and delete.
    """

    memory: bool
    tool: bool
    saves: bool


def offered(caller: Caller, session: Session, *, tool: bool = True, writes_global: bool = True) -> Offered:
    """What *session* has under the credential of *caller*, who may change what all users read if it *writes_global*. *tool*: its host
    offers the tool to the model."""
    has_tool = session.memory and tool and caller.may("read")
    saves = has_tool and caller.may("write") and bool(writable_words(session, writes_global=writes_global))
    return Offered(session.memory, has_tool, saves)
