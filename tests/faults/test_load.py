"""A server under load for long: no accident, no answer lost, and nothing that grows without end."""

import threading
import time
from pathlib import Path

import pytest

from tests.faults.harness import PATIENCE_S, PROGRESS_EVERY_S, Tally, how_many
from tests.faults.ledger import SERVE, Ledger, Server, ask, joined, writers
from tests.faults.test_kill import token as token
from tests.faults.work import look

SECONDS = how_many("LOAD_S", 8)
CLIENTS = how_many("LOAD_CLIENTS", 16)
SLOPE_MAX = 1 << 20  # bytes of memory in ten minutes, once it runs; looked at in runs of ten minutes and longer
LOG_MAX = 128 << 20

pytestmark = pytest.mark.timeout(PATIENCE_S + SECONDS)


def test_a_server_under_load_serves_loses_nothing_and_does_not_grow(tmp_path: Path, folder: Path, token: str) -> None:
    """Half of the clients save, change, delete, the others search, list: no 5xx, files and threads stay as many, the log stays short."""
    tally, ledger, stop = Tally(f"{CLIENTS} clients for {SECONDS} s"), Ledger(), threading.Event()
    server = Server(SERVE, f"sqlite:///{folder / 'pegword.db'}", folder)
    threads: list[threading.Thread] = [*writers(CLIENTS // 2, server.port, token, ledger, 1, stop)]
    reads: list[int] = []

    def read() -> None:
        while not stop.is_set():
            reads.append(ask(server.port, "POST", "/v1/api/memories/search", {"query": "content words"}, token)[0])
            reads.append(ask(server.port, "GET", "/v1/api/memories?limit=5", token=token)[0])

    threads += [threading.Thread(target=read) for _ in range(CLIENTS - CLIENTS // 2)]
    for thread in threads[CLIENTS // 2 :]:
        thread.start()
    samples = watch(tally, server.process.pid, folder / "pegword.db-wal")
    stop.set()
    joined(threads)
    code = server.stop()
    found, wrong = look(folder / "pegword.db")
    wrong += (
        ledger.wrong + [f"a read was answered {status}" for status in reads if status != 200] + ([f"ended with {code}"] if code else [])
    )
    first, last = samples[len(samples) // 3], samples[-1]
    slope = (last[1] - first[1]) / max(1.0, last[0] - first[0]) * 600
    if SECONDS >= 600 and slope > SLOPE_MAX:
        wrong.append(f"the memory grows by {slope / (1 << 20):.1f} MiB in ten minutes")
    wrong += [
        f"{name} grew from {a} to {b}" for name, a, b in (("open files", first[2], last[2]), ("threads", first[3], last[3])) if b > a + 20
    ]
    wrong += [f"the log grew to {largest >> 20} MiB"] if (largest := max(sample[4] for sample in samples)) > LOG_MAX else []
    tally.notes |= {"reads": len(reads), "memory MiB": last[1] >> 20}
    tally.notes |= {"MiB in ten minutes": round(slope / (1 << 20), 2)} if SECONDS >= 600 else {}
    tally.book(acknowledged=ledger.answers, lost=ledger.lost({name: text for (_, name), text in found.items()}), wrong=wrong)
    tally.hold()


def watch(tally: Tally, pid: int, log: Path) -> list[tuple[float, int, int, int, int]]:
    """Time, memory, open files, threads and length of the log, every half second; tells how far it is."""
    samples = []
    began = told = time.monotonic()
    while (now := time.monotonic()) - began < SECONDS:
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines())
        files = len(list(Path(f"/proc/{pid}/fd").iterdir()))
        samples.append(
            (now - began, int(status["VmRSS"].split()[0]) << 10, files, int(status["Threads"]), log.stat().st_size if log.exists() else 0)
        )
        if now - told >= PROGRESS_EVERY_S:
            told = now
            print(f"  {tally.what}: {now - began:.0f} of {SECONDS} s, {samples[-1][1] >> 20} MiB", flush=True)
        time.sleep(0.5)
    return samples
