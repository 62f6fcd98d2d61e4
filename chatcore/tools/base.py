"""Define what a built-in tool is: a description for the model and a function to run.

To add a tool, copy a file of this folder and list it in `registry.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from chatcore.providers.base import Tool


class ToolError(Exception):
    """A call that cannot be answered; its text is for the model, which may try again."""


@dataclass(frozen=True, kw_only=True)
class BuiltInTool:
    """A tool that runs in this process.

    `parameters` is a JSON Schema of the arguments. `run` receives arguments that match it and the
    id of the calling session, and returns the text for the model; it may raise ToolError.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    run: Callable[[dict[str, Any], UUID], str]

    def to_definition(self) -> Tool:
        """Return the definition that is sent to the model."""
        return Tool(name=self.name, description=self.description, parameters=self.parameters)
