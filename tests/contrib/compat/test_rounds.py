"""Results of tools continue a turn, so a coding program may send them faster than questions."""

from typing import Any

import pytest
from openai import OpenAI

from tests.support.http_client import http
from tests.support.openai_client import MODEL, client
from tests.support.scripted_model import ScriptedModel

__all__ = ["client"]

pytestmark = pytest.mark.django_db(transaction=True)

CALL = {"name": "look", "arguments": "{}"}
QUESTION = {"role": "user", "content": "Look."}
BODIES: dict[str, tuple[str, dict[str, Any], list[dict[str, Any]]]] = {
    "chat_completions": (
        "chat/completions",
        {"messages": [QUESTION]},
        [
            {
                "role": "assistant",
                "tool_calls": [{"id": "a", "type": "function", "function": CALL}],
            },
            {"role": "tool", "tool_call_id": "a", "content": "Nothing."},
        ],
    ),
    "messages": (
        "messages",
        {"messages": [QUESTION], "max_tokens": 100},
        [
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {}}],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "Nothing."},
                    {"type": "text", "text": "<system-reminder>\nBe brief.\n</system-reminder>"},
                ],
            },
        ],
    ),
    "responses": (
        "responses",
        {"input": [QUESTION], "store": False},
        [
            {"type": "function_call", "call_id": "a", **CALL},
            {"type": "function_call_output", "call_id": "a", "output": "Nothing."},
        ],
    ),
}


@pytest.mark.parametrize("api", BODIES)
def test_ten_times_as_many_results_of_tools_as_questions_are_allowed(
    client: OpenAI, scripted: ScriptedModel, settings: Any, api: str
) -> None:
    settings.CHATCORE = settings.CHATCORE | {"TURNS_PER_MINUTE": 1}
    path, body, exchange = BODIES[api]
    name = "input" if "input" in body else "messages"

    def send(rounds: int) -> int:
        items = [*body[name], *exchange * rounds]
        headers = {"Authorization": f"Bearer {client.api_key}"}
        return http.post(
            f"{client.base_url}{path}", json={**body, "model": MODEL, name: items}, headers=headers
        ).status_code

    statuses = [send(rounds) for rounds in range(12)]
    assert statuses == [200] * 11 + [429]
    assert send(0) == 429
