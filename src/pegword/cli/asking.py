"""Options that go together, as one value: which memory is meant, what a list leaves in, on whose behalf and on what store.

A command takes such a bundle as one parameter; `expanded` shows Typer the options that are in it.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pegword.cli.opening import Opened, opened
from pegword.cli.options import (
    AsJson,
    Config,
    Database,
    IncludeExpired,
    KindFilter,
    MemoryId,
    NameOrNone,
    ScopeFilter,
    ScopeId,
    ScopeWord,
    TagFilter,
    User,
)

if TYPE_CHECKING:
    from pegword.core.caller import Caller, Scope, Visible


@dataclass(frozen=True, slots=True)
class OnStore:
    """What every command on a store can be told."""

    as_json: AsJson = False
    database: Database = None
    config: Config = None

    def opened(self, *, makes: bool = False) -> AbstractContextManager[Opened]:
        """Open the store; one that was named is made only by a command that *makes* something."""
        return opened(self.database, self.config, makes=makes, quiet=self.as_json)


@dataclass(frozen=True, slots=True)
class AsUser:
    """The same, and on whose behalf."""

    user: User = None
    as_json: AsJson = False
    database: Database = None
    config: Config = None

    def opened(self, *, makes: bool = False) -> AbstractContextManager[Opened]:
        """As `OnStore.opened`."""
        return OnStore(self.as_json, self.database, self.config).opened(makes=makes)


@dataclass(frozen=True, slots=True)
class Which:
    """One memory, by its name in a scope or by its id."""

    name: NameOrNone = None
    memory_id: MemoryId = None
    scope: ScopeWord = "global"
    scope_id: ScopeId = ""

    def plain_name(self) -> str:
        """The name, "" where an id was given; `Invalid` unless it is exactly one of them."""
        from pegword.core.errors import Invalid

        if (self.name is None) == (self.memory_id is None):
            raise Invalid("name one memory: by NAME, or by --id ID", field="name")
        return self.name or ""

    def where(self, caller: "Caller") -> "Scope":
        """The one scope that is meant."""
        from pegword.core.caller import scope_of

        return scope_of(caller, self.scope, self.scope_id)

    def id_in(self, store: Opened, caller: "Caller") -> str:
        """The id of the memory that is meant."""
        name = self.plain_name()
        if self.memory_id is not None:
            return self.memory_id
        return store.services.memories.get(caller, self.where(caller), name, counted=False).memory_id


@dataclass(frozen=True, slots=True)
class Narrowed:
    """What a list or a search leaves in."""

    kind: KindFilter = ""
    tag: TagFilter = ""
    include_expired: IncludeExpired = False
    scope: ScopeFilter = ""
    scope_id: ScopeId = ""

    def visible(self, caller: "Caller") -> "Visible":
        """The scopes that may be looked at."""
        from pegword.core.caller import scopes_of

        return scopes_of(caller, self.scope, self.scope_id)


def expanded(command: Callable[..., None]) -> Callable[..., None]:
    """*command* as Typer reads it: in the place of each parameter that is a bundle stand the options in it."""
    parameters: list[inspect.Parameter] = []
    bundles: dict[str, tuple[Callable[..., object], list[str]]] = {}
    for parameter in inspect.signature(command).parameters.values():
        own, bundle = [parameter], parameter.annotation
        if isinstance(bundle, type) and dataclasses.is_dataclass(bundle):
            own = list(inspect.signature(bundle).parameters.values())
            bundles[parameter.name] = (bundle, [option.name for option in own])
        parameters += [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in own]

    @functools.wraps(command)
    def run(**given: object) -> None:
        for name, (bundle, options) in bundles.items():
            given[name] = bundle(**{option: given.pop(option) for option in options})
        command(**given)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run
