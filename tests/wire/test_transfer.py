"""Export and import over HTTP: streamed both ways, bounded, refused as early as can be."""

import contextlib
import gzip
import json
import pickle
import select
import socket
from collections.abc import Iterator

import httpx2
import pytest

from pegword import lines
from pegword.core.errors import Busy
from pegword.http import app, spooling, transfer
from pegword.services.writing import Writing
from tests.patience import PATIENCE_S, until
from tests.wire.conftest import Site, read_replies, save

EXPORT, IMPORT = "/v1/api/export", "/v1/api/import"
NDJSON = {"Content-Type": "application/x-ndjson"}


def one(name: str = "n", content: str = "walrus", **more: object) -> bytes:
    return json.dumps({"name": name, "content": content, **more}).encode() + b"\n"


def total(client: httpx2.Client) -> int:
    return int(client.get("/v1/api/memories").json()["total"])


def test_an_export_is_a_file_of_lines(alice: httpx2.Client) -> None:
    save(alice, tags=["a"])
    save(alice, "mine", "Only for me.", scope="user")
    answer = alice.get(EXPORT)
    found = [json.loads(line) for line in answer.content.splitlines()]

    assert (200, "application/x-ndjson") == (answer.status_code, answer.headers["content-type"])
    assert 'attachment; filename="pegword-export.jsonl"' == answer.headers["content-disposition"]
    assert len(answer.content) == int(answer.headers["content-length"])
    assert ("no-store", "nosniff") == (answer.headers["cache-control"], answer.headers["x-content-type-options"])
    assert [{"format": "pegword-export", "format_version": 1}, {"end": True, "memories": 2, "left_out": 0}] == [found[0], found[-1]]
    assert ["deploy_day", "mine"] == [m["name"] for m in found[1:-1]]


def test_an_export_is_narrowed_by_scope_and_sees_nothing_of_others(alice: httpx2.Client, bob: httpx2.Client) -> None:
    save(alice, "mine", "Only for me.", scope="user")
    save(alice, "ours", "For everybody.")

    assert [b'{"end":true,"memories":1,"left_out":0}'] == alice.get(f"{EXPORT}?scope=user").content.splitlines()[-1:]
    assert b"Only for me" not in bob.get(EXPORT).content
    assert 400 == alice.get(f"{EXPORT}?scope=coordinator").status_code
    assert 400 == alice.get(f"{EXPORT}?kind=user").status_code


def test_a_large_export_comes_in_pieces_and_whole(alice: httpx2.Client) -> None:
    """More than fits into one piece, of bytes that are no text of one byte a character."""
    content = "猫\n" * 20_000
    for number in range(12):
        save(alice, f"n{number}", content)
    data = alice.get(EXPORT).content

    assert len(data) > 2 * spooling.PIECE_BYTES
    assert [content] * 12 == [json.loads(line)["content"] for line in data.splitlines()[1:-1]]


def test_what_was_exported_is_imported(alice: httpx2.Client, bob: httpx2.Client) -> None:
    """Bob gets what he could see; Alice's own stays hers."""
    save(alice, "ours", "For everybody.")
    save(alice, "mine", "Only for me.", scope="user")
    data = alice.get(EXPORT).content
    alice.delete("/v1/api/memories/ours")
    report = bob.post(IMPORT, content=data, headers=NDJSON)

    assert 200 == report.status_code
    assert {"lines": 2, "created": 2, "updated": 0, "unchanged": 0, "skipped": 0, "refused": 0, "dry_run": False, "policy": "skip"} == {
        k: v for k, v in report.json().items() if k not in ("notes", "not_taken")
    }
    assert {"author": 2} == report.json()["not_taken"]
    assert "Only for me." == bob.get("/v1/api/memories/mine?scope=user").json()["content"]


def test_the_report_names_lines_and_reasons(alice: httpx2.Client) -> None:
    save(alice, "n", "tea")
    report = alice.post(IMPORT, content=one() + one("m", "") + one("o", scope="coordinator", colour=1), headers=NDJSON).json()

    assert [(1, "n", "skipped"), (2, "m", "refused"), (3, "o", "refused")] == [
        (n["line"], n["name"], n["outcome"]) for n in report["notes"]
    ]
    assert ["colour: no such field of a memory; ignored in 1 lines"] == report["warnings"]


def test_policy_and_dry_run_are_said_in_the_query(alice: httpx2.Client) -> None:
    save(alice, "n", "tea")
    dry = alice.post(f"{IMPORT}?policy=overwrite&dry_run=true", content=one(), headers=NDJSON).json()
    assert (1, True, "tea") == (dry["updated"], dry["dry_run"], alice.get("/v1/api/memories/n").json()["content"])
    alice.post(f"{IMPORT}?policy=overwrite", content=one(), headers=NDJSON)

    assert "walrus" == alice.get("/v1/api/memories/n").json()["content"]
    assert (400, "policy") == (lambda a: (a.status_code, a.json()["field"]))(alice.post(f"{IMPORT}?policy=merge", content=one()))


@pytest.mark.parametrize("media", ["application/x-ndjson", "application/jsonl", "application/json; charset=utf-8", ""])
def test_lines_may_be_called_by_any_of_their_names(alice: httpx2.Client, media: str) -> None:
    assert 200 == alice.post(IMPORT, content=one(), headers={"Content-Type": media}).status_code


FOREIGN = {
    "a pickle": pickle.dumps({"name": "n", "content": "x"}),
    "YAML": b"!!python/object/apply:os.system ['true']",
    "msgpack": b"\xc7\x05\x01hello",
    "a SQLite database": b"SQLite format 3\x00" + bytes(100),
    "XML": b'<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>',
    "gzip": gzip.compress(bytes(10_000_000)),
    "CSV": b"name,content\nn,x\n",
    "a JSON list": b'[{"name": "n", "content": "x"}]',
}


@pytest.mark.parametrize("data", FOREIGN.values(), ids=FOREIGN.keys())
def test_what_is_no_json_lines_is_415_by_its_content(alice: httpx2.Client, data: bytes) -> None:
    """Whatever it says that it is; it is not even read to its end."""
    answer = alice.post(IMPORT, content=data, headers=NDJSON)

    assert (415, 0) == (answer.status_code, total(alice))


@pytest.mark.parametrize("headers", [{"Content-Type": "text/csv"}, {"Content-Encoding": "gzip", **NDJSON}])
def test_another_type_or_a_compressed_body_is_415(alice: httpx2.Client, headers: dict[str, str]) -> None:
    assert 415 == alice.post(IMPORT, content=one(), headers=headers).status_code


def test_a_line_or_a_file_that_is_too_long_is_413_and_changes_nothing(alice: httpx2.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    long_line = one() + b'{"name": "m", "content": "' + b"x" * lines.LINE_BYTES_MAX + b'"}\n'
    assert "line 2" in alice.post(IMPORT, content=long_line, headers=NDJSON).json()["error"]
    monkeypatch.setattr(spooling, "LINES_MAX", 10)
    monkeypatch.setattr(spooling, "SPOOL_BYTES_MAX", 2_000)
    many, large = one() * 11, one(content="x" * 1_990)

    assert [413, 413, 413] == [alice.post(IMPORT, content=data, headers=NDJSON).status_code for data in (long_line, many, large)]
    assert 0 == total(alice)


def test_a_line_that_never_ends_is_refused_before_it_has_come(server: Site, alice: httpx2.Client) -> None:
    """Chunked, so nobody knows how long it will be: a megabyte is read, not two gigabytes."""
    token = alice.headers["authorization"]
    head = f"POST {IMPORT} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {token}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    sent, rest = 0, b""
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as connection:
        connection.sendall(head + b"1\r\n{\r\n")
        with contextlib.suppress(OSError):  # it may be hung up on
            while sent < 64 << 20:
                readable, writable, _ = select.select([connection], [connection], [], PATIENCE_S)
                if readable:
                    break
                if writable:
                    taken = connection.send(rest := rest or chunk, socket.MSG_DONTWAIT)
                    rest, sent = rest[taken:], sent + taken
        replies = read_replies(connection)

    assert [413] == [reply.status for reply in replies]
    assert sent < 32 << 20


def test_a_file_that_is_cut_off_changes_nothing(alice: httpx2.Client) -> None:
    answer = alice.post(IMPORT, content=lines.head() + one() + one("m"), headers=NDJSON)

    assert (400, "lines", 0) == (answer.status_code, answer.json()["field"], total(alice))


def test_deep_nesting_is_400_and_changes_nothing(alice: httpx2.Client) -> None:
    data = one() + b'{"name": ' + b"[" * 10_000 + b"]" * 10_000 + b"}"

    assert (400, 0) == (alice.post(IMPORT, content=data, headers=NDJSON).status_code, total(alice))


def test_few_of_them_are_done_at_once(alice: httpx2.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Above that they are told to come again, and saves go on."""
    monkeypatch.setattr(app, "LONG_IN_WORK_MAX", 0)
    refused = [alice.get(EXPORT), alice.post(IMPORT, content=one(), headers=NDJSON)]

    assert [(503, "overloaded", "5")] * 2 == [(a.status_code, a.json()["code"], a.headers["retry-after"]) for a in refused]
    assert save(alice)["version"] == 1


def test_a_place_is_given_back_whatever_became_of_the_request(server: Site, alice: httpx2.Client) -> None:
    """After successes, refusals and clients that hang up: as many can be done as before."""
    assert server.app is not None
    token = alice.headers["authorization"]
    for _ in range(app.LONG_IN_WORK_MAX + 2):
        alice.get(EXPORT)
        alice.post(IMPORT, content=b"[]", headers=NDJSON)
        half = f"POST {IMPORT} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {token}\r\nContent-Length: 999\r\n\r\n" + '{"name"'
        server.raw(half.encode(), half_close=True)

    assert 200 == alice.post(IMPORT, content=one(), headers=NDJSON).status_code
    until(lambda: server.app is not None and server.app._long_in_work == 0)  # it is given back when the answer has been sent


def test_a_reader_may_export_and_not_import(charlie: httpx2.Client) -> None:
    assert (200, 403) == (charlie.get(EXPORT).status_code, charlie.post(IMPORT, content=one(), headers=NDJSON).status_code)


def test_the_body_is_streamed_and_the_answer_is_the_report(alice: httpx2.Client) -> None:
    """A body of unknown length, in pieces that end within lines and within characters."""

    def pieces() -> Iterator[bytes]:
        data = b"".join(one(f"n{number}", f"猫 {number}") for number in range(120))
        for start in range(0, len(data), 7):
            yield data[start : start + 7]

    report = alice.post(IMPORT, content=pieces(), headers=NDJSON).json()

    assert (120, 120) == (report["created"], total(alice))


def test_under_a_key_an_import_is_done_once_and_is_all_or_nothing(
    server: Site, alice: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same answer for the same request; one transaction, so what fails half way leaves nothing; and so it is bounded."""
    assert server.services is not None
    key = {"Idempotency-Key": "k1", **NDJSON}
    data = b"".join(one(f"n{number}") for number in range(150))
    seen: list[int] = []

    def fails(*arguments: object, **more: object) -> object:
        seen.append(1)
        if len(seen) == 120:
            raise Busy("others changed the same at the same time; nothing was changed, try again")
        return put(*arguments, **more)  # type: ignore[arg-type]

    put = Writing.put
    monkeypatch.setattr(Writing, "put", fails)
    assert (503, 0) == (alice.post(IMPORT, content=data, headers=key).status_code, total(alice))
    first, second = (alice.post(IMPORT, content=data, headers=key) for _ in range(2))

    assert (150, 150) == (first.json()["created"], total(alice))
    assert first.content == second.content
    assert 409 == alice.post(IMPORT, content=one(), headers=key).status_code
    monkeypatch.setattr(transfer, "ONCE_LINES_MAX", 100)
    refused = alice.post(IMPORT, content=data, headers={"Idempotency-Key": "k2", **NDJSON})
    assert (400, "Idempotency-Key") == (refused.status_code, refused.json()["field"])
