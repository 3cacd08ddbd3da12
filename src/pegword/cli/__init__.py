"""The command line. `main` is its entry point.

Commands import what is heavy when they run, so that ``pegword version`` and ``--help`` answer at once.
"""

import logging
import os
import sys
from collections.abc import Sequence

from pegword.cli import failing


def main() -> None:
    """Run the command line of this process and end the process with its exit code."""
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError:
        # nobody reads stdout any more: let the interpreter's own flush at exit meet nothing
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = code or failing.PIPE_CLOSED
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. What goes wrong is said on stderr in one sentence."""
    import typer

    from pegword.cli.app import build
    from pegword.cli.output import encodable

    encodable()
    # What is put off until later is nobody's concern at a command line; `serve` sets up its own log.
    logging.getLogger("pegword").addHandler(logging.NullHandler())
    as_json = "--json" in arguments
    command = typer.main.get_command(build())
    try:
        return command.main(list(arguments) or ["--help"], prog_name="pegword", standalone_mode=False) or failing.OK
    except (KeyboardInterrupt, typer.Abort):
        return failing.INTERRUPTED
    except SystemExit as end:
        # Typer ends by itself where nobody reads stdout any more, and after a shell asked for completions.
        if isinstance(end.__context__, BrokenPipeError):
            return failing.PIPE_CLOSED
        return end.code if isinstance(end.code, int) else failing.OK
    except Exception as error:
        if isinstance(error, _usage_error()):
            return _usage(error, as_json=as_json)
        return failing.report(error, as_json=as_json)


def _usage_error() -> type[BaseException]:
    """The base of all that is wrong with a command line: of Click, or of Typer's own copy of it, by Typer's release."""
    import typer

    return next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def _usage(error: BaseException, *, as_json: bool) -> int:
    """Say what is wrong with the command line, and where to look."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "pegword"
    sentence = str(getattr(error, "format_message", error.__str__)()).rstrip(".")
    failing.say({"error": f"{sentence[:1].lower()}{sentence[1:]}; see {path} --help", "code": "usage"}, as_json=as_json)
    return failing.INVALID
