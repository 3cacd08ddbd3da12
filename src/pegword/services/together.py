"""Several callers' changes in one transaction: each answered as if it were alone, all of them committed before any is answered."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from pegword.core.errors import PegwordError, Unavailable
from pegword.services.bundle import Services
from pegword.services.once import Errands
from pegword.store.engine import Tx
from pegword.store.joined import Joined

T = TypeVar("T")
Work = Callable[[Services], T]


def together(services: Services, works: Sequence[Work[T]]) -> list[T | Exception]:
    """What each of *works* returned or raised, in their order.

    Each is given services on the one transaction, or, when it is alone, *services* as they are; it may be run again. What it writes is
    undone by its own errors only. Raises when the transaction cannot be begun or committed: then nothing was done, unless the error says
    that this is in doubt.
    """
    if len(works) == 1:
        return [_alone(works[0], services)]
    errands = Errands()

    def all_of_them(tx: Tx) -> list[T | Exception]:
        errands.clear()
        engine = Joined(services.engine, tx)
        joined = services.on(engine, errands)
        return [_joined(work, joined, engine) for work in works]

    try:
        outcomes = services.engine.write(all_of_them)
    except _Abandoned:  # and undone: whose fault it was shows when each has a transaction of its own
        return [_alone(work, services) for work in works]
    errands.hand_on(services)
    return outcomes


class _Abandoned(Exception):
    """The database, or a fault of ours, got in the way: what state the transaction is in is not known."""


def _alone(work: Work[T], services: Services) -> T | Exception:
    try:
        return work(services)
    except Exception as error:
        return error


def _joined(work: Work[T], services: Services, engine: Joined) -> T | Exception:
    engine.used = False
    try:
        return work(services)
    except PegwordError as error:
        if isinstance(error, Unavailable) and engine.used:
            raise _Abandoned from error
        return error
    except Exception as error:
        raise _Abandoned from error
