"""A model that is none: its answers are a script, so that the examples run without a key and say the same every time.

It is asked as a real one is, with a system text, the conversation and the tools, and it knows only what stands there.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

Message = dict[str, Any]

_DEPLOY = re.compile(r"We deploy on (\w+)\.")
_REVIEWS = re.compile(r"(\w+) reviews every release\.")


def answer(system: str, messages: Sequence[Message], tools: Sequence[Message]) -> Message:
    """The assistant's next message, in the shape of OpenAI's chat completions."""
    last = messages[-1]
    if last["role"] == "tool":
        return _say(_after(last["content"]))
    said = next(message["content"] for message in reversed(messages) if message["role"] == "user")
    nudge = last["content"] if last["role"] == "system" else ""
    told, reviewer = _DEPLOY.search(said), _REVIEWS.search(said)
    # It saves what it is told; when it is corrected, it thinks of its memory only if it is nudged.
    if tools and told and ("correct" in nudge or not said.startswith("No,")):
        return _call(action="save", name="project_deploy_day", content=f"We deploy on {told[1]}.", tags=["release"])
    if tools and reviewer:
        return _call(action="save", name="project_reviewer", content=f"{reviewer[1]} reviews every release.", tags=["release"])
    if tools and "Who reviews" in said and not _REVIEWS.search(system):
        return _call(action="search", query="who reviews a release")
    if tools and "Note what you know" in said:
        shown = system.partition("\n\n")[2]
        return _call(action="save", name="what_i_know", content=shown)  # what a careless model does
    return _say(_known(system))


def _known(system: str) -> str:
    """What the script has to say, from what stands before it."""
    day, reviewer = _DEPLOY.search(system), _REVIEWS.search(system)
    known = [f"We deploy on {day[1]}." if day else "", f"{reviewer[1]} reviews it." if reviewer else ""]
    return " ".join(filter(None, known)) or "I do not know."


def _after(result: str) -> str:
    """What it says when it has read the result of a tool."""
    if result.startswith(("Saved", "Updated")):
        return "I have noted that."
    return "I knew that already." if result.startswith(("Not saved", "Unchanged")) else "I have no note about that."


def _say(text: str) -> Message:
    return {"role": "assistant", "content": text}


def _call(**arguments: Any) -> Message:
    function = {"name": "memory", "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
