"""How many requests a token may send in a minute: more are 429, and nobody else notices."""

from collections.abc import Callable

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegword.http.app import create_app
from pegword.http.failures import TooMany
from pegword.http.rates import KNOWN_MAX, Rates
from pegword.settings import load
from tests.wire.conftest import Site, save

PATH = "/v1/api/memories"


class Moment:
    """Seconds that pass when a test lets them."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def moment() -> Moment:
    return Moment()


@pytest.fixture
def limited(server: Site, moment: Moment) -> Callable[[int], None]:
    """Puts an application with so many requests a minute into the server."""

    def limit(per_minute: int) -> None:
        assert server.services is not None
        settings = load(environment={"PEGWORD_SERVER__REQUESTS_PER_MINUTE": str(per_minute)})
        server.app = create_app(server.services, settings, rates=Rates(moment))

    return limit


def test_a_token_that_sends_too_much_is_told_when_to_come_again(
    limited: Callable[[int], None], moment: Moment, alice: httpx2.Client
) -> None:
    """429 with Retry-After; after that time it is served."""
    limited(6)
    served = [alice.get(PATH).status_code for _ in range(6)]
    refused = alice.get(PATH)
    moment.now += 9
    early = alice.get(PATH)
    moment.now += int(early.headers["retry-after"])
    again = alice.get(PATH)

    assert [200] * 6 == served
    assert (429, "rate_limited", "11") == (refused.status_code, refused.json()["code"], refused.headers["retry-after"])
    assert "this token has sent more than 6 requests in a minute; wait, then try again" == refused.json()["error"]
    assert (429, "2", 200) == (early.status_code, early.headers["retry-after"], again.status_code)


def test_nobody_else_is_kept_waiting(limited: Callable[[int], None], server: Site, alice: httpx2.Client, bob: httpx2.Client) -> None:
    """Each token has a minute of its own, another one of the same user too; what takes no token is not counted."""
    limited(3)
    second = server.client(server.token("alice"))
    mine = [alice.get(PATH).status_code for _ in range(60)]

    assert [200] * 3 + [429] * 57 == mine
    assert [200] * 6 == [client.get(PATH).status_code for client in (bob, second) for _ in range(3)]
    assert [200] * 9 == [alice.get("/livez").status_code for _ in range(9)]


def test_what_is_refused_changes_nothing(limited: Callable[[int], None], server: Site, alice: httpx2.Client) -> None:
    """It is refused before its body is read."""
    limited(1)
    save(alice)
    refused = [
        alice.post(PATH, json={"name": "more", "content": "x"}),
        alice.post(PATH, content=b"x" * 900_000, headers={"Content-Type": "application/json"}),
        alice.delete(f"{PATH}/deploy_day"),
        alice.get(f"{PATH}/deploy_day"),
    ]
    limited(0)

    assert [429] * 4 == [answer.status_code for answer in refused]
    assert ["deploy_day"] == [memory["name"] for memory in alice.get(PATH).json()["memories"]]


def test_there_is_no_limit_unless_one_is_set(alice: httpx2.Client) -> None:
    assert [200] * 70 == [alice.get(PATH).status_code for _ in range(70)]


@given(st.integers(1, 200), st.lists(st.floats(0, 30), max_size=300))
def test_at_most_twice_the_rate_passes_in_any_minute_and_the_rate_in_the_long_run(per_minute: int, pauses: list[float]) -> None:
    """A whole minute's worth at once, and what comes back meanwhile. Who waits as long as they are told is served."""
    moment, passed = Moment(), []
    rates = Rates(moment)
    for pause in pauses:
        moment.now += pause
        try:
            rates.take("key", per_minute)
        except TooMany as refusal:
            moment.now += refusal.retry_after_s
            rates.take("key", per_minute)
        passed.append(moment.now)

    for i, end in enumerate(passed):
        window = [at for at in passed[: i + 1] if at > end - 60]
        assert len(window) <= 2 * per_minute
    if passed:
        assert len(passed) <= per_minute * (1 + (passed[-1] - 1_000) / 60) + 1


def test_tokens_that_were_quiet_are_forgotten(moment: Moment) -> None:
    """What is remembered does not grow with every token there ever was."""
    rates = Rates(moment)
    for number in range(3 * KNOWN_MAX):
        moment.now += 0.1
        rates.take(f"key {number}", 60)

    assert len(rates._full_at) <= KNOWN_MAX + 1
