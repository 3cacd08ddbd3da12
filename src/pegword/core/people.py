"""Users, the keys of their agents, and what users share."""

from dataclasses import dataclass

from pegword.core.caller import Scope


@dataclass(frozen=True, slots=True)
class User:
    """A person whose memories these are. *created* in microseconds since 1970."""

    user_id: str
    name: str
    email: str
    created: int


@dataclass(frozen=True, slots=True)
class Key:
    """A key of an agent of *user_name*, without its token, which nobody keeps. Times in microseconds since 1970."""

    key_id: str
    user_id: str
    user_name: str
    label: str
    right: str
    project_word: str
    created: int
    expires_at: int | None
    revoked_at: int | None


@dataclass(frozen=True, slots=True)
class Member:
    """A user who has a shared scope; one who may not *write* only reads."""

    user_id: str
    user_name: str
    write: bool


@dataclass(frozen=True, slots=True)
class SharedScope:
    """A project, or a workstream with members: the *scope*, who made it, and its *members*, by name. *archived*: no session has it."""

    scope: Scope
    owner: str
    owner_name: str
    title: str
    created: int
    archived: bool
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """That an answer tells of a shared scope as the user of that id has it: in a session, or *outside* of any, where its owner has it too,
    and an archived one is there."""

    scope_key: str
    user_id: str
    outside: bool = False
