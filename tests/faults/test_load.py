"""A server under load for long: no accident, no answer lost, and nothing that grows without end."""

import http.client
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.harness import PATIENCE_S, PROGRESS_EVERY_S, Tally, how_many, told
from tests.faults.ledger import PYTHON, SERVE, Ledger, Server, ask, joined, writers
from tests.faults.test_kill import token as token
from tests.faults.work import look
from tests.patience import PATIENCE_S as ENOUGH_S

SECONDS = how_many("LOAD_S", 8)
CLIENTS = how_many("LOAD_CLIENTS", 16)
LONG_S = 600  # a run as long as this must have stopped growing; a shorter one must not grow by more than GROWTH_MAX
SLOPE_MAX = 1 << 20  # bytes of memory in ten minutes
GROWTH_MAX = 48 << 20
LOG_MAX = 128 << 20
MORE_MAX = 20  # open files, threads
SAMPLE_S = 0.25
SAMPLES_MIN = 9
ANSWERS_MIN = 600  # of its writers: so many show a fault that only some of them meet

pytestmark = pytest.mark.timeout(PATIENCE_S + SECONDS)


@dataclass
class Sample:
    """What a server's process is at one moment: bytes of memory, open files, threads, bytes of its database's log."""

    at_s: float
    memory: int
    files: int
    threads: int
    log: int


def sample(at_s: float, pid: int, log: Path) -> Sample | None:
    """What it is now; None when it has ended."""
    try:
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines())
        files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except OSError:
        return None
    if "VmRSS" not in status:
        return None
    return Sample(at_s, int(status["VmRSS"].split()[0]) << 10, files, int(status["Threads"]), log.stat().st_size if log.exists() else 0)


def watch(tally: Tally, seconds: int, ledger: Ledger, pid: int, log: Path, grows: Sequence[str]) -> list[Sample]:
    """Samples of the server under load, for *seconds*, and until there are enough of them and of answers, and until all that *grows* by a
    planted fault has been seen to; tells how far it is."""
    samples: list[Sample] = []
    began = last = time.monotonic()

    def enough() -> bool:
        told = growth(tally, samples)
        return len(samples) >= SAMPLES_MIN and ledger.answers >= ANSWERS_MIN and all(any(one in text for text in told) for one in grows)

    while (now := time.monotonic()) - began < seconds or (not enough() and now - began < seconds + ENOUGH_S):
        taken = sample(now - began, pid, log)
        if taken is None:
            break
        samples.append(taken)
        if now - last >= PROGRESS_EVERY_S:
            last = now
            print(f"  {tally.what}: {told(now - began)} of {told(seconds)}, {samples[-1].memory >> 20} MiB", flush=True)
        time.sleep(SAMPLE_S)
    return samples


def growth(tally: Tally, samples: Sequence[Sample]) -> list[str]:
    """What has grown that must not. The first third of the time is for warming up."""
    if len(samples) < SAMPLES_MIN:
        return []
    warm = samples[len(samples) // 3 :]
    first, last, wrong = warm[0], warm[-1], []
    if last.at_s >= LONG_S:
        slope = statistics.linear_regression([each.at_s for each in warm], [each.memory for each in warm]).slope * 600
        tally.notes["MiB in ten minutes"] = round(slope / (1 << 20), 2)
        wrong += [f"the memory grows by {slope / (1 << 20):.1f} MiB in ten minutes"] if slope > SLOPE_MAX else []
    elif last.memory - first.memory > GROWTH_MAX:
        wrong.append(f"the memory grew from {first.memory >> 20} to {last.memory >> 20} MiB")
    wrong += [f"open files grew from {first.files} to {last.files}"] if last.files > first.files + MORE_MAX else []
    wrong += [f"threads grew from {first.threads} to {last.threads}"] if last.threads > first.threads + MORE_MAX else []
    longest = max(each.log for each in samples)
    tally.notes |= {"memory MiB": last.memory >> 20, "longest log MiB": longest >> 20}
    return wrong + ([f"the log grew to {longest >> 20} MiB"] if longest > LOG_MAX else [])


def under_load(
    tally: Tally, command: Sequence[str], folder: Path, token: str, seconds: int, clients: int, grows: Sequence[str] = ()
) -> Tally:
    """Half of the clients save, change, delete, the others search and list, for *seconds*."""
    ledger, stop, reads = Ledger(), threading.Event(), Counter[int]()
    server = Server(command, f"sqlite:///{folder / 'pegword.db'}", folder)

    def read() -> None:
        try:
            look_on()
        except (OSError, http.client.HTTPException):
            reads[0] += server.process.poll() is None  # that it is gone is seen elsewhere

    def look_on() -> None:
        while not stop.is_set() and server.process.poll() is None:
            reads[ask(server.port, "POST", "/v1/api/memories/search", {"query": "content words"}, token)[0]] += 1
            reads[ask(server.port, "GET", "/v1/api/memories?limit=5", token=token)[0]] += 1

    readers = [threading.Thread(target=read) for _ in range(clients - clients // 2)]
    for thread in readers:
        thread.start()
    threads = [*writers(clients // 2, server.port, token, ledger, 1, stop), *readers]
    samples = watch(tally, seconds, ledger, server.process.pid, folder / "pegword.db-wal", grows)
    died = server.process.poll() is not None
    stop.set()
    joined(threads)
    code = server.stop()
    found, wrong = look(folder / "pegword.db")
    wrong += [f"the server ended under load: {server.said[-500:]}"] if died else []
    wrong += ledger.wrong + [f"{number} reads were answered {status}" for status, number in reads.items() if status != 200]
    wrong += [f"{number} writes were answered {status}" for (status, _), number in ledger.statuses.items() if status >= 500]
    wrong += ([f"ended with {code}"] if code else []) + growth(tally, samples)
    tally.notes["reads"] = reads.total()
    tally.book(acknowledged=ledger.answers, lost=ledger.lost({name: text for (_, name), text in found.items()}), wrong=wrong)
    return tally


def test_a_server_under_load_serves_loses_nothing_and_does_not_grow(folder: Path, token: str) -> None:
    """No 5xx, no answer lost; memory, files and threads stay as many, the log stays short."""
    under_load(Tally(f"{CLIENTS} clients for {SECONDS} s"), SERVE, folder, token, SECONDS, CLIENTS).hold()


def an_hour(memory: Callable[[float], float]) -> list[Sample]:
    """Samples of a server whose memory, in MiB, is as *memory* says of each second."""
    return [Sample(at_s, round(memory(at_s) * (1 << 20)), 60, 12, 4 << 20) for at_s in range(0, 3_601, 2)]


def filling(at_s: float) -> float:
    """As a server's memory is: caches fill for some minutes, pages come and go, and every half minute what is free is given back."""
    return 65 + 35 * min(at_s / 900, 1.0) + at_s % 30 / 3


@pytest.mark.parametrize(
    ("memory", "wrong"),
    [
        (filling, ""),
        (lambda at_s: filling(at_s) + at_s * 2 / 600, "the memory grows by 2.0 MiB in ten minutes"),
        (lambda at_s: filling(at_s) + 8 * 260 * at_s / (1 << 20), "the memory grows by 1.2 MiB in ten minutes"),
        (lambda at_s: filling(at_s) + 20 * (at_s > 2_400), "the memory grows by"),
    ],
    ids=["level", "two MiB in ten minutes", "eight bytes a request", "one step late"],
)
def test_an_hour_under_load_must_come_to_a_level_and_stay_there(memory: Callable[[float], float], wrong: str) -> None:
    """What fills within the first third may fill. What a fault would add to that is seen, as small as it is."""
    said = growth(Tally("an hour"), an_hour(memory))

    assert (wrong != "") == bool(said)
    assert all(text.startswith(wrong) for text in said)


@pytest.mark.parametrize(
    ("mutant", "seen"),
    [
        ("DroppingSqlite", {"acknowledged '"}),
        ("HoardingSqlite", {"the memory grew", "open files grew", "threads grew"}),
        ("StubbornSqlite", {"writes were answered 503"}),
    ],
)
def test_a_server_that_loses_grows_or_refuses_under_load_is_caught(folder: Path, token: str, mutant: str, seen: set[str]) -> None:
    """Each planted fault is seen as what it is."""
    tally = Tally(f"8 clients, {mutant}")
    grows = [text for text in seen if "grew" in text]
    under_load(tally, [PYTHON, "-m", "tests.faults.serving", mutant, "serve"], folder, token, 0, 8, grows).catch()

    assert seen == {text for text in seen if any(text in said for said in tally.lost + tally.wrong)}
