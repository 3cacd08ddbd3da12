"""The command tool: what a model is offered, and what it would be answered."""

from typing import Annotated

import typer

from pegword.cli import output, shapes
from pegword.cli.asking import AsUser
from pegword.cli.failing import INVALID
from pegword.cli.inputs import content_of

CREDENTIAL = "tool"


def tool(
    arguments: Annotated[
        str | None,
        typer.Argument(metavar="JSON", help='What a model would send, such as {"action": "list"}; - reads stdin.', show_default=False),
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the tool as a host hands it to its model.")] = False,
    dialect: Annotated[str, typer.Option("--dialect", metavar="NAME", help="Of the schema: openai, anthropic or mcp.")] = "openai",
    session: Annotated[
        str, typer.Option("--session", metavar="SESSION", help="The session that the model works in.", show_default=False)
    ] = "",
    workstream: Annotated[
        str, typer.Option("--workstream", metavar="ID", help="Without a session: the workstream.", show_default=False)
    ] = "",
    *,
    ask: AsUser,
) -> None:
    """Try the memory tool as a model has it.

    Prints the text that the model would read; exit code 2 when that is an error. What is saved is an agent's word, not yours.
    """
    from pegword.core.errors import Invalid
    from pegword.tool.calling import MemoryTool

    if schema == (arguments is not None):
        raise Invalid("give JSON, or --schema, one of them", field="arguments")
    with ask.opened(makes=arguments is not None) as store:
        model = MemoryTool(store.services, kind_word=store.settings.kind_word, content_chars_max=lambda: store.settings.memory_max_content)
        caller = store.services.access.agent(store.user(ask.user), CREDENTIAL)
        where = store.session(caller, session, workstream)
        if arguments is None:
            output.document(model.schema(caller, where, dialect))
            return
        result = model.call(caller, where, content_of(arguments))
        if ask.as_json:
            output.document(shapes.tool_result(result, store.settings))
        else:
            output.say(result.text)
        if result.is_error:
            raise typer.Exit(INVALID)
