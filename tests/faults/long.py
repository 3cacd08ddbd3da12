"""The long form of the fault tests (`make faults`): the same tests with larger numbers, and docs/reliability.md from what they counted.

Every number is an environment variable, ``PEGWORD_FAULTS_`` and its name; `NUMBERS` says what it is when nobody says otherwise.
With ``--from FILE ...`` nothing is run: the page is written from the tallies of runs that were made before.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import apsw
import psycopg

from pegword import __version__
from tests.faults.harness import SEED

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "reliability.md"
BEGIN, END = "<!-- figures: begin -->\n", "<!-- figures: end -->\n"

NUMBERS = {
    "KILLS": 1_000, "KILLS_AT_AN_ACTION": 2_000, "KILLS_OF_A_WORK": 200, "KILLS_OF_A_START": 200,
    "POWER_LOSSES": 10_000, "POWER_LOSSES_ROLLBACK": 1_000,
    "DISK_LIVES": 300, "DISK_SERVERS": 10, "FLIPS": 300, "CUT_FILES": 100, "REMOVED_LOGS": 50, "CLOCKS": 50,
    "LOCK_S": 30, "SAVES_A_PROCESS": 5_000, "ENDS": 50, "OVERLOAD_S": 60,
    "POSTGRES_RESTARTS": 100, "POSTGRES_CUTS": 1_000, "POSTGRES_TERMINATIONS": 1_000, "POSTGRES_STALL_S": 10,
    "LOAD_S": 3_600, "LOAD_CLIENTS": 64, "PATIENCE_S": 40_000,
}  # fmt: skip


def main() -> int:
    """Run the tests, unless tallies are given, and write the page; the exit code of the tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--from", dest="tallies", nargs="+", type=Path, help="files of tallies of earlier runs: write the page, run nothing"
    )
    tallies = parser.parse_args().tallies
    if tallies:
        write_page([line for path in tallies for line in lines_of(path)])
        return 0
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "tallies"
        environment = {f"PEGWORD_FAULTS_{name}": str(number) for name, number in NUMBERS.items()} | dict(os.environ)
        environment |= {"PEGWORD_FAULTS_REPORT": str(report), "SEED": str(SEED)}
        print(f"The long form: several hours. SEED={SEED}", flush=True)
        began = time.monotonic()
        command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "tests/faults"]
        code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        print(f"It took {(time.monotonic() - began) / 60:.0f} minutes.", flush=True)
        write_page(lines_of(report))
    return code


def lines_of(report: Path) -> list[dict[str, Any]]:
    """The tallies in one file."""
    return [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]


def write_page(tallies: list[dict[str, Any]]) -> None:
    """Put the figures into the page, between their marks."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}{figures(tallies)}{END}{after}", encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} is written.")


def figures(tallies: list[dict[str, Any]]) -> str:
    """Two tables: what was injected and what came of it, and the planted faults."""
    seeds = ", ".join(sorted({str(tally["seed"]) for tally in tallies}))
    lines = [
        f"Pegword {__version__} on {datetime.datetime.now(datetime.UTC):%Y-%m-%d}: Python {platform.python_version()}, SQLite"
        f" {apsw.sqlite_lib_version()}, psycopg {psycopg.__version__}, {os.cpu_count()} CPUs, seed {seeds}.\n",
        "| what was injected | injected | survived | acknowledged | lost | 95 % bound a fault | more |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for tally in tallies:
        if not tally["planted"]:
            more = ", ".join(f"{name} {value:g}" for name, value in tally["notes"].items())
            lines.append(
                f"| {tally['what']} | {tally['injected']:,} | {tally['survived']:,} | {tally['acknowledged']:,} | {tally['lost']:,}"
                f" | {bound(tally)} | {more} |"
            )
    lines += ["", "| planted fault | injected | lost | otherwise wrong |", "|---|---:|---:|---:|"]
    lines += [
        f"| {tally['what']} | {tally['injected']:,} | {tally['lost']:,} | {tally['wrong']:,} |" for tally in tallies if tally["planted"]
    ]
    return "\n".join(lines) + "\n"


def bound(tally: dict[str, Any]) -> str:
    """What a count of zero means."""
    if tally["lost"] or tally["wrong"]:
        return "-"
    return f"{300 / tally['injected']:.2g} %" if tally["injected"] >= 10 else "-"


if __name__ == "__main__":
    sys.exit(main())
