"""A short life of a memory through Turnstone's own Python client, run by the interpreter of an environment that holds one.

Usage: sdk_probe.py URL TOKEN OTHER_TOKEN READ_TOKEN. Ends with 0 and the line ``all held`` when every statement below holds. It knows of
Pegword nothing but the address.
"""

import asyncio
import inspect
import os
import sys

os.environ["NO_PROXY"] = os.environ["no_proxy"] = "*"

from turnstone.sdk import AsyncTurnstoneServer, TurnstoneAPIError, TurnstoneServer

_DESCRIBED = inspect.signature(TurnstoneServer.save_memory).parameters["description"].default is inspect.Parameter.empty
_WHY = {"description": "why it is kept"} if _DESCRIBED else {}


def status_of(call, *arguments, **named):
    """The status and the sentence with which *call* fails."""
    try:
        call(*arguments, **named)
    except TurnstoneAPIError as error:
        return error.status_code, error.message
    return 0, "no error"


def one_life(url, token):
    """Save, save again, list, search, delete: as a program that uses the client would."""
    with TurnstoneServer(url, token=token) as client:
        first = client.save_memory("Release-Day Rule", "Releases leave on Thursdays after the tide.", **_WHY)
        again = client.save_memory("release_day_rule", "Releases leave on Fridays after the tide.", **_WHY)
        assert first.name == "release_day_rule"
        assert (again.memory_id, again.created) == (first.memory_id, first.created)
        assert (first.scope, first.scope_id) == ("global", "")
        for word in ("user", "feedback", "reference", first.type):
            assert client.save_memory(f"kept_as_{word}", "tide tables", mem_type=word, **_WHY).type == word
        mine = client.save_memory("release_day_rule", "Mine leaves on Sundays.", scope="user", **_WHY)
        there = client.save_memory("tide", "High tide at nine.", scope="workstream", scope_id="harbour", **_WHY)
        assert mine.scope_id
        assert there.scope_id == "harbour"

        assert {m.name for m in client.list_memories(scope="user").memories} == {"release_day_rule"}
        assert [m.name for m in client.list_memories(mem_type="feedback").memories] == ["kept_as_feedback"]
        listed = client.list_memories(limit=2)
        assert (len(listed.memories), listed.total) == (2, 7)
        found = client.search_memories("when do releases leave, after which tide?", scope="global", limit=3)
        assert found.memories[0].name == "release_day_rule"
        assert client.search_memories("zeppelin").memories == []

        assert client.delete_memory("tide", scope="workstream", scope_id="harbour").status == "ok"
        assert client.delete_memory("Release-Day Rule").status == "ok"
        assert client.delete_memory("release_day_rule", scope="user").status == "ok"
        assert status_of(client.delete_memory, "release_day_rule") == (404, "Memory 'release_day_rule' not found")
        assert status_of(client.save_memory, " ", "x", **_WHY)[0] == 400
        assert status_of(client.save_memory, "x", "y" * 65_537, **_WHY)[0] == 400
        assert status_of(client.list_memories, scope="user", scope_id="somebody") == (403, "Cannot access another user's memories")


def walls(url, token, other_token, read_token):
    """What one user keeps is not another's; who may only read cannot save; who has no token is nobody."""
    with (
        TurnstoneServer(url, token=token) as owner,
        TurnstoneServer(url, token=other_token) as other,
        TurnstoneServer(url, token=read_token) as reader,
        TurnstoneServer(url, token="pw_nothing") as nobody,
    ):
        owner.save_memory("diary", "The anchor rests under the pier.", scope="user", **_WHY)
        assert "diary" not in {m.name for m in other.list_memories().memories}
        assert other.search_memories("anchor pier").memories == []
        assert status_of(other.delete_memory, "diary", scope="user")[0] == 404
        assert "diary" in {m.name for m in reader.search_memories("anchor pier").memories}
        assert status_of(reader.save_memory, "x", "y", **_WHY) == (403, "Forbidden: token lacks 'write' scope")
        assert status_of(nobody.list_memories) == (401, "Unauthorized: missing or invalid token")
        assert owner.delete_memory("diary", scope="user").status == "ok"


async def at_once(url, token):
    """The asynchronous client, ten saves of one name at a time: one row."""
    async with AsyncTurnstoneServer(url, token=token) as client:
        saved = await asyncio.gather(*(client.save_memory("race", f"lap {n}", **_WHY) for n in range(10)))
        assert len({m.memory_id for m in saved}) == 1
        assert (await client.delete_memory("race")).status == "ok"


if __name__ == "__main__":
    address, write, foreign, read = sys.argv[1:]
    one_life(address, write)
    walls(address, write, foreign, read)
    asyncio.run(at_once(address, write))
    print("all held")
