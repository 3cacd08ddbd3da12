"""One call of the tool: arguments of a model in, one text for the model out.

Whose memories are meant, where they lie and what may be done follow from the session and its credential, never from an argument. What a
model did wrong is told in one sentence that begins with ``Error:``; what the host did wrong (a session that is closed) and what may work
later are raised, for the model can do nothing about them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pegword.core import results
from pegword.core.caller import (
    COORDINATOR,
    Caller,
    Scope,
    Session,
    acting,
    default_word,
    scope_words,
    session_scope,
    session_scopes,
    writable_words,
)
from pegword.core.echo import Echo, echo
from pegword.core.errors import Damaged, Invalid, NotFound, PegwordError, Unauthenticated, Unavailable
from pegword.core.memory import CONTENT_CHARS_MAX, DESCRIPTION_CHARS_MAX, Draft, Memory, checked_text
from pegword.core.offered import offered
from pegword.core.render import escaped
from pegword.core.results import Reader
from pegword.services.bundle import Services
from pegword.services.resembling import Resemblance
from pegword.tool.arguments import WRITING, Request, read
from pegword.tool.schema import Offer, offered_actions, schema

OFF = "memory is off in this session."
READ_ONLY = "this session may only read memory; save and delete are not possible here."


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call came to: the *text* for the model, whether it *is_error*, and the *memories* that it is about, for the host.

    *outcome* is created, updated, unchanged or kept (nothing was saved, since it is there already) after a save, deleted after a delete,
    else "". *beside* are others of which the text tells.
    """

    text: str
    is_error: bool = False
    memories: tuple[Memory, ...] = ()
    outcome: str = ""
    beside: tuple[Memory, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether a memory was saved or deleted."""
        return self.outcome not in ("", "kept")


class MemoryTool:
    """The tool over one store. *kind_word* spells a kind for a host: (kind, the word it was saved with, the credential's own word).

    *content_chars_max* is asked at each call, so that the setting may change.
    """

    def __init__(
        self,
        services: Services,
        *,
        kind_word: Callable[[str, str, str], str],
        content_chars_max: Callable[[], int] = lambda: CONTENT_CHARS_MAX,
    ) -> None:
        self._services = services
        self._kind_word = kind_word
        self._content_chars_max = content_chars_max

    def schema(self, caller: Caller, session: Session, dialect: str) -> dict[str, Any] | None:
        """The tool as *session* is offered it, in that *dialect*; None where its persona has no memory.

        Raises `Invalid` for an unknown dialect, `Conflict` for a closed session.
        """
        who = acting(caller, session)
        who.require("read")
        writes_global = self._services.memories.writing.writes_global(who)
        offer = Offer(
            _actions(who, session, writes_global), scope_words(session), writable_words(session, writes_global=writes_global),
            self._kind_word("project", "", who.project_word), self._content_chars_max(), session.kind == COORDINATOR,
        )  # fmt: skip
        form = schema(offer, dialect)
        return form if offered(who, session).tool else None

    def call(self, caller: Caller, session: Session, arguments: object) -> ToolResult:
        """Do what *arguments* ask for: an object, or its JSON text.

        Raises `Conflict` for a closed session, `Unavailable` for what may work later, `Unauthenticated` where the credential was revoked
        meanwhile; anything else is an answer.
        """
        who = acting(caller, session)
        who.require("read")
        if not offered(who, session).memory:
            return _error(OFF)
        try:
            writes_global = self._services.memories.writing.writes_global(who)
            return self._done(_Call(self._services, caller, who, session, self._reader(who), writes_global), arguments)
        except (Unavailable, Unauthenticated):
            raise
        except PegwordError as error:
            return failed(error)

    def _done(self, call: "_Call", arguments: object) -> ToolResult:
        actions = _actions(call.who, call.session, call.writes_global)
        request = read(arguments, actions, call.reader.now)
        if request.action in WRITING and request.action not in actions:
            return _error(READ_ONLY)
        scopes = writable_words(call.session, writes_global=call.writes_global)
        if request.action in WRITING and request.places and not request.scope and len(scopes) > 1:
            # It was meant for some place; the default one, which others may see, is hardly that.
            raise Invalid(f"{request.places[0]} has no effect; say with scope where it is meant: {', '.join(scopes)}", field="scope")
        if request.action == "save":
            checked_text(request.content, "content", min(self._content_chars_max(), CONTENT_CHARS_MAX))
            checked_text(request.description or "", "description", DESCRIPTION_CHARS_MAX)
        answer = {"save": call.save, "search": call.search, "list": call.list, "get": call.get, "delete": call.delete}[request.action]
        result = answer(request)
        if not request.notes:
            return result
        return replace(result, text="\n".join([result.text, *map(escaped, request.notes)]))

    def _reader(self, who: Caller) -> Reader:
        return Reader(who.user_id, self._services.clock(), lambda m: self._kind_word(m.kind, m.kind_word, who.project_word))


@dataclass(frozen=True, slots=True)
class _Call:
    """One call by *caller*, as the user *who* of its *session*."""

    services: Services
    caller: Caller
    who: Caller
    session: Session
    reader: Reader
    writes_global: bool

    def save(self, request: Request) -> ToolResult:
        scope = self._scope(request, write=True)
        heard = echo(request.content)
        if heard.found and not heard.rest:
            shown = f" ({results.names(heard.names)})" if heard.names else ""
            return ToolResult(f"Not saved: this is text that memory itself has shown{shown}. Save only what is new.", outcome="kept")
        about = echo(request.description or "")
        draft = Draft(
            request.name, heard.rest, scope, description=_own(request.description, about), kind=request.type or None,
            tags=request.tags, priority=request.priority or None, confidence=request.confidence, expires_at=request.expires_at,
            session=self.session.session_id,
        )  # fmt: skip
        resemblance = self.services.resembling.of(self.caller, self.session, draft)
        refusal = self._there_already(resemblance, draft, named=bool(request.scope))
        if refusal:
            return ToolResult(refusal, outcome="kept")
        saved = self.services.memories.save(self.caller, draft, self.session)
        lines = [results.saved(saved.memory, saved.outcome, self.reader)]
        if heard.found or about.found:
            told = tuple(dict.fromkeys((*heard.names, *about.names)))
            shown = f" ({results.names(told)})" if told else ""
            lines.append(f"Left out: text that memory itself has shown{shown}.")
        lines += [f"Note: {warning}." for warning in (*saved.warnings, *results.escapes_kept(draft.content))]
        if saved.outcome != "unchanged":
            lines += filter(None, [results.similar(resemblance.similar, self.reader)])
        return ToolResult("\n".join(lines), memories=(saved.memory,), outcome=saved.outcome, beside=resemblance.similar)

    def search(self, request: Request) -> ToolResult:
        visible = session_scopes(self.caller, self.session, request.scope)
        found = self.services.memories.search(
            self.caller, visible, request.query, self.session, kind=request.type, limit=request.limit, counted=True
        )
        memories = tuple(hit.memory for hit in found.hits)
        text = results.found(memories, found.total, request.query, found.left_out, found.left_out_n, self.reader)
        return ToolResult(text, memories=memories)

    def list(self, request: Request) -> ToolResult:
        visible = session_scopes(self.caller, self.session, request.scope)
        page = self.services.memories.list(self.caller, visible, self.session, kind=request.type, limit=request.limit)
        filters = ", ".join(f"{field}={word}" for field, word in (("type", request.type), ("scope", request.scope)) if word)
        return ToolResult(results.listed(page.memories, page.total, filters, self.reader), memories=page.memories)

    def get(self, request: Request) -> ToolResult:
        try:
            memory = self.services.memories.get(self.caller, self._scope(request), request.name, self.session)
        except NotFound:
            return self._not_there(request)
        return ToolResult(results.whole(memory, self.reader), memories=(memory,))

    def delete(self, request: Request) -> ToolResult:
        try:
            memory = self.services.memories.delete(self.caller, self._scope(request, write=True), request.name, self.session)
        except NotFound:
            return self._not_there(request)
        return ToolResult(results.deleted(memory), memories=(memory,), outcome="deleted")

    def _scope(self, request: Request, *, write: bool = False) -> Scope:
        return session_scope(self.caller, self.session, request.scope, write=write, writes_global=self.writes_global)

    def _there_already(self, found: Resemblance, draft: Draft, *, named: bool) -> str:
        """Why *draft* is not saved, "" if it is: it says what is there already. A scope that was *named* is meant."""
        if found.passage_of is not None:
            place = f"'{found.passage_of.name}' (scope={found.passage_of.scope.kind})"
            return f"Not saved: this is a passage that memory has shown of {place}. Read that one whole with get before you change it."
        for memory in found.says_it:
            if memory.scope == draft.scope:
                way = "To give it another name, delete that one first."
            elif not named:
                way = f"To keep it in scope {draft.scope.kind} too, name that scope."
            else:
                continue
            return f"Not saved: '{memory.name}' (scope={memory.scope.kind}) says exactly this already. {way}"
        return ""

    def _not_there(self, request: Request) -> ToolResult:
        """That there is no such memory in the scope that was meant; and where in the session's others there is one."""
        words = scope_words(self.session)
        meant = request.scope or default_word(self.session, writes_global=self.writes_global)
        others = [word for word in words if word != meant and self._has(word, request.name)]
        name = results.shortened(request.name.strip(), results.QUERY_CHARS_SHOWN)
        if others:
            return _error(f"Memory '{name}' not found in scope {meant}; there is one in scope {' and '.join(others)}: name that scope.")
        looked = ", ".join([meant, *(word for word in words if word != meant)])
        return _error(f"Memory '{name}' not found (looked in: {looked}).")

    def _has(self, word: str, name: str) -> bool:
        try:
            self.services.memories.get(self.caller, session_scope(self.caller, self.session, word), name, self.session, counted=False)
        except NotFound:
            return False
        except Damaged:  # it is there, and can be deleted
            return True
        return True


def _actions(who: Caller, session: Session, writes_global: bool) -> Sequence[str]:
    return offered_actions(may_write=offered(who, session, writes_global=writes_global).saves)


def _own(description: str | None, heard: Echo) -> str | None:
    """What is a description's own; one that is nothing but echo was not given."""
    return None if description is None or (heard.found and not heard.rest) else heard.rest


def failed(error: PegwordError) -> ToolResult:
    """What a model is told of a call that did not come about."""
    return _error(str(error))


def _error(sentence: str) -> ToolResult:
    return ToolResult(f"Error: {escaped(results.one_line(sentence))}", is_error=True)
