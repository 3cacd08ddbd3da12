"""Commands for users and for the keys of their agents."""

from typing import Annotated

import typer

from pegword.cli import output, shapes
from pegword.cli.asking import OnStore, expanded
from pegword.cli.times import minute_text

users = typer.Typer(help="Add and list users.", rich_markup_mode=None)
keys = typer.Typer(help="Make, list and revoke the keys of agents.", rich_markup_mode=None)


@users.command("add")
@expanded
def add_user(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new user.", show_default=False)],
    email: Annotated[str, typer.Option("--email", metavar="ADDRESS", help="Their address.", show_default=False)] = "",
    *,
    ask: OnStore,
) -> None:
    """Add a user."""
    with ask.opened(makes=True) as store:
        user = store.services.access.add_user(name, email)
        if ask.as_json:
            output.document(shapes.user(user))
        else:
            output.say(f"added user {user.name}, id {user.user_id}")
            if len(store.services.access.users()) == 2:
                policy = store.settings.policy_global_write
                who = "whoever may write" if policy == "open" else "who may approve"
                output.note(f"there are two users now: all read what is global, and {who} changes it (policy.global_write is {policy})")


@users.command("list")
@expanded
def list_users(ask: OnStore) -> None:
    """List all users."""
    with ask.opened() as store:
        everybody = store.services.access.users()
        if ask.as_json:
            output.document({"users": [shapes.user(user) for user in everybody]})
        elif not everybody:
            output.say("there is no user yet; add one with: pegword user add NAME")
        else:
            output.table(("NAME", "ID", "EMAIL", "ADDED"), [(u.name, u.user_id, u.email, minute_text(u.created)) for u in everybody])


@keys.command("add")
@expanded
def add_key(
    user: Annotated[str, typer.Option("--user", metavar="NAME", help="Whose agent it is for.", show_default=False)],
    scopes: Annotated[
        str, typer.Option("--scopes", metavar="LIST", help="read, write, approve, service: each holds those before it.")
    ] = "read,write",
    project_word: Annotated[
        str,
        typer.Option("--project-word", metavar="WORD", help="Its word for the type project: project or general.", show_default=False),
    ] = "",
    expires: Annotated[str | None, typer.Option("--expires", metavar="WHEN", help="90d, 12h, 30m, or a time. Default: never.")] = None,
    label: Annotated[str, typer.Option("--name", metavar="LABEL", help="What it is for.", show_default=False)] = "",
    *,
    ask: OnStore,
) -> None:
    """Make a key and print its token.

    The token stands alone on stdout. It is shown this once; only its hash is kept.
    """
    from pegword.assembly import clock_us
    from pegword.core.times import parse_expiry

    expires_at = parse_expiry(expires, clock_us(), "expires") or None
    with ask.opened(makes=True) as store:
        key, token = store.services.access.add_key(
            user, right=_highest(scopes), label=label, project_word=project_word, expires_at=expires_at
        )
        if ask.as_json:
            output.document({"token": token, **shapes.key(key)})
            return
        output.say(token)
        until = f", until {minute_text(key.expires_at)} UTC" if key.expires_at else ""
        output.note(f"key {key.key_id} of {key.user_name}{until}; keep the token, it is not shown again")


@keys.command("list")
@expanded
def list_keys(
    user: Annotated[str, typer.Option("--user", metavar="NAME", help="Only this user's.", show_default=False)] = "",
    *,
    ask: OnStore,
) -> None:
    """List keys, the oldest first.

    Tokens are not shown, for they are not kept.
    """
    with ask.opened() as store:
        found = store.services.access.keys(user)
        if ask.as_json:
            output.document({"keys": [shapes.key(key) for key in found]})
        elif not found:
            output.say("there is no key yet; make one with: pegword key add --user NAME")
        else:
            rows = [
                (k.key_id, k.user_name, k.label, ", ".join(shapes.key(k)["scopes"]), minute_text(k.expires_at) or "never",
                 minute_text(k.revoked_at) or "no")
                for k in found
            ]  # fmt: skip
            output.table(("KEY", "USER", "NAME", "SCOPES", "EXPIRES", "REVOKED"), rows)


@keys.command("revoke")
@expanded
def revoke_key(
    key_id: Annotated[str, typer.Argument(metavar="KEY", help="Id of the key, as key list shows it.", show_default=False)],
    *,
    ask: OnStore,
) -> None:
    """End a key at once.

    From then on nobody gets in with its token.
    """
    with ask.opened() as store:
        store.services.access.revoke_key(key_id)
        if ask.as_json:
            output.document({"status": "ok", "key_id": key_id})
        else:
            output.say(f"revoked key {key_id}")


def _highest(scopes: str) -> str:
    """The highest right of a list such as ``read,write``."""
    from pegword.core.caller import RIGHTS
    from pegword.core.memory import checked_word

    words = [checked_word(word.strip(), "scopes", RIGHTS) for word in scopes.split(",")]
    return max(words, key=RIGHTS.index)
