"""Users, and the keys of their agents."""

from dataclasses import dataclass


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
