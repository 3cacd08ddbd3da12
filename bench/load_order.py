"""One order to the clients of `bench.load_client`, and what came of it: times, answers, and what the processes used meanwhile."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.servers import Server

MEMORY_EVERY_S = 0.5
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Work:
    """What is saved and asked: *texts* of memories, *queries* of words."""

    texts: Sequence[str]
    queries: Sequence[str]


@dataclass(slots=True)
class Measured:
    """The outcome of one order. Times in milliseconds, sorted, by kind of request; CPU seconds of the *server*, of a *database* server
    beside it, and of the *clients*."""

    seconds: float
    times: Mapping[str, Sequence[float]]
    statuses: Mapping[str, Mapping[str, int]]
    numbered: int
    server: float
    database: float
    clients: float
    mebibytes: list[float] = field(default_factory=list)

    @property
    def answers(self) -> int:
        """How many answers came."""
        return sum(map(len, self.times.values()))

    @property
    def per_second(self) -> float:
        """Answers a second."""
        return self.answers / self.seconds

    def percentile(self, kind: str, share: float) -> float:
        """The time within which that *share* of the requests of a *kind* was answered."""
        times = self.times[kind]
        return times[min(int(len(times) * share), len(times) - 1)]

    def refused(self) -> dict[str, int]:
        """How many answers had a status that is no success, by status."""
        counts: dict[str, int] = {}
        for statuses in self.statuses.values():
            for status, count in statuses.items():
                if not status.startswith("2"):
                    counts[status] = counts.get(status, 0) + count
        return counts

    def growth(self) -> float:
        """How fast the servers' memory grew in the second half, in MiB a minute: a straight line through its samples."""
        samples = self.mebibytes[len(self.mebibytes) // 2 :]
        middle, mean = (len(samples) - 1) / 2, sum(samples) / len(samples)
        spread = sum((at - middle) ** 2 for at in range(len(samples)))
        slope = sum((at - middle) * (value - mean) for at, value in enumerate(samples)) / spread if spread else 0.0
        return slope * 60 / MEMORY_EVERY_S


def order(
    server: Server,
    kinds: Mapping[str, int],
    work: Work,
    *,
    clients: int,
    seconds: float = 0.0,
    requests: int = 0,
    own_scopes: bool = False,
    prefix: str = "",
    seed: int = 0,
    postmaster: int = 0,
) -> Measured:
    """Let *clients* send requests of *kinds* (with their shares) for so many *seconds*, or so many *requests*.

    With *own_scopes* each client has a workstream of its own, else all save into the global scope. *postmaster* is the process of a
    PostgreSQL whose CPU time is counted too.
    """
    asked = {
        "addresses": server.addresses, "token": server.token, "clients": clients, "seconds": seconds, "requests": requests, "kinds": kinds,
        "texts": work.texts, "queries": work.queries, "own_scopes": own_scopes, "prefix": prefix, "seed": seed,
    }  # fmt: skip
    processes = server.processes()
    watch = _Memory(processes)
    before, database = cpu_seconds(processes), cpu_seconds([postmaster] if postmaster else [])
    with watch:
        answer = _sent(asked)
    return Measured(
        seconds=answer["seconds"],
        times={kind: sorted(times) for kind, times in answer["times"].items()},
        statuses=answer["statuses"],
        numbered=answer["numbered"],
        server=cpu_seconds(processes) - before,
        database=cpu_seconds([postmaster] if postmaster else []) - database,
        clients=answer["cpu"],
        mebibytes=watch.mebibytes,
    )


def cpu_seconds(processes: Iterable[int]) -> float:
    """The CPU time of *processes*, their children, and those children that have ended; 0.0 where the system does not tell."""
    ticks = 0
    for process in processes:
        ticks += sum(_times(process))
        ticks += sum(sum(_times(child)[:2]) for child in _children(process))
    return ticks / _TICKS


def _sent(asked: Mapping[str, Any]) -> Any:
    command = [sys.executable, str(Path(__file__).with_name("load_client.py"))]
    done = subprocess.run(command, input=json.dumps(asked) + "\n", stdout=subprocess.PIPE, encoding="utf-8", check=True)
    return json.loads(done.stdout)


def _times(process: int) -> list[int]:
    """User and system time of a process, then those of its children that have ended, in ticks."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return [0] * 4
    return [int(word) for word in text.rpartition(")")[2].split()[11:15]]


def _children(process: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text(encoding="ascii").split()]
    except OSError:
        return []


class _Memory:
    """Samples the memory in use by *processes*, together, on a thread of its own."""

    def __init__(self, processes: Sequence[int]) -> None:
        self.mebibytes: list[float] = []
        self._processes = processes
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self.mebibytes.append(sum(map(_resident, self._processes)))
            if self._over.wait(MEMORY_EVERY_S):
                return


def _resident(process: int) -> float:
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1_024 for line in lines if line.startswith("VmRSS:")), 0.0)
