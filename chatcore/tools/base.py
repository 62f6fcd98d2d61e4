"""What a built-in tool is: a definition for the model and a function to run. Copy any file beside this one to make another."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from chatcore.providers.base import Tool


class ToolError(Exception):
    """A call that cannot be answered; its text is written for the model, which may try again."""


@dataclass(frozen=True, kw_only=True)
class BuiltInTool:
    """A tool that runs here. `run` gets arguments that match `parameters`, and the session that asks; it may raise ToolError."""

    name: str
    description: str
    parameters: dict[str, Any]
    run: Callable[[dict[str, Any], UUID], str]

    def to_definition(self) -> Tool:
        """As the model is told of it."""
        return Tool(name=self.name, description=self.description, parameters=self.parameters)
