"""The command doctor."""

from typing import Annotated

import typer

from pegword.cli import output
from pegword.cli.asking import OnStore
from pegword.cli.failing import REFUSED
from pegword.cli.progress import progress_bar


def doctor(
    whole: Annotated[bool, typer.Option("--all", help="Every memory, version and posting, not a sample; it may take minutes.")] = False,
    *,
    ask: OnStore,
) -> None:
    """Look for what is wrong, and say what to do.

    At the file or the server, the clock, the schema, the memories and the index. It changes nothing, and may run beside a server. The exit
    code is 1 when something must be done.
    """
    from pegword.assembly import doctor_of
    from pegword.core.address import without_password
    from pegword.settings import database_of, load

    settings = load(ask.config).with_flags(database_url=ask.database)
    output.warn(settings.warnings, as_json=ask.as_json)
    place = database_of(settings.database_url)
    with progress_bar() as progress:
        findings = doctor_of(place, settings).examine(whole=whole, progress=progress)
    urgent = [finding for finding in findings if finding.must_act]
    if ask.as_json:
        output.document(
            {
                "database": without_password(str(place)),
                "all": whole,
                "must_act": bool(urgent),
                "findings": [{"check": f.check, "state": f.state, "says": f.says, "fix": f.fix} for f in findings],
            }
        )
    else:
        width = max(len(finding.check) for finding in findings)
        for finding in findings:
            output.say(f"{finding.state:<8} {finding.check:<{width}}  {output.one_line(finding.says)}")
            if finding.fix:
                output.say(f"{'':<8} {'':<{width}}  to do: {output.one_line(finding.fix)}")
        output.say("nothing must be done" if not urgent else f"{len(urgent)} {'thing' if len(urgent) == 1 else 'things'} to do")
    if urgent:
        raise typer.Exit(REFUSED)
