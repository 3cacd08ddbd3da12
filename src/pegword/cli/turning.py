"""The command turn: what would stand before the model, and why."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from pegword.cli import output, shapes
from pegword.cli.asking import AsUser
from pegword.cli.inputs import messages_of

if TYPE_CHECKING:
    from pegword.services.receipts import Explanation

TERMS_SHOWN_MAX = 8


def turn(
    message: Annotated[
        list[str] | None,
        typer.Option("--message", metavar="TEXT", help="What the user said; may be repeated, oldest first.", show_default=False),
    ] = None,
    messages_file: Annotated[
        str | None,
        typer.Option("--messages-file", metavar="FILE", help="A JSON array of messages with role and content; - reads stdin."),
    ] = None,
    workstream: Annotated[
        str, typer.Option("--workstream", metavar="ID", help="The workstream that the session belongs to.", show_default=False)
    ] = "",
    session: Annotated[
        str, typer.Option("--session", metavar="SESSION", help="The session, instead of a workstream.", show_default=False)
    ] = "",
    mode: Annotated[str, typer.Option("--mode", metavar="MODE", help="Where the block will stand: system, tail, or index.")] = "system",
    k: Annotated[int | None, typer.Option("-k", metavar="N", min=1, help="At most this many memories; default memory.relevance_k.")] = None,
    budget: Annotated[
        int | None, typer.Option("--budget", metavar="N", help="At most this many characters; default memory.budget_chars.")
    ] = None,
    no_tool: Annotated[bool, typer.Option("--no-tool", help="The model is not offered the memory tool.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Also say what was considered, and why each is in or out.")] = False,
    *,
    ask: AsUser,
) -> None:
    """Choose the memories for the next turn.

    Prints the block for the model and the hint after it. The last three user messages count.
    Nothing relevant: no block, which is a good answer. No message: the newest memories.
    Mode index, which needs a session or a workstream, prints the index before them.
    """
    messages = messages_of(message or [], messages_file)
    with ask.opened() as store:
        caller = store.caller(ask.user)
        turns = store.services.turns
        belongs_to = store.session(caller, session, workstream)
        answer = turns.turn(caller, belongs_to, messages, mode=mode, k=k, budget_chars=budget, tool=not no_tool)
        explanation = turns.explain(caller, answer.receipt, belongs_to) if explain else None
        if ask.as_json:
            shape = shapes.turn(answer, store.settings)
            output.document(shape if explanation is None else {**shape, "explanation": shapes.explanation(explanation)})
            return
        shown = "\n\n".join(filter(None, [answer.index, answer.text]))
        if shown:
            output.say(shown)
        if explanation is not None:
            if shown:
                output.say()
            _explain(explanation)


def _explain(e: "Explanation") -> None:
    frame = e.frame
    output.say(f"receipt {e.receipt}: mode {frame.mode}, k {frame.k}, budget {frame.budget_chars}, {frame.in_scope} in scope")
    if e.terms:
        output.say()
        output.table(
            ("TERM", "MEMORIES", "WEIGHT", "MESSAGES"),
            [(t.term, str(t.memories), f"{t.idf:.2f}", ", ".join(map(_message, t.messages))) for t in e.terms],
        )
    if e.left_out:
        output.say(f"\nleft out of the query: {', '.join(e.left_out)}")
    if e.considered:
        output.say()
        output.table(
            ("SHOWN", "SCORE", "NAME", "SCOPE", "WHY", "TERMS"),
            [("yes" if c.shown else "no", f"{c.score:.2f}", c.name, c.scope.kind, c.why, _terms(c.terms)) for c in e.considered],
        )


def _message(number: int) -> str:
    return "last" if number == 0 else f"{number} before"


def _terms(scores: Mapping[str, float]) -> str:
    """The terms that gave most."""
    best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:TERMS_SHOWN_MAX]
    return " ".join(f"{term} {score:.2f}" for term, score in best)
