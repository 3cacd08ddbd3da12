"""The tool over a store, as a host calls it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from pegword.core.caller import Caller, Session
from pegword.services.bundle import Services
from pegword.settings import load
from pegword.tool.calling import MemoryTool, ToolResult


@dataclass
class Model:
    """A model in one session: what it says to the tool, and what it hears."""

    tool: MemoryTool
    caller: Caller
    session: Session

    def __call__(self, action: Any = None, **arguments: Any) -> ToolResult:
        return self.tool.call(self.caller, self.session, arguments if action is None else {"action": action, **arguments})

    def ok(self, action: str, **arguments: Any) -> str:
        """The text of a call that must do what it says."""
        result = self(action, **arguments)
        assert not result.is_error, result.text
        return result.text

    def error(self, action: Any = None, **arguments: Any) -> str:
        """The one sentence of a call that must fail."""
        result = self(action, **arguments)
        assert result.is_error, result.text
        assert result.text.startswith("Error: ")
        assert "\n" not in result.text
        return result.text


ModelOf = Callable[..., Model]


@pytest.fixture
def tool(services: Services) -> MemoryTool:
    settings = load(environment={})
    return MemoryTool(services, kind_word=settings.kind_word, content_chars_max=lambda: settings.memory_max_content)


@pytest.fixture
def model_of(tool: MemoryTool) -> ModelOf:
    """Makes the model of a caller in a session."""
    return lambda caller, session=Session("w1"): Model(tool, caller, session)  # noqa: B008 - frozen


@pytest.fixture
def model(model_of: ModelOf, alice: Caller) -> Model:
    """A model of Alice's in an interactive session of her workstream w1."""
    return model_of(alice)
