"""A plugin of pytest for the long form: a line for each test that has ended, in place of dots; who failed is written down."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.faults.harness import SEED, told
from tests.faults.page import note


@pytest.hookimpl(tryfirst=True)
def pytest_report_teststatus(report: "pytest.TestReport | pytest.CollectReport") -> "tuple[str, str, str] | None":
    """No dots between the lines of the tallies."""
    return ("passed" if report.when == "call" else "", "", "") if getattr(report, "when", "") and report.passed else None


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Say what became of a test, and how long it took."""
    if report.when == "call" or report.failed:
        print(f"{report.outcome} in {told(report.duration)}: {report.nodeid}", flush=True)
    if report.failed:
        _write_down(report.nodeid, report.longrepr)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A file that cannot be read in has failed too."""
    if report.failed:
        _write_down(report.nodeid, report.longrepr)


def _write_down(nodeid: str, why: Any) -> None:
    crash = getattr(why, "reprcrash", None)
    lines = (crash.message if crash else str(why)).strip().splitlines() or ["?"]
    path = os.environ.get("PEGWORD_FAULTS_REPORT")
    if path:
        note(Path(path), {"failed": nodeid.removeprefix("tests/faults/"), "why": lines[0][:200], "seed": SEED})
