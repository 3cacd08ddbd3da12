"""One table from error class to status, one error body, and what holds for every route of the table."""

import json
import logging
from collections.abc import Iterator

import httpx2
import pytest

from pegword.core import errors
from pegword.http import failures
from pegword.http.failures import STATUS, failure
from pegword.http.routing import Route
from tests.conftest import Statements
from tests.wire.conftest import Site, save

SENTENCE = "Something is wrong."
STATUS_OF_CLASS = {
    errors.Invalid: 400,
    errors.NewerDatabase: 409,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    failures.WrongMethod: 405,
    failures.TooSlow: 408,
    errors.Conflict: 409,
    errors.Damaged: 409,
    errors.VersionMismatch: 412,
    errors.TooLarge: 413,
    failures.PathTooLong: 414,
    failures.WrongMedia: 415,
    failures.TooMany: 429,
    failures.HeadersTooLarge: 431,
    errors.PegwordError: 500,
    errors.Unavailable: 503,
    errors.Busy: 503,
    errors.DiskFailed: 503,
    errors.ReadOnly: 503,
    failures.Overloaded: 503,
    errors.StorageFull: 507,
}


def every_class(root: type[errors.PegwordError]) -> Iterator[type[errors.PegwordError]]:
    yield root
    for child in root.__subclasses__():
        if child.__module__.startswith("pegword."):
            yield from every_class(child)


def made(kind: type[errors.PegwordError]) -> errors.PegwordError:
    if issubclass(kind, errors.VersionMismatch):
        return kind(SENTENCE, current=3)
    if issubclass(kind, failures.WrongMethod):
        return kind(SENTENCE, allowed=("GET", "HEAD"))
    return kind(SENTENCE)


@pytest.mark.parametrize("kind", list(every_class(errors.PegwordError)), ids=lambda kind: kind.__name__)
def test_every_error_class_has_its_status_and_the_one_body(kind: type[errors.PegwordError], alice: httpx2.Client, server: Site) -> None:
    """Each class of the tree, raised under a handler, is answered with its status in the one shape, with the headers that belong to it."""
    assert server.services is not None
    error = made(kind)

    def broken(*_: object, **__: object) -> None:
        raise error

    server.services.memories.list = broken  # type: ignore[method-assign, assignment]
    answer = alice.get("/v1/api/memories")

    assert answer.status_code == STATUS_OF_CLASS[kind]
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert (body.pop("error"), body.pop("code")) == (SENTENCE, kind.code)
    assert body.pop("field", "") == error.field
    assert body == ({"current_version": 3} if kind is errors.VersionMismatch else {})
    assert ("retry-after" in answer.headers) == issubclass(kind, errors.Unavailable)
    assert ("www-authenticate" in answer.headers) == (kind is errors.Unauthenticated)
    assert answer.headers.get("allow") == ("GET, HEAD" if kind is failures.WrongMethod else None)


def test_no_status_of_the_table_is_422_and_every_client_error_is_of_the_contract() -> None:
    """400, 401, 403, 404, 405, 408, 409, 412, 413, 414, 415, 431, 503, 507; and 500 for what nobody foresaw."""
    assert {failure(made(kind)).status for kind in STATUS if issubclass(kind, errors.PegwordError)} | {500} == {
        400, 401, 403, 404, 405, 408, 409, 412, 413, 414, 415, 429, 431, 500, 503, 507,
    }  # fmt: skip


def test_an_accident_is_500_in_json_without_its_reason_and_logged_with_its_number(
    alice: httpx2.Client, server: Site, caplog: pytest.LogCaptureFixture
) -> None:
    """No stack trace goes out; the log has it under the request's id."""
    assert server.services is not None

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("secret detail")

    server.services.memories.list = broken  # type: ignore[method-assign, assignment]
    with caplog.at_level(logging.ERROR, logger="pegword.http"):
        answer = alice.get("/v1/api/memories")

    body = answer.json()
    assert (answer.status_code, body["code"]) == (500, "internal")
    assert "secret detail" not in answer.text
    assert "Traceback" not in answer.text
    assert body["request_id"] in caplog.text
    assert "ZeroDivisionError" in caplog.text


def routes(site: Site) -> list[Route]:
    assert site.app is not None
    return list(site.app.table.routes)


def concrete(path: str) -> str:
    return path.replace("{name:path}", "a").replace("{memory_id}", "a").replace("{receipt}", "a")


def test_every_route_wants_a_token_with_the_right_for_it(server: Site, nobody: httpx2.Client, charlie: httpx2.Client) -> None:
    """Without a token 401 in the reference's words, with too little right 403 naming it; nothing is parsed before."""
    checked = 0
    for route in routes(server):
        path = concrete(route.path)
        if not route.right:
            assert nobody.request(route.method, path).status_code == 200
            continue
        bad = nobody.request(route.method, path, content=b"{not json")
        assert (bad.status_code, bad.json(), bad.headers["www-authenticate"]) == (
            401,
            {"error": "Unauthorized: missing or invalid token", "code": "unauthenticated"},
            "Bearer",
        )
        if route.right == "write":
            weak = charlie.request(route.method, path, content=b"{not json")
            assert (weak.status_code, weak.json()) == (
                403,
                {"error": "Forbidden: token lacks 'write' scope", "code": "missing_scope"},
            )
            checked += 1
    assert checked >= 5


def test_every_path_refuses_a_method_that_it_does_not_take(server: Site, alice: httpx2.Client, nobody: httpx2.Client) -> None:
    """405 in JSON, with Allow; without a token only 401 under /v1."""
    for path in {concrete(route.path) for route in routes(server)}:
        taken = {route.method for route in routes(server) if concrete(route.path) == path}
        taken |= {"GET", "DELETE"} if path == "/v1/api/memories/search" else set()  # a memory may be called search
        for method in {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"} - taken:
            answer = alice.request(method, path)
            assert answer.status_code == 405, (method, path)
            assert taken <= set(answer.headers["allow"].split(", "))
            assert answer.json()["code"] == "method_not_allowed"
            assert "access-control-allow-origin" not in answer.headers
            if path.startswith("/v1"):
                assert nobody.request(method, path).status_code == 401


def test_every_body_route_refuses_what_is_no_json(server: Site, alice: httpx2.Client) -> None:
    """text/plain, forms, multipart and compressed bodies are 415; a body that is no JSON object is 400."""
    body_routes = [route for route in routes(server) if route.body]
    for route in body_routes:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml", "text/json"):
            answer = alice.request(route.method, concrete(route.path), content=b"{}", headers={"Content-Type": kind})
            assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_media_type")
        for encoding in ("gzip", "br", "deflate"):
            answer = alice.request(route.method, concrete(route.path), content=b"{}", headers={"Content-Encoding": encoding})
            assert answer.status_code == 415
        for body in (b"", b"{", b"[]", b"null", b'"x"', b"1"):
            answer = alice.request(route.method, concrete(route.path), content=body)
            assert (answer.status_code, answer.json()["code"]) == (400, "invalid_json")
    assert len(body_routes) >= 5


@pytest.mark.parametrize("kind", ["application/json", "application/json; charset=utf-8", "Application/JSON", ""])
def test_json_may_be_named_in_any_case_or_not_at_all(alice: httpx2.Client, kind: str) -> None:
    """An absent Content-Type is accepted: the body is checked anyway."""
    body = json.dumps({"name": "a", "content": "x"}).encode()
    answer = alice.post("/v1/api/memories", content=body, headers={"Content-Type": kind} if kind else {})

    assert answer.status_code == 201


def test_an_unknown_path_is_404_in_json_and_tells_nothing_without_a_token(alice: httpx2.Client, nobody: httpx2.Client) -> None:
    """Under /v1 who has no token learns nothing of what is there; elsewhere it is 404 for all."""
    expected = {"error": "there is nothing at this path", "code": "no_such_path"}
    for path in ("/v1", "/v1/", "/v1/api", "/v1/api/nothing", "/v1/api/admin/memories"):
        assert (alice.get(path).status_code, alice.get(path).json()) == (404, expected)
        assert nobody.get(path).status_code == 401
    for path in ("/", "/v10", "/V1/api/memories", "/favicon.ico", "/.env", "/v1x/api"):
        assert (nobody.get(path).status_code, nobody.get(path).json()) == (404, expected)


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer  {t} {t}", "Basic YTpi", "Bearer x", "Bearer {t}x", "Bearer {t}=", "Bearer {t} x", "{t}", "Token {t}",
     "Bearer\t{t}", "Bearer pw_" + "a" * 5_000, "Bearer {l}"],
)  # fmt: skip
def test_a_credential_that_is_not_exactly_a_token_is_401(server: Site, nobody: httpx2.Client, header: str) -> None:
    """Whatever is wrong with it, the words are the same."""
    token = server.token("alice")
    value = header.format(t=token, l=token.lower())
    answer = nobody.get("/v1/api/memories", headers={"Authorization": value})

    assert (answer.status_code, answer.json()["error"]) == (401, "Unauthorized: missing or invalid token")


def test_the_bearer_keyword_has_no_case_and_a_token_stands_nowhere_else(server: Site, nobody: httpx2.Client) -> None:
    """`bearer` and `BEARER` are read; a key in the query, in a cookie or in two headers is none."""
    token = server.token("alice")
    for keyword in ("Bearer", "bearer", "BEARER"):
        assert nobody.get("/v1/api/memories", headers={"Authorization": f"{keyword} {token}"}).status_code == 200
    for place in ("token", "key", "api_key", "access_token"):
        assert nobody.get("/v1/api/memories", params={place: token}).status_code == 401
    assert nobody.get("/v1/api/memories", headers={"Cookie": f"token={token}"}).status_code == 401
    both = [("Authorization", f"Bearer {token}"), ("Authorization", f"Bearer {token}")]
    assert nobody.get("/v1/api/memories", headers=both).status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "127.0.0.1"}, 200),
        ({"Host": "localhost:9"}, 200),
        ({"Host": "LOCALHOST"}, 200),
        ({"Host": "[::1]:8080"}, 200),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example:80"}, 403),
        ({"Host": "localhost.evil.example"}, 403),
        ({"Host": "evil.example@127.0.0.1"}, 403),
        ({"Host": "127.0.0.1/evil"}, 403),
        ({"Host": "127.0.0.1:99999"}, 403),
        ({"Host": "192.168.0.1"}, 403),
        ({"Host": "[::1"}, 403),
        ({"Host": ""}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost.evil.example"}, 403),
    ],
)
def test_on_loopback_only_loopbacks_names_are_answered(server: Site, alice: httpx2.Client, headers: dict[str, str], status: int) -> None:
    """A web page that makes its name point at this machine reaches nothing, before any credential is looked at."""
    answer = alice.get("/v1/api/memories", headers=headers)

    assert answer.status_code == status
    if status == 403:
        assert answer.json()["code"] == "foreign_host"
        assert server.client().get("/v1/api/memories", headers=headers).status_code == 403


def test_a_refused_request_does_not_touch_the_store(nobody: httpx2.Client, alice: httpx2.Client, statements: Statements) -> None:
    """Who has no token costs one look-up at most, and what has no form of one costs none."""
    save(alice)
    statements.seen.clear()
    nobody.get("/v1/api/memories")
    nobody.get("/v1/api/memories", headers={"Authorization": "Bearer abc"})

    assert statements.seen == []


def test_head_is_get_without_a_body(alice: httpx2.Client, nobody: httpx2.Client) -> None:
    """HEAD answers what GET would, for probes."""
    save(alice)
    answer = alice.head("/v1/api/memories/deploy_day")

    assert (answer.status_code, answer.content, answer.headers["etag"]) == (200, b"", '"1"')
    assert nobody.head("/livez").status_code == 200
    assert alice.head("/v1/api/memories/nothing").status_code == 404
