"""Other full-text indexes over the same notes: FTS5 in three arrangements, tantivy on disk, bm25s in memory."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import Stemmer

from bench.generator import Asked, Note
from bench.peers import match_any
from bench.store import K
from pegword.core.words import STOP_WORDS_ENGLISH
from pegword.store.sqlite_file import CACHE_KIB


def connect(path: Path) -> apsw.Connection:
    """A connection that promises what Pegword's do: WAL, and every commit flushed to disk."""
    database = apsw.Connection(str(path))
    database.pragma("journal_mode", "wal")
    database.pragma("synchronous", "FULL")
    database.pragma("cache_size", -CACHE_KIB)
    return database


class Fts5:
    """FTS5's bm25() over all scopes, told apart in one of three ways: *by* ``token``, the scope is a token of the index; by ``prefix``, it
    is written before every word; by ``join``, the rows found are joined with it."""

    def __init__(self, path: Path, notes: Iterable[Note], *, by: str) -> None:
        self._database = connect(path)
        self._by = by
        columns = "text, scope" if by == "token" else "text"
        self._database.execute(f"CREATE VIRTUAL TABLE note USING fts5({columns}, tokenize='porter unicode61')")
        self._database.execute("CREATE TABLE place (id INTEGER PRIMARY KEY, scope TEXT)")
        self._database.pragma("synchronous", "OFF")  # only while it is filled
        for number, note in enumerate(notes):  # each in a commit of its own, as notes come: so the index has the segments of one in use
            text = " ".join(_prefixed(note.scope, note.text.split())) if by == "prefix" else note.text
            values = (number, text, f"s{note.scope}") if by == "token" else (number, text)
            self._database.execute(f"INSERT INTO note(rowid, {columns}) VALUES ({', '.join('?' * len(values))})", values)
            self._database.execute("INSERT INTO place VALUES (?, ?)", (number, f"s{note.scope}"))
        self._database.pragma("synchronous", "FULL")

    def optimise(self) -> None:
        """Merge the index into one segment, which FTS5 does only when it is told to."""
        self._database.execute("INSERT INTO note(note) VALUES ('optimize')")

    def best(self, asked: Asked) -> list[Any]:
        """The ids of the best `K`."""
        scopes = [f"s{scope}" for scope in asked.scopes]
        if self._by == "prefix":
            match = match_any([word for scope in asked.scopes for word in _prefixed(scope, asked.words)])
            return self._database.execute("SELECT rowid FROM note WHERE note MATCH ? ORDER BY bm25(note) LIMIT ?", (match, K)).fetchall()
        if self._by == "token":
            match = f"scope : ({match_any(scopes)}) AND text : ({match_any(asked.words)})"
            return self._database.execute(
                "SELECT rowid FROM note WHERE note MATCH ? ORDER BY bm25(note, 1.0, 0.0) LIMIT ?", (match, K)
            ).fetchall()
        marks = ", ".join("?" * len(scopes))
        sql = f"""
            SELECT p.id FROM note JOIN place AS p ON p.id = note.rowid
            WHERE note MATCH ? AND p.scope IN ({marks}) ORDER BY bm25(note) LIMIT ?
        """
        return self._database.execute(sql, (match_any(asked.words), *scopes, K)).fetchall()


class Tantivy:
    """tantivy on disk, with its English stemmer; the scope is a raw term."""

    def __init__(self, path: Path, notes: Iterable[Note]) -> None:
        import tantivy  # an extra of the bench

        self._tantivy = tantivy
        schema = tantivy.SchemaBuilder()
        schema.add_integer_field("number", stored=True)
        schema.add_text_field("text", tokenizer_name="en_stem")
        schema.add_text_field("scope", tokenizer_name="raw")
        self._schema = schema.build()
        path.mkdir()
        index = tantivy.Index(self._schema, path=str(path))
        writer = index.writer(64_000_000, 1)
        for number, note in enumerate(notes):
            writer.add_document(tantivy.Document(number=number, text=note.text, scope=f"s{note.scope}"))
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        self._index = index
        self._searcher = index.searcher()

    def best(self, asked: Asked) -> list[Any]:
        """The ids of the best `K`."""
        query, occur = self._tantivy.Query, self._tantivy.Occur
        scopes = query.term_set_query(self._schema, "scope", [f"s{scope}" for scope in asked.scopes])
        words = self._index.parse_query(" ".join(asked.words), ["text"])
        found = self._searcher.search(query.boolean_query([(occur.Must, query.const_score_query(scopes, 0.0)), (occur.Must, words)]), K)
        return [self._searcher.doc(address)["number"] for _, address in found.hits]


class Bm25s:
    """bm25s, whole in memory, with Snowball stems: made anew for every note that comes. The scopes are a mask over all notes."""

    def __init__(self, notes: Sequence[Note]) -> None:
        import bm25s  # an extra of the bench

        self._stem = Stemmer.Stemmer("english").stemWords
        self._index = bm25s.BM25()
        self._index.index([self._terms(note.text.split()) for note in notes], show_progress=False)
        self._scopes = np.array([note.scope for note in notes])

    def best(self, asked: Asked) -> list[Any]:
        """The ids of the best `K`."""
        seen = np.isin(self._scopes, asked.scopes).astype(np.float32)
        found, _ = self._index.retrieve([self._terms(asked.words)], k=K, weight_mask=seen, show_progress=False, n_threads=0)
        return [int(number) for number in found[0]]

    def _terms(self, words: Sequence[str]) -> list[str]:
        return [str(stem) for stem in self._stem([word for word in words if word not in STOP_WORDS_ENGLISH])]


def visible_texts(notes: Sequence[Note], queries: Sequence[Asked]) -> list[list[str]]:
    """The texts that each query sees, newest first, as Turnstone hands them to its scorer."""
    by_scope: dict[int, list[str]] = {}
    for note in notes:
        by_scope.setdefault(note.scope, []).append(note.text)
    return [[text for scope in asked.scopes for text in by_scope.get(scope, ())][::-1] for asked in queries]


def _prefixed(scope: int, words: Sequence[str]) -> list[str]:
    """*words* as words of one scope only: letters and digits, so that they stay whole."""
    return [f"s{scope}x{word}" for word in words]
