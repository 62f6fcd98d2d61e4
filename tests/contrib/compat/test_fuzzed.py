"""Fuzz chat completions and Messages with bodies that are nearly right: no 5xx, errors in form."""

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rest_framework.test import APIClient

from models_registry.models import AiModel
from tests.support.openai_client import MODEL
from tests.support.scripted_model import ScriptedModel
from tests.support.standard_strategies import spoil

pytestmark = pytest.mark.django_db(transaction=True)
EXAMPLES = int(os.environ.get("CHATCORE_COMPATIBLE_EXAMPLES", "15"))
IMAGE = "data:image/png;base64,iVBORw0KGgo="
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
COMPLETIONS: dict[str, list[Any]] = {
    "messages": [
        [{"role": "user", "content": "Hi"}],
        [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
        [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look."},
                    {"type": "image_url", "image_url": {"url": IMAGE}},
                    {"type": "file", "file": {"filename": "a.txt", "file_data": "data:,a"}},
                ],
            }
        ],
        [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "21"},
        ],
    ],
    "tools": [[TOOL], [{"type": "custom", "custom": {"name": "patch"}}], [{"type": "unknown"}]],
    "tool_choice": ["auto", "required", {"type": "function", "function": {"name": "look"}}],
    "response_format": [{"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}],
    "metadata": [{"session_id": "mine"}],
    "stream_options": [{"include_usage": True}],
    "max_tokens": [16],
    "max_completion_tokens": [16],
    "temperature": [0.5],
    "stop": ["x", ["x", "y"]],
    "parallel_tool_calls": [False],
    "reasoning_effort": ["low"],
    "user": ["me"],
    "n": [1],
    "seed": [1],
    "logit_bias": [{"1": 1}],
    "model": ["unknown"],
}
BLOCK = {"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}
MESSAGES: dict[str, list[Any]] = {
    "messages": [
        [{"role": "user", "content": "Hi"}],
        [{"role": "user", "content": [BLOCK]}],
        [
            {
                "role": "user",
                "content": [
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"},
                    },
                    {"type": "document", "source": {"type": "text", "data": "a"}},
                ],
            }
        ],
        [
            {"role": "user", "content": "Hi"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": "chatcore"},
                    {"type": "tool_use", "id": "c1", "name": "look", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": [BLOCK]},
                    {"type": "unknown"},
                ],
            },
        ],
        [
            {"role": "user", "content": [{"type": "compaction", "content": "x"}]},
            {"role": "user", "content": "Hi"},
        ],
    ],
    "system": ["Be brief.", [BLOCK]],
    "tools": [
        [{"name": "look", "input_schema": {"type": "object"}}],
        [{"type": "web_search_20250305", "name": "web_search"}],
        [{"type": "bash_20250124", "name": "bash"}],
    ],
    "tool_choice": [{"type": "auto"}, {"type": "tool", "name": "look"}],
    "thinking": [{"type": "enabled", "budget_tokens": 1024}, {"type": "adaptive"}],
    "output_config": [{"effort": "low"}],
    "metadata": [{"user_id": "session:mine"}, {"session_id": "mine"}],
    "context_management": [{"edits": [{"type": "clear_tool_uses_20250919"}]}],
    "thread": [{"type": "create"}, {"type": "continue", "previous_message_id": "msg_1"}],
    "compaction": [{"type": "summarize"}],
    "stop_sequences": [["x"]],
    "temperature": [0.5],
    "top_k": [1],
    "max_tokens": [16],
    "service_tier": ["auto"],
    "model": ["unknown"],
}
APIS = {"/v1/chat/completions": COMPLETIONS, "/v1/messages": MESSAGES}


@pytest.fixture(autouse=True)
def without_limit(settings: Any) -> None:
    settings.CHATCORE = {**settings.CHATCORE, "TURNS_PER_MINUTE": 1_000_000}


@st.composite
def build_bodies(draw: Any, path: str) -> dict[str, Any]:
    """Build a body of usual fields, of which one has a wrong value somewhere inside."""
    seeds = APIS[path]
    names = draw(st.lists(st.sampled_from(sorted(seeds)), unique=True, max_size=4))
    body = {"model": MODEL, "max_tokens": 100, "messages": draw(st.sampled_from(seeds["messages"]))}
    body |= {name: draw(st.sampled_from(seeds[name])) for name in names}
    if draw(st.booleans()):
        name = draw(st.sampled_from(sorted(seeds)))
        body[name] = spoil(draw, body.get(name))
    return body


@pytest.mark.parametrize("path", APIS)
def test_no_body_is_an_error_of_ours(
    api: APIClient, model: AiModel, scripted: ScriptedModel, path: str
) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    @given(body=build_bodies(path))
    def send(body: dict[str, Any]) -> None:
        response = api.post(path, body, format="json")
        answer = response.json()
        assert response.status_code < 500, answer
        if response.status_code >= 400:
            names = {"type", "message"}
            names |= set() if path == "/v1/messages" else {"param", "code"}
            assert answer["error"].keys() - {"details"} == names  # a code of a thread

    send()
