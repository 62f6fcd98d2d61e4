"""Servers that are known by no name, and say in their refusal what they need."""

from typing import Any

import pytest

from chatcore.providers.base import ChatMessage, Request
from tests.support.provider_calls import (
    LOOK,
    build_connection,
    catch_error,
    collect_parts,
    join_reasoning,
    join_text,
    make_request,
)
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.strict_servers import (
    UNKNOWN_SERVERS,
    Rule,
    refuse_empty_content,
    refuse_parallel_calls,
    refuse_unknown_keys,
    require_all_reasoning,
    require_reasoning_of_calls,
    require_signatures,
)


def build_history(provider_data: dict[str, Any] | None = None) -> Request:
    """Two rounds of tools and a new question."""
    calls = (make_tool_call("look", id="a"), make_tool_call("look", id="b"))
    return make_request(
        ChatMessage(role="user", content="Look."),
        ChatMessage(role="assistant", tool_calls=calls, provider_data=provider_data or {}),
        ChatMessage(role="tool", content="A cat.", tool_call_id="a"),
        ChatMessage(role="tool", content="A dog.", tool_call_id="b"),
        ChatMessage(role="assistant", content="A cat and a dog."),
        ChatMessage(role="user", content="Thanks."),
        tools=[LOOK],
    )


REASONING = {
    "openai": {
        "model": "test-model",
        "reasoning": "Hm.",
        "extras": {"a": {"google": {"thought_signature": "signed"}}},
    }
}


@pytest.mark.parametrize(
    ("rule", "provider_data"),
    [
        (require_all_reasoning, {}),
        (require_reasoning_of_calls, {}),
        (require_signatures, {}),
        (refuse_unknown_keys, REASONING),
        (refuse_empty_content, {}),
        (refuse_parallel_calls, {}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_a_refusal_that_says_what_is_wrong_is_learned_from_once(
    rule: Rule, provider_data: dict[str, Any], scripted: ScriptedModel
) -> None:
    def answer(body: dict[str, Any]) -> Reply:
        refusal = next(rule(body), None)
        return Reply(status=400, text=refusal) if refusal else Reply(text="You are welcome.")

    scripted.default = answer
    connection = build_connection(scripted, "openai")
    for _ in range(2):
        parts = await collect_parts(connection, build_history(provider_data))
        assert join_text(parts) == "You are welcome."
    assert len(scripted.requests) == 3


async def test_a_refusal_that_says_nothing_is_no_reason_to_ask_again(
    scripted: ScriptedModel,
) -> None:
    scripted.default = Reply(status=400, text="Something is wrong.")
    error = await catch_error(build_connection(scripted, "openai"), build_history())
    assert "Something is wrong." in error.detail
    assert len(scripted.requests) == 1


async def test_what_did_not_help_is_not_remembered(scripted: ScriptedModel) -> None:
    scripted.default = Reply(status=400, text="reasoning_content is missing")
    for _ in range(2):
        await catch_error(build_connection(scripted, "openai"), build_history())
    sent = ["reasoning_content" in received.json["messages"][1] for received in scripted.requests]
    assert sent == [False, True] * 2


@pytest.mark.parametrize(
    "refusal",
    [
        "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to …",
        "messages.1.content.0: `thinking` or `redacted_thinking` blocks … cannot be modified.",
    ],
)
async def test_refused_thoughts_are_left_out(refusal: str, scripted: ScriptedModel) -> None:
    def answer(body: dict[str, Any]) -> Reply:
        has_thoughts = "signed" in str(body["messages"])
        return Reply(status=400, text=refusal) if has_thoughts else Reply(text="Welcome.")

    scripted.default = answer
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "signed"}
    history = build_history({"anthropic": {"model": "test-model", "thinking": [thought]}})
    parts = await collect_parts(build_connection(scripted, "anthropic"), history)
    assert join_text(parts) == "Welcome."
    assert UNKNOWN_SERVERS["anthropic"].find_refusals(scripted.requests[-1].json) == []


@pytest.mark.parametrize("size", [1, 5, 1000])
async def test_a_thought_whose_opening_tag_the_template_writes_is_learned(
    size: int, scripted: ScriptedModel
) -> None:
    def cut(text: str) -> Reply:
        return Reply(chunks=[text[start : start + size] for start in range(0, len(text), size)])

    thoughtful = "Hm, the user says hello.\n</think>\n\nHello."
    scripted.script(cut(thoughtful), cut(thoughtful), cut("Hello again."), cut("Bye."))
    connection = build_connection(scripted, "openai")
    answers = []
    for _ in range(4):
        parts = await collect_parts(connection)
        answers.append((join_reasoning(parts), join_text(parts)))
    assert answers == [
        ("", thoughtful),  # nobody could tell
        ("Hm, the user says hello.\n", "Hello."),
        ("Hello again.", "Hello again."),  # it has not thought this time, so this is its answer
        ("", "Bye."),
    ]


async def test_an_answer_may_speak_of_a_closing_tag(scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="It ends with `</think>`, mostly."), Reply(text="Bye."))
    connection = build_connection(scripted, "openai")
    for text in ("It ends with `</think>`, mostly.", "Bye."):
        parts = await collect_parts(connection)
        assert (join_reasoning(parts), join_text(parts)) == ("", text)
