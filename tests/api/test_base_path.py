"""Everything is below a path of the host, for programs too, and nothing is elsewhere."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from openai import OpenAI
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from tests.support.scripted_wire import Reply
from tests.support.served_below import PATH, Below, below
from tests.support.served_streams import join_text, read_events
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.program, pytest.mark.slow]

__all__ = ["below"]

MODEL = "scripted/test-model"


@pytest.fixture(scope="module")
def token(below: Below) -> str:
    return below.product.token


@pytest.fixture
def api(below: Below, token: str) -> Iterator[httpx2.Client]:
    headers = {"Authorization": f"Bearer {token}"}
    with httpx2.Client(base_url=f"{below.url}/api/v1", headers=headers, timeout=60) as client:
        yield client


def test_a_program_talks_over_rest_and_follows_the_addresses_that_it_gets(
    api: httpx2.Client, below: Below
) -> None:
    session = api.post("/sessions", json={}).json()["id"]
    below.scripted.script(Reply(text="Streamed below."))
    started = api.post(
        f"/sessions/{session}/messages",
        json={"content": "Hello"},
        headers={"Prefer": "respond-async"},
    )
    assert started.status_code == 202
    address = started.json()["events"]
    assert address.startswith(f"{below.url}/api/v1/sessions/{session}/events?after=")
    events = list(
        read_events(
            api, session, after=0, enough=lambda seen: seen[-1]["event"] == "turn.completed"
        )
    )
    assert join_text(events) == "Streamed below."
    api.post("/sessions", json={})
    following = api.get("/sessions", params={"limit": 1}).json()["next"]
    assert following.startswith(f"{below.url}/api/v1/sessions?")
    assert len(api.get(following).json()["results"]) == 1


def test_the_limits_of_a_token_hold_below_the_path(below: Below, api: httpx2.Client) -> None:
    made = api.post("/tokens", json={"scope": "chat", "name": "for chats"}).json()
    headers = {"Authorization": f"Bearer {made['token']}"}
    with httpx2.Client(
        base_url=f"{below.url}/api/v1", headers=headers, timeout=PATIENCE_SECONDS
    ) as chat_api:
        assert chat_api.get("/sessions").status_code == 200
        refusal = chat_api.get("/tokens")
    assert refusal.status_code == 403
    assert refusal.headers["Content-Type"] == "application/problem+json"


def test_bodies_are_refused_in_the_form_of_their_api(below: Below, api: httpx2.Client) -> None:
    too_large = b"x" * (3 * 1024 * 1024)
    refusal = api.post("/sessions", content=too_large, headers={"Content-Type": "text/plain"})
    assert (refusal.status_code, refusal.headers["Content-Type"]) == (
        413,
        "application/problem+json",
    )
    stranger = httpx2.post(
        f"{below.url}/v1/responses", content=b"x" * 70_000, timeout=PATIENCE_SECONDS
    )
    assert stranger.status_code == 401
    assert stranger.json()["error"]["type"] == "invalid_request_error"


def test_the_clients_of_openai_and_websockets_work(below: Below, token: str) -> None:
    below.scripted.script(Reply(text="For the client."), Reply(text="For the socket."))
    client = OpenAI(base_url=f"{below.url}/v1", api_key=token, max_retries=0, timeout=60)
    assert MODEL in [model.id for model in client.models.list()]
    answer = client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": "Hello?"}]
    )
    assert answer.choices[0].message.content == "For the client."

    address = f"{below.url.replace('http', 'ws')}/v1/responses"
    headers = {"Authorization": f"Bearer {token}"}
    with connect(address, additional_headers=headers, proxy=None) as socket:
        socket.send(json.dumps({"type": "response.create", "model": MODEL, "input": "Hello?"}))
        events: list[dict[str, Any]] = []
        while not events or events[-1]["type"] != "response.completed":
            events.append(json.loads(socket.recv(timeout=60)))
    assert events[-1]["response"]["output"][0]["content"][0]["text"] == "For the socket."
    with pytest.raises(InvalidStatus) as refusal:
        connect(address.replace(PATH, ""), additional_headers=headers, proxy=None)
    assert refusal.value.response.status_code == 403


def test_an_agent_reads_the_memory_over_mcp(below: Below, token: str) -> None:
    async def list_sessions() -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http_client:
            transport = streamable_http_client(f"{below.url}/mcp", http_client=http_client)
            async with Client(transport) as client:
                return await client.call_tool("list_sessions", {})

    assert not asyncio.run(list_sessions()).is_error


@pytest.mark.slow
def test_the_links_that_commands_print_are_below_the_path(below: Below) -> None:
    assert below.product.sign_in_link.startswith(f"{below.url}/login/once/")
    link = below.print_sign_in_link()
    assert link.startswith(f"{below.url}/login/once/")
    assert httpx2.get(link, timeout=PATIENCE_SECONDS).status_code == 200


def test_what_describes_the_server_names_the_path(below: Below, api: httpx2.Client) -> None:
    manifest = httpx2.get(f"{below.url}/manifest.webmanifest", timeout=PATIENCE_SECONDS).json()
    assert {manifest[name] for name in ("id", "start_url", "scope")} == {f"{PATH}/"}
    assert (
        httpx2.get(
            f"{below.host}{manifest['icons'][0]['src']}", timeout=PATIENCE_SECONDS
        ).status_code
        == 200
    )
    schema = api.get(f"{below.url}/api/schema/?format=json").json()
    assert schema["servers"] == [{"url": PATH}]
    assert "/api/v1/sessions" in schema["paths"]
    answer = httpx2.get(f"{below.url}/settings/", timeout=PATIENCE_SECONDS)
    assert answer.headers["Location"] == f"{PATH}/login/?next={PATH}/settings/"


def test_nothing_is_at_the_top_but_the_probes(below: Below) -> None:
    for path in ("/", "/login/", "/api/v1/sessions", "/static/chatcore/mark.svg", "/chatter/"):
        answer = httpx2.get(
            f"{below.host}{path}", headers={"X-Forwarded-Prefix": PATH}, timeout=PATIENCE_SECONDS
        )
        assert (answer.status_code, answer.headers["Content-Type"]) == (
            404,
            "text/plain; charset=utf-8",
        )
        assert f"only below {PATH}/" in answer.text
    for path in ("/livez", "/readyz", "/metrics"):
        for prefix in ("", PATH):
            assert (
                httpx2.get(f"{below.host}{prefix}{path}", timeout=PATIENCE_SECONDS).status_code
                == 200
            )
    bare = httpx2.get(f"{below.url}?q=1", timeout=PATIENCE_SECONDS)
    assert (bare.status_code, bare.headers["Location"]) == (301, f"{PATH}/?q=1")
    # A header cannot move the path.
    moved = httpx2.get(
        f"{below.url}/settings/", headers={"X-Forwarded-Prefix": "/evil"}, timeout=PATIENCE_SECONDS
    )
    assert moved.headers["Location"].startswith(f"{PATH}/login/")
