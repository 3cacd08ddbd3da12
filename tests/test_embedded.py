"""The embedded library, and the public names of the package."""

import contextlib
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

import pegword
from pegword import Conflict, Invalid, NotFound, OpenMemories, PegwordError, Unavailable, VersionMismatch, open_memories
from pegword.settings import load
from pegword.testing import FrozenClock, SequenceIds, memories_in_memory

SOURCE = Path(__file__).parents[1] / "src"


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def memories(clock: FrozenClock, database: Path | str, tmp_path: Path) -> Iterator[OpenMemories]:
    if isinstance(database, Path):
        with memories_in_memory(clock=clock) as opened:
            yield opened
        return
    nowhere = tmp_path / "config.toml"
    nowhere.touch()
    with open_memories(database, user="tester", settings=load(nowhere, {}), clock=clock, new_id=SequenceIds()) as opened:
        yield opened


def test_every_public_name_is_there_and_sorted() -> None:
    """`__all__` is what is public; it is sorted, and each name leads somewhere."""
    assert sorted(pegword.__all__) == pegword.__all__
    for name in pegword.__all__:
        assert getattr(pegword, name) is not None
        assert name in dir(pegword)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pegword.nothing  # type: ignore[attr-defined]


def test_importing_the_package_loads_nothing_heavy() -> None:
    """numpy, the database and the server come with the first use."""
    code = "import pegword, sys; print(*sorted({'numpy', 'apsw', 'starlette', 'uvicorn', 'typer', 'rich'} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": str(SOURCE)}, capture_output=True, text=True, check=True)

    assert ran.stdout.strip() == ""


def test_a_save_is_an_agent_s_word(memories: OpenMemories) -> None:
    """An embedded session is an agent of its user: not verified, source agent, confidence 0.7."""
    memory = memories.save("deploy_day", "We deploy on Tuesdays.").memory

    assert (memory.source, memory.author, memory.verified, memory.confidence) == ("agent", "tester", False, 0.7)


def test_a_claim_to_be_the_user_is_answered_with_a_warning(memories: OpenMemories) -> None:
    saved = memories.save("deploy_day", "We deploy on Tuesdays.", source="user")

    assert (saved.memory.source, len(saved.warnings)) == ("agent", 1)


def test_what_is_saved_is_found_listed_and_shown(memories: OpenMemories, clock: FrozenClock) -> None:
    memories.save("deploy_day", "We deploy on Tuesdays.", tags=["ops"], kind="reference")
    clock.advance(1)
    memories.save("tea", "Green tea in the morning.")

    assert [hit.memory.name for hit in memories.search("which day do we deploy").hits] == ["deploy_day"]
    assert [m.name for m in memories.list().memories] == ["tea", "deploy_day"]
    assert (memories.list(tag="OPS", kind="reference").memories[0].name, memories.list(tag="ops").total) == ("deploy_day", 1)
    turn = memories.turn("Which day do we deploy?")
    assert [shown.memory.name for shown in turn.shown] == ["deploy_day"]
    assert "We deploy on Tuesdays." in turn.block
    explanation = memories.explain(turn.receipt)
    assert (turn.block, "relevant") == (explanation.block, explanation.considered[0].why)


def test_a_text_and_one_user_message_are_the_same_turn(memories: OpenMemories) -> None:
    memories.save("deploy_day", "We deploy on Tuesdays.")

    assert memories.turn("deploy").block == memories.turn([{"role": "user", "content": "deploy"}]).block != ""


def test_a_change_is_a_version_and_can_be_taken_back(memories: OpenMemories) -> None:
    memory_id = memories.save("tea", "Green tea.").memory.memory_id
    memories.update(memory_id, content="Black tea.", tags=("drink",), expires_at="2030-01-01")

    reverted = memories.revert(memory_id, 1)

    assert (reverted.memory.content, reverted.memory.tags, reverted.memory.expires_at) == ("Green tea.", (), None)
    assert [version.action for version in memories.versions(memory_id)] == ["revert", "update", "save"]
    assert [2] == [version.version for version in memories.versions(memory_id, limit=1, offset=1)]


def test_none_keeps_and_empty_clears(memories: OpenMemories) -> None:
    """None is not named; "", () and "never" clear."""
    memory_id = memories.save("tea", "Green tea.", description="what", tags=["drink"], expires_at=4e9).memory.memory_id

    kept = memories.update(memory_id, priority="high").memory
    assert (kept.description, kept.tags, kept.expires_at) == ("what", ("drink",), 4_000_000_000_000_000)
    cleared = memories.update(memory_id, description="", tags=(), expires_at="never").memory
    assert (cleared.description, cleared.tags, cleared.expires_at) == ("", (), None)


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2030, 1, 1, 12, 0, 0, 5),
        datetime(2030, 1, 1, 12, 0, 0, 5, tzinfo=UTC),
        datetime(2030, 1, 1, 14, 0, 0, 5, tzinfo=timezone(timedelta(hours=2))),
        "2030-01-01T12:00:00.000005",
        "2030-01-01T14:00:00.000005+02:00",
        1_893_499_200.000005,
    ],
)
def test_a_time_may_be_a_datetime_a_text_or_seconds(memories: OpenMemories, moment: datetime | str | float) -> None:
    """Without a zone it is UTC."""
    assert memories.save("a", "b", expires_at=moment).memory.expires_at == 1_893_499_200_000_005


def test_what_is_deleted_is_gone(memories: OpenMemories) -> None:
    memory_id = memories.save("tea", "Green tea.").memory.memory_id

    assert memories.delete("TEA").memory_id == memory_id
    for look in (lambda: memories.get("tea"), lambda: memories.get_by_id(memory_id), lambda: memories.delete_by_id(memory_id)):
        with pytest.raises(NotFound):
            look()


def test_an_expected_version_that_is_not_the_stored_one_is_a_conflict(memories: OpenMemories) -> None:
    memories.save("tea", "Green tea.", expected_version=0)

    with pytest.raises(VersionMismatch) as refusal:
        memories.save("tea", "Black tea.", expected_version=0)
    assert refusal.value.current == 1
    assert isinstance(refusal.value, Conflict)


def test_only_the_expected_version_is_deleted(memories: OpenMemories) -> None:
    """By name and by id."""
    tea = memories.save("tea", "Green tea.").memory
    memories.save("milk", "Oat milk.")
    for refused in (lambda: memories.delete("milk", expected_version=2), lambda: memories.delete_by_id(tea.memory_id, expected_version=0)):
        with pytest.raises(VersionMismatch) as mismatch:
            refused()
        assert 1 == mismatch.value.current
    memories.delete("milk", expected_version=1)
    memories.delete_by_id(tea.memory_id, expected_version=1)

    assert 0 == memories.list().total


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"kind": "rumour"}, "type"),
        ({"scope": "galaxy"}, "scope"),
        ({"scope": "workstream"}, "scope_id"),
        ({"confidence": 2.0}, "confidence"),
        ({"expires_at": "soon"}, "expires_at"),
        ({"expires_at": float("nan")}, "expires_at"),
        ({"tags": "one text"}, "tags"),
    ],
)
def test_what_cannot_be_saved_names_its_field(memories: OpenMemories, arguments: dict[str, object], field: str) -> None:
    with pytest.raises(Invalid) as refusal:
        memories.save("a", "b", **arguments)  # type: ignore[arg-type]
    assert field == refusal.value.field


# Of each method, arguments that hold; and what is wrong everywhere.
CALLS: dict[str, dict[str, object]] = {
    "save": {
        "name": "a", "content": "b", "description": "c", "kind": "user", "scope": "global", "scope_id": "", "tags": ["t"],
        "priority": "low",
        "confidence": 0.5, "source": "tool", "expires_at": "2030-01-01", "sitting": "s", "session": "s", "expected_version": 0,
    },
    "get": {"name": "kept", "scope": "global", "scope_id": ""},
    "get_by_id": {"memory_id": "00000000-0000-4000-8000-000000000001"},
    "search": {"query": "tea", "scope": "", "scope_id": "", "kind": "", "tag": "", "limit": 5, "include_expired": True},
    "list": {"scope": "", "scope_id": "", "kind": "", "tag": "", "limit": 5, "include_expired": True},
    "update": {
        "memory_id": "00000000-0000-4000-8000-000000000001", "content": "b", "description": "c", "kind": "user", "tags": ["t"],
        "priority": "low", "confidence": 0.5, "source": "tool", "expires_at": 4e9, "sitting": "s",
        "session": "s", "expected_version": 1,
    },
    "versions": {"memory_id": "00000000-0000-4000-8000-000000000001", "limit": 5, "offset": 0},
    "revert": {"memory_id": "00000000-0000-4000-8000-000000000001", "version": 1, "expected_version": 1},
    "delete": {"name": "kept", "scope": "global", "scope_id": "", "expected_version": 1},
    "delete_by_id": {"memory_id": "00000000-0000-4000-8000-000000000001", "expected_version": 1},
    "turn": {"messages": "tea", "workstream_id": "", "mode": "tail", "k": 1, "budget_chars": 500, "tool": False},
    "explain": {"receipt": "00000000-0000-4000-8000-000000000002"},
    "session": {
        "kind": "", "workstream_id": "ws", "shared": False, "project_id": "", "persona": "p", "parent_id": "", "resumed": True,
    },
    "session_by_id": {"session_id": "00000000-0000-4000-8000-000000000003"},
    "delete_workstream": {"workstream_id": "ws", "with_memories": True},
}  # fmt: skip
ODD = [
    None, True, 5, -1, 0, 0.5, float("nan"), float("inf"), 10**30, -(10**30), 10**5_000, b"x", "", "x", "\0", "\ud800", "a\ud800",
    "x" * 70_000,
    [], [5], ["\ud800"], ["\0"], [None], {}, {"a": 1}, {5}, (), object(), datetime.max, datetime.min, datetime(2030, 1, 1).date(),
    Path("x"),
    [{}], [{"role": 5}], [{"role": "user", "content": 5}], [{"role": "user", "content": "\ud800"}], [{"role": "user"}, "x"],
]  # fmt: skip
# Of what types each argument may be; everything else is refused naming it.
TYPES: dict[str, tuple[type, ...]] = {
    "tags": (list, tuple, set, type(None)), "confidence": (int, float, type(None)), "limit": (int,), "offset": (int,), "version": (int,),
    "expires_at": (str, int, float, datetime, type(None)), "expected_version": (int, type(None)), "include_expired": (bool,),
    "shared": (bool,), "resumed": (bool,), "with_memories": (bool,), "tool": (bool,),
    "messages": (str, list, tuple), "k": (int, type(None)), "budget_chars": (int, type(None)), "description": (str, type(None)),
    "priority": (str, type(None)), "source": (str, type(None)),
}  # fmt: skip


def error_of(call: Callable[[], object]) -> PegwordError | None:
    """The error of ours that *call* ends with, if it does; any other is let through."""
    try:
        call()
    except PegwordError as error:
        return error
    return None


@pytest.mark.parametrize(("method", "argument"), [(method, argument) for method, named in CALLS.items() for argument in named])
def test_whatever_an_argument_is_the_error_is_one_of_ours_and_names_it(memories: OpenMemories, method: str, argument: str) -> None:
    """No TypeError, no AttributeError, none of the database's own: wrong types are `Invalid`, and so is a bool for a number."""
    memories.save("kept", "Green tea.")
    types = TYPES.get(argument, (str, type(None)) if (argument, method) in {("kind", "save"), ("kind", "update")} else (str,))
    types = (*types, type(None)) if (method, argument) == ("update", "content") else types
    for value in ODD:
        wrong = not isinstance(value, types) or (isinstance(value, bool) and bool not in types)
        error = error_of(lambda value=value: getattr(memories, method)(**{**CALLS[method], argument: value}))
        named = isinstance(error, Invalid) and error.field.partition("[")[0] == argument
        assert named or not wrong, (type(value), error)
    for name in ("kept", "a"):
        with contextlib.suppress(NotFound):
            memories.delete(name)


def test_the_calls_of_that_test_are_all_methods_with_all_their_arguments() -> None:
    """A new argument is tried too."""
    methods = {name: value for name, value in vars(OpenMemories).items() if not name.startswith("_") and name != "close"}

    assert {name: set(inspect.signature(value).parameters) - {"self"} for name, value in methods.items()} == {
        name: set(named) for name, named in CALLS.items()
    }


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"name": 5}, "name must be a text: it is of type int"),
        ({"content": None}, "content must be a text: it is None"),
        ({"tags": "one text"}, "tags must be a sequence of texts: it is of type str"),
        ({"tags": [5]}, "tags must be a sequence of texts: it is of type list"),
        ({"confidence": True}, "confidence must be a number: it is of type bool"),
        ({"confidence": "high"}, "confidence must be a number: it is of type str"),
        ({"expires_at": True}, "expires_at must be a datetime, a text or a number of seconds: it is of type bool"),
        ({"expected_version": 1.0}, "expected_version must be an integer: it is of type float"),
        ({"expected_version": 10**30}, "expected_version must be an integer of 64 bits"),
    ],
)
def test_a_wrong_type_is_said_in_a_sentence(memories: OpenMemories, arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(Invalid) as refusal:
        memories.save(**{"name": "a", "content": "b", **arguments})  # type: ignore[arg-type]
    assert sentence == str(refusal.value)


@pytest.mark.parametrize("messages", [["hello"], [{"role": "user"}, 5]])
def test_a_message_that_is_no_mapping_is_named(memories: OpenMemories, messages: list[object]) -> None:
    with pytest.raises(Invalid, match=rf"^messages\[{len(messages) - 1}\] must be a mapping with role and content: it is of type"):
        memories.turn(messages)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "arguments",
    [{"database": 5}, {"database": b"x"}, {"database": "a\0b"}, {"database": "a\ud800"}, {"user": 5}, {"user": "\ud800"}, {"config": 5}],
)
def test_what_cannot_be_opened_names_its_argument(tmp_path: Path, arguments: dict[str, object]) -> None:
    with pytest.raises(Invalid) as refusal:
        open_memories(**{"database": tmp_path / "m.db", **arguments})  # type: ignore[arg-type]
    assert refusal.value.field in {*arguments, "name"}


def test_limits_below_one_are_refused_not_read_as_all(memories: OpenMemories) -> None:
    for look in (lambda: memories.list(limit=0), lambda: memories.list(limit=-1), lambda: memories.search("x", limit=-1)):
        with pytest.raises(Invalid, match="at least 1"):
            look()


def test_two_users_of_one_file_share_global_and_nothing_else(tmp_path: Path) -> None:
    """Alice and Bob, each with open memories on the same file at the same time."""
    with open_memories(tmp_path / "m.db", user="alice") as alice, open_memories(tmp_path / "m.db", user="bob") as bob:
        alice.save("car", "Alice drives.", scope="user")
        alice.save("plan", "Ship.", scope="workstream", scope_id="ws")
        alice.save("office", "The office is in Graz.")

        assert [m.name for m in bob.list().memories] == ["office"]
        assert [m.author for m in bob.list().memories] == ["alice"]
        with pytest.raises(NotFound):
            bob.get("plan", scope="workstream", scope_id="ws")


def test_two_users_who_save_in_turn_are_two_sittings(tmp_path: Path) -> None:
    """A sitting is a run of saves by one author: both are called library, but they are two people."""
    with open_memories(tmp_path / "m.db", user="alice") as alice, open_memories(tmp_path / "m.db", user="bob") as bob:
        places = [by.save(name, "A lamp.").memory.place for by, name in ((alice, "a"), (alice, "b"), (bob, "c"), (bob, "d"), (alice, "e"))]

    assert places == [0, 1, 0, 1, 0]


def test_closed_memories_say_so_and_close_again_in_peace(tmp_path: Path) -> None:
    memories = open_memories(tmp_path / "m.db", user="alice")
    memories.close()
    memories.close()

    with pytest.raises(Unavailable, match="closed"):
        memories.list()


def test_a_url_a_path_and_a_text_name_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with open_memories(path, user="alice") as memories:
        memories.save("tea", "Green tea.")
    for database in (str(path), f"sqlite://{path}"):
        with open_memories(database, user="alice") as memories:
            assert memories.get("tea").content == "Green tea."
    with pytest.raises(Invalid):
        open_memories("sqlite:relative.db")


def test_without_a_path_it_is_the_command_line_s_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server, the command line and the library meet in one file."""
    monkeypatch.setenv("PEGWORD_DATABASE", f"sqlite://{tmp_path}/shared.db")
    with open_memories(user="alice") as memories:
        memories.save("tea", "Green tea.")

    assert (tmp_path / "shared.db").exists()


def test_what_was_put_off_is_done_when_it_closes(tmp_path: Path) -> None:
    """Receipts and access counts are written after the answer; closing waits for them."""
    with open_memories(tmp_path / "m.db", user="alice") as memories:
        memories.save("deploy_day", "We deploy on Tuesdays.")
        receipt = memories.turn("when do we deploy").receipt

    with open_memories(tmp_path / "m.db", user="alice") as memories:
        assert [c.name for c in memories.explain(receipt).considered if c.shown] == ["deploy_day"]
        assert memories.list().memories[0].access_count == 1


def test_the_testing_module_gives_a_standing_clock_ids_in_order_and_no_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting of the machine reaches a test's store."""
    monkeypatch.setenv("PEGWORD_MEMORY__RELEVANCE_K", "1")
    clock = FrozenClock()
    with memories_in_memory(clock=clock, new_id=SequenceIds()) as memories:
        first = memories.save("a", "lamp one").memory
        clock.advance(60)
        second = memories.save("b", "lamp two").memory
        assert len(memories.turn("lamp").shown) == 2

    assert (first.memory_id, second.memory_id) == ("00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002")
    assert (first.created, second.created - first.created) == (1_767_225_600_000_000, 60_000_000)


def test_one_root_catches_every_error(memories: OpenMemories) -> None:
    with pytest.raises(PegwordError):
        memories.get("nothing")
