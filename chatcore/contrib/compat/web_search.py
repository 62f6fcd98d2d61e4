"""Search the web with a tool that an operator names, for models whose provider has no search.

Clients ask for the search of their own provider's servers. A provider that has it runs it. For any
other one `CHATCORE_WEB_SEARCH_TOOL` names a tool of a shared MCP server, which runs here; without
it the search is left out and named in the header X-Ignored-Fields.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from typing import TypeVar

from django.conf import settings
from django.contrib.auth.models import User

from chatcore.base.threads import PREPARATION, TOOLS
from chatcore.contrib.compat.chat_completions.request import SEARCH_OPTIONS, CompletionRequest
from chatcore.contrib.compat.chat_completions.stateless import StatelessExchange
from chatcore.contrib.compat.responses.mcp.stateless_tools import StatelessTools
from chatcore.contrib.compat.responses.request import ResponseRequest
from chatcore.models import Session
from chatcore.providers.base import ChatMessage, StreamEnd, StreamPart, TextDelta, Usage
from chatcore.tools.mcp.catalog import McpTool, list_available_tools
from chatcore.turns.generation import TooManyToolRounds

_SEARCH_TOOL = re.compile(r"tools\.web_search(_preview)?(_[0-9_]+)?")
AnyRequest = TypeVar("AnyRequest", bound=CompletionRequest | ResponseRequest)


def serve_search(user: User, request: AnyRequest, body: object) -> AnyRequest:
    """Return a request whose search was left out with the tool that an operator names for it."""
    left_out = {name for name in request.ignored_fields if _is_search(name)}
    if not (left_out and settings.CHATCORE["WEB_SEARCH_TOOL"] and request.model.may_call_tools):
        return request
    if not _may_reach_the_web(body):
        return request
    tool = _find_tool(user)
    if tool is None:
        return request
    ignored_fields = tuple(name for name in request.ignored_fields if name not in left_out)
    return replace(request, search_tool=tool, ignored_fields=ignored_fields)


def choose_tools(session: Session, tool: McpTool | None) -> dict[str, object]:
    """Return the tools of a session with the search of a request; nothing if it has it already."""
    if tool is None or session.tools is None or tool.definition.name in session.tools:
        return {}
    return {"tools": [*session.tools, tool.definition.name]}


async def stream_parts(
    user: User, exchange: StatelessExchange, tool: McpTool | None
) -> AsyncGenerator[StreamPart]:
    """Yield an answer that nothing is stored of; calls of the search run in between.

    Where the model calls a tool of the client at the same time, that comes first.
    """
    if tool is None:
        async with aclosing(exchange.stream_parts()) as parts:
            async for part in parts:
                yield part
        return
    tools = StatelessTools(user.pk, [], [tool])
    usage: Usage | None = None
    for _ in range(settings.CHATCORE["TOOL_ROUNDS"]):
        text, end = "", StreamEnd(reason="stop")
        async with aclosing(exchange.stream_parts()) as parts:
            async for part in parts:
                if isinstance(part, StreamEnd):
                    end = part
                    continue
                if isinstance(part, TextDelta):
                    text += part.text
                yield part
        if end.usage:
            usage = end.usage.add(usage) if usage else end.usage
        searches = [call for call in end.tool_calls if call.name == tool.definition.name]
        others = [call for call in end.tool_calls if call not in searches]
        if others or not searches:
            yield replace(end, tool_calls=tuple(others), usage=usage)
            return
        if text:
            yield TextDelta("\n\n")
        results = await asyncio.gather(
            *(TOOLS.run_for(user.pk, tools.run_call, call) for call in searches)
        )
        answer = ChatMessage(
            role="assistant",
            content=text,
            tool_calls=tuple(searches),
            provider_data=end.provider_data,
        )
        request = exchange.fit.request
        request = replace(request, messages=[*request.messages, answer, *results])
        exchange = await PREPARATION.run_for(
            user.pk, partial(StatelessExchange, exchange.model, request, owner_id=user.pk)
        )
        exchange.has_begun = True
    limit = settings.CHATCORE["TOOL_ROUNDS"]
    raise TooManyToolRounds(f"The model called tools {limit} times in a row without answering.")


def _is_search(field: str) -> bool:
    """Return True for the path of a field by which a client asks for a search."""
    return field == SEARCH_OPTIONS or bool(_SEARCH_TOOL.fullmatch(field))


def _may_reach_the_web(body: object) -> bool:
    """Return False if the search is one of what OpenAI has collected, as Codex asks by itself."""
    tools = body.get("tools") if isinstance(body, Mapping) else None
    return not any(
        isinstance(tool, Mapping) and tool.get("external_web_access") is False
        for tool in (tools if isinstance(tools, list) else [])
    )


def _find_tool(user: User) -> McpTool | None:
    """Return the operator's tool, if the user may use it and is asked about no call."""
    for tool in list_available_tools(user):
        is_meant = tool.definition.name == settings.CHATCORE["WEB_SEARCH_TOOL"]
        if is_meant and tool.server.owner_id is None and not tool.needs_approval:
            return tool
    return None
