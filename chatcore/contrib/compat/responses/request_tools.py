"""The tools of a request, and which of them the model may call."""

from typing import Annotated, Literal

from pydantic import Field

from chatcore.contrib.compat.bodies import Body, FilledText
from chatcore.contrib.compat.chat_completions.request import Function
from chatcore.tools.mcp.catalog import build_tool_name

Mode = Literal["none", "auto", "required"]


class Repeated(Body):
    """A part of a request that the response repeats."""

    def build_echo(self) -> dict[str, object]:
        """Return it as the response repeats it."""
        return self.model_dump(exclude_none=True)


class FunctionTool(Function):
    type: Literal["function"]

    def build_echo(self) -> dict[str, object]:
        """Return the tool as the response repeats it."""
        return self.model_dump()


class FunctionChoice(Repeated):
    type: Literal["function"]
    name: str

    def build_param(self) -> object:
        """Return the choice in the words of chat completions."""
        return {"type": "function", "function": {"name": self.name}}


class ServerChoice(Repeated):
    """The choice of an MCP server, or of one of its tools."""

    type: Literal["mcp"]
    server_label: FilledText
    name: FilledText | None = None

    def build_param(self) -> object:
        """Return the choice in the words of chat completions, which know no servers."""
        if self.name is None:
            return "required"
        name = build_tool_name(self.server_label, self.name)
        return {"type": "function", "function": {"name": name}}


class AllowedTools(Repeated):
    """The only tools that are offered to the model.

    A model that does not see the others cannot call them, whatever its provider makes of a choice.
    """

    type: Literal["allowed_tools"]
    tools: list[Annotated[FunctionChoice | ServerChoice, Field(discriminator="type")]]
    mode: Mode | None = None

    def build_param(self) -> object:
        """Return the choice in the words of chat completions."""
        return self.mode or "auto"

    def build_echo(self) -> dict[str, object]:
        """Return the choice as the response repeats it."""
        return super().build_echo() | {"mode": self.mode or "auto"}

    def names(self, name: str) -> bool:
        """Return True for a function that may be called."""
        return any(isinstance(tool, FunctionChoice) and tool.name == name for tool in self.tools)

    def names_server(self, label: str) -> bool:
        """Return True for a server whose tools may be called."""
        choices = (tool for tool in self.tools if isinstance(tool, ServerChoice))
        return any(choice.server_label == label for choice in choices)


ToolChoice = (
    Mode | Annotated[FunctionChoice | ServerChoice | AllowedTools, Field(discriminator="type")]
)
