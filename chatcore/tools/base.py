"""Define what a built-in tool is: a description for the model and a function to run.

To add a tool, copy a file of this folder and list it in `registry.py`.
"""

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from chatcore.providers.base import Tool

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise


class ToolError(Exception):
    """A call that cannot be answered; its text is for the model, which may try again."""


@dataclass(frozen=True, kw_only=True)
class BuiltInTool:
    """A tool that runs in this process. Users see its `title`.

    `parameters` is a JSON Schema of the arguments. `run` receives arguments that match it and the
    id of the calling session, and returns the text for the model, or another value, which becomes
    text as `render_value` says; it may raise ToolError.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    run: Callable[[dict[str, Any], UUID], Any]
    title: "str | StrPromise" = ""

    @functools.cached_property
    def definition(self) -> Tool:
        """The definition that is sent to the model."""
        return Tool(name=self.name, description=self.description, parameters=self.parameters)


def render_value(value: object) -> str:
    """Return what a tool returned as text: bytes as UTF-8, None as no text, the rest as JSON."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bytes | bytearray):
        return value.decode(errors="replace")
    return json.dumps(value, ensure_ascii=False, default=str)
