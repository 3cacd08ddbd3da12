"""The same agent over HTTP, with nothing but the standard library: a turn before each answer, the memory tool, and nudges.

    pegword serve
    PEGWORD_TOKEN=... python examples/agent_over_http.py [http://127.0.0.1:8080]

The model is a script (scripted.py); put a real one in the place of `answer`.
"""

import json
import os
import sys
from textwrap import shorten
from typing import Any
from urllib.request import Request, urlopen

from agent_loop import CALLS_MAX, SESSIONS, SYSTEM
from scripted import Message, answer


class Pegword:
    """A server, spoken to with one token."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask(self, method: str, path: str, body: Message | None = None) -> Any:
        """The answer of a route; a refusal raises `urllib.error.HTTPError`."""
        data = None if body is None else json.dumps(body).encode()
        with urlopen(Request(self._url + path, data, self._headers, method=method), timeout=30) as reply:
            return json.load(reply)


def main(server: Pegword) -> None:
    """Hold the conversations, one session each."""
    for day, says in SESSIONS.items():
        print(f"\n== {day}")
        session = server.ask("POST", "/v1/api/sessions", {"workstream_id": "checkout"})["session_id"]
        hold(server, session, says)
        server.ask("DELETE", f"/v1/api/sessions/{session}")


def hold(server: Pegword, session: str, says: list[str]) -> None:
    """One session: what the user says, and what the agent makes of it."""
    tool = server.ask("GET", f"/v1/api/tool?session={session}&dialect=openai")["tool"]
    tools = [tool] if tool else []
    conversation: list[Message] = []
    for said in says:
        print(f"user:  {said}")
        conversation.append({"role": "user", "content": said})
        for _ in range(CALLS_MAX):
            turn = server.ask("POST", "/v1/api/turn", {"session": {"id": session}, "messages": conversation})
            if turn["memories"]:
                print(f"       (shown: {', '.join(memory['name'] for memory in turn['memories'])})")
            # The nudge stands after the last message of this request, and is not kept.
            nudge: list[Message] = []
            if turn["nudge"]:
                print(f"       (nudge: {turn['nudge']['kind']})")
                nudge = [{"role": "system", "content": turn["nudge"]["text"]}]
            message = answer(f"{SYSTEM}\n\n{turn['text']}", conversation + nudge, tools)
            conversation.append(message)
            for call in message.get("tool_calls", ()):
                arguments = call["function"]["arguments"]
                result = server.ask("POST", "/v1/api/tool", {"session": session, "arguments": arguments})
                print(f"tool:  {shorten(arguments, 110)}\n    -> {result['text']}")
                conversation.append({"role": "tool", "tool_call_id": call["id"], "content": result["text"]})
            if not message.get("tool_calls"):
                print(f"agent: {message['content']}")
                break


if __name__ == "__main__":
    main(Pegword(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080", os.environ["PEGWORD_TOKEN"]))
