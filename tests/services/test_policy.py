"""Who may change what all users read: policy.global_write."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pegword.assembly import open_services
from pegword.core.caller import GLOBAL, Caller, scope_of
from pegword.core.errors import Forbidden
from pegword.core.memory import Draft
from pegword.core.transfer import Line
from pegword.services.bundle import Services
from pegword.services.writing import Changes
from pegword.settings import load
from pegword.tool.calling import MemoryTool
from tests.conftest import Clock


@pytest.fixture
def restricted(database: Path | str, clock: Clock) -> Iterator[Services]:
    """A store under the policy restricted, with one global memory of Alice's own hand in it."""
    opened = open_services(database, load(environment={"PEGWORD_POLICY__GLOBAL_WRITE": "restricted"}), clock=clock)
    alice = opened.access.person(opened.access.ensure_user("alice"))
    opened.memories.save(alice, Draft("deploy_day", "Tuesday.", GLOBAL))
    opened.memories.save(alice, Draft("deploy_day", "Monday.", GLOBAL))
    yield opened
    opened.close()


def agent(services: Services, right: str = "write") -> Caller:
    return services.access.caller_of(services.access.add_key("alice", right=right)[1])


def writes(services: Services, caller: Caller) -> dict[str, Callable[[], object]]:
    """Every way to change a global memory, by its name."""
    memory_id = services.memories.get(caller, GLOBAL, "deploy_day").memory_id
    return {
        "save": lambda: services.memories.save(caller, Draft("deploy_day", "Never.", GLOBAL)),
        "save new": lambda: services.memories.save(caller, Draft("other", "x", GLOBAL)),
        "update": lambda: services.memories.update(caller, memory_id, Changes(content="Never.")),
        "revert": lambda: services.memories.revert(caller, memory_id, 1),
        "delete": lambda: services.memories.delete(caller, GLOBAL, "deploy_day"),
        "delete_by_id": lambda: services.memories.delete_by_id(caller, memory_id),
    }


def test_where_it_is_restricted_an_agent_changes_nothing_global(restricted: Services) -> None:
    """By no way; it reads it all the same, and writes its other scopes."""
    caller = agent(restricted)
    for work in writes(restricted, caller).values():
        with pytest.raises(Forbidden, match=r"policy\.global_write is restricted; use another scope"):
            work()

    assert "Monday." == restricted.memories.get(caller, GLOBAL, "deploy_day").content
    assert "created" == restricted.memories.save(caller, Draft("deploy_day", "x", scope_of(caller, "user", ""))).outcome
    line = Line(1, "deploy_day", "Never.", "global", "")
    for dry_run in (False, True):
        report = restricted.transfer.bring(caller, iter([line]), policy="overwrite", dry_run=dry_run)
        assert (1, True) == (report.counts["refused"], "policy.global_write" in report.notes[0].reason)


@pytest.mark.parametrize("kind", ["a person", "a key that may approve"])
@pytest.mark.parametrize("way", ["save", "save new", "update", "revert", "delete", "delete_by_id"])
def test_who_may_approve_changes_it(restricted: Services, kind: str, way: str) -> None:
    caller = agent(restricted, "approve") if kind != "a person" else restricted.access.person(restricted.access.user("alice"))

    assert writes(restricted, caller)[way]()


def test_a_host_acts_as_an_agent_of_the_user(restricted: Services) -> None:
    """Its right over all users is no right over what all users read: its models are told so in a sentence."""
    restricted.access.ensure_user("host")
    host = restricted.access.caller_of(restricted.access.add_key("host", right="service")[1])
    tool = MemoryTool(restricted, kind_word=lambda kind, *_: kind)
    save = {"action": "save", "name": "deploy_day", "content": "We deploy whenever somebody feels like it.", "scope": "global"}
    of_alice = tool.call(host, restricted.sessions.create(host, user="alice"), save)
    of_nobody = tool.call(host, restricted.sessions.create(host, anonymous=True), save)

    assert (True, True) == (of_alice.is_error, "policy.global_write is restricted; use another scope: user" in of_alice.text)
    assert (True, True) == (of_nobody.is_error, "may only read" in of_nobody.text)
    assert "Monday." == restricted.memories.get(host, GLOBAL, "deploy_day").content


def test_where_it_is_open_whoever_writes_may(services: Services, alice: Caller) -> None:
    assert "created" == services.memories.save(alice, Draft("deploy_day", "Tuesday.", GLOBAL)).outcome
