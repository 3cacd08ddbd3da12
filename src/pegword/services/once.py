"""Doing a request once, however often it is asked for: its answer is kept in the transaction of its change.

A face names the request by a key of the client's, and hands in the work that makes its answer. Whatever that work reads and writes through
the services that it is given takes part in the one transaction. So there is no change without a kept answer, and no answer kept without
its change; an error undoes both, and is not kept.
"""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pegword.core.caller import RIGHTS, Caller
from pegword.core.errors import Conflict, Forbidden, Invalid, NotFound, PegwordError, Unavailable
from pegword.core.people import Seen
from pegword.services.bundle import Services
from pegword.store import once_rows, sharing_rows
from pegword.store.engine import Tx
from pegword.store.joined import Joined
from pegword.store.once_rows import Stored

KEY_CHARS_MAX = 256
KEPT_HOURS = 24
KEPT_US = KEPT_HOURS * 3_600 * 1_000_000
_FIELD = "Idempotency-Key"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that is to be done once: *once_id* is who asks, where, and under which key; *fingerprint* is what for. *right* is the one
    that the credential has now."""

    once_id: str
    fingerprint: str
    right: str = "read"


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer as it is given: *status*, *headers*, *body*, the ids of the *memories* whose text is in it, and what it tells of that was
    *seen* of shared scopes.

    One that is not *lasting*, since nothing was done for it, is not kept, and its transaction is undone.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    memories: tuple[str, ...] = ()
    lasting: bool = True
    seen: tuple[Seen, ...] = ()


def asked(caller: Caller, route: str, key: str, request: Iterable[bytes]) -> Asked:
    """What *caller* asks for at *route* under *key*; *request* is all that could make it another request.

    Raises `Invalid` for a key that is empty or longer than `KEY_CHARS_MAX`.
    """
    if not key:
        raise Invalid(f"{_FIELD} must hold 1 to {KEY_CHARS_MAX} characters: it is empty", field=_FIELD)
    if len(key) > KEY_CHARS_MAX:
        raise Invalid(f"{_FIELD} exceeds {KEY_CHARS_MAX} character limit: it has {len(key)}", field=_FIELD, code="too_long")
    return Asked(_digest(part.encode() for part in (caller.credential, route, key)), _digest(request), caller.right)


def once(services: Services, request: Asked, work: Callable[[Services], Kept]) -> Kept:
    """The answer that *work* makes, or the one that it made when the same was asked before.

    *work* is given services on its transaction, and may be run again. A kept answer tells nothing that its caller may no longer see: where
    a right or a shared scope was taken away since, the request is answered as it now would be. Raises `Conflict` when the key was used for
    another request within `KEPT_HOURS`, `NotFound` when a memory that the kept answer tells of was deleted since.
    """
    errands = Errands()

    def first_or_again(tx: Tx) -> Kept:
        errands.clear()
        now = services.clock()
        joined = Joined(services.engine, tx)
        if once_rows.claim(tx, request.once_id, request.fingerprint, now, now - KEPT_US):
            answer = work(services.on(joined, errands))
            if not answer.lasting:
                raise _NothingDone(answer)
            stored = Stored(answer.status, answer.headers, answer.body, request.right, answer.seen)
            once_rows.keep(tx, request.once_id, now, stored, answer.memories)
            return answer
        fingerprint, stored = once_rows.kept(tx, request.once_id)
        if fingerprint != request.fingerprint:
            raise Conflict(
                f"this {_FIELD} was used for another request within the last {KEPT_HOURS} hours; a new request needs a new one",
                field=_FIELD,
                code="key_reused",
            )
        if not stored.status:
            raise NotFound("this request was done before, and the memory that it was about was deleted since", code="deleted_since")
        lost = not all(sharing_rows.sees(tx, seen) for seen in stored.seen)
        if lost or RIGHTS.index(request.right) < RIGHTS.index(stored.right):
            _require_still_allowed(lambda on: work(services.on(on, Errands())), joined, lost=lost)
        return Kept(stored.status, stored.headers, stored.body)

    try:
        answer = services.engine.write(first_or_again)
    except _NothingDone as nothing:
        answer = nothing.answer
    errands.hand_on(services)
    return answer


def _require_still_allowed(work: Callable[[Joined], Kept], joined: Joined, *, lost: bool) -> None:
    """Raise what a request that was done before would be answered with now, if that is no success; *lost*: what its answer told of is there
    no longer. It is done once more to see that, and undone."""

    def tried(_: Tx) -> None:
        raise _NothingDone(work(joined))

    try:
        joined.write(tried)
    except _NothingDone as nothing:
        if not nothing.answer.lasting:  # a refusal that is an answer, as the tool gives it
            raise
        if lost:
            raise NotFound("this request was done before, and what it was about is not there for you any more", code="gone_since") from None
    except (Forbidden, NotFound, Unavailable):
        raise
    except PegwordError:
        if lost:
            raise


class _NothingDone(Exception):
    """Undoes the transaction of an *answer* for which nothing was done."""

    def __init__(self, answer: Kept) -> None:
        super().__init__()
        self.answer = answer


class Errands:
    """What a housekeeper is asked for inside of a transaction: noted, and handed on when that is committed."""

    def __init__(self) -> None:
        self._works: list[Callable[[Tx], None]] = []
        self._due: list[str] = []
        self._deleted = False

    def later(self, work: Callable[[Tx], None]) -> None:
        """As `Housekeeper.later`."""
        self._works.append(work)

    def done_within(self, work: Callable[[Tx], None], seconds: float) -> None:
        """As `later`: what waits is done after the transaction."""
        del seconds
        self.later(work)

    def due(self, scope_key: str) -> None:
        """As `Housekeeper.due`."""
        self._due.append(scope_key)

    def deleted(self) -> None:
        """As `Housekeeper.deleted`."""
        self._deleted = True

    def flush(self, seconds: float) -> None:
        """Nothing: what waits is done after the transaction."""

    def clear(self) -> None:
        """Forget everything: the transaction begins again."""
        self._works.clear()
        self._due.clear()
        self._deleted = False

    def hand_on(self, services: Services) -> None:
        """Ask the keeper of *services* for all of it: the housekeeper, or who notes it for the transaction around this one."""
        for work in self._works:
            services.keeper.later(work)
        for scope_key in self._due:
            services.keeper.due(scope_key)
        if self._deleted:
            services.keeper.deleted()


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(b"%d:" % len(part))  # the length first, so that no two lists of parts read alike
        digest.update(part)
    return digest.hexdigest()
