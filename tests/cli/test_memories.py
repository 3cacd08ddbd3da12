"""Commands that keep and find memories."""

import json

import pytest

from pegword.services.memories import LIST_DEFAULT, LIST_MAX, SEARCH_DEFAULT, SEARCH_MAX
from tests.cli.conftest import ACCOUNT, Cli

pytestmark = pytest.mark.usefixtures("each_engine")


def test_a_person_s_save_is_verified_and_theirs(cli: Cli) -> None:
    """What a person types is a human's write: source user, verified, confidence 1.0."""
    saved = cli.ok("save", "deploy_day", "We deploy on Tuesdays.", "--json").json

    expected = ("created", "user", ACCOUNT, True, 1.0, 1)
    assert expected == tuple(saved[key] for key in ("outcome", "source", "author", "verified", "confidence", "version"))


def test_what_is_not_named_stays_and_what_is_named_changes(cli: Cli) -> None:
    """A save keeps what is stored wherever it says nothing."""
    cli.ok("save", "tea", "Green tea.", "--tag", "drink", "--tag", "morning", "--description", "what to drink", "--priority", "high")

    saved = cli.ok("save", "tea", "Black tea.", "--type", "user", "--json").json

    expected = ("updated", "Black tea.", ["drink", "morning"], "what to drink", "high", "user", 2)
    assert expected == tuple(saved[key] for key in ("outcome", "content", "tags", "description", "priority", "type", "version"))


def test_empty_words_clear_description_tags_and_never_clears_the_expiry(cli: Cli) -> None:
    """There is a way to take each optional field away."""
    cli.ok("save", "tea", "Green tea.", "--tag", "drink", "--description", "d", "--expires", "90d")

    saved = cli.ok("save", "tea", "Green tea.", "--tag", "", "--description", "", "--expires", "never", "--json").json

    assert (saved["description"], saved["tags"], saved["expires_at"]) == ("", [], None)


def test_the_same_thing_again_answers_unchanged(cli: Cli) -> None:
    """Saving what is stored makes no version."""
    cli.ok("save", "tea", "Green tea.")

    assert cli.ok("save", "tea", "Green tea.").out == "unchanged tea in global, version 1\n"


def test_content_from_stdin_is_kept_but_for_the_line_end_that_closes_it(cli: Cli) -> None:
    """- reads stdin; what is inside stays as it is."""
    cli.ok("save", "song", "-", stdin="first line\n\n  second \tline, café 猫\n".encode())

    assert cli.ok("show", "song", "--content").out == "first line\n\n  second \tline, café 猫"


@pytest.mark.parametrize(("sent", "kept"), [("a\r\n", "a\r"), ("a\r", "a\r"), ("a\r\nb\n", "a\r\nb"), ("a\n\n", "a\n"), ("a", "a")])
def test_of_what_comes_from_stdin_only_one_line_feed_is_left_out(cli: Cli, sent: str, kept: str) -> None:
    """A carriage return is part of the content, as it is sent."""
    cli.ok("save", "a", "-", stdin=sent.encode())

    assert cli.ok("show", "a", "--json").json["content"] == kept


def test_a_memory_is_found_by_words_and_by_phrase(cli: Cli) -> None:
    """search takes words and "phrases"."""
    cli.ok("save", "backups", "Backups run at three in the morning.")
    cli.ok("save", "parking", "The garage closes at three.")

    assert [m["name"] for m in cli.ok("search", "when do backups run", "--json").json["memories"]] == ["backups"]
    assert [m["name"] for m in cli.ok("search", '"closes at three"', "--json").json["memories"]] == ["parking"]


def test_lists_and_searches_take_filters_and_tell_the_true_total(cli: Cli) -> None:
    """The total counts all matches under the filters, whatever the limit."""
    for number in range(5):
        cli.ok("save", f"note_{number}", f"The lamp number {number}.", "--tag", "lamp", "--type", "reference")
    cli.ok("save", "other", "A lamp too.")

    listed = cli.ok("list", "--tag", "LAMP", "--type", "reference", "--limit", "2", "--json").json
    found = cli.ok("search", "lamp", "--tag", "lamp", "--limit", "2", "--json").json

    assert ([m["name"] for m in listed["memories"]], listed["total"]) == (["note_4", "note_3"], 5)
    assert (len(found["memories"]), found["total"]) == (2, 5)


def test_a_workstream_s_memory_is_seen_by_list_and_needs_its_id_by_name(cli: Cli) -> None:
    """A name lives in one scope; lists span all that the user sees."""
    cli.ok("save", "plan", "Ship it.", "--scope", "workstream", "--scope-id", "ws-1")

    assert cli.ok("list", "--json").json["total"] == 1
    assert cli("show", "plan").code == 1
    assert "Ship it." in cli.ok("show", "plan", "--scope", "workstream", "--scope-id", "ws-1").out


def test_two_users_do_not_see_each_other_s_own_memories(cli: Cli) -> None:
    """Scope user follows one user; scope global is everybody's."""
    for name in ("alice", "bob"):
        cli.ok("user", "add", name)
        cli.ok("save", "car", f"{name} drives.", "--scope", "user", "--user", name)

    assert [m["content"] for m in cli.ok("list", "--user", "alice", "--json").json["memories"]] == ["alice drives."]


def test_every_change_is_a_version_and_can_be_taken_back(cli: Cli) -> None:
    """revert saves again what was said then, as a new version."""
    for text in ("one", "two", "three"):
        cli.ok("save", "count", text)

    reverted = cli.ok("revert", "count", "--to", "1", "--json").json
    kept = cli.ok("versions", "count", "--json").json["versions"]

    assert (reverted["content"], reverted["version"]) == ("one", 4)
    assert [(v["action"], v["content"]) for v in kept] == [("revert", "one"), ("save", "three"), ("save", "two"), ("save", "one")]


def test_versions_are_listed_a_page_at_a_time(cli: Cli) -> None:
    for n in range(5):
        cli.ok("save", "count", f"text {n}")
    page = cli.ok("versions", "count", "--limit", "2", "--offset", "1", "--json").json
    shown = cli.ok("versions", "count", "--limit", "2")

    assert ([4, 3], 5) == ([v["version"] for v in page["versions"]], page["total"])
    assert "2 of 5 shown" in shown.err
    assert 0 == cli("versions", "count", "--offset", "9").code
    assert 2 == cli("versions", "count", "--limit", "0").code == cli("versions", "count", "--offset", "-1").code


def test_an_id_from_any_read_is_taken_by_every_command_that_names_one_memory(cli: Cli) -> None:
    """--id stands instead of a name."""
    memory_id = cli.ok("save", "tea", "Green tea.", "--json").json["memory_id"]

    assert cli.ok("show", "--id", memory_id, "--json").json["name"] == "tea"
    assert cli.ok("versions", "--id", memory_id, "--json").json["memory_id"] == memory_id
    assert cli.ok("revert", "--id", f"mem_{memory_id}", "--to", "1", "--json").json["outcome"] == "unchanged"
    assert cli.ok("delete", "--id", memory_id).out == "deleted tea from global\n"


def test_deleted_is_gone_with_its_versions(cli: Cli) -> None:
    """Delete is final."""
    memory_id = cli.ok("save", "tea", "Green tea.", "--json").json["memory_id"]
    cli.ok("delete", "tea")

    assert (cli("show", "tea").code, cli("versions", "--id", memory_id).code, cli("delete", "tea").code) == (1, 1, 1)


def test_what_has_expired_is_shown_by_name_and_hidden_elsewhere(cli: Cli) -> None:
    """A past expiry is accepted with a warning; by name the memory still answers and says that it has expired."""
    saved = cli.ok("save", "visit", "Anna visits.", "--expires", "2020-01-01")

    assert "expires_at lies in the past" in saved.err
    assert "(expired)" in cli.ok("show", "visit").out
    assert (cli.ok("list", "--json").json["total"], cli.ok("list", "--include-expired", "--json").json["total"]) == (0, 1)


def test_an_expected_version_that_is_not_the_stored_one_is_refused(cli: Cli) -> None:
    """Nobody's change is overwritten unseen; the error says which version there is."""
    cli.ok("save", "tea", "Green tea.")
    cli.ok("save", "tea", "Black tea.", "--expected-version", "1")

    refused = cli("save", "tea", "White tea.", "--expected-version", "1", "--json")

    assert (refused.code, refused.error["code"], refused.error["current_version"]) == (1, "version_mismatch", 2)


def test_only_the_expected_version_is_deleted(cli: Cli) -> None:
    """By name and by id."""
    saved = cli.ok("save", "tea", "Green tea.", "--json").json
    refused = [
        cli("delete", *which, "--expected-version", "2", "--json").error["current_version"]
        for which in (["tea"], ["--id", saved["memory_id"]])
    ]
    cli.ok("delete", "tea", "--expected-version", "1")

    assert [1, 1] == refused
    assert 0 == cli.ok("list", "--json").json["total"]


def test_the_word_for_the_kind_project_is_the_set_one_else_the_saved_one(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row remembers which of project and general it was saved with; a setting overrules it."""
    cli.ok("save", "tea", "Green tea.", "--type", "general")

    assert cli.ok("show", "tea", "--json").json["type"] == "general"
    monkeypatch.setenv("PEGWORD_TURNSTONE__PROJECT_WORD", "project")
    assert cli.ok("show", "tea", "--json").json["type"] == "project"


def test_the_limits_that_help_tells_are_the_real_ones(cli: Cli) -> None:
    """Help states numbers that live elsewhere."""
    assert f"default {LIST_DEFAULT}, at most {LIST_MAX}" in cli.ok("list", "--help").out
    assert f"default {SEARCH_DEFAULT}, at most {SEARCH_MAX}" in cli.ok("search", "--help").out


def test_json_is_one_ascii_document_with_stable_keys(cli: Cli) -> None:
    """Programs read stdout; no terminal obeys it, whatever is stored."""
    cli.ok("save", "trick", "caf\u00e9 \u202e\x1b[31m\u2066")

    result = cli.ok("show", "trick", "--json")

    assert result.out.isascii()
    assert result.json["content"] == "caf\u00e9 \u202e\x1b[31m\u2066"
    assert list(json.loads(result.out)) == [
        "memory_id", "name", "scope", "scope_id", "type", "description", "content", "tags", "priority", "source", "author",
        "verified", "verified_at", "confidence", "expires_at", "created", "updated", "version", "hash", "access_count",
        "last_accessed",
        "expired",
    ]  # fmt: skip
