"""One seeded schedule of faults, and one tally of what came of them, for every test in this folder.

A test draws its faults from `Tally.schedule`, books each one, and prints ``N injected, M survived, K acknowledged, 0 lost`` at its end.
`SEED=` repeats a run, `PEGWORD_FAULTS_ONLY=` one fault of it. Every number is an environment variable, ``PEGWORD_FAULTS_`` and its name.
The long form (`make faults`) sets larger ones, and reads the tallies from the file that `PEGWORD_FAULTS_REPORT` names.
"""

import os
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.page import note

SEED = int(os.environ.get("SEED", str(time.time_ns() % 1_000_000)))
PROGRESS_EVERY_S = 10.0
ENGINE_SHOWN = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
ROOM = 2 << 30  # what several tests at once take of a memory that files lie in
AT_MOST = 100  # times as many faults are drawn where a planted one is to be noticed, before it counts as unnoticed
PATIENCE_S = int(os.environ.get("PEGWORD_FAULTS_PATIENCE_S", "900"))  # for one test, before pytest gives it up


def quick_folder(otherwise: Path) -> Path:
    """A new folder in memory where there is one, else *otherwise*: for disks that are pretended, so that nothing waits for a real one."""
    memory = memory_folder()
    return otherwise if memory is None else Path(tempfile.mkdtemp(prefix="pegword-", dir=memory))


def memory_folder() -> Path | None:
    """Where files lie in memory, if there is such a place and room in it: in a container it may be 64 MiB."""
    memory = Path("/dev/shm")
    return memory if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free >= ROOM else None


def how_many(name: str, default: int) -> int:
    """The number *name* of this run: how many faults of a kind, how many seconds."""
    return int(os.environ.get(f"PEGWORD_FAULTS_{name}", str(default)))


def told(seconds: float) -> str:
    """A span of time as a reader takes it: 12 s, 3 min 20 s, 1 h 05 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60:02} s" if whole < 3_600 else f"{whole // 3_600} h {whole // 60 % 60:02} min"


@dataclass
class Tally:
    """What was injected and what came of it. *lost* names what was acknowledged and is gone, *wrong* everything else that must not be.

    *until_noticed*: for a planted fault that not every fault from outside shows: there are more of them, until one does.
    """

    what: str
    until_noticed: bool = False
    injected: int = 0
    survived: int = 0
    acknowledged: int = 0
    lost: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    notes: dict[str, float] = field(default_factory=dict)
    _number: int = -1

    def schedule(self, count: int) -> Iterator[random.Random]:
        """*count* faults: a source of chance for each, which depends on `SEED` and its number alone. Tells how far it is.

        *until_noticed* goes on, up to `AT_MOST` times as far: where one in eleven shows it, 60 are in vain once in 300 runs, 6,000 never.
        """
        only = os.environ.get("PEGWORD_FAULTS_ONLY")
        began = last = time.monotonic()
        for number in [int(only)] if only else range(count * AT_MOST if self.until_noticed else count):
            if number >= count and self.noticed and not only:
                break
            self._number = number
            now = time.monotonic()
            if now - last >= PROGRESS_EVERY_S and number:
                last, left = now, (now - began) / number * max(0, count - number)
                bad = f"{len(self.lost)} lost" + (f", {len(self.wrong)} wrong" if self.wrong else "")
                print(f"  {self.what}: {number:,} of {count:,}, {bad}, after {told(now - began)}, about {told(left)} to go", flush=True)
                if "caught" not in os.environ.get("PYTEST_CURRENT_TEST", "caught"):  # as the tests of planted faults are called
                    self._write_down(caught=False, ended=False)
            yield random.Random(f"{SEED} {self.what} {number}")
        self._number = -1

    @property
    def noticed(self) -> bool:
        """Whether anything was lost or wrong."""
        return bool(self.lost or self.wrong)

    def book(self, *, acknowledged: int = 0, lost: list[str] | None = None, wrong: list[str] | None = None, faults: int = 1) -> None:
        """Note the outcome of one fault, or of *faults* together."""
        self.injected += faults
        self.acknowledged += acknowledged
        self.lost += [self._where(text) for text in lost or ()]
        self.wrong += [self._where(text) for text in wrong or ()]
        if not lost and not wrong:
            self.survived += faults

    def __str__(self) -> str:
        more = "".join(f", {name} {value:g}" for name, value in self.notes.items())
        return (
            f"{self.what}: {self.injected} injected, {self.survived} survived, {self.acknowledged} acknowledged, {len(self.lost)} lost"
            f"{more}, SEED={SEED}"
        )

    def hold(self) -> None:
        """Print the line, and fail unless every fault was survived, nothing acknowledged is gone, and something was acknowledged at all."""
        self._report(caught=False)
        assert not self.lost[:5] + self.wrong[:5], f"{self}\n" + "\n".join(self.lost[:5] + self.wrong[:5])
        assert self.injected == self.survived
        assert self.injected > 0

    def catch(self) -> None:
        """Fail unless the planted fault was noticed."""
        self._report(caught=True)
        assert self.noticed, f"the planted fault went unnoticed: {self}"

    def _report(self, *, caught: bool) -> None:
        print(f"{'planted fault caught: ' if caught else ''}{self}", flush=True)
        self._write_down(caught=caught, ended=True)

    def _write_down(self, *, caught: bool, ended: bool) -> None:
        """For the page. What is not *ended* counts when nothing comes after it: the run was broken off."""
        report = os.environ.get("PEGWORD_FAULTS_REPORT")
        if report:
            line = {
                "what": self.what, "planted": caught, "ended": ended, "injected": self.injected, "survived": self.survived,
                "acknowledged": self.acknowledged, "lost": len(self.lost), "wrong": len(self.wrong), "notes": self.notes, "seed": SEED,
            }  # fmt: skip
            note(Path(report), line)

    def _where(self, text: str) -> str:
        return f"{text} (SEED={SEED} PEGWORD_FAULTS_ONLY={self._number})" if self._number >= 0 else f"{text} (SEED={SEED})"
