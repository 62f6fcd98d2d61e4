"""The dialog with the settings of a chat. The page saves them over REST, which checks them."""

import json
import re
from dataclasses import dataclass, field
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from chatcore.accounts.rights import (
    Kind,
    find_default_model,
    list_allowed,
    select_models,
    select_policies,
)
from chatcore.context.compactor import get_compactor
from chatcore.extension import build_page_parts
from chatcore.models import McpServer, Session
from chatcore.tools import registry as tool_registry
from chatcore.tools.mcp import catalog
from chatcore.web.own_chat import get_own_chat


@dataclass(frozen=True, kw_only=True)
class ToolChoice:
    """A tool: its name in the API, how people see it, and whether the chat has chosen it."""

    name: str
    label: str
    description: str
    is_chosen: bool


@dataclass(frozen=True)
class ToolGroup:
    """The tools of a server; its name is empty for those that are built in."""

    server: str
    tools: list[ToolChoice] = field(default_factory=list)


def list_tool_groups(user: AbstractBaseUser | AnonymousUser, session: Session) -> list[ToolGroup]:
    """Return what the chat's owner may choose from, the built-in tools first."""
    built_in_tools = [
        ToolChoice(
            name=tool.name,
            label=str(tool_registry.BUILT_IN_TOOLS[tool.name].title or tool.name),
            description=tool.description,
            is_chosen=session.tools is None or tool.name in session.tools,
        )
        for tool in tool_registry.build_definitions(allowed_names=list_allowed(user.pk, Kind.TOOL))
    ]
    groups: dict[str, ToolGroup] = {}
    for tool in catalog.list_available_tools(user):
        choice = ToolChoice(
            name=tool.definition.name,
            label=put_in_words(tool.name),
            description=tool.definition.description,
            is_chosen=tool.definition.name in (session.tools or ()),
        )
        server_name = tool.server.name
        groups.setdefault(server_name, ToolGroup(server_name)).tools.append(choice)
    return [ToolGroup("", built_in_tools), *groups.values()]


def put_in_words(name: str) -> str:
    """Return the name of a server's tool as words: `web_search` and `webSearch` as Web search."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", re.sub(r"[_.-]+", " ", name)).strip()
    return words[:1].upper() + re.sub(r"\b[A-Z](?=[a-z])", lambda each: each[0].lower(), words[1:])


@login_required
@require_GET
def show_chat_settings(request: HttpRequest, pk: UUID | None = None) -> HttpResponse:
    """Show the dialog with the settings of a chat, or with those of a new chat."""
    if pk:
        session = get_own_chat(request, pk)
    else:
        session = Session(model=find_default_model(request.user.pk))
    context = _build_form_context(request, session) | {
        "stored": pk,
        "chat": session,
        "parts": build_page_parts("chat_settings", request, session),
    }
    return render(request, "chatcore/_chat_settings.html", context)


def _build_form_context(request: HttpRequest, session: Session) -> dict[str, object]:
    threshold = session.compact_threshold
    policies = get_compactor().list_policies()
    return {
        "tool_groups": list_tool_groups(request.user, session),
        "silent_servers": McpServer.objects.owned_by(request.user).filter(is_active=True, tools=[]),
        "models": select_models(request.user.pk).list_usable(),
        "policies": {
            name: policies[name]
            for name in sorted(select_policies(request.user.pk, list(policies)))
        },
        "usual_policy": get_compactor()
        .choose_policy(session.model.policy if session.model else "")
        .name,
        "params": json.dumps(session.params),
        "threshold": "" if threshold is None else _format_threshold(threshold),
    }


def _format_threshold(threshold: float) -> str:
    """Return a share as a percentage; above 1 it is a number of tokens, which stays as it is."""
    return f"{threshold * 100:g}" if threshold <= 1 else f"{threshold:.0f}"
