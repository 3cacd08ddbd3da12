"""The index brought up to date after the analyser changed: scope by scope, so it can be broken off and goes on where it was."""

from collections.abc import Callable

from pegword.core.text import Analyser, Document
from pegword.store import reindex
from pegword.store.engine import Engine
from pegword.store.sweeping import restore


class Reindexer:
    """Makes the index again for every scope that another analyser indexed."""

    def __init__(self, engine: Engine, analyser: Analyser) -> None:
        self._engine = engine
        self._analyser = analyser

    def pending(self) -> int:
        """How many memories lie in scopes that have to be indexed again."""
        with self._engine.read() as tx:
            return sum(n for _, n in reindex.stale(tx, self._analyser.name))

    def run(self, progress: Callable[[int, int], None] = lambda *_: None, *, everything: bool = False) -> int:
        """Index again what has to be, or *everything*; the number of memories that were. *progress* is told how many of how many.

        The old index serves until the new one of its scope is there. If it is broken off, what is left is what has to be, the next time.
        """
        if everything:
            self._engine.write(reindex.mark_all)
        with self._engine.read() as tx:
            scopes = reindex.stale(tx, self._analyser.name)
        total = sum(n for _, n in scopes)
        done = 0

        def step(read: int) -> None:
            nonlocal done
            done += read
            progress(min(done, total), total)

        for key, _ in scopes:
            reindex.reindex_scope(self._engine, key, self._analyser.name, self._document, step)
        return done

    def restore(self, now: int) -> set[str]:
        """Index again what was taken for expired while the clock ran ahead; the keys of the scopes that changed. *now* in microseconds."""
        return restore(self._engine, now, self._analyser.name, self._document)

    def _document(self, name: str, description: str, content: str, tags: tuple[str, ...]) -> Document:
        return self._analyser.document(content, (name, description, *tags))
