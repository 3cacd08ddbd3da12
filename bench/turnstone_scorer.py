"""Runs in the interpreter where Turnstone is installed: reads requests, one JSON line each, and answers likewise.

Turnstone's dependencies must not enter our environment, so its scorer is called from outside.
"""

import importlib.metadata
import json
import sys
import time
from typing import Any

from turnstone.core.memory_relevance import score_memories  # type: ignore[import-not-found,unused-ignore]


def _rows(texts: list[str]) -> list[dict[str, str]]:
    return [{"name": "", "description": "", "content": text, "place": str(place)} for place, text in enumerate(texts)]


def answer(asked: dict[str, Any]) -> Any:
    """The answer to one request."""
    if asked["do"] == "version":
        return importlib.metadata.version("turnstone")
    if asked["do"] == "score":
        rows = _rows(asked["memories"])
        return [[int(row["place"]) for row in score_memories(rows, query, asked["k"])] for query in asked["queries"]]
    times = []
    for texts, query in zip(asked["memories"], asked["queries"], strict=True):
        rows = _rows(texts)
        start = time.process_time()
        score_memories(rows, query, asked["k"])
        times.append((time.process_time() - start) * 1000)
    return times


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
