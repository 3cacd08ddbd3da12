"""The services of one opened store, together: what a face is given."""

from collections.abc import Callable
from dataclasses import dataclass

from pegword.services.access import Access
from pegword.services.health import Health
from pegword.services.housekeeping import Housekeeper, Keeper
from pegword.services.memories import Memories
from pegword.services.nudges import Nudges
from pegword.services.reindexing import Reindexer
from pegword.services.removing import Removing
from pegword.services.resembling import Resembling
from pegword.services.sessions import Sessions
from pegword.services.sharing import Sharing
from pegword.services.transfer import Transfer
from pegword.services.turns import Turns
from pegword.store.checked import Checked
from pegword.store.engine import Engine, Tx
from pegword.store.joined import Joined


@dataclass(frozen=True, slots=True)
class Services:
    """An opened store. Close it: what waits is then done, and the file is given back. *clock* gives microseconds since 1970.

    *on* makes the same services on another engine, which ask another *keeper* for what is done later.
    """

    engine: Engine
    memories: Memories
    turns: Turns
    access: Access
    sessions: Sessions
    sharing: Sharing
    removing: Removing
    transfer: Transfer
    resembling: Resembling
    nudges: Nudges
    reindexer: Reindexer
    housekeeper: Housekeeper
    health: Health
    clock: Callable[[], int]
    keeper: Keeper
    on: Callable[[Engine, Keeper], "Services"]

    def while_allowed(self, check: Callable[[Access], None]) -> "Services":
        """The same services, whose changes are undone where *check* raises when they are done: it is given who may call as that is then."""

        def checked(tx: Tx) -> None:
            check(Access(Joined(self.engine, tx), clock=self.clock))

        return self.on(Checked(self.engine, checked), self.keeper)

    def close(self) -> None:
        """Do what waits and close the database."""
        self.housekeeper.close()
        self.engine.close()
