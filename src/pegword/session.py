"""One session of the embedded library: a conversation of an agent, with the scopes that belong to it."""

from collections.abc import Callable
from types import TracebackType
from typing import Self

from pegword.arguments import Conversation, as_messages, checked
from pegword.core.caller import Caller, Session
from pegword.services.bundle import Services
from pegword.services.receipts import Explanation
from pegword.services.turns import Turn


class OpenSession:
    """A session, made by `OpenMemories.session`. As a context manager it is closed at the end, with its children; memories stay.

    What it has is looked up at each call: a project that was archived, or whose member its user is no longer, is gone at once.
    """

    def __init__(self, opened: Callable[[], Services], caller: Caller, session_id: str) -> None:
        self._opened = opened
        self._caller = caller
        self._id = session_id

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    @property
    def id(self) -> str:
        """What other processes call it by."""
        return self._id

    @property
    def record(self) -> Session:
        """The session as it now stands."""
        return self._opened().sessions.get(self._caller, self._id)

    @checked
    def child(self, *, persona: str = "") -> "OpenSession":
        """A session that this one begins: it has this one's user, workstream and project, and ends with it.

        *persona* is this one's unless given. Raises `Conflict` when this one is closed.
        """
        made = self._opened().sessions.create(self._caller, parent_id=self._id, persona=persona)
        return OpenSession(self._opened, self._caller, made.session_id)

    @checked
    def turn(self, messages: Conversation, *, mode: str = "system", k: int | None = None, budget_chars: int | None = None) -> Turn:
        """Choose what belongs before the model in the next turn of this session; arguments as for `OpenMemories.turn`.

        Raises `Conflict` when it is closed.
        """
        services, said = self._opened(), as_messages(messages)
        return services.turns.turn(self._caller, self.record, said, mode=mode, k=k, budget_chars=budget_chars)

    @checked
    def explain(self, receipt: str) -> Explanation:
        """Why a turn of this session showed what it showed. Receipts are kept 7 days. Raises `NotFound`."""
        return self._opened().turns.explain(self._caller, receipt, self.record)

    def close(self) -> None:
        """Close the session and its children. Closing it again does nothing."""
        self._opened().sessions.close(self._caller, self._id)

    def resume(self) -> None:
        """Take it up again. Raises `Conflict` for a child of a closed session."""
        self._opened().sessions.resume(self._caller, self._id)
