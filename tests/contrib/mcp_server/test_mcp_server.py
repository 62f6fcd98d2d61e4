"""Chatcore as an MCP server: the official client reads and writes this memory, each its own."""

import asyncio
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User
from knox.models import AuthToken
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from rest_framework.test import APIClient

from chatcore.models import Session
from tests.conftest import Live

pytestmark = pytest.mark.django_db(transaction=True)
Caller = Callable[..., list[Any]]


@pytest.fixture
def talk(api: APIClient, session: Session) -> Session:
    """A session with a few messages, a summary and a policy that keeps a ledger."""
    Session.objects.update(
        title="Trip to Rome", compacted_summary="We go in May.", policy="chatcore"
    )
    texts = ["Where do we stay?", "At the hotel Aurora, room 17.", "And when?", "In May."]
    messages = [
        {"role": "assistant" if number % 2 else "user", "content": text}
        for number, text in enumerate(texts)
    ]
    path = f"/api/v1/sessions/{session.pk}/messages/import"
    assert api.post(path, {"messages": messages}).status_code == 201
    return session


@pytest.fixture
def call(live: Live, user: User) -> Caller:
    """Call tools one after another over one connection; returns what each has answered."""

    def call_tools(*calls: tuple[str, dict[str, Any]], sender: User = user, **options: Any) -> Any:
        _, token = AuthToken.objects.create(sender)
        return asyncio.run(_call_tools(live, token, calls, options))

    return call_tools


async def _call_tools(live: Live, token: str, calls: Any, options: Any) -> list[Any]:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http_client:
        transport = streamable_http_client(f"{live.url}/mcp", http_client=http_client)
        async with Client(transport, **options) as client:
            if not calls:
                return [tool.name for tool in (await client.list_tools()).tools]
            return [await client.call_tool(name, arguments) for name, arguments in calls]


def get_content(result: Any) -> Any:
    assert not result.is_error, result.content
    return result.structured_content


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_lists_the_tools(call: Caller, mode: str) -> None:
    assert call(mode=mode) == [
        "list_sessions",
        "search_history",
        "read_session",
        "read_summary",
        "read_ledger",
        "remember",
        "edit_ledger_line",
    ]


def test_an_agent_finds_what_was_said_and_reads_around_it(call: Caller, talk: Session) -> None:
    session_id = str(talk.pk)
    found, found_there, sessions, first_page, summary = call(
        ("search_history", {"query": "Which hotel room?"}),
        ("search_history", {"query": "Which hotel room?", "session": session_id}),
        ("list_sessions", {"query": "rome"}),
        ("read_session", {"session": session_id, "limit": 3}),
        ("read_summary", {"session": session_id}),
    )
    assert "Aurora" in get_content(found)["hits"][0]["snippet"]
    assert get_content(found_there)["hits"] == get_content(found)["hits"]
    assert [row["title"] for row in get_content(sessions)["sessions"]] == ["Trip to Rome"]
    assert get_content(summary)["compacted_summary"] == "We go in May."
    page = get_content(first_page)
    assert [row["seq"] for row in page["messages"]] == [1, 2, 3]
    next_page = {"session": session_id, "limit": 3, "cursor": page["next_cursor"]}
    (rest,) = call(("read_session", next_page))
    assert [row["content"] for row in get_content(rest)["messages"]] == ["In May."]
    assert get_content(rest)["next_cursor"] is None


def test_an_agent_writes_into_the_ledger_and_changes_a_line(call: Caller, talk: Session) -> None:
    session_id = str(talk.pk)
    written, unknown = call(
        ("remember", {"session": session_id, "text": "No flights.", "kind": "rule"}),
        ("remember", {"session": session_id, "text": ""}),
    )
    line = get_content(written)
    assert (line["kind"], line["text"]) == ("rule", "No flights.")
    assert unknown.is_error
    assert "text" in unknown.content[0].text
    changed, lines = call(
        ("edit_ledger_line", {"session": session_id, "line": line["id"], "pinned": True}),
        ("read_ledger", {"session": session_id}),
    )
    assert get_content(changed)["pinned"] is True
    assert [row["text"] for row in get_content(lines)["lines"]] == ["No flights."]


def test_what_is_not_the_senders_does_not_exist(call: Caller, talk: Session) -> None:
    bob = User.objects.create_user("bob")
    hits, page, sessions = call(
        ("search_history", {"query": "hotel"}),
        ("read_session", {"session": str(talk.pk)}),
        ("list_sessions", {}),
        sender=bob,
    )
    assert get_content(hits)["hits"] == []
    assert page.is_error
    assert get_content(sessions)["sessions"] == []


def test_nobody_comes_in_without_a_token(live: Live, user: User) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": "sessionid=abc"}):
        refused = httpx2.post(f"{live.url}/mcp", json=body, headers=headers, timeout=60)
        assert refused.status_code == 401
        assert refused.headers["WWW-Authenticate"].startswith("Bearer")
    _, token = AuthToken.objects.create(user)
    asked = httpx2.get(f"{live.url}/mcp", headers={"Authorization": f"Bearer {token}"}, timeout=60)
    assert asked.status_code == 405
