"""The `mcp` tools of a request: servers that it brings along, and what is said back of them."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field, ValidationInfo, field_validator

from chatcore.contrib.compat.bodies import Body, refuse
from chatcore.models import McpServer
from chatcore.models.mcp_server import MAX_LABEL_CHARS
from chatcore.tools.mcp.addresses import check_address, check_headers
from chatcore.tools.mcp.turn_servers import RequestServer

MAX_SERVERS = 16
MAX_URL_CHARS = 2000
MAX_DESCRIPTION_CHARS = 500
MAX_NAMES = 500
DEFAULT_APPROVAL = McpServer.Approval.ALWAYS.value
# `mcp__LABEL__TOOL` is taken apart at the second pair of underscores.
LABEL = re.compile(r"[A-Za-z0-9](?:[_-]?[A-Za-z0-9])*")

ToolNames = Annotated[list[str], Field(max_length=MAX_NAMES)]
NotKnown = Annotated[object, refuse("Only servers by their server_url.")]


def _check_label(label: str) -> str:
    if len(label) > MAX_LABEL_CHARS or not LABEL.fullmatch(label):
        detail = f"1 to {MAX_LABEL_CHARS} letters and digits, with single _ and - inside."
        raise ValueError(detail)
    return label


class ToolFilter(Body):
    """Some tools of a server, by their names or by what they do."""

    tool_names: ToolNames | None = None
    read_only: bool | None = None


class Approvals(Body):
    """The tools about which a person is always asked, and never."""

    model_config = ConfigDict(extra="forbid")

    always: ToolFilter | ToolNames | None = None
    never: ToolFilter | ToolNames | None = None


class ServerTool(Body):
    """A server whose tools the model may call."""

    type: Literal["mcp"]
    connector_id: NotKnown = None
    tunnel_id: NotKnown = None
    server_label: Annotated[str, AfterValidator(_check_label)]
    require_approval: Literal["always", "never"] | Approvals | None = None
    allowed_tools: ToolNames | ToolFilter | None = None
    server_description: str | None = None
    server_url: Annotated[str, Field(max_length=MAX_URL_CHARS), AfterValidator(check_address)]
    headers: Annotated[dict[str, str], AfterValidator(check_headers)] | None = None
    authorization: str | None = None

    @field_validator("authorization")
    @classmethod
    def check_token(cls, token: str | None, info: ValidationInfo) -> str | None:
        """Refuse a token that another header names too."""
        headers = info.data.get("headers") or {}
        if token is not None and any(name.lower() == "authorization" for name in headers):
            raise ValueError("Either this or a header of this name, not both.")
        if token is not None:
            check_headers({"Authorization": f"Bearer {token}"})
        return token

    def build_server(self) -> RequestServer:
        """Return the server with the rules for its tools."""
        headers = dict(self.headers or {})
        if self.authorization is not None:
            headers["Authorization"] = f"Bearer {self.authorization}"
        approval = self.require_approval
        filters = {"allowed": self.allowed_tools}
        if isinstance(approval, Approvals):
            filters |= {"always": approval.always, "never": approval.never}
        rules: dict[str, object] = {
            name: _build_rule(each) for name, each in filters.items() if each is not None
        }
        if self.server_description:
            rules["description"] = self.server_description[:MAX_DESCRIPTION_CHARS]
        return RequestServer(
            label=self.server_label,
            url=self.server_url,
            headers=headers,
            require_approval=approval if isinstance(approval, str) else DEFAULT_APPROVAL,
            rules=rules,
        )

    def build_echo(self) -> dict[str, object]:
        """Return the server as the response repeats it: without what may be a key.

        Keys also stand in the path or the query of addresses, so only the host is repeated.
        """
        parts = urlsplit(self.server_url)
        defaults = {"server_description": None, "allowed_tools": None}
        sent_fields = {"type", "server_label", "require_approval", *defaults}
        return {
            **defaults,
            "require_approval": DEFAULT_APPROVAL,
            **self.model_dump(include=sent_fields, exclude_unset=True, exclude_none=True),
            "server_url": f"{parts.scheme}://{parts.hostname}/<redacted>",
            "headers": None,
        }


def _build_rule(tools: ToolFilter | list[str]) -> Mapping[str, object]:
    tool_filter = ToolFilter(tool_names=tools) if isinstance(tools, list) else tools
    return tool_filter.model_dump()
