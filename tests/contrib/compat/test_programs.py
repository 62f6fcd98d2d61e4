"""Conversations of coding programs are kept by the names that the programs send by themselves."""

import json
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from openai import OpenAI

from chatcore.accounts.tokens import create_token
from chatcore.base.runner import turn_runner
from chatcore.models import Message, Session, Turn
from tests.conftest import Live
from tests.support.http_client import http
from tests.support.openai_client import MODEL, client, list_completions
from tests.support.recorded_programs import (
    load_recording,
    send,
    send_recording,
    verified_sessions,
    wide_window,
)
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

__all__ = ["client", "verified_sessions", "wide_window"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("wide_window", "verified_sessions"),
]
CLAUDE = "claude-code-2.1.197"
CODEX = "codex-0.171.0"
CLAUDE_SESSION = "3f6d1c52-0000-4000-8000-00000000000a"
THREAD = "01a223cd-5f7b-7191-a1a7-28fac274d620"
HELLO = [{"role": "user", "content": "Hello?"}]


def post(client: OpenAI, path: str, headers: dict[str, str], **members: Any) -> httpx.Response:
    field = "input" if path == "/v1/responses" else "messages"
    body = {"model": MODEL, "max_tokens": 500, field: HELLO} | members
    if path == "/v1/responses":
        del body["max_tokens"]
    response = http.post(
        str(client.base_url).removesuffix("/v1/") + path,
        headers=headers | {"authorization": f"Bearer {client.api_key}"},
        json=body,
        timeout=60,
    )
    assert response.status_code == 200, response.text
    turn_runner.drain()
    return response


def list_names() -> dict[str, str | None]:
    """Return the names of all sessions, each with that of its parent."""
    rows = Session.objects.values_list("external_id", "parent__external_id")
    return {str(name): parent for name, parent in rows}


def test_claude_code_names_its_conversation(client: OpenAI) -> None:
    send(client, f"{CLAUDE}-turn")
    assert list_names() == {CLAUDE_SESSION: None}


def test_a_subagent_of_claude_code_is_below_it_and_does_not_touch_what_waits(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(tool_calls=[make_tool_call("Agent", {"prompt": "Count."})]))
    send(client, f"{CLAUDE}-turn")
    send(client, f"{CLAUDE}-subagent")
    [child_name] = list_names().keys() - {CLAUDE_SESSION}
    assert list_names()[child_name] == CLAUDE_SESSION
    assert "K7Q" not in str(list_completions(scripted)[-1].json["messages"])
    assert Turn.objects.filter(status=Turn.Status.WAITING).count() == 1


@pytest.mark.parametrize("request_name", ["summary", "web-search"])
def test_a_side_request_of_claude_code_is_answered_and_leaves_the_conversation(
    client: OpenAI, scripted: ScriptedModel, request_name: str
) -> None:
    scripted.script(Reply(tool_calls=[make_tool_call("Bash", {"command": "ls"})]))
    send(client, f"{CLAUDE}-turn")
    stored = list(Message.objects.order_by("pk").values_list("pk", "branch"))
    scripted.script(Reply(text="Yes."))
    answer = send(client, f"{CLAUDE}-{request_name}")
    assert "Yes." in answer.text
    assert list(Message.objects.order_by("pk").values_list("pk", "branch")) == stored
    assert Turn.objects.get().status == Turn.Status.WAITING


def test_a_side_request_alone_begins_no_conversation(client: OpenAI) -> None:
    send(client, f"{CLAUDE}-web-search")
    assert not Session.objects.exists()


@pytest.mark.parametrize(
    "user_id",
    [
        f"user_{'0' * 64}_account__session_{CLAUDE_SESSION}",
        json.dumps({"device_id": "0", "account_uuid": "", "session_id": CLAUDE_SESSION}),
    ],
)
def test_older_versions_of_claude_code_name_it_in_the_metadata(
    client: OpenAI, user_id: str
) -> None:
    tool = {"name": "Bash", "input_schema": {"type": "object"}}
    post(client, "/v1/messages", {}, metadata={"user_id": user_id}, tools=[tool])
    assert list_names() == {CLAUDE_SESSION: None}


def test_codex_names_its_thread_although_it_asks_to_store_nothing(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    recording = load_recording(f"{CODEX}-unknown-model")
    assert recording["body"]["store"] is False
    scripted.script(Reply(text="Hi."))
    send(client, f"{CODEX}-unknown-model")
    said = {"type": "message", "role": "assistant"}
    said["content"] = [{"type": "output_text", "text": "Hi."}]  # type: ignore[assignment]
    question = {"type": "message", "role": "user", "content": "And now?"}
    send(client, f"{CODEX}-unknown-model", input=[*recording["body"]["input"], said, question])
    assert list_names() == {THREAD: None}
    assert Session.objects.get().message_count == 5
    assert not Message.objects.exclude(branch=None).exists()


def test_a_subagent_of_codex_that_knows_its_parents_words_has_its_own_thread(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    recording = load_recording(f"{CODEX}-subagent")
    parent_name = recording["headers"]["x-codex-parent-thread-id"]
    parent_headers = {"session-id": parent_name, "thread-id": parent_name, "originator": "codex"}
    own_items = [item for item in recording["body"]["input"] if item.get("role") == "user"]
    scripted.script(Reply(tool_calls=[make_tool_call("spawn_agent", id="c1")]))
    tool = {"type": "function", "name": "spawn_agent", "parameters": {"type": "object"}}
    post(client, "/v1/responses", parent_headers, input=own_items, store=False, tools=[tool])
    send(client, f"{CODEX}-subagent")
    child_name = recording["headers"]["thread-id"]
    assert list_names() == {parent_name: None, child_name: parent_name}
    assert Session.objects.get(external_id=parent_name).message_count == len(own_items) + 1


def test_codex_names_its_thread_in_each_request_over_a_websocket(client: OpenAI) -> None:
    metadata = {"thread_id": "t1", "session_id": "s1", "x-codex-parent-thread-id": "s1"}
    with client.responses.connect(extra_headers={"originator": "codex_exec"}) as connection:
        connection.send(
            {
                "type": "response.create",
                "model": MODEL,
                "input": "Hello?",
                "store": False,
                "client_metadata": metadata,
            }  # type: ignore[arg-type]
        )
        for event in connection:
            if event.type == "response.completed":
                break
    assert list(list_names()) == ["t1"]


def test_a_summary_that_codex_writes_for_itself_is_no_part_of_its_thread(client: OpenAI) -> None:
    turn = {"x-codex-turn-metadata": json.dumps({"request_kind": "compaction"})}
    names = {"thread-id": "t1", "session-id": "t1"}
    post(client, "/v1/responses", names | turn, store=False)
    prompt = "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a summary."
    post(client, "/v1/responses", names | {"originator": "codex"}, store=False, input=prompt)
    assert not Session.objects.exists()


@pytest.mark.parametrize("name", [f"{CLAUDE}-turn", f"{CODEX}-unknown-model"])
def test_the_name_that_a_user_gives_wins(client: OpenAI, name: str) -> None:
    recording = load_recording(name)
    recording["headers"]["X-Session-Id"] = "mine"
    assert send_recording(client, recording, model=MODEL).status_code == 200
    turn_runner.drain()
    assert list_names() == {"mine": None}


@pytest.mark.parametrize(
    ("path", "headers", "members"),
    [
        ("/v1/chat/completions", {}, {"prompt_cache_key": "app"}),
        ("/v1/chat/completions", {"session-id": "s", "thread-id": "t"}, {}),
        ("/v1/messages", {}, {"metadata": {"user_id": "user_7"}}),
        ("/v1/messages", {}, {"metadata": {"user_id": "{"}}),
        ("/v1/responses", {"session-id": "s"}, {"store": False, "prompt_cache_key": "app"}),
        ("/v1/messages", {"X-Claude-Code-Session-Id": "n" * 256}, {"tools": []}),
    ],
)
def test_what_others_send_for_other_ends_names_nothing(
    client: OpenAI, path: str, headers: dict[str, str], members: dict[str, Any]
) -> None:
    post(client, path, headers, **members)
    assert not Session.objects.exists()


@pytest.mark.parametrize("name", [f"{CLAUDE}-turn", f"{CODEX}-unknown-model"])
@pytest.mark.parametrize("switch", ["token", "server"])
def test_nothing_is_kept_where_a_switch_is_off(
    live: Live,
    user: User,
    client: OpenAI,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    switch: str,
) -> None:
    if switch == "server":
        monkeypatch.setitem(settings.CHATCORE, "KEEP_PROGRAM_CONVERSATIONS", False)
    else:
        _, client.api_key = create_token(user, name="", expiry=None, keeps_conversations=False)
    response = send(client, name)
    assert "x-session-id" not in response.headers
    assert not Session.objects.exists()
