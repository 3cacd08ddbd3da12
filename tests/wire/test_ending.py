"""A server that ends does not leave a client with a riddle."""

import asyncio
import json
from pathlib import Path
from typing import Any

import apsw

from pegword.http.app import create_app
from pegword.services.bundle import Services
from pegword.settings import load
from tests.patience import PATIENCE_S


async def _cancelled(app: Any, token: str) -> list[dict[str, Any]]:
    """What is sent for a save that waits for the database when the server stops waiting for it."""
    body = json.dumps({"name": "n", "content": "x"}).encode()
    headers = [(b"host", b"127.0.0.1"), (b"authorization", f"Bearer {token}".encode()), (b"content-length", str(len(body)).encode())]
    scope = {
        "type": "http", "http_version": "1.1", "method": "POST", "path": "/v1/api/memories", "raw_path": b"/v1/api/memories",
        "query_string": b"", "headers": [*headers, (b"content-type", b"application/json")],
    }  # fmt: skip
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    task = asyncio.create_task(app(scope, receive, send))
    while not app._writes.in_work:
        await asyncio.sleep(0.005)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return sent


def test_a_save_that_is_given_up_at_the_end_is_answered_503_and_said_to_be_in_doubt(services: Services, store_path: Path) -> None:
    """Never a 500: the client hears that it must look whether its save was done."""
    services.access.add_user("alice")
    _, token = services.access.add_key("alice")
    services.engine._writer.set_busy_timeout(int(PATIENCE_S * 1_000))  # type: ignore[attr-defined]
    other = apsw.Connection(str(store_path))
    other.execute("BEGIN IMMEDIATE")
    start, body = asyncio.run(_cancelled(create_app(services, load(environment={})), token))
    other.execute("ROLLBACK")
    other.close()

    assert 503 == start["status"]
    assert (b"retry-after", b"1") in start["headers"]
    assert "ending" == json.loads(body["body"])["code"]
