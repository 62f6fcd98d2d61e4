"""Fuzz the API with bodies that are nearly right: no 5xx, and each refusal in OpenAI's form."""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rest_framework.test import APIClient

from models_registry.models import AiModel
from tests.support.open_responses import MODEL, WEATHER, check_response, find_violations
from tests.support.scripted_model import ScriptedModel
from tests.support.standard_strategies import spoil

pytestmark = pytest.mark.django_db(transaction=True)
EXAMPLES = int(os.environ.get("CHATCORE_RESPONSES_EXAMPLES", "15"))
SEEDS: dict[str, list[Any]] = {
    "input": [
        "Hi",
        [{"type": "message", "role": "user", "content": "Hi"}],
        [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}],
        [{"role": "user", "content": "Hi"}, {"type": "compaction_trigger"}],
        [
            {"role": "user", "content": "Hi"},
            {"type": "function_call", "call_id": "c", "name": "weather", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "21"},
        ],
        [{"type": "item_reference", "id": f"msg_{'0' * 40}"}],
        [{"type": "reasoning", "summary": [], "encrypted_content": "x"}],
        [{"type": "compaction", "encrypted_content": "x"}],
    ],
    "tools": [[WEATHER], []],
    "tool_choice": ["auto", {"type": "function", "name": "weather"}],
    "text": [{"format": {"type": "json_schema", "name": "n", "schema": {}}}],
    "reasoning": [{"effort": "low", "summary": "auto"}],
    "metadata": [{"key": "value"}],
    "previous_response_id": [f"resp_{'0' * 32}"],
    "conversation": [f"conv_{'0' * 32}", {"id": "x"}],
    "context_management": [[{"type": "compaction", "compact_threshold": 10}]],
    "include": [["reasoning.encrypted_content"]],
    "instructions": ["Be brief."],
    "temperature": [0.5],
    "top_p": [0.5],
    "max_output_tokens": [16],
    "max_tool_calls": [1],
    "parallel_tool_calls": [False],
    "truncation": ["disabled"],
    "store": [False, True],
    "background": [True],
    "service_tier": ["auto"],
    "prompt_cache_key": ["key"],
    "top_logprobs": [0],
    "model": ["unknown"],
}


@st.composite
def build_bodies(draw: Any) -> dict[str, Any]:
    """Build a body of usual fields, of which one has a wrong value somewhere inside."""
    names = draw(st.lists(st.sampled_from(sorted(SEEDS)), unique=True, max_size=4))
    body = {"model": MODEL, "input": "Hi"}
    body |= {name: draw(st.sampled_from(SEEDS[name])) for name in names}
    if draw(st.booleans()):
        name = draw(st.sampled_from(sorted(SEEDS)))
        body[name] = spoil(draw, body.get(name))
    return body


@pytest.fixture(autouse=True)
def without_limit(settings: Any) -> None:
    # Once for all examples: each change in an example would lie upon the one before.
    settings.CHATCORE = {**settings.CHATCORE, "TURNS_PER_MINUTE": 1_000_000}


@pytest.mark.slow
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(body=build_bodies(), path=st.sampled_from(["", "/compact", "/input_tokens"]))
def test_no_body_is_an_error_of_ours(
    api: APIClient,
    model: AiModel,
    scripted: ScriptedModel,
    body: dict[str, Any],
    path: str,
) -> None:
    response = api.post(f"/v1/responses{path}", body, format="json")
    answer = response.json()
    assert response.status_code < 500, answer
    if response.status_code >= 400:
        assert answer["error"].keys() == {"message", "type", "param", "code"}
    elif not path:
        check_response(answer)
    elif path == "/compact":
        assert find_violations("CompactResource", answer) == []
