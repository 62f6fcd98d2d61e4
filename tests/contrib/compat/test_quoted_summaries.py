"""Programs have a conversation summarized that they quote; these requests belong to no session."""

from typing import Any

import httpx
import pytest
from openai import OpenAI

from chatcore.base.runner import turn_runner
from chatcore.models import Session
from tests.support.http_client import http
from tests.support.openai_client import MODEL, client, list_completions
from tests.support.scripted_model import ScriptedModel

__all__ = ["client"]

pytestmark = pytest.mark.django_db(transaction=True)
PATHS = ("/v1/chat/completions", "/v1/messages", "/v1/responses")
PI = "You are a context summarization assistant. Your task is to read a conversation between a user"
PI_QUOTE = (
    "[User]: Fix the parser.\n\n[Assistant tool calls]: bash(command='ls')\n\n[Tool result]: a"
)
# The system text and the message of each.
REQUESTS = [
    (PI, f"<conversation>\n{PI_QUOTE}\n</conversation>\n\nThe messages above are a conversation"),
    (PI, f"# Conversation\n{PI_QUOTE}\n\nThis is the PREFIX of a turn that was too large to keep."),
    (
        "You are a context summarization agent. You are given a conversation between a user and an"
        " agent.",
        f"Here is the conversation so far:\n\n<conversation>\n{PI_QUOTE}\n</conversation>",
    ),
    (
        "Summarize the provided coding session into a concise continuation note.",
        "Summarize this session.\n\nConversation:\n[User]: Fix the parser.\n\n[Bot]: Done.",
    ),
    (
        "You compact the history of an assistant, so that it fits into its window again.",
        '[{"role": "user", "content": "Fix it."}, {"role": "assistant", "content": "Done."}]',
    ),
    ("Write a summary of the chat below.", "**Human**: Fix it.\n**AI**: It is done."),
]


def post(
    client: OpenAI, path: str, question: str, system: str, *, name: str = "", **members: Any
) -> httpx.Response:
    messages: list[dict[str, str]] = [{"role": "user", "content": question}]
    body: dict[str, Any] = {"model": MODEL}
    if path == "/v1/messages":
        body |= {"messages": messages, "system": system, "max_tokens": 500}
    elif path == "/v1/responses":
        body |= {"input": [{"role": "developer", "content": system}, *messages]}
    else:
        body |= {"messages": [{"role": "system", "content": system}, *messages]}
    response = http.post(
        str(client.base_url).removesuffix("/v1/") + path,
        headers={"authorization": f"Bearer {client.api_key}"}
        | ({"x-session-id": name} if name else {}),
        json=body | members,
        timeout=60,
    )
    assert response.status_code == 200, response.text
    turn_runner.drain()
    return response


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("system", "question"), REQUESTS)
def test_a_summary_of_a_quoted_conversation_stays_out_of_the_session(
    client: OpenAI, scripted: ScriptedModel, path: str, system: str, question: str
) -> None:
    post(client, path, "Fix the parser.", "You write code.", name="work")
    post(client, path, question, system, name="work")
    session = Session.objects.get()
    assert (session.message_count, session.system_prompt) == (2, "You write code.")
    sent = list_completions(scripted)[-1].json["messages"]
    assert "You write code." not in str(sent)
    post(client, path, question, system, name="not-begun-yet")
    assert Session.objects.count() == 1


@pytest.mark.parametrize("path", PATHS)
def test_a_user_may_quote_a_conversation(client: OpenAI, path: str) -> None:
    system = "You write code. At the end give a short summary."
    post(client, path, f"Why did it stop?\n{PI_QUOTE}", system, name="work")
    assert Session.objects.get().message_count == 2


@pytest.mark.parametrize("path", PATHS)
def test_who_summarizes_texts_may_have_a_memory(client: OpenAI, path: str) -> None:
    post(client, path, "The report of the board.", "You write summaries of texts.", name="work")
    assert Session.objects.get().message_count == 2
