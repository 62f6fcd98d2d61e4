"""Tools that take a text and no JSON, as functions with one text.

No provider here has such tools; OpenAI's own clients send them, and want their calls back in the
form of such tools.
"""

import json
from typing import Annotated, Any, Literal

from pydantic import Field

from chatcore.contrib.compat.bodies import Body, FilledText
from chatcore.providers.base import ToolCall

TEXT_PARAMETER = "input"
GRAMMAR_NOTE = "The input is a text that this grammar ({syntax}) accepts:\n{definition}"


class TextFormat(Body):
    type: Literal["text"]


class GrammarFormat(Body):
    """The grammar of the text. It is described to the model and not enforced."""

    type: Literal["grammar"]
    syntax: str
    definition: str


class CustomDescription(Body):
    """What a client says of such a tool."""

    name: FilledText
    description: str = ""
    format: Annotated[TextFormat | GrammarFormat, Field(discriminator="type")] | None = None

    def build_function(self) -> dict[str, Any]:
        """Return the function that stands for the tool, without how the client knows it."""
        description = self.description
        if isinstance(self.format, GrammarFormat):
            note = GRAMMAR_NOTE.format(syntax=self.format.syntax, definition=self.format.definition)
            description = f"{description}\n\n{note}".strip()
        text = {"type": "string", "description": "The whole input, as it is."}
        return {
            "name": self.name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": {TEXT_PARAMETER: text},
                "required": [TEXT_PARAMETER],
            },
        }


def build_arguments(text: str) -> str:
    """Return the arguments of the function for a text."""
    return json.dumps({TEXT_PARAMETER: text}, ensure_ascii=False)


def read_text(call: ToolCall) -> str:
    """Return the text of a call. A model may have written it without the JSON around it."""
    text = call.parse_arguments().get(TEXT_PARAMETER)
    return text if isinstance(text, str) else call.arguments
