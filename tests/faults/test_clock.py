"""A clock that is set back, runs ahead, or starts anew in 1970: nothing is lost, and when it is right again, all is found as before."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from pegword.assembly import open_services
from pegword.core.caller import Visible, reach
from pegword.core.errors import Unauthenticated
from pegword.core.memory import Draft
from pegword.services import reindexing
from pegword.services.bundle import Services
from pegword.settings import load
from tests.conftest import Clock
from tests.faults.harness import ENGINE_SHOWN, PATIENCE_S, Tally, how_many
from tests.faults.work import CALLER, SCOPES, Asked, look, stored, take_steps
from tests.store.test_index import small_index as small_index

LIVES = how_many("CLOCKS", 4)
JUMPS_A_LIFE = 5
HOUR_S, DAY_S, YEAR_S = 3_600, 86_400, 366 * 86_400
START = Clock().now

pytestmark = [pytest.mark.timeout(PATIENCE_S), pytest.mark.usefixtures("small_index")]

JUMPS: dict[str, Callable[[int], int]] = {
    "an hour back": lambda now: now - HOUR_S * 1_000_000,
    "ten years on": lambda now: now + 10 * YEAR_S * 1_000_000,
    "to 1970": lambda _: 1,
    "half a year back": lambda now: now - YEAR_S * 500_000,
    "right again": lambda _: START,
}


def live_through_jumps(tally: Tally, fresh: Callable[[], Path | str], chance: random.Random) -> None:
    """Work of every kind, with the clock jumping in between; in the end it is right again."""
    database, clock, asked = fresh(), Clock(), Asked()
    services = open_services(database, load(environment={}), clock=clock)
    lasting: dict[str, str] = {}
    wrong: list[str] = []
    for number, jump in enumerate(chance.sample(list(JUMPS.values()), JUMPS_A_LIFE)):  # each of them once
        for each in range(3):
            name, mark = f"lasting{number}_{each}", f"y{chance.getrandbits(40):x}"
            expires = START + chance.randrange(2, 20) * 24 * HOUR_S * 1_000_000
            services.memories.save(CALLER, Draft(name, f"it lasts for days {mark}", SCOPES[each], tags=("day",), expires_at=expires))
            lasting[name] = mark
        take_steps(services, asked, chance, 12)
        clock.now = jump(clock.now)
        take_steps(services, asked, chance, 4)
        services.housekeeper.sweep()
        wrong += odd_times(services)
    clock.now = START
    services.housekeeper.sweep()
    services.housekeeper.settle()
    for name, mark in lasting.items():
        hits = [hit.memory.name for hit in services.memories.search(CALLER, Visible(SCOPES), mark).hits]
        if hits.count(name) != 1:
            wrong.append(f"{name} ({mark}) has not expired, and is found as {hits}")
    listed = services.memories.list(CALLER, reach(CALLER), limit=200)
    if len({memory.memory_id for memory in listed.memories}) != listed.total:
        wrong.append(f"{listed.total} memories are listed as {len(listed.memories)}")
    found = {key: text for key, text in stored(services).items() if key[1] not in lasting}
    services.close()
    _, unsound = look(database)
    tally.book(acknowledged=asked.answers + len(lasting), lost=asked.lost(found), wrong=[*wrong, *unsound], faults=JUMPS_A_LIFE)


def odd_times(services: Services) -> list[str]:
    """Memories that were changed before they were made, or whose versions are not in the order of their numbers."""
    wrong = []
    for memory in services.memories.list(CALLER, reach(CALLER), include_expired=True, limit=200).memories:
        if memory.updated < memory.created:
            wrong.append(f"{memory.name} was updated before it was created")
        numbers = [version.version for version in services.memories.versions(CALLER, memory.memory_id).versions]
        if numbers != list(range(memory.version, memory.version - len(numbers), -1)):
            wrong.append(f"{memory.name} has the versions {numbers}")
    return wrong


def test_a_clock_that_jumps_loses_nothing(fresh: Callable[[], Path | str], engine_name: str) -> None:
    """An hour back, ten years on, to 1970: saves, changes, deletes and searches go on; what expires only in days is found again when the
    clock is right, though a sweep had taken it for expired."""
    tally = Tally(f"a clock that jumps, {ENGINE_SHOWN[engine_name]}")
    for chance in tally.schedule(LIVES):
        live_through_jumps(tally, fresh, chance)
    tally.hold()


def test_a_store_that_forgets_what_it_swept_too_early_is_caught(
    fresh: Callable[[], Path | str], engine_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tally = Tally(f"a clock that jumps, {ENGINE_SHOWN[engine_name]}, nothing restored", until_noticed=True)
    monkeypatch.setattr(reindexing, "restore", lambda *_: set())
    for chance in tally.schedule(2):
        live_through_jumps(tally, fresh, chance)
    tally.catch()


@pytest.mark.parametrize("jump", [-HOUR_S, 10 * YEAR_S, -YEAR_S])
def test_a_key_lives_no_longer_than_its_clock_says(services: Services, clock: Clock, jump: int) -> None:
    """It holds or not by the time that it is, whatever time it was before."""
    services.access.add_user("alice")
    ends = clock.now + DAY_S * 1_000_000
    _, token = services.access.add_key("alice", expires_at=ends)
    clock.now += jump * 1_000_000

    if clock.now < ends:
        assert "alice" == services.access.caller_of(token).user_name
    else:
        with pytest.raises(Unauthenticated):
            services.access.caller_of(token)
