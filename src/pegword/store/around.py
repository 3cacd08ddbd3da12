"""An engine that stands around another one: what it is and what it tells of itself are that one's."""

from collections.abc import Mapping

from pegword.store.engine import Engine


class Around:
    """What is the same of *engine* and of one around it. How it reads and writes is for those to say who stand around it."""

    def __init__(self, engine: Engine) -> None:
        self.flavor = engine.flavor
        self.url = engine.url
        self.one_writer = engine.one_writer
        self.in_process = engine.in_process
        self._engine = engine

    def integrity(self, *, thorough: bool = True) -> list[str]:
        """What the engine itself finds, outside of any transaction."""
        return self._engine.integrity(thorough=thorough)

    def about(self) -> Mapping[str, str]:
        """What the engine says of itself."""
        return self._engine.about()

    def close(self) -> None:
        """Nothing: whoever opened the engine closes it."""
