"""The embedded library: memories in this process, on the same file that the server and the command line use."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from pegword.arguments import CHECKS, Conversation, Time, as_messages, check_path, checked
from pegword.assembly import clock_us, open_services, random_id
from pegword.core.caller import Caller, Scope, Session, scope_of, scopes_of
from pegword.core.errors import Invalid, Unavailable
from pegword.core.memory import NEVER, Draft, Memory, Version, parse_time
from pegword.core.times import NEVER_WORD
from pegword.live_settings import LiveSettings
from pegword.services.bundle import Services
from pegword.services.memories import LIST_DEFAULT, SEARCH_DEFAULT, Page, SearchResult
from pegword.services.receipts import Explanation
from pegword.services.removing import Removed
from pegword.services.turns import Turn
from pegword.services.writing import Changes, Saved
from pegword.session import OpenSession
from pegword.settings import POSTGRES_SCHEMES, Settings, checked_path, database_of, load, local_user_name
from pegword.tool.calling import MemoryTool

CREDENTIAL = "library"
URL_PREFIXES = ("sqlite:", *POSTGRES_SCHEMES)


def open_memories(
    database: str | Path | None = None,
    *,
    user: str | None = None,
    config: str | Path | None = None,
    settings: Settings | None = None,
    clock: Callable[[], int] = clock_us,
    new_id: Callable[[], str] = random_id,
) -> "OpenMemories":
    """Open a database, made if it is absent, and speak in it for an agent of *user*.

    Args:
        database: A path, or a URL: ``sqlite:///absolute/path.db`` or ``postgresql://…``. None: the one that the command line uses.
        user: Name of the user, added on first use. None: the person whose account this runs under.
        config: A config file. None: the one that the command line uses. Read only where *settings* is None; what it says in
            ``[memory]`` may change meanwhile.
        settings: Settings that are ready, instead of reading any.
        clock: Microseconds since 1970.
        new_id: Makes the ids of memories and receipts.

    Returns:
        The open memories: a context manager, safe to share between threads.

    Raises:
        Invalid: The path, the user's name or a setting cannot be used.
        Unavailable: The file cannot be opened or is held by somebody else.
    """
    check_path(database, "database")
    check_path(config, "config")
    CHECKS[str | None](user, "user")
    in_force = settings if settings is not None else load(None if config is None else Path(config))
    place: Path | str
    if database is None:
        place = database_of(in_force.database_url)
    elif isinstance(database, str) and database.startswith(URL_PREFIXES):
        place = database_of(database)
    else:
        place = checked_path(Path(database))
    live = LiveSettings(in_force, None if config is None else Path(config)) if settings is None else None
    services = open_services(place, in_force, clock=clock, new_id=new_id, live=live)
    try:
        owner = services.access.ensure_user(local_user_name() if user is None else user)
        services.housekeeper.start()
    except BaseException:
        services.close()
        raise
    current: Callable[[], Settings] = live or (lambda: in_force)
    tool = MemoryTool(services, kind_word=in_force.kind_word, content_chars_max=lambda: current().memory_max_content)
    return OpenMemories(services, services.access.agent(owner, CREDENTIAL), tool)


class OpenMemories:
    """Open memories, spoken for by one agent of one user. Made by `open_memories`.

    A save returns when it is committed and on disk. What is saved here is an agent's word: source ``agent``, not verified,
    of confidence 0.7 unless it says otherwise. A *scope* is ``global``, ``user`` or ``workstream``; the last one takes a
    *scope_id*. Every method raises a `PegwordError`: `Invalid` for what cannot be used, `NotFound`, `Conflict` for what the store
    does not allow, `Unavailable` for what may work later, such as a call after `close`.
    """

    def __init__(self, services: Services, caller: Caller, tool: MemoryTool) -> None:
        self._services = services
        self._tool = tool
        self._caller = caller
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Do what waits and close the database. A second call does nothing."""
        if not self._closed:
            self._closed = True
            self._services.close()

    @checked
    def save(
        self,
        name: str,
        content: str,
        *,
        description: str | None = None,
        kind: str | None = None,
        scope: str = "global",
        scope_id: str = "",
        tags: Sequence[str] | None = None,
        priority: str | None = None,
        confidence: float | None = None,
        source: str | None = None,
        expires_at: Time | None = None,
        sitting: str = "",
        session: str = "",
        expected_version: int | None = None,
    ) -> Saved:
        """Create the memory of that name in that scope, or change it. None keeps what is stored, or takes the default.

        Args:
            name: Any spelling of the name; it is stored in its normal form.
            content: What to remember: 1 to 65,536 characters, stored as it is.
            description: What it is about, at most 8,192 characters; "" clears it.
            kind: ``user``, ``project`` (default), ``feedback`` or ``reference``.
            scope: Where it lies.
            scope_id: Id of the workstream, for scope ``workstream``.
            tags: At most 32 of 64 characters; () clears them.
            priority: ``critical``, ``high``, ``normal`` (default) or ``low``.
            confidence: 0.0 (doubted: not shown in turns) to 1.0; default 0.7.
            source: ``agent`` (default), ``tool`` or ``system``.
            expires_at: When it ends: a datetime or ISO text (without a zone: UTC), seconds since 1970, or ``"never"``.
            sitting: A name for what is saved together, at most 64 characters, such as the date of a conversation.
            session: The agent's session, where it has one; saves of one session are one sitting.
            expected_version: Save only over this version; 0: only if it does not exist.

        Returns:
            The memory as stored, the outcome (``created``, ``updated``, ``unchanged``) and warnings.

        Raises:
            VersionMismatch: The memory is at another version.
        """
        draft = Draft(
            name, content, scope_of(self._caller, scope, scope_id), description=description, kind=kind, tags=_tags(tags),
            priority=priority, confidence=confidence, source=source, expires_at=_time(expires_at), sitting=sitting,
            session=session, expected_version=expected_version,
        )  # fmt: skip
        return self._open().memories.save(self._caller, draft)

    @checked
    def get(self, name: str, *, scope: str = "global", scope_id: str = "") -> Memory:
        """The memory of that name, expired or not. Counts an access. Raises `NotFound`."""
        return self._open().memories.get(self._caller, self._scope(scope, scope_id), name)

    @checked
    def get_by_id(self, memory_id: str) -> Memory:
        """The memory of that id, expired or not. Counts an access. Raises `NotFound`."""
        return self._open().memories.get_by_id(self._caller, memory_id)

    @checked
    def search(
        self,
        query: str,
        *,
        scope: str = "",
        scope_id: str = "",
        kind: str = "",
        tag: str = "",
        limit: int = SEARCH_DEFAULT,
        include_expired: bool = False,
    ) -> SearchResult:
        """Find memories by words and "phrases" in double quotes, best first; at most *limit*, which is capped at 50.

        Without a *scope*: global, the user's own, and all of the user's workstreams. Any text is a legal query but a blank one.
        """
        visible = scopes_of(self._caller, scope, scope_id)
        return self._open().memories.search(
            self._caller, visible, query, kind=kind, tag=tag, limit=_limit(limit), include_expired=include_expired
        )

    @checked
    def list(
        self,
        *,
        scope: str = "",
        scope_id: str = "",
        kind: str = "",
        tag: str = "",
        limit: int = LIST_DEFAULT,
        include_expired: bool = False,
    ) -> Page:
        """The memories saved last, newest first; at most *limit*, which is capped at 200. Scopes as for `search`."""
        visible = scopes_of(self._caller, scope, scope_id)
        return self._open().memories.list(self._caller, visible, kind=kind, tag=tag, limit=_limit(limit), include_expired=include_expired)

    @checked
    def update(
        self,
        memory_id: str,
        *,
        content: str | None = None,
        description: str | None = None,
        kind: str | None = None,
        tags: Sequence[str] | None = None,
        priority: str | None = None,
        confidence: float | None = None,
        source: str | None = None,
        expires_at: Time | None = None,
        sitting: str = "",
        session: str = "",
        expected_version: int | None = None,
    ) -> Saved:
        """Change some fields of a memory. None keeps a field; "", () and ``"never"`` clear description, tags and expiry."""
        changes = Changes(
            content=content, description=description, kind=kind, tags=_tags(tags), priority=priority, confidence=confidence,
            source=source, expires_at=_time(expires_at), sitting=sitting, session=session, expected_version=expected_version,
        )  # fmt: skip
        return self._open().memories.update(self._caller, memory_id, changes)

    @checked
    def versions(self, memory_id: str, *, limit: int = LIST_DEFAULT, offset: int = 0) -> tuple[Version, ...]:
        """The versions of a memory after its *offset* newest ones, newest first; at most *limit*, which is capped at 200.

        Without an *offset* the first one is how it stands, and its number is how many there are.
        """
        return self._open().memories.versions(self._caller, memory_id, limit=_limit(limit), offset=offset).versions

    @checked
    def revert(self, memory_id: str, version: int, *, expected_version: int | None = None) -> Saved:
        """Make a memory say again what it said at *version*, as a new version by this agent. Raises `NotFound`."""
        return self._open().memories.revert(self._caller, memory_id, version, expected_version=expected_version)

    @checked
    def delete(self, name: str, *, scope: str = "global", scope_id: str = "", expected_version: int | None = None) -> Memory:
        """Delete the memory of that name for good, with its versions; return what it was. Raises `NotFound`, `VersionMismatch`."""
        return self._open().memories.delete(self._caller, self._scope(scope, scope_id), name, expected_version=expected_version)

    @checked
    def delete_by_id(self, memory_id: str, *, expected_version: int | None = None) -> Memory:
        """Delete the memory of that id for good, with its versions; return what it was. Raises `NotFound`, `VersionMismatch`."""
        return self._open().memories.delete_by_id(self._caller, memory_id, expected_version=expected_version)

    @checked
    def turn(
        self,
        messages: Conversation,
        *,
        workstream_id: str = "",
        mode: str = "system",
        k: int | None = None,
        budget_chars: int | None = None,
        tool: bool = True,
    ) -> Turn:
        """Choose what belongs before the model in the next turn: `Turn.text` goes to where *mode* says.

        Args:
            messages: The conversation so far, oldest first, in OpenAI or Anthropic shapes; or one user message as a text. The last
                three user messages count. With nothing said, the newest memories show; with nothing relevant, none.
            workstream_id: The session's workstream: its memories are seen as well. Those of other workstreams are not.
            mode: Where the block will stand: ``system``; ``tail`` (after the user's message); or ``index``: there too, and `Turn.index`,
                which stays the same, in the system message. The last needs a workstream, or a session.
            k: At most so many memories, 1 to 50; default setting ``memory.relevance_k``.
            budget_chars: At most so many characters; default setting ``memory.budget_chars``.
            tool: Whether the model is offered the memory tool. If not, nothing speaks of it.
        """
        said = as_messages(messages)
        return self._open().turns.turn(self._caller, Session(workstream_id), said, mode=mode, k=k, budget_chars=budget_chars, tool=tool)

    @checked
    def explain(self, receipt: str) -> Explanation:
        """Why a turn of this user showed what it showed. Receipts are kept 7 days. Raises `NotFound`."""
        return self._open().turns.explain(self._caller, receipt)

    @checked
    def session(
        self,
        *,
        kind: str = "",
        workstream_id: str = "",
        shared: bool = False,
        project_id: str = "",
        persona: str = "",
        parent_id: str = "",
        resumed: bool = False,
    ) -> OpenSession:
        """Make a session: one conversation, with the scopes that belong to it. Nothing of it can be changed later.

        Args:
            kind: ``interactive`` (default), or ``coordinator``: one that has the coordinator scope of its user, and nothing else.
            workstream_id: The workstream that it belongs to.
            shared: The workstream is one with members.
            project_id: The project that is attached to it; its user must be a member.
            persona: Name of its persona.
            parent_id: The session whose child it is: it has that one's user, workstream and project, and ends with it.
            resumed: The conversation began before this store knew of it.

        Raises:
            NotFound: There is no such parent, project or shared workstream for this user.
        """
        made = self._open().sessions.create(
            self._caller, kind=kind, workstream_id=workstream_id, shared=shared, project_id=project_id, persona=persona,
            parent_id=parent_id, resumed=resumed,
        )  # fmt: skip
        return OpenSession(self._open, self._tool, self._caller, made.session_id)

    @checked
    def session_by_id(self, session_id: str) -> OpenSession:
        """A session of this user that was made before, closed or not. Raises `NotFound`."""
        found = self._open().sessions.get(self._caller, session_id)
        return OpenSession(self._open, self._tool, self._caller, found.session_id)

    @checked
    def delete_workstream(self, workstream_id: str, *, with_memories: bool = False) -> Removed:
        """Delete a workstream of this user: its sessions close, and *with_memories* its memories go for good.

        Raises `Conflict`, and changes nothing, where it holds memories and *with_memories* is not said.
        """
        return self._open().removing.workstream(self._caller, workstream_id, with_memories=with_memories)

    def _open(self) -> Services:
        if self._closed:
            raise Unavailable("these memories are closed", code="closed")
        return self._services

    def _scope(self, word: str, scope_id: str) -> Scope:
        return scope_of(self._caller, word, scope_id)


def _time(value: Time | None) -> int | None:
    """A time as the services take it."""
    if value is None:
        return None
    if value == NEVER_WORD:
        return NEVER
    if isinstance(value, datetime):
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value
        return parse_time(moment.isoformat(), "expires_at")
    return parse_time(value, "expires_at")


def _tags(tags: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if tags is None else tuple(tags)


def _limit(limit: int) -> int:
    if limit < 1:
        raise Invalid(f"limit must be at least 1: it is {limit}", field="limit")
    return limit
