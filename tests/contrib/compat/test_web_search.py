"""The search of the web that a program asks for, where the model's provider has none."""

from typing import Any

import httpx
import pytest
from django.conf import settings
from openai import OpenAI

from chatcore.base.runner import turn_runner
from chatcore.models import McpServer, Session
from chatcore.tools.mcp.refresh import refresh_server
from tests.support.http_client import http
from tests.support.mcp_server import ToolServer, running, tool_server
from tests.support.openai_client import MODEL, client, list_completions
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

__all__ = ["client", "running", "tool_server"]

pytestmark = pytest.mark.django_db(transaction=True)
SEARCH = "mcp__files__read"
OPENAI_SEARCH = {"type": "web_search"}
# The body of each API, with its question and what asks for a search.
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {
        "messages": [{"role": "user", "content": "News?"}],
        "tools": [OPENAI_SEARCH],
    },
    "/v1/messages": {
        "messages": [{"role": "user", "content": "News?"}],
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
        "max_tokens": 100,
    },
    "/v1/responses": {"input": "News?", "tools": [OPENAI_SEARCH], "store": False},
}


@pytest.fixture
def server(tool_server: ToolServer, monkeypatch: pytest.MonkeyPatch) -> McpServer:
    """The shared server, whose tool the operator has named."""
    shared = McpServer.objects.create(
        name="files", url=tool_server.url, require_approval=McpServer.Approval.NEVER
    )
    assert refresh_server(shared), shared.error
    monkeypatch.setitem(settings.CHATCORE, "WEB_SEARCH_TOOL", SEARCH)
    return shared


def post(client: OpenAI, path: str, name: str = "", **members: Any) -> httpx.Response:
    response = http.post(
        str(client.base_url).removesuffix("/v1/") + path,
        headers={"authorization": f"Bearer {client.api_key}"}
        | ({"x-session-id": name} if name else {}),
        json={"model": MODEL} | BODIES[path] | members,
        timeout=60,
    )
    assert response.status_code == 200, response.text
    turn_runner.drain()
    return response


def script_search(scripted: ScriptedModel) -> None:
    call = make_tool_call(SEARCH, {"path": "news"}, id="call_search")
    scripted.script(Reply(text="I look.", tool_calls=[call]), Reply(text="Rain"))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["", "mine"])
@pytest.mark.parametrize("path", BODIES)
def test_the_tool_of_the_operator_searches(
    client: OpenAI,
    scripted: ScriptedModel,
    tool_server: ToolServer,
    server: McpServer,
    path: str,
    name: str,
    stream: bool,
) -> None:
    script_search(scripted)
    response = post(client, path, name, stream=stream)
    assert tool_server.calls == [("read", "news")]
    assert "Rain" in response.text
    assert "web_search" not in response.headers.get("x-ignored-fields", "")
    first, second = (received.json for received in list_completions(scripted))
    assert [tool["function"]["name"] for tool in first["tools"]] == [SEARCH]
    assert second["messages"][-1]["content"] == "The text of news."
    assert Session.objects.count() == bool(name)
    # The client knows no such tool, so it is not told to call it.
    assert '"tool_calls":[{' not in response.text.replace(" ", "")
    assert '"tool_use"' not in response.text


@pytest.mark.parametrize("path", BODIES)
def test_what_the_client_runs_comes_first(
    client: OpenAI, scripted: ScriptedModel, server: McpServer, path: str
) -> None:
    if path == "/v1/responses":
        tool: dict[str, Any] = {"type": "function", "name": "look"}
    elif path == "/v1/messages":
        tool = {"name": "look", "input_schema": {"type": "object"}}
    else:
        tool = {"type": "function", "function": {"name": "look"}}
    calls = [
        make_tool_call(SEARCH, {"path": "news"}, id="call_search"),
        make_tool_call("look", id="call_look"),
    ]
    scripted.script(Reply(tool_calls=calls))
    response = post(client, path, tools=[*BODIES[path]["tools"], tool])
    assert "call_look" in response.text
    if path != "/v1/responses":  # whose calls of servers are items of their own
        assert "call_search" not in response.text


@pytest.mark.parametrize(
    "change", [{"is_active": False}, {"require_approval": McpServer.Approval.ALWAYS}]
)
@pytest.mark.parametrize("path", BODIES)
def test_a_tool_that_cannot_be_called_at_once_leaves_the_search_out(
    client: OpenAI, scripted: ScriptedModel, server: McpServer, path: str, change: dict[str, Any]
) -> None:
    McpServer.objects.filter(pk=server.pk).update(**change)
    response = post(client, path)
    assert "tools.web_search" in response.headers["x-ignored-fields"]
    assert not list_completions(scripted)[-1].json.get("tools")


def test_options_of_chat_completions_ask_for_a_search(
    client: OpenAI, scripted: ScriptedModel, server: McpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"search_context_size": "low"}
    script_search(scripted)
    response = post(client, "/v1/chat/completions", tools=[], web_search_options=options)
    assert "Rain" in response.text
    monkeypatch.setitem(settings.CHATCORE, "WEB_SEARCH_TOOL", "")
    response = post(client, "/v1/chat/completions", tools=[], web_search_options=options)
    assert response.headers["x-ignored-fields"] == "web_search_options"


def test_a_search_of_what_openai_has_collected_is_left_out(
    client: OpenAI, scripted: ScriptedModel, server: McpServer
) -> None:
    tools = [OPENAI_SEARCH | {"external_web_access": False}]
    response = post(client, "/v1/responses", tools=tools)
    assert response.headers["x-ignored-fields"] == "tools.web_search"
