"""The tools of a request, and which of them the model may call."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from chatcore.contrib.compat.bodies import Body
from chatcore.contrib.compat.client_messages import ClientFunction


class CacheControl(Body):
    """A mark behind a part of a request, up to which its provider is to cache."""

    type: Literal["ephemeral"]
    ttl: Literal["5m", "1h"] | None = None


def _drop_nulls(schema: Mapping[str, object]) -> dict[str, object]:
    """Return a schema in which an empty list of properties may be null."""
    return {name: part for name, part in schema.items() if part is not None}


class MessageTool(ClientFunction):
    """A tool that the client runs; others run elsewhere."""

    type: Literal["custom"] | None = None
    parameters: Annotated[dict[str, object], AfterValidator(_drop_nulls)] = Field(
        alias="input_schema"
    )
    cache_control: CacheControl | None = None


class FreeChoice(Body):
    type: Literal["auto", "any"]
    disable_parallel_tool_use: bool | None = None


class NamedChoice(Body):
    type: Literal["tool"]
    name: str
    disable_parallel_tool_use: bool | None = None


class NoChoice(Body):
    type: Literal["none"]


ToolChoice = Annotated[FreeChoice | NamedChoice | NoChoice, Field(discriminator="type")]
