"""`python -m bench.load`: the server under many clients over HTTP, and the real Turnstone server beside it in the same run.

Each client sends its next request when it has the answer to the last, so the servers are always full: times are those of a queue as long
as there are clients. A rate is a median over rounds in which the systems take turns; brackets show the least and the most.
See docs/benchmarks.md.
"""

import argparse
import os
import platform
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path

import apsw

from bench.generator import World
from bench.load_order import Measured, Work, order
from bench.servers import Cluster, Pegword, Server, Turnstone, turnstone_version

SEED = 7
BESIDE_CLIENTS = 16
BESIDE_KINDS = ("search", "list", "save")
BESIDE_WORDS = 4
CLIENTS = 64
KINDS = ("save", "turn", "search", "list")
MIXED = {"save": 20, "turn": 80}
WORDS = 12
QUERIES = 400
FILLED = "stored_"


def main() -> int:
    """Measure, and print the tables."""
    given = _arguments()
    with tempfile.TemporaryDirectory(prefix="pegword-load-") as name, ExitStack() as ends:
        folder = Path(name)
        cluster = _cluster(folder, given.engines)
        if cluster:
            ends.callback(cluster.close)
        print(_machine(given, cluster))
        if given.turnstone_python:
            for stored in given.stored:
                _beside(given, stored, folder / f"beside-{stored}")
        else:
            print("\nTurnstone's server is left out: name an interpreter that has it with --turnstone-python")
        for engine in given.engines:
            for processes in given.processes:
                _alone(given, engine, processes, folder, cluster)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    python = os.environ.get("PEGWORD_BENCH_TURNSTONE_PYTHON")
    parser.add_argument("--engines", nargs="+", choices=["sqlite", "postgresql"], default=["sqlite", "postgresql"])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2], help="server processes on one database")
    parser.add_argument("--stored", type=int, nargs="+", default=[1_000, 10_000], help="memories there when Turnstone is measured beside")
    parser.add_argument("--rounds", type=int, default=5, help="rounds in which the two systems take turns")
    parser.add_argument("--round-s", type=float, default=2.0, help="seconds of each system in a round")
    parser.add_argument("--memories", type=int, default=10_000, help="memories there when Pegword is measured alone")
    parser.add_argument("--each-s", type=float, default=10.0, help="seconds of each kind of request alone")
    parser.add_argument("--mixed-s", type=float, default=60.0, help="seconds of the mixture of saves and turns")
    parser.add_argument("--turnstone-python", type=Path, default=python and Path(python), help="interpreter of the peer")
    parser.add_argument("--short", action="store_true", help="a taste of everything in about two minutes")
    given = parser.parse_args()
    if given.short:
        given.stored, given.rounds, given.memories, given.each_s, given.mixed_s = [1_000], 3, 2_000, 3.0, 10.0
    return given


def _cluster(folder: Path, engines: list[str]) -> Cluster | None:
    return Cluster(folder / "postgresql") if "postgresql" in engines else None


def _machine(given: argparse.Namespace, cluster: Cluster | None) -> str:
    parts = [
        f"Python {platform.python_version()}", f"uvicorn {version('uvicorn')}", f"SQLite {apsw.sqlite_lib_version()}",
        f"{platform.machine()} with {os.cpu_count()} CPUs", f"seed {SEED}",
    ]  # fmt: skip
    if cluster:
        parts.append(f"PostgreSQL {cluster.version}")
    if given.turnstone_python:
        parts.append(f"Turnstone {turnstone_version(given.turnstone_python)}")
    return ", ".join(parts)


def _work(size: int, scopes: int, words: int) -> Work:
    world = World(size, scopes, SEED)
    queries = [" ".join(asked.words) for asked in world.queries(QUERIES, words)]
    return Work([note.text for note in world.notes()], queries)


def _beside(given: argparse.Namespace, stored: int, folder: Path) -> None:
    """Both servers with *stored* memories of one scope, on SQLite, one process each, asked the same in turns."""
    folder.mkdir()
    whole = _work(2 * stored, 1, BESIDE_WORDS)
    work, fresh = Work(whole.texts[:stored], whole.queries), Work(whole.texts[stored:], whole.queries)
    with _serving(Pegword(folder / "pegword", f"sqlite:///{folder / 'pegword' / 'pegword.db'}")) as ours:
        theirs = Turnstone(folder / "turnstone", given.turnstone_python)
        with _serving(theirs):
            order(ours, {"save": 1}, work, clients=BESIDE_CLIENTS, requests=stored, prefix=FILLED)
            theirs.fill([f"{FILLED}{number}" for number in range(stored)], work.texts)
            print(
                f"\n{BESIDE_CLIENTS} clients, {stored:,} memories in one scope, {BESIDE_WORDS} words a search, SQLite, one process each;"
                f" median of {given.rounds} rounds of {given.round_s:.0f} s"
            )
            for kind in BESIDE_KINDS:
                rounds = [_round(given, kind, number, fresh, [ours, theirs]) for number in range(given.rounds)]
                _print_beside(kind, [ours, theirs], rounds)


def _round(given: argparse.Namespace, kind: str, number: int, work: Work, servers: list[Server]) -> list[Measured]:
    """One round of each system, the first one first in every other round. What it saved is deleted again."""
    measured: dict[int, Measured] = {}
    for at in sorted(range(len(servers)), reverse=bool(number % 2)):
        prefix = f"round_{number}_"
        measured[at] = order(
            servers[at], {kind: 1}, work, clients=BESIDE_CLIENTS, seconds=given.round_s, prefix=prefix, seed=number
        )  # fmt: skip
        if kind == "save":
            order(servers[at], {"delete": 1}, work, clients=BESIDE_CLIENTS, requests=measured[at].numbered, prefix=prefix)
    return [measured[at] for at in range(len(servers))]


def _print_beside(kind: str, servers: list[Server], rounds: list[list[Measured]]) -> None:
    for at, server in enumerate(servers):
        own = [measured[at] for measured in rounds]
        rate = statistics.median(measured.per_second for measured in own)
        times = [statistics.median(measured.percentile(kind, share) for measured in own) for share in (0.5, 0.95, 0.99)]
        cpu = statistics.median(measured.server / measured.answers for measured in own) * 1_000
        clients = max(measured.clients / measured.seconds for measured in own)
        line = f"{kind:8}{server.name:24}{rate:8,.0f}/s   p50 p95 p99 {times[0]:7.1f} {times[1]:7.1f} {times[2]:7.1f} ms"
        print(f"{line}   {cpu:6.2f} ms CPU each   clients {clients:4.0%} of a CPU{_refused(own)}", flush=True)
    for what, ratios in (
        ("times as many a second", [ours.per_second / theirs.per_second for ours, theirs in rounds]),
        ("times less CPU for each", [(b.server / b.answers) / (a.server / a.answers) for a, b in rounds if a.server]),
    ):
        if ratios:
            print(f"{'':8}{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f}) {what}", flush=True)


def _alone(given: argparse.Namespace, engine: str, processes: int, folder: Path, cluster: Cluster | None) -> None:
    """Pegword alone: each kind of request by itself, then the mixture, by clients with a workstream each."""
    work = _work(given.memories, CLIENTS, WORDS)
    place = folder / f"{engine}-{processes}"
    url = cluster.url(f"load_{processes}") if engine == "postgresql" and cluster else f"sqlite:///{place / 'pegword.db'}"
    postmaster = cluster.pid if engine == "postgresql" and cluster else 0
    with _serving(Pegword(place, url, processes)) as server:
        order(server, {"save": 1}, work, clients=CLIENTS, requests=given.memories, own_scopes=True, prefix=FILLED)
        print(f"\n{server.name}: {CLIENTS} clients with a workstream each, {given.memories:,} memories there before")
        for kind in KINDS:
            measured = order(
                server, {kind: 1}, work, clients=CLIENTS, seconds=given.each_s, own_scopes=True, prefix=f"{kind}_", postmaster=postmaster
            )
            _print_alone(f"{given.each_s:.0f} s", measured)
        measured = order(
            server, MIXED, work, clients=CLIENTS, seconds=given.mixed_s, own_scopes=True, prefix="mixed_", postmaster=postmaster
        )
        print(f"mixed, {' and '.join(f'{share} % {kind}s' for kind, share in MIXED.items())}, {given.mixed_s:.0f} s:")
        _print_alone("mixed", measured)
        first, last = measured.mebibytes[0], measured.mebibytes[-1]
        print(f"memory of the server: {first:.0f} MiB, at the end {last:.0f}; second half {measured.growth():+.1f} MiB a minute")


def _print_alone(what: str, measured: Measured) -> None:
    for kind, times in measured.times.items():
        if times:
            spread = " ".join(f"{measured.percentile(kind, share):7.1f}" for share in (0.5, 0.95, 0.99))
            print(f"{kind:8}{what:8}{len(times) / measured.seconds:8,.0f}/s   p50 p95 p99 {spread} ms")
    database = f", PostgreSQL {measured.database / measured.answers * 1_000:.2f}" if measured.database else ""
    share = f"clients {measured.clients / measured.seconds:4.0%} of a CPU"
    print(f"{'':16}{measured.server / measured.answers * 1_000:.2f} ms CPU each{database}; {share}{_refused([measured])}", flush=True)


def _refused(rounds: list[Measured]) -> str:
    counts: dict[str, int] = {}
    for measured in rounds:
        for status, count in measured.refused().items():
            counts[status] = counts.get(status, 0) + count
    return "; refused: " + ", ".join(f"{count} x {status}" for status, count in sorted(counts.items())) if counts else "; none refused"


@contextmanager
def _serving(server: Pegword | Turnstone) -> Iterator[Pegword | Turnstone]:
    try:
        yield server
    finally:
        server.close()


if __name__ == "__main__":
    sys.exit(main())
