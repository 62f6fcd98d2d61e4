"""Tools of MCP servers: listed, chosen by a session, allowed by a person, and called."""

from typing import Any

import pytest
from django.conf import settings
from openai import OpenAI
from rest_framework.test import APIClient

from chatcore.models import McpServer, Message, Session, SessionEvent, ToolApproval, Turn
from chatcore.tools.mcp import connection
from chatcore.tools.mcp.refresh import refresh_server
from models_registry.models import AiModel
from tests.support.mcp_server import ToolServer, running, tool_server
from tests.support.openai_client import client as openai_client
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

__all__ = ["openai_client", "running", "tool_server"]

READ = "mcp__files__read"
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def chosen(session: Session, tool_server: ToolServer) -> Session:
    """A session that has chosen the tools of its owner's server."""
    server = McpServer(owner=session.owner, name="files", url=tool_server.url)
    server.headers = {"Authorization": "Bearer secret-word"}
    server.save()
    assert refresh_server(server), server.error
    session.tools = [READ, "mcp__files__dump", "mcp__files__fail"]
    session.save()
    return session


def test_a_list_of_tools_is_bounded_before_it_is_read(
    session: Session, tool_server: ToolServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = McpServer.objects.create(owner=session.owner, name="files", url=tool_server.url)
    monkeypatch.setattr(connection, "MAX_LISTED_TOOLS", 2)
    assert refresh_server(server), server.error
    assert len(server.tools) == 2
    monkeypatch.setattr(connection, "MAX_BODY_VALUES", 20)
    assert not refresh_server(server)
    assert server.error == "The server answered with too many values."


def ask(api: APIClient, session: Session, scripted: ScriptedModel, *calls: Any) -> Any:
    scripted.script(Reply(tool_calls=calls or (reading("a.txt"),)))
    return api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "Read it."})


def reading(path: str, *, id: str = "call_1") -> Any:
    return make_tool_call(READ, {"path": path}, id=id)


def decide(api: APIClient, session: Session, *decisions: tuple[str, str]) -> Any:
    body = [{"tool_call_id": id, "decision": decision} for id, decision in decisions]
    return api.post(f"/api/v1/sessions/{session.pk}/approvals", {"approvals": body})


def results_of(session: Session) -> list[Message]:
    return list(session.messages.filter(role=Message.Role.TOOL).order_by("seq"))


def test_a_call_waits_until_a_person_allows_it_and_is_then_made(
    api: APIClient, chosen: Session, scripted: ScriptedModel, tool_server: ToolServer
) -> None:
    asked = ask(api, chosen, scripted).json()
    assert asked["status"] == "waiting"
    assert asked["requires_action"] == []
    assert asked["approvals"] == [
        {
            "id": "call_1",
            "name": READ,
            "arguments": '{"path": "a.txt"}',
            "server": "files",
            "tool": "read",
        }
    ]
    assert tool_server.calls == []  # nothing was called before

    scripted.script(Reply(text="It says hello."))
    answered = decide(api, chosen, ("call_1", "once")).json()
    assert answered["status"] == "completed", answered
    assert answered["tool_messages"][0]["content"] == "The text of a.txt."
    assert answered["assistant_message"]["content"] == "It says hello."
    assert tool_server.calls == [("read", "a.txt")]
    assert {headers.get("authorization") for headers in tool_server.headers} == {
        "Bearer secret-word"
    }
    sent_tools = scripted.requests[-1].json["tools"]
    assert [tool["function"]["name"] for tool in sent_tools] == sorted(chosen.tools or ())


def test_always_holds_for_the_tool_in_this_session_and_once_does_not(
    api: APIClient, chosen: Session, scripted: ScriptedModel, tool_server: ToolServer
) -> None:
    ask(api, chosen, scripted)
    decide(api, chosen, ("call_1", "once"))
    assert ask(api, chosen, scripted).json()["status"] == "waiting"
    decide(api, chosen, ("call_1", "always"))
    assert ask(api, chosen, scripted, reading("b.txt")).json()["status"] == "completed"
    assert tool_server.calls[-1] == ("read", "b.txt")
    other_call = make_tool_call("mcp__files__dump", {"size": 3})
    assert ask(api, chosen, scripted, other_call).json()["status"] == "waiting"
    decisions = api.get(f"/api/v1/sessions/{chosen.pk}/approvals").json()
    assert [row["tool"] for row in decisions["decisions"]] == ["read"]
    assert [row["tool"] for row in decisions["waiting"]] == ["dump"]

    decide(api, chosen, ("call_1", "deny"))
    api.delete(f"/api/v1/sessions/{chosen.pk}/approvals")
    assert ask(api, chosen, scripted).json()["status"] == "waiting"


def test_never_refuses_this_call_and_the_next_without_asking(
    api: APIClient, chosen: Session, scripted: ScriptedModel, tool_server: ToolServer
) -> None:
    ask(api, chosen, scripted)
    assert decide(api, chosen, ("call_1", "never")).json()["status"] == "completed"
    assert ask(api, chosen, scripted).json()["status"] == "completed"
    assert [row.content for row in results_of(chosen)] == [
        "The person did not allow this call."
    ] * 2
    assert all(row.is_error for row in results_of(chosen))
    assert tool_server.calls == []


def test_a_turn_goes_on_when_every_call_is_decided_and_a_repeat_changes_nothing(
    api: APIClient, chosen: Session, scripted: ScriptedModel, tool_server: ToolServer
) -> None:
    ask(api, chosen, scripted, reading("a", id="one"), reading("b", id="two"))
    assert decide(api, chosen, ("one", "once")).json()["status"] == "waiting"
    assert decide(api, chosen, ("one", "once")).json()["status"] == "waiting"
    assert decide(api, chosen, ("one", "deny")).status_code == 400
    assert decide(api, chosen, ("three", "once")).status_code == 400
    turn = decide(api, chosen, ("two", "deny")).json()
    assert turn["status"] == "completed"
    assert decide(api, chosen, ("two", "deny")).json()["turn"] == turn["turn"]
    assert tool_server.calls == [("read", "a")]
    assert decide(api, chosen, ("four", "once")).status_code == 409


def test_the_log_says_what_is_asked_and_what_was_decided(
    api: APIClient, chosen: Session, scripted: ScriptedModel
) -> None:
    ask(api, chosen, scripted)
    decide(api, chosen, ("call_1", "always"))
    events = SessionEvent.objects.filter(session=chosen).order_by("seq")
    waits = [event.data for event in events if event.name == "turn.waiting"]
    assert waits[0]["tool_calls"] == []
    assert [request["tool"] for request in waits[0]["approvals"]] == ["read"]
    decided = [event.data for event in events if event.name == "approval.decided"]
    assert [(row["id"], row["decision"]) for row in decided] == [("call_1", "always")]


def test_a_server_that_needs_no_approval_is_called_at_once(
    api: APIClient, chosen: Session, scripted: ScriptedModel, tool_server: ToolServer
) -> None:
    McpServer.objects.update(require_approval=McpServer.Approval.NEVER)
    assert ask(api, chosen, scripted).json()["status"] == "completed"
    assert tool_server.calls == [("read", "a.txt")]


def test_a_long_output_is_cut_and_kept_and_a_failure_is_an_error_in_words(
    api: APIClient, chosen: Session, scripted: ScriptedModel
) -> None:
    McpServer.objects.update(require_approval=McpServer.Approval.NEVER)
    AiModel.objects.update(context_window_size=64_000)  # nothing is to be compacted
    ask(api, chosen, scripted, make_tool_call("mcp__files__dump", {"size": 50_000}))
    ask(api, chosen, scripted, make_tool_call("mcp__files__fail", {"reason": "no disk"}))
    ask(api, chosen, scripted, make_tool_call(READ, "no JSON"))
    dumped, failed, malformed = results_of(chosen)
    assert len(dumped.content) < 31_000
    assert dumped.original_chars == 50_000
    assert "content truncated" in dumped.content
    assert failed.is_error
    assert "no disk" in failed.content
    assert malformed.content == "The arguments are not valid JSON. Send one JSON object."


def test_the_guard_refuses_a_private_address(
    api: APIClient, chosen: Session, scripted: ScriptedModel, tool_server: ToolServer
) -> None:
    settings.CHATCORE["FETCH_ALLOW_HOSTS"] = []
    McpServer.objects.update(require_approval=McpServer.Approval.NEVER)
    ask(api, chosen, scripted)
    assert "Port" in results_of(chosen)[0].content
    McpServer.objects.update(url="http://127.0.0.1/mcp")
    ask(api, chosen, scripted)
    assert "not on the public internet" in results_of(chosen)[1].content
    assert tool_server.calls == []


def test_a_tool_that_was_not_chosen_is_not_called(
    api: APIClient, chosen: Session, scripted: ScriptedModel, tool_server: ToolServer
) -> None:
    chosen.tools = ["calculate"]
    chosen.save()
    ask(api, chosen, scripted)
    assert results_of(chosen)[0].content.startswith(f"There is no tool called {READ!r}.")
    assert tool_server.calls == []


@pytest.mark.parametrize("field", ["url", "description", "parameters"])
def test_another_address_description_or_schema_is_asked_about_again(
    api: APIClient, chosen: Session, scripted: ScriptedModel, tool_server: ToolServer, field: str
) -> None:
    ask(api, chosen, scripted)
    assert decide(api, chosen, ("call_1", "always")).json()["status"] == "completed"
    change_tool(field)
    assert ask(api, chosen, scripted).json()["status"] == "waiting"
    assert api.get(f"/api/v1/sessions/{chosen.pk}/approvals").json()["decisions"] == []
    assert len(tool_server.calls) == 1
    assert decide(api, chosen, ("call_1", "never")).json()["status"] == "completed"
    change_tool("description", value="Reads harmlessly.")
    assert ask(api, chosen, scripted).json()["status"] == "completed"
    assert len(tool_server.calls) == 1


def test_a_tool_that_changes_between_the_word_and_the_call_is_not_called(
    api: APIClient, chosen: Session, scripted: ScriptedModel, tool_server: ToolServer
) -> None:
    ask(api, chosen, scripted, reading("a", id="one"), reading("b", id="two"))
    decide(api, chosen, ("one", "once"))
    change_tool("description")
    assert decide(api, chosen, ("two", "once")).json()["status"] == "completed"
    assert tool_server.calls == [("read", "b")]


def change_tool(field: str, *, value: Any = None) -> None:
    """Change the tool `read`, or its server's address, as a refresh or an edit would."""
    server = McpServer.objects.get()
    if field == "url":
        server.url += "?changed"
    else:
        values = {"description": "Sends a file away.", "parameters": {"type": "object"}}
        [tool] = [tool for tool in server.tools if tool["name"] == "read"]
        tool[field] = value or values[field]
    server.save()


def test_a_turn_that_waits_survives_its_process_and_a_tool_that_goes_away(
    api: APIClient, chosen: Session, scripted: ScriptedModel
) -> None:
    ask(api, chosen, scripted)
    assert Turn.objects.get().status == Turn.Status.WAITING  # no lease, no task: only rows
    McpServer.objects.all().delete()
    assert decide(api, chosen, ("call_1", "once")).json()["status"] == "completed"
    assert results_of(chosen)[0].content.startswith("There is no tool called")
    assert not ToolApproval.objects.exists()


def test_a_waiting_turn_can_be_cancelled(
    api: APIClient, chosen: Session, scripted: ScriptedModel, tool_server: ToolServer
) -> None:
    ask(api, chosen, scripted)
    assert api.post(f"/api/v1/sessions/{chosen.pk}/cancel").json() == {"cancelled": True}
    assert decide(api, chosen, ("call_1", "once")).status_code == 409
    assert ask(api, chosen, scripted, reading("b", id="next")).json()["status"] == "waiting"
    assert tool_server.calls == []


@pytest.mark.parametrize("stream", [False, True])
def test_chat_completions_say_that_a_person_is_asked_and_go_on(
    openai_client: OpenAI,
    api: APIClient,
    chosen: Session,
    scripted: ScriptedModel,
    tool_server: ToolServer,
    stream: bool,
) -> None:
    def complete(messages: list[Any]) -> tuple[str, str]:
        body: Any = {"model": "scripted/test-model", "messages": messages}
        headers = {"X-Session-Id": str(chosen.pk)}
        if not stream:
            whole = openai_client.chat.completions.create(**body, extra_headers=headers)
            [choice] = whole.choices
            assert choice.message.tool_calls is None
            return choice.message.content or "", choice.finish_reason
        chunks = list(
            openai_client.chat.completions.create(**body, extra_headers=headers, stream=True)
        )
        text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
        return text, str(chunks[-1].choices[0].finish_reason)

    messages: list[Any] = [{"role": "user", "content": "Read it."}]
    scripted.script(Reply(text="Let me look.", tool_calls=[reading("a.txt")]))
    text, reason = complete(messages)
    assert reason == "stop"
    assert text.startswith("Let me look.\n\n[This answer waits for your word. ")
    assert 'read of files with {"path": "a.txt"}' in text
    scripted.script(Reply(text="It says hello."))
    assert decide(api, chosen, ("call_1", "once")).json()["status"] == "completed"
    messages += [{"role": "assistant", "content": text}, {"role": "user", "content": "Thanks."}]
    scripted.script(Reply(text="Welcome."))
    assert complete(messages) == ("Welcome.", "stop")
    current = chosen.messages.exclude_superseded().order_by("seq")
    assert [row.role for row in current] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
        "assistant",
    ]
