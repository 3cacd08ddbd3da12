"""What a body may be: size, depth, encoding, numbers, names, and texts that come back as they were sent."""

import json
import time
from typing import Any

import httpx2
import pytest

from tests.wire.conftest import Site, save

LEVELS = 99_000
MEMORIES = "/v1/api/memories"

NO_JSON: list[tuple[bytes, str]] = [
    (b'{"name":"a","name":"b","content":"x"}', "name is given more than once"),
    (b'{"name":"a","content":"x","n":{"k":1,"k":1}}', "k is given more than once"),
    (b'{"name":"a","content":"x","\\u006eame":"b"}', "name is given more than once"),
    (b'{"name":"a","content":"x","confidence":NaN}', "the body holds NaN, which is no JSON"),
    (b'{"name":"a","content":"x","confidence":Infinity}', "the body holds Infinity, which is no JSON"),
    (b'{"name":"a","content":"x","confidence":-Infinity}', "the body holds -Infinity, which is no JSON"),
    (b'{"name":"a","content":"x","confidence":1e999}', "the body holds a number that is too large"),
    (b'{"name":"a","content":"x","n":[-1e999]}', "the body holds a number that is too large"),
    (b'{"name":"a","content":"x","n":9223372036854775808}', "the body holds an integer beyond 64 bits"),
    (b'{"name":"a","content":"x","n":' + b"9" * 5_000 + b"}", "the body holds an integer beyond 64 bits"),
    (b'{"name":"a","content":"x","n":-' + b"9" * 5_000 + b"}", "the body holds an integer beyond 64 bits"),
    (b'{"name":"a","content":"\\ud800"}', "content holds half of a character (U+D800), which is no text"),
    (b'{"name":"\\udfffa","content":"x"}', "name holds half of a character (U+DFFF), which is no text"),
    (b'{"name":"a","content":"x","tags":["\\ud83d"]}', "tags holds half of a character (U+D83D), which is no text"),
    (b'{"name":"a","content":"x","x":{"y":["\\udc00\\ud800"]}}', "x holds half of a character (U+DC00), which is no text"),
    (b'{"name":"a","content":"x","\\ud800":1}', "a field's name holds half of a character (U+D800), which is no text"),
    (b'{"name":"a","content":"\xed\xa0\x80"}', "the body is not valid UTF-8: see byte 23"),
    (b'{"name":"a","content":"\xff"}', "the body is not valid UTF-8: see byte 23"),
    (b'{"name":"a","content":"\xc3', "the body is not valid UTF-8: see byte 23"),
    (b'\xef\xbb\xbf{"name":"a","content":"x"}', "the body begins with a byte order mark; send UTF-8 without one"),
    (b"[]", "the body must be a JSON object"),
    (b"null", "the body must be a JSON object"),
    (b'"name"', "the body must be a JSON object"),
    (b"17", "the body must be a JSON object"),
    (b'{"name":"a","content":"x\x00"}', "Invalid JSON body: invalid control character at line 1 column 25"),
    (b'{"name":"a","content":"x"}}', "Invalid JSON body: extra data at line 1 column 27"),
    (b"", "Invalid JSON body: expecting value at line 1 column 1"),
    (b'{"name":"a","content":"\\u0000"}', "content holds the character U+0000, which cannot be stored"),
    (b'{"name":"\\u0000","content":"x"}', "name holds the character U+0000; letters, digits and _ . : / @ + # are allowed"),
]  # fmt: skip


def post(client: httpx2.Client, body: bytes, path: str = MEMORIES) -> httpx2.Response:
    return client.post(path, content=body, headers={"Content-Type": "application/json"})


def refused(client: httpx2.Client, body: bytes) -> str:
    """Post *body*, which must be refused with 400 in JSON within a moment, and return the sentence."""
    began = time.perf_counter()
    answer = post(client, body)
    took = time.perf_counter() - began

    assert answer.status_code == 400, answer.text[:200]
    assert took < 60  # what reads it again and again takes minutes
    return str(answer.json()["error"])


@pytest.mark.parametrize("opener", [b"[", b'{"a":', b'[{"a":'])
@pytest.mark.parametrize("closed", [True, False])
def test_deep_nesting_is_refused_fast(alice: httpx2.Client, opener: bytes, closed: bool) -> None:
    """A hundred thousand levels, closed or not: 400, never a broken stack."""
    body = b'{"name":"a","content":"x","deep":' + opener * LEVELS
    if closed:
        body += b"1" + opener.translate(bytes.maketrans(b"[{", b"]}"), b'":a')[::-1] * LEVELS + b"}"

    assert refused(alice, body) == "the body is nested deeper than 64 levels"


def test_64_levels_are_read_and_brackets_in_texts_are_no_levels(alice: httpx2.Client) -> None:
    """The limit counts structure, not text."""
    deep = b"[" * 63 + b"]" * 63
    texts = json.dumps('[{"' * 5_000 + "\\").encode()

    assert post(alice, b'{"name":"a","content":"x","deep":' + deep + b"}").status_code == 201
    assert post(alice, b'{"name":"b","content":' + texts + b"}").status_code == 201
    assert refused(alice, b'{"name":"a","content":"x","deep":[' + deep + b"]}") == "the body is nested deeper than 64 levels"


@pytest.mark.parametrize(("body", "sentence"), NO_JSON, ids=lambda part: ascii(part)[:40])
def test_a_body_that_is_not_plain_json_is_400_saying_why(alice: httpx2.Client, body: bytes, sentence: str) -> None:
    """Duplicate keys, no numbers, too large ones, half characters, other encodings, no object: one sentence each."""
    assert refused(alice, body) == sentence


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "latin-1"])
def test_other_encodings_are_400(alice: httpx2.Client, encoding: str) -> None:
    """JSON is UTF-8 here."""
    assert refused(alice, '{"name":"a","content":"é"}'.encode(encoding))


@pytest.mark.parametrize(
    "body",
    [
        b'{"name":"a","content":"x","tags":[' + b'"t",' * 199_999 + b'"t"]}',
        b'{"name":"a","content":"x","tags":[' + b",".join(b'"t%d"' % n for n in range(100_000)) + b"]}",
        b'{"name":"a","content":"x","n":[' + b"[]," * 250_000 + b"[]]}",
        b'{"name":"a","content":"x",' + b",".join(b'"k%d":1' % n for n in range(90_000)) + b',"name":"b"}',
        b'{"name":"a","content":"' + b'\\"' * 400_000,
        b'{"name":"a","content":"' + b"\\" * 800_001,
        b'{"name":"a","content":' + b'"' * 800_000,
        b'{"name":"a","content":"' + b"\\u00e9" * 100_000 + b'"}',
    ],
    ids=["doubled tags", "many tags", "many lists", "many keys", "open text", "backslashes", "quotes", "long content"],
)  # fmt: skip
def test_bodies_made_to_be_slow_are_refused_in_a_moment(alice: httpx2.Client, body: bytes) -> None:
    """Up to a mebibyte of anything costs no more than a moment."""
    assert refused(alice, body)


def test_a_thousand_unknown_fields_are_told_in_few_warnings(alice: httpx2.Client) -> None:
    """An answer does not grow with what was sent for nothing."""
    record = save(alice, **{f"field_{n}": 1 for n in range(1_000)}, **{"k" * 200: 1})

    assert len(record["warnings"]) == 21
    assert record["warnings"][-1] == "981 more fields that are not known here; ignored"


@pytest.mark.parametrize(
    "content",
    [
        "￿", "🦜" * 100, "e" + "\u0301" * 10_000, "\u202eright to left\u202c שלום", "İ ß ſ K", "café", "cafe\u0301", "a\u2028b\u2029c",
        "  outer blanks stay\n", "\r\n\t", "\\ud800 as six letters", "\ufeff", "𝄞" * 32_768, "𝄞" * 65_536, "</memory></memories>",
        "\x01\x1f\x7f",
    ],
    ids=lambda text: ascii(text[:12]),
)  # fmt: skip
def test_text_comes_back_as_it_was_sent(alice: httpx2.Client, content: str) -> None:
    """Content is stored verbatim; the limit counts code points."""
    if not content.strip():
        assert alice.post(MEMORIES, json={"name": "a", "content": content}).status_code == 400
        return
    record = save(alice, "a", content, description=content[:8_000])

    assert record["content"] == content
    assert record["description"] == content[:8_000]
    assert alice.get("/v1/api/memories/a").json()["content"] == content


def test_escaped_pairs_are_whole_characters(alice: httpx2.Client) -> None:
    """A surrogate pair in JSON's own escapes is one character."""
    answer = post(alice, b'{"name":"a","content":"\\ud83e\\udd9c"}')

    assert answer.json()["content"] == "🦜"


def test_one_code_point_too_many_is_refused_with_the_limit(alice: httpx2.Client) -> None:
    """65,536 characters of four bytes fit, one more does not."""
    answer = alice.post(MEMORIES, json={"name": "a", "content": "𝄞" * 65_537})

    assert (answer.status_code, answer.json()) == (
        400,
        {"error": "content exceeds 65536 character limit: it has 65537", "code": "too_long", "field": "content"},
    )


def headed(site: Site, path: str, length: str, body: bytes = b"") -> bytes:
    token = site.token("alice")
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n{length}\r\n\r\n"
    ).encode() + body


@pytest.mark.parametrize(("path", "limit"), [(MEMORIES, 1 << 20), ("/v1/api/memories/search", 1 << 20), ("/v1/api/turn", 32 << 20)])
def test_a_body_that_says_it_is_too_long_is_413_before_it_is_sent(server: Site, path: str, limit: int) -> None:
    """Content-Length is looked at first: not one byte of the body is waited for."""
    for length in (limit + 1, 1 << 30, 10**18):
        (reply,) = server.raw(headed(server, path, f"Content-Length: {length}"))
        assert (reply.status, reply.json()) == (
            413,
            {"error": f"the body exceeds the limit of {limit} bytes", "code": "too_large"},
        )
        assert reply.headers["connection"] == "close"


def test_a_chunked_body_is_counted_and_cut_off(server: Site) -> None:
    """An endless body is refused as soon as it passes the limit."""
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    (reply,) = server.raw(headed(server, MEMORIES, "Transfer-Encoding: chunked", chunk * 400))

    assert (reply.status, reply.json()["code"]) == (413, "too_large")


def test_a_client_that_goes_on_sending_still_hears_why(server: Site, alice: httpx2.Client) -> None:
    """The connection is not cut under a client that sends its whole body first: it reads 413, not a broken pipe."""
    assert server
    answer = alice.post(MEMORIES, content=b" " * (8 << 20))

    assert answer.status_code == 413


def test_a_body_at_its_limit_is_read(alice: httpx2.Client) -> None:
    """A save of exactly a mebibyte, a turn of exactly 32: read."""
    start, end = b'{"name":"a","content":"x","pad":"', b'"}'
    body = start + b" " * ((1 << 20) - len(start) - len(end)) + end
    turn = b'{"messages":[{"role":"user","content":"x"},{"role":"tool","content":"' + b"y" * (32 << 20)
    turn = turn[: (32 << 20) - 4] + b'"}]}'

    assert post(alice, body).status_code == 201
    assert post(alice, turn, "/v1/api/turn").status_code == 200


def test_a_body_on_a_route_that_takes_none_does_no_harm(server: Site, alice: httpx2.Client) -> None:
    """A small one is passed over; a long one ends the connection after the answer."""
    token = server.token("alice")
    save(alice)
    assert alice.request("DELETE", "/v1/api/memories/deploy_day", content=b"{}").status_code == 200
    head = f"GET /v1/api/memories HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nContent-Length: 100000000\r\n\r\n"
    (reply,) = server.raw(head.encode() + b"x" * 100_000)

    assert (reply.status, reply.headers["connection"]) == (200, "close")


def test_a_turn_of_many_messages_is_read(alice: httpx2.Client) -> None:
    """Ten thousand messages are an ordinary long conversation."""
    save(alice)
    messages: list[dict[str, Any]] = [
        {"role": "user" if n % 2 else "assistant", "content": [{"type": "text", "text": f"m {n}"}]} for n in range(10_000)
    ]
    messages.append({"role": "user", "content": "When do we deploy?"})
    answer = alice.post("/v1/api/turn", json={"messages": messages})

    assert [m["name"] for m in answer.json()["memories"]] == ["deploy_day"]
