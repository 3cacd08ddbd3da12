"""Names in paths: any spelling, encoded or not, and never another handler."""

from urllib.parse import quote

import httpx2
import pytest

from tests.wire.conftest import Site, save

ONE = "/v1/api/memories/"


def bare(site: Site, method: str, target: str) -> tuple[int, object]:
    """What *target*, sent as it is, is answered."""
    token = site.token("alice")
    head = f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    (reply,) = site.raw(head.encode())
    return reply.status, reply.json()


@pytest.mark.parametrize(
    ("name", "spellings"),
    [
        ("my_key_name", ["My-Key Name", "my_key_name", "MY-KEY-NAME", " my key name "]),
        ("a__b", ["a--b", "a__b"]),
        ("__init__", ["__init__"]),
        ("a/b", ["a/b", "A/B"]),
        ("a/b/", ["a/b/"]),
        ("/a", ["/a"]),
        ("//", ["//"]),
        ("..", [".."]),
        ("../admin/memories", ["../admin/memories"]),
        ("v1.2", ["V1.2"]),
        ("café", ["café", "CAFÉ", "cafe\u0301"]),
        ("猫", ["猫"]),
        ("search", ["search", "Search"]),
        ("search/", ["search/"]),
        ("a+b", ["a+b"]),
        ("#1", ["#1"]),
        ("user@host:8080", ["user@host:8080"]),
        ("straße", ["straße", "STRAßE"]),
        ("n" * 256, ["N" * 256]),
    ],
)
def test_a_name_is_found_under_every_spelling(server: Site, alice: httpx2.Client, name: str, spellings: list[str]) -> None:
    """GET and DELETE by name normalise as a save does; what is percent-encoded is decoded once."""
    for spelling in spellings:
        saved = save(alice, spelling)
        assert saved["name"] == name
        for written in (spelling, name):
            for safe in ("", "/", "/:@+"):
                status, record = bare(server, "GET", ONE + quote(written, safe=safe))
                assert (status, isinstance(record, dict) and record["name"]) == (200, name)
        assert bare(server, "DELETE", ONE + quote(spelling, safe="")) == (200, {"status": "ok", "name": name})


@pytest.mark.parametrize("name", ["café", "猫", "straße"])
def test_a_name_may_stand_in_the_path_as_plain_utf_8(server: Site, alice: httpx2.Client, name: str) -> None:
    """As some clients send it: not encoded at all."""
    save(alice, name)

    status, record = bare(server, "GET", ONE + name)
    assert (status, isinstance(record, dict) and record["name"]) == (200, name)
    assert bare(server, "DELETE", ONE + name)[0] == 200


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (ONE, 400),
        (ONE + "%20", 400),
        (ONE + "a%00b", 400),
        (ONE + "%FF", 400),
        (ONE + "%252F", 400),
        (ONE + "%ED%A0%80", 400),
        (ONE + "a%3Cb", 400),
        (ONE + "n" * 257, 400),
        (ONE + "%", 400),
        (ONE + "%zz", 400),
        (ONE + "a;x=1", 400),
        (ONE + "../memory/x", 404),
        (ONE + "%2e%2e/%2e%2e/health", 404),
        (ONE + "..%2F..%2F..%2Fhealth", 404),
        ("/v1/api/./memories", 404),
        ("/v1/api/../api/memories", 404),
        ("/v1/api//memories", 404),
        ("//v1/api/memories", 404),
        ("/v1/api/memories%2Fa", 404),
        ("/v1/api/Memories", 404),
        ("/v1/api/memory", 404),
        ("/v1/api/memory/", 404),
        ("/v1/api/memory/a/b", 404),
        ("/v1/api/memory/a%2Fversions", 404),
        ("/v1/api/turn/", 404),
        ("/health/", 404),
        ("/health/../v1/api/memories", 404),
        ("*", 404),
        ("http://127.0.0.1/v1/api/nothing", 404),
    ],
)
def test_an_odd_path_reaches_no_other_handler(server: Site, target: str, status: int) -> None:
    """Dots, doubled and trailing slashes, encoded slashes: taken as they are; nothing is joined, cut or redirected."""
    assert bare(server, "GET", target)[0] == status


def test_an_absolute_target_is_read_as_its_path(server: Site, alice: httpx2.Client) -> None:
    """The host of an absolute target is not looked at: the Host header is what is checked."""
    save(alice)

    assert bare(server, "GET", "http://127.0.0.1/v1/api/memories/deploy_day")[0] == 200


def test_a_delete_without_the_right_scope_says_so(alice: httpx2.Client) -> None:
    """Scope rules of delete and get by name are those of a save."""
    save(alice)
    cases = {
        "scope=bogus": (400, "invalid scope: bogus; must be one of ['global', 'user', 'workstream']"),
        "scope=coordinator": (400, "invalid scope: coordinator cannot be used here; must be one of ['global', 'user', 'workstream']"),
        "scope_id=z": (400, "scope_id is not allowed with global scope"),
        "scope=workstream": (400, "scope_id is required for workstream scope"),
        "scope=user&scope_id=someone-else": (403, "Cannot access another user's memories"),
        "scope=workstream&scope_id=" + "w" * 257: (400, "scope_id exceeds 256 character limit: it has 257"),
        "scope=workstream&scope_id=a%00": (400, "scope_id holds the character U+0000, which no id may hold"),
    }
    for query, expected in cases.items():
        for method in ("GET", "DELETE"):
            answer = alice.request(method, f"{ONE}deploy_day?{query}")
            assert (answer.status_code, answer.json()["error"]) == expected
    for query in ("", "?scope=", "?scope=&scope_id=", "?scope=global&scope_id=%20"):
        assert alice.get(f"{ONE}deploy_day{query}").status_code == 200
