"""Probes, the OpenAPI document and its page: what the server says of itself without a credential."""

import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openapi_spec_validator import validate

from pegword import __version__
from pegword.core.errors import StorageFull
from pegword.http.routing import Table
from pegword.services import health
from tests.conftest import Statements
from tests.stored import held
from tests.wire.conftest import Site, save

PROBES = ("/health", "/readyz")

pytestmark = pytest.mark.usefixtures("unhurried")  # a disk that is slow is no store that cannot be written


def test_all_is_well(nobody: httpx2.Client) -> None:
    """Three probes, one answer, no token."""
    for path in (*PROBES, "/livez"):
        answer = nobody.get(path)
        assert (answer.status_code, answer.json(), answer.headers["cache-control"]) == (200, {"status": "ok"}, "no-store")


def test_readiness_writes_at_most_one_row_in_five_seconds(
    server: Site, nobody: httpx2.Client, statements: Statements, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether memories can be saved is found out by a write, however often it is asked."""
    assert server.services is not None
    now = [100.0]
    monkeypatch.setattr(server.services.health, "_monotonic", lambda: now[0])

    def writes() -> int:
        return sum("INSERT INTO facts" in sql for sql in statements.seen)

    for _ in range(10):
        nobody.get("/readyz")
        nobody.get("/health")
    assert writes() == 1
    now[0] += health.PROBE_EVERY_S
    nobody.get("/readyz")
    assert writes() == 2
    nobody.get("/livez")
    assert writes() == 2


def test_a_store_that_cannot_be_written_is_not_ready_but_alive(
    server: Site, nobody: httpx2.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk: not ready, says why and when to ask again; the process lives, and is ready again afterwards."""
    assert server.services is not None
    now = [100.0]
    monkeypatch.setattr(server.services.health, "_monotonic", lambda: now[0])
    engine = server.services.engine
    real = engine.write

    def full(_: Any) -> Any:
        raise StorageFull("the disk is full; nothing was changed")

    monkeypatch.setattr(engine, "write", full)
    for path in PROBES:
        answer = nobody.get(path)
        assert (answer.status_code, answer.json()["code"]) == (507, "storage_full")
        assert int(answer.headers["retry-after"]) > 0
    assert nobody.get("/livez").status_code == 200
    monkeypatch.setattr(engine, "write", real)
    now[0] += health.PROBE_EVERY_S
    assert nobody.get("/readyz").status_code == 200


def test_a_probe_does_not_wait_for_a_locked_database(
    server: Site, database: Path | str, nobody: httpx2.Client, alice: httpx2.Client, statements: Statements, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process holds the database: readiness says so before it has waited for it, liveness does not ask it, reads go on."""
    save(alice)
    monkeypatch.setattr(health, "PROBE_WAIT_S", 0.5)
    with held(database):
        answer = nobody.get("/readyz")
        assert (answer.status_code, answer.json()["code"], answer.headers["retry-after"]) == (503, "slow", "1")
        asked = len(statements.seen)
        assert nobody.get("/livez").status_code == 200
        assert len(statements.seen) == asked
        assert alice.get("/v1/api/memories/deploy_day").status_code == 200


def test_the_openapi_document_is_valid_and_holds_every_route(server: Site, nobody: httpx2.Client) -> None:
    """OpenAPI 3.1, made from the route table, so no path is missing and none is invented."""
    assert server.app is not None
    table: Table = server.app.table
    answer = nobody.get("/openapi.json")
    document = answer.json()

    validate(document)
    assert answer.headers["content-type"] == "application/json"
    assert (document["openapi"], document["info"]["version"]) == ("3.1.0", __version__)
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    assert described == {(r.method, r.path.replace(":path", "")) for r in table.routes if r.answer is not None}
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    assert all(operation["summary"] and operation["responses"] for operation in operations)


def test_what_is_answered_has_the_shape_that_the_document_says(nobody: httpx2.Client, alice: httpx2.Client) -> None:
    """No key is answered that the document does not know, and none is missing that it requires."""
    schemas = nobody.get("/openapi.json").json()["components"]["schemas"]
    saved = save(alice, tags=["a"], expires_at=1000, colour=1)
    listed = alice.get("/v1/api/memories?include_expired=true").json()
    found = alice.post("/v1/api/memories/search", json={"query": "deploy", "include_expired": True}).json()
    turn = alice.post("/v1/api/turn", json={"messages": [{"role": "user", "content": "x"}]}).json()
    answers = {
        "SavedRecord": saved,
        "Record": alice.get("/v1/api/memories/deploy_day").json(),
        "RecordPage": listed,
        "FoundPage": found,
        "FoundRecord": found["memories"][0],
        "VersionPage": alice.get(f"/v1/api/memory/{saved['memory_id']}/versions").json(),
        "TurnAnswer": turn,
        "Explained": alice.get(f"/v1/api/turn/{turn['receipt']}").json(),
        "Error": alice.get("/v1/api/memories?limit=x").json(),
        "MemoryLine": json.loads(alice.get("/v1/api/export?include_expired=true").content.splitlines()[1]),
        "Deleted": alice.delete("/v1/api/memories/deploy_day").json(),
        "Health": nobody.get("/livez").json(),
        "ImportReport": alice.post("/v1/api/import", content=b'{"name": "n", "content": "x", "colour": 1}').json(),
    }

    for name, answer in answers.items():
        assert set(answer) <= set(schemas[name]["properties"]), name
        assert set(schemas[name]["required"]) <= set(answer), name


def test_the_page_for_people_needs_nothing_from_anywhere(nobody: httpx2.Client, server: Site) -> None:
    """/docs is one page without scripts, and its policy allows nothing but its own style."""
    assert server.app is not None
    answer = nobody.get("/docs")

    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert not re.search(r"<script|<img|<link|src=|https?://", answer.text)
    for route in server.app.table.routes:
        assert route.answer is None or route.path.replace(":path", "") in answer.text
    linked = set(re.findall(r'href="#([^"]+)"', answer.text))
    assert linked <= set(re.findall(r'id="([^"]+)"', answer.text))
