"""What is measured beside Pegword: SQLite's FTS5, the scorer of an installed Turnstone, and a plain word count."""

import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw

from bench.locomo import Corpus
from bench.measures import DEPTH

_WORD = re.compile(r"\w+")
_GREP_LETTERS_MIN = 4


def fts5(corpus: Corpus, tokenizer: str) -> list[list[int]]:
    """The best of FTS5's bm25() for each question: its words in quotes, joined by OR."""
    database = apsw.Connection(":memory:")
    database.execute(f"CREATE VIRTUAL TABLE memory USING fts5(text, tokenize='{tokenizer}')")
    database.executemany("INSERT INTO memory(rowid, text) VALUES (?, ?)", [(i, item.text) for i, item in enumerate(corpus.items)])
    found = []
    for question in corpus.questions:
        match = match_any(_WORD.findall(question.text))
        rows = database.execute("SELECT rowid FROM memory WHERE memory MATCH ? ORDER BY bm25(memory), rowid LIMIT ?", (match, DEPTH))
        found.append([int(row[0]) for row in rows])
    return found


def match_any(words: Sequence[str]) -> str:
    """An FTS5 expression that matches any of *words*."""
    return " OR ".join(f'"{word}"' for word in words) or '""'


def grep(corpus: Corpus) -> list[list[int]]:
    """The items that hold most of a question's words of four letters and more, anywhere; the newest first."""
    texts = [item.text.casefold() for item in corpus.items]
    found = []
    for question in corpus.questions:
        words = {word for word in _WORD.findall(question.text.casefold()) if len(word) >= _GREP_LETTERS_MIN}
        counts = [sum(word in text for word in words) for text in texts]
        order = sorted((i for i, count in enumerate(counts) if count), key=lambda i: (-counts[i], -i))
        found.append(order[:DEPTH])
    return found


class Turnstone:
    """Turnstone's own `score_memories`, called in the interpreter where Turnstone is installed."""

    def __init__(self, python: Path) -> None:
        script = Path(__file__).with_name("turnstone_scorer.py")
        self._process = subprocess.Popen([str(python), str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
        self.version = str(self._ask({"do": "version"}))

    def best(self, corpus: Corpus, newest: int | None) -> list[list[int]]:
        """The best for each question among the *newest* items (None: all), as Turnstone hands them to its scorer."""
        positions = list(range(len(corpus.items)))[::-1][:newest]
        texts = [corpus.items[i].text for i in positions]
        questions = [question.text for question in corpus.questions]
        answers = self._ask({"do": "score", "memories": texts, "queries": questions, "k": DEPTH})
        return [[positions[i] for i in answer] for answer in answers]

    def milliseconds(self, memories: Sequence[Sequence[str]], queries: Sequence[str], k: int) -> list[float]:
        """The time of each query over the memories that it sees."""
        asked = {"do": "time", "memories": [list(texts) for texts in memories], "queries": list(queries), "k": k}
        return [float(time) for time in self._ask(asked)]

    def close(self) -> None:
        """End the other interpreter."""
        self._process.communicate()

    def _ask(self, asked: dict[str, Any]) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())
