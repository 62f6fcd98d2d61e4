"""MCP servers over REST: added, asked for their tools, chosen by sessions, and never unveiled."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, Permission, User
from django.db import connections
from rest_framework.test import APIClient

from chatcore.models import McpServer, Session
from chatcore.tools.mcp import connection
from chatcore.tools.mcp.catalog import build_tool_name
from chatcore.tools.mcp.refresh import refresh_server
from models_registry.models import AiModel
from tests.support.mcp_server import ToolServer, run_tool_server

SERVERS = "/api/v1/mcp_servers"
SECRET = "Bearer a-very-secret-word"
COMMAND = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("clock")
@server.tool()
def now() -> str:
    "Tell the time."
    return "noon"
server.run("stdio")
"""
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def running() -> Iterator[ToolServer]:
    with run_tool_server() as server:
        yield server


@pytest.fixture
def tool_server(running: ToolServer, monkeypatch: pytest.MonkeyPatch) -> ToolServer:
    monkeypatch.setitem(settings.CHATCORE, "FETCH_ALLOW_HOSTS", [running.host])
    running.headers.clear()
    return running


@pytest.fixture
def stranger(as_user: Callable[[User], APIClient]) -> APIClient:
    return as_user(User.objects.create_user("bob"))


@pytest.fixture
def staff(as_user: Callable[[User], APIClient]) -> APIClient:
    carol = User.objects.create_user("carol", is_staff=True)
    carol.user_permissions.set(Permission.objects.filter(content_type__model="mcpserver"))
    return as_user(carol)


def test_a_user_adds_a_server_whose_tools_a_session_can_choose(
    api: APIClient, stranger: APIClient, session: Session, tool_server: ToolServer
) -> None:
    body = {"name": "files", "url": tool_server.url, "headers": {"Authorization": SECRET}}
    added = api.post(SERVERS, body)
    assert added.status_code == 201, added.json()
    server = added.json()
    names = {"mcp__files__dump", "mcp__files__fail", "mcp__files__read", "mcp__files__wait"}
    assert {tool["name"] for tool in server["tools"]} == names
    assert (server["error"], server["is_shared"], server["header_names"]) == (
        "",
        False,
        ["Authorization"],
    )
    path = f"/api/v1/sessions/{session.pk}"
    chosen = api.patch(path, {"tools": ["calculate", "mcp__files__read"]})
    assert chosen.json()["tools"] == ["calculate", "mcp__files__read"]
    preview = api.get(f"{path}/context/preview").json()
    assert "mcp__files__read" in str(preview)
    refused = api.patch(path, {"tools": ["mcp__other__read"]})
    assert refused.json()["errors"][0]["detail"].startswith("There is no tool called")

    others_session = stranger.post("/api/v1/sessions", {"tools": ["mcp__files__read"]})
    assert others_session.status_code == 400
    assert stranger.get(SERVERS).json()["results"] == []
    for method in ("get", "patch", "delete"):
        assert getattr(stranger, method)(f"{SERVERS}/{server['id']}", {}).status_code == 404
    assert stranger.post(f"{SERVERS}/{server['id']}/refresh").status_code == 404

    assert api.delete(f"{SERVERS}/{server['id']}").status_code == 204
    assert api.get(SERVERS).json()["results"] == []


def test_headers_are_encrypted_never_shown_and_stay_with_their_address(
    api: APIClient, tool_server: ToolServer
) -> None:
    body = {"name": "files", "url": tool_server.url, "headers": {"X-Key": "top-secret"}}
    answers = [api.post(SERVERS, body)]
    address = f"{SERVERS}/{answers[0].json()['id']}"
    answers += [api.get(address), api.post(f"{address}/refresh"), api.get(SERVERS)]
    assert not any("top-secret" in answer.content.decode() for answer in answers)
    row = McpServer.objects.get()
    assert "top-secret" not in row.encrypted_headers
    assert {headers["x-key"] for headers in tool_server.headers} == {"top-secret"}

    tool_server.headers.clear()
    moved = api.patch(address, {"url": f"{tool_server.url}/"}).json()
    assert moved["header_names"] == []
    assert not any("x-key" in headers for headers in tool_server.headers)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "My Server"}, "name"),
        ({"url": "ftp://example.com/"}, "url"),
        ({"url": "stdio:clock"}, "url"),
        ({"url": "http://user:word@example.com/"}, "url"),
        ({"headers": {"Host": "inner"}}, "headers"),
        ({"headers": {"X-A": "a\r\nX-B: b"}}, "headers"),
        ({"token": "x"}, "token"),
    ],
)
def test_what_is_wrong_with_a_server_is_named(
    api: APIClient, change: dict[str, object], field: str
) -> None:
    body = {"name": "files", "url": "https://example.com/mcp"}
    refused = api.post(SERVERS, body | change)
    assert refused.status_code == 400
    assert refused.json()["errors"][0]["pointer"].startswith(f"#/{field}")
    assert not McpServer.objects.exists()


def test_a_server_that_cannot_be_asked_says_why(api: APIClient, tool_server: ToolServer) -> None:
    body = {"name": "files", "url": f"http://{tool_server.host}/elsewhere"}
    assert api.post(SERVERS, body).json()["error"] == (
        "The server files answered with the status 404."
    )
    assert api.post(SERVERS, body).json()["errors"][0]["detail"] == "Another server has this name."
    body = {"name": "inner", "url": "http://127.0.0.1/mcp"}
    assert "not on the public internet" in api.post(SERVERS, body).json()["error"]


def test_staff_share_a_server_with_everyone_or_with_a_group(
    api: APIClient,
    staff: APIClient,
    stranger: APIClient,
    model: AiModel,
    tool_server: ToolServer,
) -> None:
    body = {"name": "files", "url": tool_server.url, "is_shared": True}
    assert api.post(SERVERS, body).status_code == 403
    server = staff.post(SERVERS, body).json()
    address = f"{SERVERS}/{server['id']}"
    seen = api.get(address).json()
    assert (seen["name"], seen["is_shared"], seen["url"]) == ("files", True, "")
    assert api.post("/api/v1/sessions", {"tools": ["mcp__files__read"]}).status_code == 201
    assert api.patch(address, {"is_active": False}).status_code == 404
    assert api.delete(address).status_code == 404

    group = Group.objects.create(name="editors")
    group.user_set.add(User.objects.get(username="bob"))
    McpServer.objects.get().groups.add(group)
    assert api.get(address).status_code == 404
    assert stranger.get(address).status_code == 200
    session = stranger.post("/api/v1/sessions", {"tools": ["mcp__files__read"]}).json()
    preview = stranger.get(f"/api/v1/sessions/{session['id']}/context/preview").json()
    assert "mcp__files__read" in str(preview)
    assert staff.patch(address, {"is_active": False}).status_code == 200


@pytest.mark.slow
def test_a_command_of_the_operator_is_a_server_too(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = {"clock": [sys.executable, "-c", COMMAND]}
    monkeypatch.setitem(settings.CHATCORE, "MCP_COMMANDS", commands)
    server = McpServer.objects.create(name="clock", url="stdio:clock")
    server.full_clean()
    assert refresh_server(server), server.error
    assert [tool["name"] for tool in server.tools] == ["now"]
    assert connection.call_tool(server, "now", {}) == "noon"


def test_names_of_tools_are_such_as_providers_accept() -> None:
    names = [build_tool_name("files", name) for name in ("read", "read.all", "read all", "x" * 90)]
    assert names[0] == "mcp__files__read"
    assert len(set(names)) == 4
    assert all(len(name) <= 64 and name.replace("_", "").isalnum() for name in names)


def test_of_servers_added_at_once_under_one_name_exactly_one_is_stored(api: APIClient) -> None:
    def add(_number: int) -> int:
        try:
            return api.post(SERVERS, {"name": "twin", "url": "http://127.0.0.1:9/"}).status_code
        finally:
            connections.close_all()

    with ThreadPoolExecutor(6) as pool:
        statuses = sorted(pool.map(add, range(6)))
    assert statuses == [201, 400, 400, 400, 400, 400]
    assert McpServer.objects.count() == 1
