"""[memory] follows its config file while a program runs."""

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from pegword import open_memories
from pegword.assembly import open_services
from pegword.core.caller import GLOBAL
from pegword.core.memory import Draft
from pegword.live_settings import LOOK_EVERY_S, LiveSettings
from pegword.services.bundle import Services
from pegword.settings import SETTINGS, Settings, load
from tests.conftest import Clock
from tests.patience import PATIENCE_S

LONG_AGO_NS = 1_000_000_000 * 10**9


@dataclass
class Watch:
    """A config file, the settings that follow it, and a clock that a test moves."""

    path: Path
    named: bool = True
    flags: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    seconds: float = 100.0
    wall_ns: int = LONG_AGO_NS + 3_600 * 10**9
    writes: int = 0

    def begin(self) -> "Watch":
        config = self.path if self.named else None
        if not self.named:
            self.environment["XDG_CONFIG_HOME"] = str(self.path.parent)
        settings = load(config, self.environment).with_flags(**self.flags)
        self.live = LiveSettings(
            settings, config, self.environment, tell=self.told.append, monotonic=lambda: self.seconds, wall_ns=lambda: self.wall_ns
        )
        self.live()
        return self

    def write(self, text: str, *, settled: bool = True) -> None:
        """Put a new file in place, as editors do; *settled*: written long ago."""
        self.writes += 1
        new = self.path.with_suffix(f".{self.writes}")
        new.write_text(text, encoding="utf-8")
        if settled:
            os.utime(new, ns=(LONG_AGO_NS + self.writes, LONG_AGO_NS + self.writes))
        new.replace(self.path)

    def later(self, seconds: float = LOOK_EVERY_S) -> Settings:
        self.seconds += seconds
        return self.live()


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    watch = Watch(tmp_path / "config.toml")
    watch.write("[memory]\nrelevance_k = 3\n")
    return watch.begin()


def test_what_is_written_is_in_force_within_a_second(watch: Watch) -> None:
    """And not looked for more often."""
    watch.write("[memory]\nrelevance_k = 7\nnudges = false\n")

    assert (3, True) == (watch.live().memory_relevance_k, watch.live().memory_nudges)
    assert 3 == watch.later(LOOK_EVERY_S * 0.99).memory_relevance_k
    assert (7, False) == (watch.later(LOOK_EVERY_S * 0.02).memory_relevance_k, watch.live().memory_nudges)
    assert {f"memory.relevance_k is now 7 (from {watch.path})", f"memory.nudges is now false (from {watch.path})"} == set(watch.told)
    assert str(watch.path) == watch.live().origin["memory_nudges"]


@pytest.mark.parametrize("key", [key for key in SETTINGS["memory"] if key != "language"])
def test_every_setting_of_the_section_follows(watch: Watch, key: str) -> None:
    setting = SETTINGS["memory"][key]
    value = not setting.default if isinstance(setting.default, bool) else int(setting.default) + 1
    watch.write(f"[memory]\n{key} = {str(value).lower()}\n")

    assert value == getattr(watch.later(), f"memory_{key}")


def test_a_key_that_is_gone_has_its_default_again(watch: Watch) -> None:
    watch.write("")

    assert (5, "default") == (watch.later().memory_relevance_k, watch.live().origin["memory_relevance_k"])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[memory]\nrelevance_k = 0\n", "memory.relevance_k must be 1 to 50: it is 0"),
        ("[memory]\nrelevance = 3\n", "[memory] has no key relevance; did you mean relevance_k?"),
        ("[memory\n", "is not valid TOML"),
        ("[memory]\nrelevance_k = 7\nnudges = 5\n", "memory.nudges must be true or false: it is 5"),
        ("memory = 3\n", "memory must be a section"),
        ("a = " + "[" * 5_000, ""),
    ],
)
def test_what_is_wrong_is_told_once_and_changes_nothing(watch: Watch, text: str, complaint: str) -> None:
    """Not even what is right in it. When it is right again it counts, and what is wrong later is told again."""
    before = watch.live()
    watch.write(text)
    for _ in range(3):
        assert before == watch.later()
    assert 1 == len(watch.told)
    assert complaint in watch.told[0]
    assert watch.told[0].endswith("; what was in force stays so")

    watch.write("[memory]\nrelevance_k = 9\n")
    assert 9 == watch.later().memory_relevance_k
    watch.write(text)
    assert 9 == watch.later().memory_relevance_k
    assert 3 == len(watch.told)


def test_a_file_that_cannot_be_read_changes_nothing(watch: Watch) -> None:
    """Bytes that are no text."""
    watch.write("")
    watch.path.write_bytes(b"\xff\xfe\x00")
    os.utime(watch.path, ns=(LONG_AGO_NS, LONG_AGO_NS))

    assert 3 == watch.later().memory_relevance_k
    assert 1 == len(watch.told)


def test_a_file_that_was_named_and_is_gone_is_told_once(watch: Watch) -> None:
    """At the second look: an editor may be putting another in its place."""
    watch.path.unlink()

    assert (3, 3, 3) == tuple(watch.later().memory_relevance_k for _ in range(3))
    assert [f"there is no config file at {watch.path}; what was in force stays so"] == watch.told


def test_a_file_that_is_away_for_a_moment_is_not_missed(watch: Watch) -> None:
    text = watch.path.read_text(encoding="utf-8")
    watch.path.unlink()
    watch.later()
    watch.write(text)
    watch.later()

    assert [] == watch.told


def test_the_users_own_file_may_come_and_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody named it, so it need not be there."""
    (tmp_path / "pegword").mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    watch = Watch(tmp_path / "pegword" / "config.toml", named=False).begin()
    seen = [watch.later().memory_relevance_k]
    watch.write("[memory]\nrelevance_k = 8\n")
    seen.append(watch.later().memory_relevance_k)
    watch.path.unlink()
    seen += [watch.later().memory_relevance_k, watch.later().memory_relevance_k]

    assert [5, 8, 8, 5] == seen


def test_a_file_written_again_at_the_same_moment_is_read_again(watch: Watch) -> None:
    """Times of files are coarse: of the same size, at the same time, it looks the same."""
    watch.wall_ns = LONG_AGO_NS + 10**9
    watch.path.write_text("[memory]\nrelevance_k = 4\n", encoding="utf-8")
    os.utime(watch.path, ns=(LONG_AGO_NS, LONG_AGO_NS))
    assert 4 == watch.later().memory_relevance_k
    was = watch.path.stat()
    watch.path.write_text("[memory]\nrelevance_k = 6\n", encoding="utf-8")
    os.utime(watch.path, ns=(LONG_AGO_NS, LONG_AGO_NS))

    assert was.st_size == watch.path.stat().st_size
    assert 6 == watch.later().memory_relevance_k


def test_a_file_that_did_not_change_is_not_read(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    watch.wall_ns = 2**62
    watch.write("[memory]\nrelevance_k = 4\n")
    watch.later()
    monkeypatch.setattr("pegword.live_settings.load", lambda *_: pytest.fail("read again"))

    assert 4 == watch.later().memory_relevance_k


@pytest.mark.parametrize(
    ("text", "name"), [("[server]\nport = 9000\n", "server.port"), ('[memory]\nrelevance_k = 3\nlanguage = "german"\n', "memory.language")]
)
def test_what_takes_a_new_start_is_told_and_not_taken(watch: Watch, text: str, name: str) -> None:
    before = watch.live()
    watch.write(text + ("[memory]\nrelevance_k = 3\n" if "server" in text else ""))
    after = watch.later()
    watch.later()

    assert (before.server_port, before.memory_language) == (after.server_port, after.memory_language)
    assert 1 == len(watch.told)
    assert watch.told[0].startswith(f"{name} was changed to ")
    assert watch.told[0].endswith(": that is taken up at the next start")


def test_flags_and_variables_stay_above_the_file(tmp_path: Path) -> None:
    watch = Watch(tmp_path / "c.toml", flags={"server_port": 1234}, environment={"PEGWORD_MEMORY__RELEVANCE_K": "2"})
    watch.write("")
    watch.begin()
    watch.write("[server]\nport = 9000\n[memory]\nrelevance_k = 9\ncritical_k = 1\n")
    after = watch.later()

    assert (1234, 2, 1) == (after.server_port, after.memory_relevance_k, after.memory_critical_k)
    assert ("the command line", "PEGWORD_MEMORY__RELEVANCE_K") == (after.origin["server_port"], after.origin["memory_relevance_k"])
    assert [f"memory.critical_k is now 1 (from {watch.path})"] == watch.told


def test_a_warning_is_told_once(watch: Watch) -> None:
    for text in ("[weather]\nx = 1\n", "[weather]\nx = 2\n"):
        watch.write(text)
        watch.later()

    assert 1 == watch.told.count(f"{watch.path}: unknown section [weather] is ignored")


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    """What the shell puts in place of a file has nothing more to say, and would be waited for."""
    os.mkfifo(tmp_path / "config.toml")
    settings = load(environment={"PEGWORD_CONFIG": os.devnull})
    told: list[str] = []
    live = LiveSettings(settings, tmp_path / "config.toml", {}, tell=told.append, monotonic=iter(range(9)).__next__)

    assert [settings, settings, settings] == [live() for _ in range(3)]
    assert [] == told


def test_while_one_looks_the_others_go_on(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    inside, go_on = threading.Event(), threading.Event()

    def slow(*arguments: Any) -> Settings:
        inside.set()
        assert go_on.wait(PATIENCE_S)
        return load(*arguments)

    monkeypatch.setattr("pegword.live_settings.load", slow)
    watch.write("[memory]\nrelevance_k = 9\n")
    watch.seconds += 5
    thread = threading.Thread(target=watch.live)
    thread.start()
    assert inside.wait(PATIENCE_S)

    assert 3 == watch.live().memory_relevance_k
    go_on.set()
    thread.join()
    assert 9 == watch.live().memory_relevance_k


# What stands on them


@pytest.fixture
def following(watch: Watch, database: "Path | str", clock: Clock) -> Iterator[Services]:
    opened = open_services(database, watch.live(), clock=clock, live=watch.live)
    yield opened
    opened.close()


def test_turns_and_nudges_follow(following: Services, watch: Watch) -> None:
    """The number of memories shown, the cool-down, and whether there are nudges at all, without a new start."""
    alice = following.access.agent(following.access.ensure_user("alice"), "key:alice")
    for number in range(8):
        following.memories.save(alice, Draft(f"n{number}", f"tea note {number}", GLOBAL))
    session = following.sessions.create(alice)
    told = []
    for text in (
        "[memory]\nrelevance_k = 3\n",
        "[memory]\nrelevance_k = 6\n",
        "[memory]\nnudge_cooldown = 0\n",
        "[memory]\nnudge_cooldown = 0\nnudges = false\n",
    ):
        watch.write(text)
        watch.later()
        messages = [{"role": "user", "content": t} for t in ("tea", "no, which tea note")]
        turn = following.turns.turn(alice, session, messages)
        told.append((len(turn.shown), turn.nudge.kind if turn.nudge else ""))

    assert [(3, "correction"), (6, ""), (5, "correction"), (5, "")] == told


def test_the_library_follows_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless it was given settings that are ready."""
    seconds = count(0, 10)
    monkeypatch.setattr("pegword.embedded.LiveSettings", partial(LiveSettings, monotonic=lambda: next(seconds)))
    config = tmp_path / "config.toml"
    config.write_text("[memory]\nrelevance_k = 1\n", encoding="utf-8")
    shown = []
    with open_memories(tmp_path / "m.db", user="alice", config=config) as memories:
        for number in range(3):
            memories.save(f"n{number}", f"tea note {number}")
        shown.append(len(memories.turn("tea note").shown))
        config.write_text("[memory]\nrelevance_k = 2\n", encoding="utf-8")
        shown.append(len(memories.turn("tea note").shown))
    with open_memories(tmp_path / "m.db", user="alice", settings=load(config, {})) as memories:
        config.write_text("[memory]\nrelevance_k = 3\n", encoding="utf-8")
        shown.append(len(memories.turn("tea note").shown))

    assert [1, 2, 2] == shown
