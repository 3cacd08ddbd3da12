"""A small agent with a memory, all in one process: a turn before each answer, the memory tool, and nudges, over three sessions.

    python examples/agent_loop.py [DATABASE]

The model is a script (scripted.py); put a real one in the place of `answer`.
"""

import sys
import tempfile
from pathlib import Path
from textwrap import shorten

from scripted import Message, answer

from pegword import OpenMemories, open_memories

SYSTEM = "You are a helpful release manager."
CALLS_MAX = 5  # of the model, for one thing that the user says

SESSIONS = {
    "Monday": ["Please remember this: We deploy on Tuesdays.", "No, that was last year. We deploy on Thursdays."],
    "Wednesday": ["Can we deploy the new checkout tomorrow?", "Who reviews it?", "Vera reviews every release."],
    "A week later": ["Plan the next release, please: when do we deploy, and who reviews?", "Note what you know."],
}


def main(database: Path) -> None:
    """Hold the conversations, one session each."""
    with open_memories(database, user="alice") as memories:
        for day, says in SESSIONS.items():
            print(f"\n== {day}")
            hold(memories, says)


def hold(memories: OpenMemories, says: list[str]) -> None:
    """One session: what the user says, and what the agent makes of it."""
    with memories.session(workstream_id="checkout") as session:
        tool = session.tool_schema(dialect="openai")
        tools = [tool] if tool else []
        conversation: list[Message] = []
        for said in says:
            print(f"user:  {said}")
            conversation.append({"role": "user", "content": said})
            for _ in range(CALLS_MAX):
                turn = session.turn(conversation)
                if turn.shown:
                    print(f"       (shown: {', '.join(shown.memory.name for shown in turn.shown)})")
                # The nudge stands after the last message of this request, and is not kept.
                nudge: list[Message] = []
                if turn.nudge:
                    print(f"       (nudge: {turn.nudge.kind})")
                    nudge = [{"role": "system", "content": turn.nudge.text}]
                message = answer(f"{SYSTEM}\n\n{turn.text}", conversation + nudge, tools)
                conversation.append(message)
                for call in message.get("tool_calls", ()):
                    result = session.call_tool(call["function"]["arguments"])
                    print(f"tool:  {shorten(call['function']['arguments'], 110)}\n    -> {result.text}")
                    conversation.append({"role": "tool", "tool_call_id": call["id"], "content": result.text})
                if not message.get("tool_calls"):
                    print(f"agent: {message['content']}")
                    break


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp()) / "agent.db")
