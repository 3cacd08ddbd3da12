"""The command line. `main` is its entry point.

Commands import what is heavy when they run, so that ``pegword version`` and ``--help`` answer at once. This module itself imports next to
nothing: from its first line on, Ctrl-C ends a command without a traceback.
"""

import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

_INTERRUPTED, _PIPE_CLOSED = 130, 141  # `failing` has them too, but must be imported for them
_ENDING = (signal.SIGTERM, signal.SIGHUP)


def main() -> None:
    """Run the command line of this process and end the process with its exit code.

    What SIGTERM or SIGHUP ends is tidied up as after Ctrl-C, so that no half-made file stays, and then ends by that signal; a second one
    ends it at once.
    """
    told: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        told.append(number)
        raise KeyboardInterrupt

    for ending in _ENDING:
        if signal.getsignal(ending) is signal.SIG_DFL:  # what was told to go on by nohup goes on
            signal.signal(ending, interrupt)
    try:
        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = _INTERRUPTED
    for ending in (signal.SIGINT, *_ENDING):  # what is left is the interpreter's own end, which has no words for it
        if signal.getsignal(ending) is not signal.SIG_IGN:
            signal.signal(ending, signal.SIG_DFL)
    if told and code == _INTERRUPTED:
        os.kill(os.getpid(), told[0])
    try:
        sys.stdout.flush()
    except OSError:
        # nobody reads stdout any more: let the interpreter's own flush at exit meet nothing
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = code or _PIPE_CLOSED
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. What goes wrong is said on stderr in one sentence."""
    import logging

    import typer

    from pegword.cli import failing, inputs
    from pegword.cli.app import build
    from pegword.cli.output import encodable

    encodable()
    # What is put off until later is nobody's concern at a command line; `serve` sets up its own log.
    logging.getLogger("pegword").addHandler(logging.NullHandler())
    as_json = "--json" in arguments
    try:
        inputs.check_arguments(arguments)
        command = typer.main.get_command(build())
        return command.main(list(arguments) or ["--help"], prog_name="pegword", standalone_mode=False) or failing.OK
    except (KeyboardInterrupt, typer.Abort):
        return failing.INTERRUPTED
    except SystemExit as end:
        # Typer ends by itself where nobody reads stdout any more, and after a shell asked for completions.
        if isinstance(end.__context__, BrokenPipeError):
            return failing.PIPE_CLOSED
        return end.code if isinstance(end.code, int) else failing.OK
    except Exception as error:
        if isinstance(error, failing.usage_error()):
            return failing.usage(error, as_json=as_json)
        return failing.report(error, as_json=as_json)
