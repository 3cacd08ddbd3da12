"""The embedded library: memories in this process, on the same file that the server and the command line use."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from functools import wraps
from inspect import signature
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from pegword.assembly import clock_us, open_services, random_id
from pegword.core.caller import Caller, Scope, Session, scope_of, scopes_of
from pegword.core.errors import Invalid, Unavailable
from pegword.core.memory import NEVER, Draft, Memory, Version, parse_time
from pegword.core.times import NEVER_WORD
from pegword.services.bundle import Services
from pegword.services.memories import LIST_DEFAULT, SEARCH_DEFAULT, Page, SearchResult
from pegword.services.receipts import Explanation
from pegword.services.turns import Turn
from pegword.services.writing import Changes, Saved
from pegword.settings import POSTGRES_SCHEMES, Settings, checked_path, database_of, load, local_user_name

CREDENTIAL = "library"
URL_PREFIXES = ("sqlite:", *POSTGRES_SCHEMES)

INTEGER_MIN, INTEGER_MAX = -(2**63), 2**63 - 1

Time = datetime | str | float
Conversation = str | Sequence[Mapping[str, Any]]

P = ParamSpec("P")
R = TypeVar("R")


def _checked(method: Callable[P, R]) -> Callable[P, R]:
    """*method*, with each argument held against its annotation before anything is done: `Invalid` names the one at fault."""
    form = signature(method)
    checks = {name: _CHECKS[parameter.annotation] for name, parameter in form.parameters.items() if name != "self"}

    @wraps(method)
    def checking(*arguments: P.args, **named: P.kwargs) -> R:
        for name, value in form.bind(*arguments, **named).arguments.items():
            if name in checks:
                checks[name](value, name)
        return method(*arguments, **named)

    return checking


def _is(what: str, test: Callable[[Any], bool]) -> Callable[[Any, str], None]:
    """A check that an argument is *what*."""

    def check(value: Any, field: str) -> None:
        if not test(value):
            raise Invalid(f"{field} must be {what}: it is {'None' if value is None else f'of type {type(value).__name__}'}", field=field)

    return check


def _check_integer(value: Any, field: str) -> None:
    _is("an integer", _is_integer)(value, field)
    if not INTEGER_MIN <= value <= INTEGER_MAX:
        raise Invalid(f"{field} must be an integer of 64 bits", field=field)


def _check_messages(value: Any, field: str) -> None:
    _is("a text or a sequence of messages", lambda v: isinstance(v, Sequence) and not isinstance(v, bytes | bytearray))(value, field)
    for at, message in enumerate(() if isinstance(value, str) else value):
        _is("a mapping with role and content", lambda v: isinstance(v, Mapping))(message, f"{field}[{at}]")


def _is_texts(value: Any) -> bool:
    # a text is a sequence of texts too, and its letters are not what was meant
    one = isinstance(value, str | Mapping) or not isinstance(value, Collection)
    return not one and all(isinstance(part, str) for part in value)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or (_is_integer(value) and INTEGER_MIN <= value <= INTEGER_MAX)


def _or_none(check: Callable[[Any, str], None]) -> Callable[[Any, str], None]:
    return lambda value, field: None if value is None else check(value, field)


_check_text = _is("a text", lambda v: isinstance(v, str))
_CHECKS: Mapping[object, Callable[[Any, str], None]] = {
    str: _check_text,
    str | None: _or_none(_check_text),
    int: _check_integer,
    int | None: _or_none(_check_integer),
    bool: _is("True or False", lambda v: isinstance(v, bool)),
    float | None: _or_none(_is("a number", _is_number)),
    Sequence[str] | None: _or_none(_is("a sequence of texts", _is_texts)),
    Time | None: _or_none(_is("a datetime, a text or a number of seconds", lambda v: isinstance(v, datetime | str) or _is_number(v))),
    Conversation: _check_messages,
}
_check_path = _or_none(_is("a path or a text", lambda v: isinstance(v, str | Path)))


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
        config: A config file. None: the one that the command line uses. Read only where *settings* is None.
        settings: Settings that are ready, instead of reading any.
        clock: Microseconds since 1970.
        new_id: Makes the ids of memories and receipts.

    Returns:
        The open memories: a context manager, safe to share between threads.

    Raises:
        Invalid: The path, the user's name or a setting cannot be used.
        Unavailable: The file cannot be opened or is held by somebody else.
    """
    _check_path(database, "database")
    _check_path(config, "config")
    _CHECKS[str | None](user, "user")
    in_force = settings if settings is not None else load(None if config is None else Path(config))
    place: Path | str
    if database is None:
        place = database_of(in_force.database_url)
    elif isinstance(database, str) and database.startswith(URL_PREFIXES):
        place = database_of(database)
    else:
        place = checked_path(Path(database))
    services = open_services(place, in_force, clock=clock, new_id=new_id)
    try:
        owner = services.access.ensure_user(local_user_name() if user is None else user)
        services.housekeeper.start()
    except BaseException:
        services.close()
        raise
    return OpenMemories(services, services.access.agent(owner, CREDENTIAL))


class OpenMemories:
    """Open memories, spoken for by one agent of one user. Made by `open_memories`.

    A save returns when it is committed and on disk. What is saved here is an agent's word: source ``agent``, not verified,
    of confidence 0.7 unless it says otherwise. A *scope* is ``global``, ``user`` or ``workstream``; the last one takes a
    *scope_id*. Every method raises a `PegwordError`: `Invalid` for what cannot be used, `NotFound`, `Conflict` for what the store
    does not allow, `Unavailable` for what may work later, such as a call after `close`.
    """

    def __init__(self, services: Services, caller: Caller) -> None:
        self._services = services
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

    @_checked
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

    @_checked
    def get(self, name: str, *, scope: str = "global", scope_id: str = "") -> Memory:
        """The memory of that name, expired or not. Counts an access. Raises `NotFound`."""
        return self._open().memories.get(self._caller, self._scope(scope, scope_id), name)

    @_checked
    def get_by_id(self, memory_id: str) -> Memory:
        """The memory of that id, expired or not. Counts an access. Raises `NotFound`."""
        return self._open().memories.get_by_id(self._caller, memory_id)

    @_checked
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

    @_checked
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

    @_checked
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

    @_checked
    def versions(self, memory_id: str) -> tuple[Version, ...]:
        """Every version of a memory, newest first; the first one is how it stands."""
        return self._open().memories.versions(self._caller, memory_id)

    @_checked
    def revert(self, memory_id: str, version: int, *, expected_version: int | None = None) -> Saved:
        """Make a memory say again what it said at *version*, as a new version by this agent. Raises `NotFound`."""
        return self._open().memories.revert(self._caller, memory_id, version, expected_version=expected_version)

    @_checked
    def delete(self, name: str, *, scope: str = "global", scope_id: str = "") -> Memory:
        """Delete the memory of that name for good, with its versions; return what it was. Raises `NotFound`."""
        return self._open().memories.delete(self._caller, self._scope(scope, scope_id), name)

    @_checked
    def delete_by_id(self, memory_id: str) -> Memory:
        """Delete the memory of that id for good, with its versions; return what it was. Raises `NotFound`."""
        return self._open().memories.delete_by_id(self._caller, memory_id)

    @_checked
    def turn(
        self,
        messages: Conversation,
        *,
        workstream_id: str = "",
        mode: str = "system",
        k: int | None = None,
        budget_chars: int | None = None,
    ) -> Turn:
        """Choose what belongs before the model in the next turn: `Turn.text` goes into the system message.

        Args:
            messages: The conversation so far, oldest first, in OpenAI or Anthropic shapes; or one user message as a text. The last
                three user messages count. With nothing said, the newest memories show; with nothing relevant, none.
            workstream_id: The session's workstream: its memories are seen as well. Those of other workstreams are not.
            mode: Where the block will stand: ``system``, or ``tail`` (after the user's message).
            k: At most so many memories, 1 to 50; default setting ``memory.relevance_k``.
            budget_chars: At most so many characters; default setting ``memory.budget_chars``.
        """
        said = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
        return self._open().turns.turn(self._caller, Session(workstream_id), said, mode=mode, k=k, budget_chars=budget_chars)

    @_checked
    def explain(self, receipt: str) -> Explanation:
        """Why a turn of this user showed what it showed. Receipts are kept 7 days. Raises `NotFound`."""
        return self._open().turns.explain(self._caller, receipt)

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
