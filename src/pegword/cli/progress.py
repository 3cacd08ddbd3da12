"""How far long work is: a bar for who sits at a terminal, nothing for anybody else."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Told what is being done, how much of it is done, and of how much (0: nobody knows).
Progress = Callable[[str, int, int], None]


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """What to tell of progress. It stands on stderr, and is gone when the work is done."""
    if not sys.stderr.isatty():
        yield _nothing
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        doing = ""

        def show(what: str, done: int, of: int) -> None:
            nonlocal doing, task
            if what != doing:
                doing = what
                bar.remove_task(task)
                task = bar.add_task(what, total=of or None)
            bar.update(task, completed=done)

        yield show


def _nothing(_what: str, _done: int, _of: int) -> None:
    """Tell nothing."""
