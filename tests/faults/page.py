"""docs/reliability.md, from what was counted: its two tables, and what zero means."""

import datetime
import json
import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import apsw
import psycopg

from pegword import __version__

PAGE = Path(__file__).parent.parent.parent / "docs" / "reliability.md"
BEGIN, END = "<!-- figures: begin -->\n", "<!-- figures: end -->\n"
COUNTED = ("injected", "survived", "acknowledged", "lost", "wrong")
ADDED = ("answered", "refused", "in doubt", "in_doubt", "reads", "asked again")  # notes that count; of the others the largest tells most

Line = dict[str, Any]  # what a tally or a test that failed wrote down


def lines_of(report: Path) -> list[Line]:
    """What was written down in one file. A last line that its process did not finish is none."""
    lines = []
    for text in report.read_text(encoding="utf-8").splitlines():
        try:
            lines.append(json.loads(text))
        except ValueError:
            continue
    return lines


def note(report: Path, line: Line) -> None:
    """Write a line down, whole, at once."""
    with report.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def failed_of(lines: Iterable[Line]) -> list[str]:
    """The tests that failed, and why."""
    return [f"{line['failed']}: {line['why']}" for line in lines if "failed" in line]


def merged(lines: Iterable[Line]) -> list[Line]:
    """One tally for each fault, in the order in which they first came. Faults of one seed are the same faults, however often they were
    run: the run with something lost or wrong counts, else the longest. What other seeds counted is added."""
    runs: dict[tuple[str, bool], dict[int, Line]] = {}
    for line in lines:
        if "failed" not in line:
            of_seed = runs.setdefault((line["what"], line["planted"]), {})
            of_seed[line["seed"]] = max(of_seed.get(line["seed"], line), line, key=_weight)
    return [_added(list(of_seed.values())) for of_seed in runs.values()]


def _weight(line: Line) -> tuple[bool, int, bool]:
    return (not line["planted"] and bool(line["lost"] or line["wrong"]), line["injected"], _ended(line))


def _ended(line: Line) -> bool:
    return bool(line.get("ended", True))


def _added(lines: Sequence[Line]) -> Line:
    notes: dict[str, float] = {}
    for name, value in (item for line in lines for item in line["notes"].items()):
        notes[name] = notes.get(name, 0) + value if name.startswith(ADDED) else max(value, notes.get(name, value))
    ended = all(_ended(line) for line in lines)
    return {**lines[0], **{name: sum(line[name] for line in lines) for name in COUNTED}, "notes": notes, "ended": ended}


def write_page(lines: Sequence[Line], page: Path = PAGE) -> None:
    """Put the figures into the page, between their marks."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}{figures(lines)}{END}{after}", encoding="utf-8")
    print(f"{page.name} is written.")


def figures(lines: Sequence[Line]) -> str:
    """What was injected and what came of it, the planted faults, and the tests that failed, if any did."""
    tallies = merged(lines)
    seeds = ", ".join(sorted({str(line["seed"]) for line in lines if "seed" in line}))
    told = [
        f"Pegword {__version__} on {datetime.datetime.now(datetime.UTC):%Y-%m-%d}: Python {platform.python_version()}, SQLite"
        f" {apsw.sqlite_lib_version()}, psycopg {psycopg.__version__}, {os.cpu_count()} CPUs, seed {seeds}.\n",
        "| what was injected | injected | survived | acknowledged | lost | 95 % bound a fault | more |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for tally in tallies:
        if not tally["planted"]:
            more = ", ".join([f"{name} {value:,g}" for name, value in tally["notes"].items()] + ["broken off"] * (not tally["ended"]))
            told.append(
                f"| {tally['what']} | {tally['injected']:,} | {tally['survived']:,} | {tally['acknowledged']:,} | {tally['lost']:,}"
                f" | {bound(tally)} | {more} |"
            )
    told += ["", "| planted fault | injected | lost | otherwise wrong |", "|---|---:|---:|---:|"]
    told += [
        f"| {tally['what']} | {tally['injected']:,} | {tally['lost']:,} | {tally['wrong']:,} |" for tally in tallies if tally["planted"]
    ]
    failed = failed_of(lines)
    told += ["", f"{len(failed)} tests failed:\n", *(f"- {line}" for line in failed)] if failed else []
    return "\n".join(told) + "\n"


def bound(tally: Line) -> str:
    """What a count of zero means."""
    if tally["lost"] or tally["wrong"]:
        return "-"
    return f"{300 / tally['injected']:.2g} %" if tally["injected"] >= 10 else "-"
