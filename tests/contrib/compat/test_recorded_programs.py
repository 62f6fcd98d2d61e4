"""Conversations of coding programs without names, with the requests as the programs sent them."""

from itertools import groupby
from typing import Any

import pytest
from openai import OpenAI

from chatcore.models import Session
from chatcore.providers.base import ToolCall
from tests.support.openai_client import client, list_completions
from tests.support.recorded_programs import (
    load_recording,
    send,
    verified_sessions,
    wide_window,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

__all__ = ["client", "verified_sessions", "wide_window"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("wide_window", "verified_sessions"),
]
PROGRAMS = ("cline-3.0.65", "continue-1.5.47", "opencode-1.18.33", "pi-1.6.0", "qwen-code-0.24.4")
FACT = "The code is K7Q."


def read_calls(messages: list[Any]) -> list[ToolCall]:
    calls = next(message["tool_calls"] for message in messages if message.get("tool_calls"))
    return [ToolCall(id=call["id"], **call["function"]) for call in calls]


def load_newest_text() -> str:
    messages = Session.objects.get().messages.exclude_superseded()
    return str(messages.order_by("-seq").values_list("content", flat=True)[0])


def send_rounds(client: OpenAI, scripted: ScriptedModel, name: str) -> list[Any]:
    """Send the first question and the result of its call; return the messages of the second."""
    messages: list[Any] = load_recording(f"{name}-round")["body"]["messages"]
    scripted.script(Reply(tool_calls=read_calls(messages)), Reply(text="Done."))
    send(client, f"{name}-first")
    send(client, f"{name}-round")
    return messages


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_conversation_is_one_session_with_the_users_first_words(
    client: OpenAI, scripted: ScriptedModel, name: str
) -> None:
    messages = send_rounds(client, scripted, name)
    said = {"role": "assistant", "content": "Done."}
    question = {"role": "user", "content": "And now?"}
    send(client, f"{name}-round", messages=[*messages, said, question])
    assert Session.objects.get().title.lstrip('"').startswith(FACT)
    sent = list_completions(scripted)[-1].json
    recorded = load_recording(f"{name}-round")["body"]
    names = [tool["function"]["name"] for tool in recorded["tools"]]
    assert [tool["function"]["name"] for tool in sent["tools"]] == names
    # Cline sends two messages of the user, which are one for the provider.
    roles = [role for role, _ in groupby(each["role"] for each in (*messages, said, question))]
    assert [message["role"] for message in sent["messages"]] == roles
    assert FACT in str(sent["messages"])


@pytest.mark.parametrize("name", ["continue-1.5.47", "qwen-code-0.24.4"])
def test_a_summary_that_a_program_asks_for_is_in_no_session(
    client: OpenAI, scripted: ScriptedModel, name: str
) -> None:
    messages = send_rounds(client, scripted, name)
    said = {"role": "assistant", "content": "Done."}
    ask = load_recording(f"{name}-summary")["body"]["messages"][-1]
    scripted.script(Reply(text="All is listed."))
    send(client, f"{name}-summary", messages=[*messages, said, ask])
    assert "Done." in load_newest_text()
    question = {"role": "user", "content": "And now?"}
    send(client, f"{name}-round", messages=[*messages, said, question])
    assert "summar" not in str(list_completions(scripted)[-1].json["messages"][-2:])
    assert Session.objects.get().title.startswith(FACT)


SIDE_PROMPTS = [
    "Managed memory directory: `/home/ann/.qwen`\n\nScan the recent conversation history in"
    " your context and update durable managed memory.",
    "[SUGGESTION MODE: Suggest what the user might naturally type next.]",
    "The user stepped away and is coming back. Recap in under 40 words, 1-2 plain sentences.",
    "Analyze *only* the content and structure of your immediately preceding response.",
]


@pytest.mark.parametrize("prompt", SIDE_PROMPTS)
def test_what_qwen_code_asks_beside_its_conversation_is_in_no_session(
    client: OpenAI, scripted: ScriptedModel, prompt: str
) -> None:
    name = "qwen-code-0.24.4"
    messages = send_rounds(client, scripted, name)
    history = [*messages, {"role": "assistant", "content": "Done."}]
    send(client, f"{name}-round", messages=[*history, {"role": "user", "content": prompt}])
    scripted.script(Reply(text="On it."))
    send(client, f"{name}-round", messages=[*history, {"role": "user", "content": "And now?"}])
    stored_messages = Session.objects.get().messages.order_by("seq")
    texts = [message.content for message in stored_messages]
    assert texts[-3:] == ["Done.", "And now?", "On it."]


def test_a_title_of_opencode_begins_no_session(client: OpenAI) -> None:
    send(client, "opencode-1.18.33-title")
    assert not Session.objects.exists()


@pytest.mark.parametrize("name", ["first", "commit"])
def test_aider_is_answered_and_its_examples_begin_no_session(client: OpenAI, name: str) -> None:
    send(client, f"aider-0.86.2-{name}")
    assert not Session.objects.exists()


def test_llm_goes_on_in_one_session(client: OpenAI, scripted: ScriptedModel) -> None:
    second = load_recording("llm-0.36-second")["body"]["messages"]
    scripted.script(Reply(text=second[1]["content"]))
    send(client, "llm-0.36-first")
    send(client, "llm-0.36-second")
    session = Session.objects.get()
    assert session.title.startswith(FACT)
    assert session.message_count == 4
