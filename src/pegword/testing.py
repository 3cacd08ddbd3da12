"""For tests of programs that use Pegword: a store that vanishes, a clock that stands, ids in order."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pegword.embedded import OpenMemories, open_memories
from pegword.settings import Settings, load

START_US = 1_767_225_600_000_000  # 2026-01-01T00:00:00Z


@dataclass(slots=True)
class FrozenClock:
    """A clock that moves only when it is told to. *now* in microseconds since 1970; begins at 2026-01-01T00:00:00Z.

    Lists are ordered by time: let some pass between two saves where their order matters.
    """

    now: int = START_US

    def __call__(self) -> int:
        """The time in microseconds since 1970."""
        return self.now

    def advance(self, seconds: float) -> None:
        """Move on by *seconds*."""
        self.now += round(seconds * 1_000_000)


@dataclass(slots=True)
class SequenceIds:
    """Ids in order, in the form of UUIDs: ``00000000-0000-4000-8000-000000000001`` and so on."""

    made: int = field(default=0)

    def __call__(self) -> str:
        """The next id."""
        self.made += 1
        return f"00000000-0000-4000-8000-{self.made:012x}"


@contextmanager
def memories_in_memory(
    user: str = "tester",
    *,
    settings: Settings | None = None,
    clock: Callable[[], int] | None = None,
    new_id: Callable[[], str] | None = None,
) -> Iterator[OpenMemories]:
    """Memories for one test: a new store in a temporary folder, deleted at the end. No config file and no environment is read.

    *settings* are the defaults, *clock* a `FrozenClock` and *new_id* a `SequenceIds`, unless given.
    """
    with tempfile.TemporaryDirectory(prefix="pegword-") as folder:
        nowhere = Path(folder) / "config.toml"
        nowhere.touch()
        with open_memories(
            Path(folder) / "memories.db",
            user=user,
            settings=settings or load(nowhere, {}),
            clock=clock or FrozenClock(),
            new_id=new_id or SequenceIds(),
        ) as memories:
            yield memories
