"""The harness itself: a schedule that can be repeated, a tally that can fail, a page that says what was counted."""

from itertools import islice

import pytest

from tests.faults.harness import Tally
from tests.faults.long import figures


def test_a_schedule_is_the_same_for_the_same_seed_and_another_for_each_fault() -> None:
    once = [chance.random() for chance in Tally("a test").schedule(5)]
    again = [chance.random() for chance in islice(Tally("a test").schedule(50), 5)]
    other = [chance.random() for chance in Tally("another test").schedule(5)]

    assert once == again
    assert len({*once, *other}) == 10


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
