"""Memories out of one store and into another: what is carried, who may claim what, and what a bad file can do (nothing)."""

import io
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pegword import lines
from pegword.assembly import open_services
from pegword.core.caller import GLOBAL, Caller, Visible, coordinator_scope, reach, scope_of, user_scope
from pegword.core.errors import Busy, Forbidden, Invalid, PegwordError, TooLarge
from pegword.core.memory import Draft, Memory
from pegword.core.transfer import Line
from pegword.services.bundle import Services
from pegword.services.transfer import Report
from pegword.settings import load
from tests.conftest import Clock
from tests.keeping.conftest import rows_of
from tests.store.test_index import check

Open = Callable[[Path | str], Services]
# What the importing server says and not the file.
OF_THE_SERVER = ("created", "updated", "memory_id", "version", "author")


def exported(services: Services, caller: Caller, visible: Visible | None = None, **more: Any) -> bytes:
    """The file that an export makes."""
    parts = [lines.head()]
    done = services.transfer.export(caller, visible or reach(caller), lambda m, s: parts.append(lines.line_of(m, s)), **more)
    return b"".join([*parts, lines.end(done.memories, done.left_out)])


def brought(services: Services, caller: Caller, data: bytes, **more: Any) -> Report:
    """Import a file as a face does: read it to its end first."""
    for _ in lines.read(io.BytesIO(data)):
        pass
    return services.transfer.bring(caller, lines.read(io.BytesIO(data)), **more)


def one(**fields: Any) -> bytes:
    """A file of one memory."""
    return json.dumps({"name": "n", "content": "walrus", **fields}).encode()


def carried(data: bytes, *, but: tuple[str, ...] = OF_THE_SERVER) -> list[dict[str, Any]]:
    """The memories of a file without what the server says."""
    found = [json.loads(line) for line in data.splitlines()]
    return [{k: v for k, v in m.items() if k not in but} for m in found if "name" in m]


def outcomes(report: Report) -> dict[str, int]:
    return {outcome: n for outcome, n in report.counts.items() if n}


def everything(services: Services) -> dict[str, list[Any]]:
    """All rows but those of users, who come into being by being asked for."""
    return {name: rows for name, rows in rows_of(services.engine).items() if name != "users"}


def fill(services: Services, caller: Caller) -> None:
    """Memories of every kind, in every scope of a caller, in sittings of several."""
    scopes = (GLOBAL, user_scope(caller), scope_of(caller, "workstream", "w:1"))
    for number in range(30):
        services.memories.save(
            caller,
            Draft(
                f"n{number}", f"Walrus {number} drinks tea.\n\t\"'\\ \u2028 café 猫 \U0001f9ad", scopes[number % 3],
                description="about" if number % 4 == 0 else None, kind=("user", "general", "feedback", "reference")[number % 4],
                tags=("Tea", f"t{number % 5}") if number % 2 else None, priority=("critical", "high", "normal", "low")[number % 4],
                confidence=(number % 11) / 10, source=("agent", "tool", "system")[number % 3], sitting=f"day {number // 7}",
                expires_at=services.clock() + 10**12 if number % 9 == 0 else None,
            ),
        )  # fmt: skip
    services.memories.save(caller, Draft("n3", "changed since", GLOBAL))
    services.memories.delete(caller, GLOBAL, "n6")


def test_what_is_imported_is_what_was_exported(pair: tuple[Path | str, Path | str], opened: Open) -> None:
    """Into a fresh store, on each pair of engines: the same memories in the same order, and the same answers, company included."""
    here, there = map(opened, pair)
    alice, other = (s.access.person(s.access.ensure_user("alice")) for s in (here, there))
    fill(here, here.access.agent(here.access.user("alice"), "key:1"))
    data = exported(here, alice)
    report = brought(there, other, data)
    found = [s.memories.search(c, reach(c), "walrus tea changed", limit=50) for s, c in ((here, alice), (there, other))]

    assert {"created": 29} == outcomes(report)
    assert carried(data, but=("created", "updated", "version")) == carried(exported(there, other), but=("created", "updated", "version"))
    assert {h.memory.name: round(h.score, 6) for h in found[0].hits} == {h.memory.name: round(h.score, 6) for h in found[1].hits}
    check(there)


def test_an_export_is_the_same_bytes_on_every_engine(pair: tuple[Path | str, Path | str]) -> None:
    """Given the same saves, the same clock and the same ids: order, spelling, everything."""
    files = []
    for database in pair:
        numbers = iter(range(10**6))
        services = open_services(database, load(environment={}), clock=Clock(), new_id=lambda numbers=numbers: f"id-{next(numbers)}")  # type: ignore[misc]
        caller = Caller("u1", "alice", "key:1")
        fill(services, caller)
        files.append(exported(services, caller))
        services.close()

    assert files[0] == files[1]


names = st.from_regex("[a-z0-9_/:.é猫]{1,20}", fullmatch=True)
texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=60).filter(str.strip)
saves = st.builds(
    dict,
    name=names,
    content=texts,
    scope=st.sampled_from(["global", "user", "w1", "w2"]),
    description=st.none() | texts,
    tags=st.none() | st.lists(st.text("abcÄ猫", min_size=1, max_size=8), max_size=4).map(tuple),
    kind=st.none() | st.sampled_from(["user", "project", "general", "feedback", "reference"]),
    priority=st.none() | st.sampled_from(["critical", "high", "normal", "low"]),
    confidence=st.none() | st.floats(0, 1),
    sitting=st.sampled_from(["", "monday", "tuesday"]),
    source=st.none() | st.sampled_from(["agent", "tool", "system", "user"]),
    expires_at=st.none() | st.integers(1, 3 * 10**15),
)


@given(st.lists(saves, max_size=12), st.booleans())
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
def test_export_import_export_gives_the_same_set(
    tmp_path_factory: pytest.TempPathFactory, drafts: list[dict[str, Any]], human: bool
) -> None:
    """For random stores, whoever imports; and once more, which changes nothing."""
    folder = tmp_path_factory.mktemp("t")
    here, there = (open_services(folder / name, load(environment={}), clock=Clock()) for name in ("a.db", "b.db"))
    alice = here.access.agent(here.access.ensure_user("alice"), "key:1")
    other = there.access.ensure_user("alice")
    importer = there.access.person(other) if human else there.access.agent(other, "key:2")
    for draft in drafts:
        word = draft["scope"]
        scope = scope_of(alice, word, "") if word in ("global", "user") else scope_of(alice, "workstream", word)
        here.memories.save(alice, Draft(**{**draft, "scope": scope}))
    data = exported(here, alice, include_expired=True)
    report = brought(there, importer, data)
    before = everything(there)
    again = exported(there, importer, include_expired=True)
    repeated = brought(there, importer, data)

    assert carried(data) == carried(again)
    assert len(carried(data)) == report.counts["created"] == repeated.counts["unchanged"] == report.lines
    assert before == everything(there)
    check(there)
    here.close()
    there.close()


@pytest.mark.parametrize(
    ("policy", "updated", "outcome"),
    [
        ("skip", None, "skipped"),
        ("skip", "2099-01-01", "skipped"),
        ("overwrite", None, "updated"),
        ("newer", "2099-01-01", "updated"),
        ("newer", "1999-01-01", "skipped"),
        ("newer", None, "skipped"),
    ],
)
def test_what_happens_to_a_stored_memory_that_differs(
    services: Services, alice: Caller, policy: str, updated: str | None, outcome: str
) -> None:
    services.memories.save(alice, Draft("n", "tea", GLOBAL, tags=("kept",)))
    report = brought(services, alice, one(updated=updated), policy=policy)
    memory = services.memories.get(alice, GLOBAL, "n")

    assert {outcome: 1} == outcomes(report)
    assert ("walrus" if outcome == "updated" else "tea", ("kept",)) == (memory.content, memory.tags)
    assert (2 if outcome == "updated" else 1) == memory.version
    assert (outcome == "skipped") == bool(report.notes)


def test_an_unknown_policy_is_refused(services: Services, alice: Caller) -> None:
    with pytest.raises(Invalid, match="policy"):
        brought(services, alice, one(), policy="merge")


def test_a_second_import_changes_nothing_at_all(services: Services, alice: Caller, fresh: Callable[[], Path | str]) -> None:
    """No version, no time, no place in the index moves, under any policy."""
    fill(services, alice)
    data = exported(services, alice)
    before = everything(services)
    for policy in ("skip", "overwrite", "newer"):
        assert {"unchanged": 29} == outcomes(brought(services, alice, data, policy=policy))

    assert before == everything(services)


@pytest.mark.parametrize("policy", ["skip", "overwrite", "newer"])
def test_a_dry_run_changes_nothing_and_says_what_would_be_done(services: Services, alice: Caller, policy: str) -> None:
    """Its report is that of the real run."""
    fill(services, alice)
    data = exported(services, alice)
    for number in range(9):
        services.memories.save(alice, Draft(f"n{3 * number}", "otherwise", GLOBAL))
    services.memories.delete(alice, GLOBAL, "n9")
    data += b"\n".join([]) if policy == "skip" else b""
    before = everything(services)
    told = brought(services, alice, data, policy=policy, dry_run=True)
    assert before == everything(services)
    done = brought(services, alice, data, policy=policy)

    assert (True, False) == (told.dry_run, done.dry_run)
    assert (told.counts, told.notes, told.not_taken) == (done.counts, done.notes, done.not_taken)


CLAIMS = {
    "source": "user",
    "verified": True,
    "confidence": 0.9,
    "author": "mallory",
    "version": 7,
    "created": "1999-01-01",
    "updated": "2099-01-01",
}


def test_an_agent_claims_nothing_by_importing(services: Services, alice: Caller, clock: Clock) -> None:
    """Source, author, verified and times are what a save of the agent's would have; the report says what was not taken."""
    report = brought(services, alice, one(**CLAIMS, memory_id="11111111-1111-4111-8111-111111111111"))
    memory = services.memories.get(alice, GLOBAL, "n")

    assert ("agent", "alice", False, 0.9, 1) == (memory.source, memory.author, memory.verified, memory.confidence, memory.version)
    assert clock.now - 10**6 < memory.created == memory.updated <= clock.now
    assert memory.memory_id != "11111111-1111-4111-8111-111111111111"
    assert {"source": 1, "author": 1, "verified": 1} == report.not_taken
    assert ["import"] == [v.action for v in services.memories.versions(alice, memory.memory_id).versions]


def test_a_human_verifies_what_the_file_says_is_verified(services: Services, alice_herself: Caller) -> None:
    report = brought(services, alice_herself, one(**CLAIMS) + b"\n" + one(name="m", source="tool", verified=False) + b"\n" + one(name="o"))
    found = {m.name: m for m in services.memories.list(alice_herself, reach(alice_herself)).memories}

    assert {"n": ("user", True, 0.9), "m": ("tool", False, 1.0), "o": ("user", True, 1.0)} == {
        name: (m.source, m.verified, m.confidence) for name, m in found.items()
    }
    assert {"author": 1} == report.not_taken


def test_a_human_keeps_ids_that_are_free_and_takes_nobodys(services: Services, alice_herself: Caller, bob: Caller) -> None:
    """An id that is taken is answered by a new one, whoever's it is: a file is no way to find out."""
    theirs = services.memories.save(bob, Draft("theirs", "x", user_scope(bob))).memory.memory_id
    free = "22222222-2222-4222-8222-222222222222"
    data = b"\n".join([one(memory_id=free), one(name="m", memory_id=theirs), one(name="o", memory_id="no id\n")])
    report = brought(services, alice_herself, data)
    ids = {m.name: m.memory_id for m in services.memories.list(alice_herself, reach(alice_herself)).memories}

    assert {"created": 3} == outcomes(report)
    assert (free, True, True) == (ids["n"], ids["m"] != theirs, ids["o"] != "no id\n")
    assert "theirs" == services.memories.get_by_id(bob, theirs).name


def test_an_agents_import_over_verified_text_clears_that_and_says_so(services: Services, alice: Caller, alice_herself: Caller) -> None:
    services.memories.save(alice_herself, Draft("n", "tea", GLOBAL))
    report = brought(services, alice, one(), policy="overwrite")

    assert [("updated", True)] == [(note.outcome, "verified: cleared" in note.reason) for note in report.notes]
    assert not services.memories.get(alice, GLOBAL, "n").verified


@pytest.mark.parametrize(
    ("scope", "scope_id"),
    [
        ("coordinator", ""),
        ("coordinator", "alice"),
        ("project", "p1"),
        ("mind", "m1"),
        ("user", "bob"),
        ("everything", ""),
        ("global", "x"),
        ("workstream", ""),
    ],
)
def test_no_line_leads_out_of_the_importers_scopes(services: Services, alice: Caller, bob: Caller, scope: str, scope_id: str) -> None:
    """Coordinators' rows never, other users' ids never; the rest of the file goes in."""
    before = everything(services)
    where = {"alice": alice.user_id, "bob": bob.user_id}.get(scope_id, scope_id)
    report = brought(services, alice, one(scope=scope, scope_id=where) + b"\n" + one(name="good"))
    after = everything(services)

    assert {"created": 1, "refused": 1} == outcomes(report)
    assert [(1, "n", "refused")] == [(note.line, note.name, note.outcome) for note in report.notes]
    assert 1 == len(after["structured_memories"]) - len(before["structured_memories"])


def test_workstreams_of_two_users_do_not_meet(services: Services, alice: Caller, bob: Caller) -> None:
    """An id in a file is one of the importer's own."""
    services.memories.save(alice, Draft("n", "alice's", scope_of(alice, "workstream", "w1")))
    brought(services, bob, exported(services, alice), policy="overwrite")

    assert "alice's" == services.memories.get(bob, scope_of(bob, "workstream", "w1"), "n").content
    assert 1 == services.memories.get(alice, scope_of(alice, "workstream", "w1"), "n").version


def test_only_what_is_visible_is_exported(services: Services, alice: Caller, bob: Caller) -> None:
    fill(services, bob)
    services.memories.save(alice, Draft("mine", "x", user_scope(alice)))
    coordinator = coordinator_scope(alice.user_id)
    services.engine.write(lambda tx: tx.run("UPDATE structured_memories SET scope_key = ? WHERE name = 'n1'", (coordinator.key,)))
    services.engine.write(lambda tx: tx.run("UPDATE ix_scope SET scope_key = ? WHERE scope_key LIKE 'w:%'", (coordinator.key,)))
    mine = carried(exported(services, alice))

    assert {"global", "user"} == {m["scope"] for m in mine}
    assert ["mine"] == [m["name"] for m in mine if m["scope"] == "user"]
    assert [] == carried(exported(services, alice, Visible(())))


def test_a_reader_exports_and_does_not_import(services: Services, alice: Caller) -> None:
    reader = Caller(alice.user_id, "alice", "key:r", right="read")
    with pytest.raises(Forbidden):
        brought(services, reader, one())

    assert [] == carried(exported(services, reader))


def test_what_has_expired_or_is_damaged_stays_out(services: Services, alice: Caller, clock: Clock) -> None:
    for name in ("a", "b", "c", "d"):
        ends = clock.now + 10**6 if name in ("b", "c") else None
        services.memories.save(alice, Draft(name, "walrus", GLOBAL, expires_at=ends))
    clock.pass_s(2)
    services.engine.write(lambda tx: tx.run("UPDATE structured_memories SET content = 'altered' WHERE name = 'd'"))
    unswept = [m["name"] for m in carried(exported(services, alice, include_expired=True))]
    services.housekeeper.sweep()

    assert ["a"] == [m["name"] for m in carried(exported(services, alice))]
    assert ["a", "b", "c"] == unswept == [m["name"] for m in carried(exported(services, alice, include_expired=True))]
    assert {"end": True, "memories": 1, "left_out": 1} == json.loads(exported(services, alice).splitlines()[-1])


def test_an_export_holds_no_secret(services: Services, alice: Caller) -> None:
    """Of the keys, tokens and addresses of the store, nothing."""
    services.access.add_user("carol", "carol@example.org")
    key, token = services.access.add_key("alice")
    fill(services, alice)
    data = exported(services, alice)
    with services.engine.read() as tx:
        (token_hash,) = tx.rows("SELECT token_hash FROM access_keys")[0]

    assert [] == [word for word in (token, token_hash, key.key_id, "carol", alice.user_id, alice.credential) if word.encode() in data]


BAD_FILES = {
    "no object": b"[1]",
    "a text": b"hello",
    "cut in a line": one()[:-3],
    "two on a line": one() + one(),
    "no UTF-8": b'{"name": "\xff"}',
    "a byte order mark": b"\xef\xbb\xbf" + one(),
    "a key twice": b'{"name": "a", "name": "b", "content": "c"}',
    "NaN": b'{"name": "a", "content": "c", "confidence": NaN}',
    "nested too deep": b'{"name": "a", "content": ' + b"[" * 10_000 + b"]" * 10_000 + b"}",
    "half a character": b'{"name": "a", "content": "\\ud800"}',
    "a huge number": b'{"name": "a", "content": "c", "version": 99999999999999999999}',
    "an export that is cut off": lines.head() + one(),
    "an export that lost a line": lines.head() + one() + b"\n" + lines.end(2, 0),
    "something after the end": lines.head() + lines.end(0, 0) + one(),
    "two exports": (lines.head() + lines.end(0, 0)) * 2,
    "an export in the middle": one() + b"\n" + lines.head(),
    "another format": b'{"format": "vcard"}',
    "a newer format": b'{"format": "pegword-export", "format_version": 2}',
}


@pytest.mark.parametrize("data", BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_file_that_is_no_good_changes_nothing(services: Services, alice: Caller, data: bytes) -> None:
    """Not even the good lines before: the sentence names the line and says so."""
    before = everything(services)
    with pytest.raises(Invalid) as refused:
        brought(services, alice, one(name="good") + b"\n" + data if not data.startswith(b'{"format"') else data)

    assert before == everything(services)
    assert "nothing was imported" in str(refused.value) or "format" in str(refused.value)


def test_a_line_is_bounded_before_it_is_read(services: Services, alice: Caller) -> None:
    class Endless(io.RawIOBase):
        """A file with a line that never ends."""

        def readline(self, size: int | None = -1) -> bytes:
            assert size is not None
            assert 0 < size <= 2 << 20
            return b"x" * size

    with pytest.raises(TooLarge, match="line 1"):
        list(lines.read(Endless()))  # type: ignore[arg-type]


BAD_LINES = {
    "no content": {"content": None},
    "a blank content": {"content": " \n"},
    "content too long": {"content": "x" * 65_537},
    "content that is no text": {"content": 5},
    "a name that cannot be": {"name": "a<b"},
    "no name": {"name": None},
    "an unknown type": {"type": "novel"},
    "an unknown priority": {"priority": "urgent"},
    "an unknown source": {"source": "oracle"},
    "tags that are no list": {"tags": "a"},
    "tags that are no texts": {"tags": [1]},
    "a confidence above 1": {"confidence": 1.5},
    "a confidence that is true": {"confidence": True},
    "verified that is a text": {"verified": "yes"},
    "no time": {"expires_at": "soon"},
    "U+0000": {"content": "a\0b"},
    "a sitting that is a list": {"sitting": [1]},
}


@pytest.mark.parametrize("fields", BAD_LINES.values(), ids=BAD_LINES.keys())
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_bad_line_is_refused_by_number_and_the_others_go_in(
    services: Services, alice: Caller, fields: dict[str, Any], dry_run: bool
) -> None:
    data = b"\n\n".join([one(name="first"), one(**fields), one(name="last")])
    report = brought(services, alice, data, dry_run=dry_run)

    assert {"created": 2, "refused": 1} == outcomes(report)
    assert [(3, "refused", True)] == [(note.line, note.outcome, len(note.reason) > 10) for note in report.notes]
    assert (0 if dry_run else 2) == services.memories.list(alice, reach(alice)).total


def test_data_that_looks_like_a_program_is_text(services: Services, alice: Caller) -> None:
    """Nothing in a line is ever built into anything but a text, and what has no meaning here is named."""
    content = '{"lc":1,"type":"constructor"} {"$ref":"#"} __proto__ !!python/object:os.system'
    report = brought(services, alice, one(content=content, tags=["__proto__", '{"__class__":"x"}'], __class__="os.system", lc=1))
    memory = services.memories.get(alice, GLOBAL, "n")

    assert (content, ("__proto__", '{"__class__":"x"}')) == (memory.content, memory.tags)
    assert {"__class__": 1, "lc": 1} == report.unknown


def test_a_memory_that_stands_twice_in_a_file_is_taken_once(services: Services, alice: Caller) -> None:
    """Or the same file would change something whenever it is brought in."""
    report = brought(services, alice, one() + b"\n" + one(name="N", content="other"), policy="overwrite")

    assert [(2, "refused", "line 1 is about the same memory")] == [(n.line, n.outcome, n.reason) for n in report.notes]
    assert "walrus" == services.memories.get(alice, GLOBAL, "n").content


def test_a_line_that_was_edited_goes_in_and_is_told(services: Services, alice: Caller) -> None:
    services.memories.save(alice, Draft("n", "walrus", GLOBAL))
    data = exported(services, alice).replace(b"walrus", b"seal")
    report = brought(services, alice, data, policy="overwrite")

    assert [("updated", True)] == [(n.outcome, "does not match its hash" in n.reason) for n in report.notes]


def test_absent_keeps_and_null_clears(services: Services, alice: Caller, clock: Clock) -> None:
    full = Draft("n", "tea", GLOBAL, description="d", tags=("t",), priority="high", expires_at=clock.now + 10**9)
    services.memories.save(alice, full)
    brought(services, alice, one(), policy="overwrite")
    kept = services.memories.get(alice, GLOBAL, "n")
    brought(services, alice, one(description=None, tags=None, expires_at=None), policy="overwrite")
    cleared = services.memories.get(alice, GLOBAL, "n")

    assert ("walrus", "d", ("t",), "high", full.expires_at) == (kept.content, kept.description, kept.tags, kept.priority, kept.expires_at)
    assert ("", (), None, "high") == (cleared.description, cleared.tags, cleared.expires_at, cleared.priority)


def test_an_import_that_fails_half_way_is_finished_by_the_same_lines(
    services: Services, alice: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is in is whole, the error says how far it came, and the second run makes no second version."""
    data = b"\n".join(one(name=f"n{number}") for number in range(250))
    write = services.engine.write
    calls = iter(range(100))

    def busy(work: Any) -> Any:
        if next(calls) == 2:
            raise Busy("another process holds the database; nothing was changed, try again")
        return write(work)

    monkeypatch.setattr(services.engine, "write", busy)
    with pytest.raises(Busy, match="the first 200 lines are done"):
        brought(services, alice, data)
    report = brought(services, alice, data)

    assert {"created": 50, "unchanged": 200} == outcomes(report)
    check(services)


@pytest.mark.usefixtures("unhurried")
def test_imports_and_saves_at_the_same_time_lose_nothing(services: Services, alice: Caller) -> None:
    """Two importers of the same file and two that save the same names: every memory is whole, and the index agrees."""
    data = b"\n".join(one(name=f"n{number}", content=f"walrus {number}") for number in range(300))
    failed: list[BaseException] = []

    def bring() -> None:
        try:
            brought(services, alice, data, policy="overwrite")
        except BaseException as error:
            failed.append(error)

    def save() -> None:
        try:
            for number in range(0, 300, 3):
                services.memories.save(alice, Draft(f"n{number}", f"tea {number}", GLOBAL))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for work in (bring, save, bring, save)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found: dict[str, Memory] = {}
    services.transfer.export(alice, reach(alice), lambda memory, _: found.setdefault(memory.name, memory))

    assert [] == failed
    assert 300 == len(found)
    assert all(m.content in (f"walrus {name[1:]}", f"tea {name[1:]}") for name, m in found.items())
    assert all(m.version == len(services.memories.versions(alice, m.memory_id).versions) for m in list(found.values())[:40])
    check(services)


def test_a_line_knows_its_number_and_the_report_is_bounded(services: Services, alice: Caller) -> None:
    report = services.transfer.bring(alice, (Line(n, "", "x") for n in range(1, 1_201)), dry_run=True)

    assert (1_200, 1_000, 200, 1_000) == (report.counts["refused"], len(report.notes), report.notes_left_out, report.notes[-1].line)


def test_every_refusal_of_a_caller_is_one_of_ours(services: Services, alice: Caller) -> None:
    """What a file can provoke is a sentence, never a fault of the program."""
    for data in BAD_FILES.values():
        with pytest.raises(PegwordError):
            brought(services, alice, data)
