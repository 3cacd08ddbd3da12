"""What stands in [memory] may change while a server runs."""

from dataclasses import replace
from typing import Any

import httpx2

from pegword.http.app import create_app
from pegword.settings import load
from tests.wire.conftest import Site


def test_the_tools_limit_follows_its_setting(server: Site, alice: httpx2.Client) -> None:
    """Asked for at each request."""
    in_force = [load(environment={})]
    assert server.services is not None
    server.app = create_app(server.services, in_force[0], lambda: in_force[0])

    def save(chars: int) -> Any:
        arguments = {"action": "save", "name": "long", "content": "x" * chars}
        return alice.post("/v1/api/tool", json={"arguments": arguments}).json()

    assert not save(200)["is_error"]
    in_force[0] = replace(in_force[0], memory_max_content=100)
    assert save(101)["is_error"]
    assert "100 character limit" in save(101)["text"]
