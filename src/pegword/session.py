"""One session of the embedded library: a conversation of an agent, with the scopes that belong to it."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from pegword.arguments import CallArguments, Conversation, as_messages, checked
from pegword.core.caller import Caller, Session
from pegword.core.errors import Unavailable
from pegword.services.bundle import Services
from pegword.services.nudges import VALID_S
from pegword.services.receipts import Explanation
from pegword.services.turns import Turn
from pegword.tool.calling import MemoryTool, ToolResult, failed


class OpenSession:
    """A session, made by `OpenMemories.session`. As a context manager it is closed at the end, with its children; memories stay.

    What it has is looked up at each call: a project that was archived, or whose member its user is no longer, is gone at once.
    """

    def __init__(self, opened: Callable[[], Services], tool: MemoryTool, caller: Caller, session_id: str) -> None:
        self._opened = opened
        self._tool = tool
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
        return OpenSession(self._opened, self._tool, self._caller, made.session_id)

    @checked
    def turn(
        self,
        messages: Conversation,
        *,
        mode: str = "system",
        k: int | None = None,
        budget_chars: int | None = None,
        tool: bool = True,
    ) -> Turn:
        """Choose what belongs before the model in the next turn of this session; arguments as for `OpenMemories.turn`.

        Raises `Conflict` when it is closed.
        """
        services, said = self._opened(), as_messages(messages)
        return services.turns.turn(self._caller, self.record, said, mode=mode, k=k, budget_chars=budget_chars, tool=tool)

    @checked
    def report(self, kind: str, *, channel: str = "", valid_s: int = VALID_S, tool: str = "", arguments: CallArguments = "") -> bool:
        """Tell of something that happened, so that a later turn may nudge; return whether it waits for one now.

        Args:
            kind: ``denial``, ``tool_error`` or another kind of nudge; ``tool_call``; ``cancel`` when the user broke off.
            channel: Which turn may take it: ``user``, ``tool``, ``any`` or ``quiet``; "" is the kind's own.
            valid_s: Seconds after which no turn takes it, 1 to 86,400.
            tool: Of a ``tool_call``, the tool; the third identical call in a row makes a ``repeat``.
            arguments: Of a ``tool_call``, its arguments, as a text or a mapping. Only a hash is kept.
        """
        services = self._opened()
        return services.nudges.report(self._caller, self.record, kind, channel=channel, valid_s=valid_s, tool=tool, arguments=arguments)

    @checked
    def explain(self, receipt: str) -> Explanation:
        """Why a turn of this session showed what it showed. Receipts are kept 7 days. Raises `NotFound`."""
        return self._opened().turns.explain(self._caller, receipt, self.record)

    @checked
    def tool_schema(self, *, dialect: str = "openai") -> dict[str, Any] | None:
        """The `memory` tool as this session offers it to its model, to be handed on as it is; None where its persona has no memory.

        *dialect* is ``openai``, ``anthropic`` or ``mcp``. Raises `Conflict` when the session is closed.
        """
        return self._tool.schema(self._caller, self.record, dialect)

    def call_tool(self, arguments: object) -> ToolResult:
        """Do what a model asks of the `memory` tool, and give the text for it back: `ToolResult.text`, errors too.

        *arguments* are what the model wrote: an object, or its JSON text; whatever they are, the answer is a text. Raises `Conflict` when
        the session is closed.
        """
        self._opened()
        try:
            return self._tool.call(self._caller, self.record, arguments)
        except Unavailable as error:
            return failed(error)

    def close(self) -> None:
        """Close the session and its children. Closing it again does nothing."""
        self._opened().sessions.close(self._caller, self._id)

    def resume(self) -> None:
        """Take it up again. Raises `Conflict` for a child of a closed session."""
        self._opened().sessions.resume(self._caller, self._id)
