"""The long form of the fault tests (`make faults`): the same tests with larger numbers, and docs/reliability.md from what they counted.

Every number is an environment variable, ``PEGWORD_FAULTS_`` and its name; `NUMBERS` says what it is when nobody says otherwise.
Each file of tests runs in a process of its own: one that fails or dies ends no other. What was counted is written down as it goes; of a run
that is broken off, as far as it came.

Parts may run side by side, each with ``-k``, which pytest understands; the page is then written from what they counted::

    python -m tests.faults.long -k "test_power or test_kill"
    python -m tests.faults.long -k "not test_power and not test_kill"
    python -m tests.faults.long --from .faults/*.jsonl
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.faults.harness import SEED, told
from tests.faults.page import failed_of, lines_of, note, write_page

ROOT = Path(__file__).parent.parent.parent
HERE = Path(__file__).parent.relative_to(ROOT)
KEPT = ROOT / ".faults"
NOTHING_CHOSEN = 5  # how pytest ends when there is no such test

NUMBERS = {
    "KILLS": 1_000, "KILLS_AT_AN_ACTION": 2_000, "KILLS_OF_A_WORK": 200, "KILLS_OF_A_START": 200, "KILLS_OF_A_KEEPING": 50,
    "KILLS_UNDER_KEYS": 100, "POWER_LOSSES": 10_000, "POWER_LOSSES_ROLLBACK": 1_000,
    "DISK_LIVES": 300, "DISK_SERVERS": 10, "FLIPS": 300, "CUT_FILES": 100, "REMOVED_LOGS": 50, "CLOCKS": 50,
    "LOCK_S": 30, "SAVES_A_PROCESS": 5_000, "ENDS": 50, "OVERLOAD_S": 60,
    "POSTGRES_RESTARTS": 100, "POSTGRES_CUTS": 1_000, "POSTGRES_TERMINATIONS": 1_000, "POSTGRES_STALL_S": 10,
    "LOAD_S": 3_600, "LOAD_CLIENTS": 64, "PATIENCE_S": 14_400,
}  # fmt: skip


def main() -> int:
    """Run the tests, unless tallies are given, and write the page; 1 when a test failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-k", dest="chosen", metavar="EXPRESSION", default="", help="run these tests only, and leave the page as it is")
    parser.add_argument("--from", dest="tallies", metavar="FILE", nargs="+", type=Path, help="run nothing: write the page from these files")
    given = parser.parse_args()
    if given.tallies:
        write_page([line for path in given.tallies for line in lines_of(path)])
        return 0
    KEPT.mkdir(exist_ok=True)
    report = KEPT / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.jsonl"
    say(
        f"The long form{f' of {given.chosen!r}' if given.chosen else ', several hours'}. SEED={SEED}. Counted in {report.relative_to(ROOT)}"
    )
    whole = run(report, given.chosen)
    failed = failed_of(lines_of(report))
    say(f"{len(failed)} failed.{''.join(f'{chr(10)}  {line}' for line in failed)}")
    if whole and not given.chosen:
        write_page(lines_of(report))
    else:
        say(f"For the page: python -m tests.faults.long --from {report.relative_to(ROOT)} and those of the other parts")
    return int(bool(failed) or not whole)


def run(report: Path, chosen: str, files: "list[Path] | None" = None) -> bool:
    """Run each of *files*, the tests that *chosen* chooses; False when somebody ended it before."""
    files = sorted((ROOT / HERE).glob("test_*.py")) if files is None else files
    environment = {f"PEGWORD_FAULTS_{name}": str(number) for name, number in NUMBERS.items()} | dict(os.environ)
    environment |= {"PEGWORD_FAULTS_REPORT": str(report), "SEED": str(SEED), "PYTHONUNBUFFERED": "1"}
    report.touch()
    began = time.monotonic()
    for number, path in enumerate(files, 1):
        started, before = time.monotonic(), len(failed_of(lines_of(report)))
        command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "-p", "tests.faults.telling"]
        command += [str(path), *(["-k", chosen] if chosen else [])]
        with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            assert process.stdout is not None
            try:
                for line in filter(str.strip, process.stdout):
                    say(line.rstrip("\n"), time.monotonic() - began)
            except KeyboardInterrupt:
                process.wait()
                return False
        if process.returncode == NOTHING_CHOSEN:
            continue
        if process.returncode and len(failed_of(lines_of(report))) == before:
            note(report, {"failed": path.name, "why": f"its process ended with {process.returncode}"})
        say(f"{number} of {len(files)}: {path.name} took {told(time.monotonic() - started)}", time.monotonic() - began)
    return True


def say(text: str, elapsed_s: "float | None" = None) -> None:
    """Print a line, with the time since the beginning."""
    print(text if elapsed_s is None else f"[{told(elapsed_s)}] {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
