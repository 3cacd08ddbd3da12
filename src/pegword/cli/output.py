"""Where commands write: results to stdout, everything else to stderr. Colours and tables are for people at a terminal only.

Stored text is data. Before it reaches a terminal, the characters that a terminal would obey are taken out.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

CELL_CHARS_MAX = 60
CUT = "…"


def document(value: Any) -> None:
    """Print *value* as the one JSON document of this command. ASCII only, so that no terminal obeys what it holds."""
    print(json.dumps(value, indent=2))


def say(text: str = "") -> None:
    """Print a line, or several, for a reader."""
    print(visible(text))


def note(text: str) -> None:
    """Tell something beside the result, on stderr."""
    flush()  # what was said before it stands before it, in a pipe too
    print(f"pegword: {one_line(text)}", file=sys.stderr, flush=True)


def warn(warnings: Iterable[str], *, as_json: bool) -> None:
    """Tell of settings without effect, a line each on stderr; as JSON for who reads that as JSON."""
    for warning in warnings:
        if as_json:
            print(json.dumps({"warning": warning}), file=sys.stderr, flush=True)
        else:
            note(warning)


def verbatim(text: str) -> None:
    """Print *text* as it is stored, with no line end added; on a terminal without what that would obey."""
    sys.stdout.write(visible(text) + "\n" if at_terminal() else text)


def flush() -> None:
    """Let what was printed be seen at once, by a pipe too."""
    sys.stdout.flush()


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print *rows* under *columns*: as a table at a terminal, else as plain text in columns two blanks apart."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    if at_terminal():
        _rich_table(columns, cells)
        return
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    for line in (columns, *cells):
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def at_terminal() -> bool:
    """Whether a person sees stdout."""
    return sys.stdout.isatty()


def visible(text: str) -> str:
    """*text* without control, bidirectional and zero-width characters; line ends and tabs stay."""
    from pegword.core.render import visible_text

    return visible_text(text)


def one_line(text: str) -> str:
    """*text* on one line, made visible."""
    return " ".join(visible(text).split())


def shortened(text: str, chars: int = CELL_CHARS_MAX) -> str:
    """*text* on one line of at most *chars* characters, a cut marked."""
    line = one_line(text[: 8 * chars])
    return line if len(line) <= chars and len(text) <= 8 * chars else f"{line[: chars - 1].rstrip()}{CUT}"


def encodable() -> None:
    """Let stdout and stderr write any text, whatever the locale: what it cannot spell is written as an escape."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _rich_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=SIMPLE_HEAD, header_style="bold cyan", pad_edge=False)
    for number, column in enumerate(columns):
        shown.add_column(column, overflow="fold", style="bold" if number == 0 else None)
    for row in rows:
        shown.add_row(*(Text(cell) for cell in row))  # Text, for stored text must not be read as markup
    Console(highlight=False, markup=False, emoji=False).print(shown)
