"""A server with a planted fault: it keeps the answer to a key in another transaction than the change. The test must catch it."""

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from pegword.cli import main
from pegword.http import app
from pegword.services import once, together
from pegword.services.bundle import Services
from pegword.services.once import Asked, Kept

GAP_S_MIN = 0.005


def forgetful(services: Services, request: Asked, work: Callable[[Services], Kept]) -> Kept:
    """Change and commit; then keep the answer."""
    with services.engine.read() as tx:
        done = tx.rows("SELECT once_id FROM once_answers WHERE once_id = ?", (request.once_id,))
    if done:
        return once.once(services, request, work)
    began = time.monotonic()
    answer = work(services)
    time.sleep(max(GAP_S_MIN, 10 * (time.monotonic() - began)))  # however fast the machine is: most of the time is spent here
    return once.once(services, request, lambda _: answer)


def one_by_one(services: Services, works: Sequence[Callable[[Services], Any]]) -> list[Any]:
    """Each in transactions of its own, or the change and its answer would share the one of all of them."""
    return [outcome for work in works for outcome in together.together(services, [work])]


if __name__ == "__main__":
    app.once = forgetful  # type: ignore[attr-defined]
    app.together = one_by_one  # type: ignore[attr-defined]
    sys.argv = ["pegword", *sys.argv[1:]]
    main()
