"""The harness itself: a schedule that can be repeated, a tally that can fail, a page that says what was counted."""

import re
import sys
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.faults import harness, long
from tests.faults.harness import SEED, Tally, told
from tests.faults.page import BEGIN, END, failed_of, figures, lines_of, merged, write_page

LINE = {"what": "a", "planted": False, "injected": 10, "survived": 10, "acknowledged": 5, "lost": 0, "wrong": 0, "notes": {}, "seed": 7}


def test_a_schedule_is_the_same_for_the_same_seed_and_another_for_each_fault() -> None:
    once = [chance.random() for chance in Tally("a test").schedule(5)]
    again = [chance.random() for chance in islice(Tally("a test").schedule(50), 5)]
    other = [chance.random() for chance in Tally("another test").schedule(5)]

    assert once == again
    assert len({*once, *other}) == 10


@pytest.mark.parametrize(("shown_by", "drawn"), [(0, 3), (2, 3), (7, 8), (10**9, 3 * harness.AT_MOST)])
def test_there_are_as_many_faults_as_it_takes_until_a_planted_one_is_noticed(shown_by: int, drawn: int) -> None:
    """At least as many as were asked for, and no more than `AT_MOST` times that."""
    tally = Tally("a test", until_noticed=True)
    for number, _ in enumerate(tally.schedule(3)):
        tally.book(lost=["n"] if number == shown_by else [])

    assert drawn == tally.injected


@pytest.mark.parametrize("bad", [{"lost": ["n"]}, {"wrong": ["n"]}], ids=["lost", "wrong"])
def test_a_tally_fails_for_one_loss_and_counts_who_survived(bad: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PEGWORD_FAULTS_REPORT", raising=False)
    tally = Tally("a test")
    tally.book(acknowledged=3)
    tally.book(**bad)  # type: ignore[arg-type]

    assert (2, 1, 3) == (tally.injected, tally.survived, tally.acknowledged)
    tally.catch()
    with pytest.raises(AssertionError):
        tally.hold()


def test_a_planted_fault_that_went_unnoticed_and_a_run_without_faults_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PEGWORD_FAULTS_REPORT", raising=False)
    with pytest.raises(AssertionError, match="unnoticed"):
        Tally("a test").catch()
    with pytest.raises(AssertionError):
        Tally("a test").hold()


def test_the_page_says_what_was_counted_and_what_zero_means() -> None:
    """Three in a thousand is 0.3 % a fault; where something was lost, or the faults were few, no bound is claimed."""
    common = {"acknowledged": 5, "wrong": 0, "notes": {"slowest s": 1.5}, "seed": 7, "planted": False}
    told = figures([
        {"what": "many", "injected": 1_000, "survived": 1_000, "lost": 0, **common},
        {"what": "few", "injected": 9, "survived": 9, "lost": 0, **common},
        {"what": "bad", "injected": 100, "survived": 99, "lost": 1, **common},
        {"what": "planted", "injected": 4, "survived": 0, "lost": 4, **common | {"planted": True}},
    ])  # fmt: skip

    assert "| many | 1,000 | 1,000 | 5 | 0 | 0.3 % | slowest s 1.5 |" in told
    assert "| few | 9 | 9 | 5 | 0 | - |" in told
    assert "| bad | 100 | 99 | 5 | 1 | - |" in told
    assert "| planted | 4 | 4 | 0 |" in told.partition("planted fault")[2]
    assert "seed 7." in told


def line(**other: Any) -> dict[str, Any]:
    return {**LINE, **other}


def test_a_fault_has_one_row_and_each_seed_counts_once() -> None:
    """Faults of the same seed are the same faults: the longest run of them counts. Those of another seed are added, notes too."""
    told = merged([
        line(notes={"in doubt": 2, "slowest s": 3.0}),
        line(what="b"),
        line(injected=30, survived=30, notes={"in doubt": 4, "slowest s": 5.0}),
        line(seed=8, notes={"in doubt": 1, "slowest s": 4.0}),
        line(planted=True, lost=3),
    ])  # fmt: skip

    assert [("a", False, 40, 40, 10), ("b", False, 10, 10, 5), ("a", True, 10, 10, 5)] == [
        (each["what"], each["planted"], each["injected"], each["survived"], each["acknowledged"]) for each in told
    ]
    assert {"in doubt": 5, "slowest s": 5.0} == told[0]["notes"]


@pytest.mark.parametrize("bad", [{"lost": 1}, {"wrong": 1}], ids=["lost", "wrong"])
def test_a_run_that_lost_something_is_never_covered_by_another_of_its_seed(bad: dict[str, int]) -> None:
    lost = line(survived=9, **bad)
    longer = line(injected=1_000, survived=1_000)

    assert [{**lost, "ended": True}] == merged([lost, longer]) == merged([longer, lost])


def test_a_run_that_was_broken_off_counts_as_far_as_it_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has told of how far it is stands on the page, and that it was broken off; of one that ended, its end."""
    monkeypatch.setenv("PEGWORD_FAULTS_REPORT", str(tmp_path / "report"))
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "a test")
    monkeypatch.setattr(harness, "PROGRESS_EVERY_S", 0.0)
    for what, ends in (("broken", False), ("whole", True)):
        tally = Tally(what)
        for number, _ in enumerate(tally.schedule(4)):
            if number == 3 and not ends:
                break
            tally.book(acknowledged=2)
        if ends:
            tally.hold()
    told = figures(lines_of(tmp_path / "report"))

    assert "| broken | 3 | 3 | 6 | 0 | - | broken off |" in told
    assert "| whole | 4 | 4 | 8 | 0 | - |  |" in told


def test_a_planted_fault_that_is_broken_off_is_no_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEGWORD_FAULTS_REPORT", str(tmp_path / "report"))
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "test_x.py::test_a_fault_is_caught (call)")
    monkeypatch.setattr(harness, "PROGRESS_EVERY_S", 0.0)
    for _ in zip(Tally("planted").schedule(4), range(2), strict=False):
        pass

    assert not (tmp_path / "report").exists()


def test_the_page_names_the_tests_that_failed_and_keeps_its_other_words(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}old\n{END}after\n", encoding="utf-8")
    write_page([LINE, {"failed": "test_x.py::test_y", "why": "it broke", "seed": 7}], page)
    text = page.read_text(encoding="utf-8")

    assert text.startswith(f"before\n{BEGIN}Pegword ")
    assert "1 tests failed:\n\n- test_x.py::test_y: it broke\n" in text
    assert text.endswith(f"{END}after\n")
    assert "old" not in text


COUNTS = """
from tests.faults.harness import Tally
def test_it():
    tally = Tally("what {0} does")
    for _ in tally.schedule(2):
        tally.book(acknowledged=1)
    tally.hold()
"""
FAILS = "def test_it():\n    assert not 'broken'\ndef test_other():\n    pass\n"
DIES = "import os\ndef test_it():\n    os._exit(9)\n"
CANNOT_BE_READ = "import nothing_of_that_name\n"


def test_the_long_form_goes_on_after_what_fails_dies_or_cannot_be_read_and_counts_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each file is a process of its own; what failed is named on the page, with why."""
    monkeypatch.setenv("PYTHONPATH", ":".join(filter(None, sys.path)))
    texts = [COUNTS.format("a"), FAILS, DIES, CANNOT_BE_READ, COUNTS.format("z")]
    files = [tmp_path / f"test_{number}.py" for number in range(len(texts))]
    for path, text in zip(files, texts, strict=True):
        path.write_text(text, encoding="utf-8")
    report = tmp_path / "report"

    assert long.run(report, "", files)
    lines = lines_of(report)
    assert [("what a does", 2, SEED), ("what z does", 2, SEED)] == [(t["what"], t["injected"], t["seed"]) for t in merged(lines)]
    named = ["test_1.py::test_it: AssertionError", "test_2.py: its process", "test_3.py: ImportError"]
    assert [True] * 3 == [name in text for name, text in zip(named, failed_of(lines), strict=True)], failed_of(lines)
    shown = capfd.readouterr().out
    assert re.search(r"^\[\d+ s\] what a does: 2 injected, 2 survived, 2 acknowledged, 0 lost", shown, re.MULTILINE)
    assert "5 of 5: test_4.py took" in shown


def test_the_long_form_runs_the_tests_that_are_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of which none is chosen has not failed."""
    monkeypatch.setenv("PYTHONPATH", ":".join(filter(None, sys.path)))
    for name in ("power", "kill"):
        (tmp_path / f"test_{name}.py").write_text(COUNTS.format(name), encoding="utf-8")
    report = tmp_path / "report"

    assert long.run(report, "power", sorted(tmp_path.glob("test_*.py")))
    assert ["what power does"] == [each["what"] for each in lines_of(report)]


def test_a_line_that_was_not_written_to_its_end_is_none(tmp_path: Path) -> None:
    report = tmp_path / "report"
    report.write_text('{"failed": "a", "why": "b"}\n{"what": "cut o', encoding="utf-8")

    assert [{"failed": "a", "why": "b"}] == lines_of(report)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0 s"), (59, "59 s"), (61, "1 min 01 s"), (3_600, "1 h 00 min"), (7_390, "2 h 03 min")]
)
def test_spans_are_told_as_they_are_read(seconds: float, text: str) -> None:
    assert text == told(seconds)
