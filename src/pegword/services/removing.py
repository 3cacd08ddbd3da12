"""Workstreams and projects deleted with their memories, when that is asked for in so many words. Every method takes a caller first."""

from collections.abc import Callable
from dataclasses import dataclass

from pegword.core.caller import Caller, Scope, workstream_scope
from pegword.core.errors import Conflict, Invalid, NotFound
from pegword.services.housekeeping import Keeper
from pegword.services.sharing import found_shared, require_owner, scope_shared
from pegword.store import removing, session_rows, sharing_rows
from pegword.store.engine import Engine, Tx

# Called with how many memories are gone, and of how many.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Removed:
    """The *scope* that is gone, and how many *memories* went with it."""

    scope: Scope
    memories: int


class Removing:
    """Deletes whole scopes. What was broken off goes on with the same call, or with `resume`. Clock in microseconds since 1970."""

    def __init__(self, engine: Engine, housekeeper: Keeper, *, clock: Callable[[], int]) -> None:
        self._engine = engine
        self._housekeeper = housekeeper
        self._clock = clock

    def workstream(
        self, caller: Caller, workstream_id: str, *, with_memories: bool = False, progress: Progress = lambda *_: None
    ) -> Removed:
        """Delete the caller's own workstream: its sessions close, and its memories go for good.

        Unless *with_memories* says so, one that holds memories stays as it is and `Conflict` says how many. What is saved there while
        they go stays.
        """
        caller.require("write")
        if not workstream_id.strip():
            raise Invalid("workstream_id is required", field="workstream_id")
        scope = workstream_scope(caller, workstream_id)

        def end(tx: Tx, holds: int) -> None:
            session_rows.alone(tx, caller.user_id)
            had_sessions = session_rows.close_in_workstream(tx, scope.key, self._clock())
            if not holds and not had_sessions and not removing.is_asked(tx, scope.key):
                raise NotFound(f"you have no workstream '{scope.id}'", field="workstream_id")

        return self._remove(scope, end, with_memories, progress)

    def shared(
        self, caller: Caller, kind: str, scope_id: str, *, with_memories: bool = False, progress: Progress = lambda *_: None
    ) -> Removed:
        """Delete a project, or a workstream with members, by its owner: from then on nobody has it. Memories as for `workstream`."""
        caller.require("write")
        scope = scope_shared(kind, scope_id)

        def end(tx: Tx, _holds: int) -> None:
            if not sharing_rows.is_deleted(tx, scope, caller.user_id):  # else its owner goes on with what was broken off
                require_owner(caller, kind, found_shared(tx, caller, scope))
            sharing_rows.mark_deleted(tx, scope, self._clock())

        return self._remove(scope, end, with_memories, progress)

    def resume(self) -> None:
        """Finish every removal that was broken off."""
        with self._engine.read() as tx:
            pending = removing.pending(tx)
        for scope_key in pending:
            removing.run(self._engine, scope_key, lambda _: None)
        if pending:
            self._housekeeper.deleted()

    def _remove(self, scope: Scope, end: Callable[[Tx, int], None], with_memories: bool, progress: Progress) -> Removed:
        def begin(tx: Tx) -> int:
            tx.alone(scope.key)
            holds = removing.held(tx, scope.key)
            end(tx, holds)
            if holds and not with_memories:
                word = "memory" if holds == 1 else "memories"
                said = f"the {scope.kind} holds {holds} {word}; ask for them to be deleted with it"
                raise Conflict(said, field="with_memories", code="holds_memories")
            return removing.ask(tx, scope.key, self._clock())

        total = self._engine.write(begin)
        done = 0

        def step(removed: int) -> None:
            nonlocal done
            done += removed
            progress(min(done, total), total)

        removing.run(self._engine, scope.key, step)
        self._housekeeper.deleted()
        return Removed(scope, total)
