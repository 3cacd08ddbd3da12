"""The history of a memory, a page at a time."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegword.core.caller import GLOBAL, Caller
from pegword.core.errors import Invalid
from pegword.core.memory import Draft
from pegword.services.bundle import Services
from pegword.store import version_rows

COUNT = 205


@pytest.fixture
def long_one(services: Services, alice: Caller) -> str:
    """The id of a memory with more versions than one page may have."""
    for n in range(1, COUNT + 1):
        saved = services.memories.save(alice, Draft("count", f"text {n}", GLOBAL))
    return saved.memory.memory_id


def numbers(services: Services, caller: Caller, memory_id: str, **page: int) -> list[int]:
    return [v.version for v in services.memories.versions(caller, memory_id, **page).versions]


def test_a_page_is_the_newest_hundred_and_pages_meet(services: Services, alice: Caller, long_one: str) -> None:
    """No version is in two pages, none in none, and each page says how many there are."""
    first = services.memories.versions(alice, long_one)
    pages = [numbers(services, alice, long_one, limit=60, offset=offset) for offset in range(0, COUNT, 60)]

    assert (list(range(COUNT, COUNT - 100, -1)), COUNT) == ([v.version for v in first.versions], first.total)
    assert list(range(COUNT, 0, -1)) == [number for page in pages for number in page]
    assert list(range(COUNT, COUNT - 200, -1)) == numbers(services, alice, long_one, limit=10_000)
    assert [] == numbers(services, alice, long_one, offset=COUNT)
    assert [] == numbers(services, alice, long_one, offset=2**70)


@pytest.mark.parametrize(("page", "field"), [({"limit": 0}, "limit"), ({"offset": -1}, "offset")])
def test_what_is_no_page_is_refused(services: Services, alice: Caller, page: dict[str, int], field: str) -> None:
    memory_id = services.memories.save(alice, Draft("count", "text", GLOBAL)).memory.memory_id
    with pytest.raises(Invalid) as refusal:
        services.memories.versions(alice, memory_id, **page)

    assert field == refusal.value.field


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(limit=st.integers(1, 12), offset=st.integers(0, 12), hurt=st.sets(st.integers(1, 9)))
def test_a_page_is_a_cut_of_the_whole_also_where_versions_are_damaged(
    services: Services, alice: Caller, limit: int, offset: int, hurt: set[int]
) -> None:
    """A damaged one is left out of the page that it would be on; it moves no other."""
    for n in range(9):
        memory_id = services.memories.save(alice, Draft("count", f"text {n}", GLOBAL)).memory.memory_id
    for number in hurt:
        services.engine.write(
            lambda tx, number=number: tx.run(
                "UPDATE memory_versions SET content = 'altered' WHERE memory_id = ? AND version = ?", (memory_id, number)
            )
        )
    whole = list(range(9, 0, -1))
    page = numbers(services, alice, memory_id, limit=limit, offset=offset)
    services.memories.delete_by_id(alice, memory_id)

    assert [number for number in whole[offset : offset + limit] if number not in hurt] == page


def test_no_more_is_read_than_is_shown(services: Services, alice: Caller, long_one: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are, what is in memory at once is one page."""
    read: list[int] = []
    sound = version_rows.is_sound
    monkeypatch.setattr(version_rows, "is_sound", lambda version: read.append(version.version) or sound(version))
    numbers(services, alice, long_one, limit=3, offset=100)

    assert [COUNT - 100, COUNT - 101, COUNT - 102] == read
