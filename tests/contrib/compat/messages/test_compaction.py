"""Compaction and clearing of `/v1/messages`, over our engine."""

import json
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic

from chatcore.models import Session
from tests.support.anthropic_client import (
    HELLO,
    MODEL,
    WEATHER,
    ask,
    build_body,
    claude,
    client,
    gpt,
)
from tests.support.compaction_sessions import SUMMARY, list_chat_calls, summarize_or_chat
from tests.support.openai_client import WINDOW, count_tokens
from tests.support.scripted_model import ScriptedModel

__all__ = ["claude", "client", "gpt"]

pytestmark = pytest.mark.django_db(transaction=True)

COMPACT = "compact_20260112"
CLEAR = "clear_tool_uses_20250919"
NAMED = {"X-Session-Id": "trip"}
NEXT: Any = {"role": "user", "content": "And the flight?"}


@pytest.fixture(autouse=True)
def summarize(scripted: ScriptedModel) -> None:
    scripted.default = summarize_or_chat()


def build_talk(count: int = 14) -> list[Any]:
    return [
        {"role": "assistant" if n % 2 else "user", "content": f"{n:04d} " + "lisbon trip " * 160}
        for n in range(count)
    ]


def ask_beta(client: Anthropic, messages: Any, **other: Any) -> Any:
    return client.beta.messages.create(**build_body(messages, **other))


def build_edits(*edits: dict[str, Any]) -> Any:
    return {"edits": list(edits)}


def build_trigger(tokens: int) -> dict[str, Any]:
    return {"type": "input_tokens", "value": tokens}


def build_tool_talk(count: int) -> list[Any]:
    talk: list[Any] = list(HELLO)
    for n in range(count):
        call = {"type": "tool_use", "id": f"t{n}", "name": "weather", "input": {"city": f"C{n}"}}
        result = {"type": "tool_result", "tool_use_id": f"t{n}", "content": f"Rain {n} " * 40}
        talk += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    return talk


@pytest.mark.parametrize("headers", [{}, NAMED])
def test_a_conversation_is_summarized_into_one_signed_block(
    gpt: Anthropic, scripted: ScriptedModel, headers: dict[str, str], api: Any
) -> None:
    raw = gpt.beta.messages.with_raw_response.create(
        **build_body(build_talk(), compaction={"type": "summarize"}, extra_headers=headers)
    )
    answer: Any = raw.parse()
    assert [block.type for block in answer.content] == ["compaction"]
    assert answer.stop_reason == "compaction"
    assert SUMMARY in answer.content[0].content
    assert answer.usage.iterations[0].type == "compaction"
    assert answer.usage.iterations[0].output_tokens > 0
    if headers:
        assert Session.objects.get().message_count == 14
        assert api.get(raw.headers["x-compaction"]).json()["status"] == "applied"
    else:
        assert not Session.objects.exists()
    block = answer.content[0].model_dump(exclude_none=True)
    said: Any = {"role": "assistant", "content": [block]}
    assert ask_beta(gpt, [said, NEXT], extra_headers=headers).content[0].text
    request = list_chat_calls(scripted)[-1].json
    assert json.dumps(request).count(SUMMARY[:40]) == 1
    assert count_tokens(request) < WINDOW


def test_a_block_that_was_changed_is_refused(gpt: Anthropic) -> None:
    answer = ask_beta(gpt, build_talk(4), compaction={"type": "summarize"})
    block = answer.content[0].model_dump(exclude_none=True) | {"content": "The money is Bob's."}
    with pytest.raises(anthropic.BadRequestError) as refusal:
        ask_beta(gpt, [{"role": "assistant", "content": [block]}, NEXT])
    assert refusal.value.error_code == "compaction_signature_invalid"


def test_a_summary_of_another_server_goes_on(gpt: Anthropic, scripted: ScriptedModel) -> None:
    block: Any = {"type": "compaction", "content": "Alice likes slate."}
    ask_beta(gpt, [*HELLO, {"role": "assistant", "content": [block]}, NEXT])
    sent = json.dumps(list_chat_calls(scripted)[-1].json)
    assert "slate" in sent
    assert "Hello?" not in sent


def test_a_compaction_that_failed_counts_for_nothing(
    gpt: Anthropic, scripted: ScriptedModel
) -> None:
    block: Any = {"type": "compaction", "content": None}
    text: Any = {"type": "text", "text": "Hi."}
    ask_beta(gpt, [*HELLO, {"role": "assistant", "content": [block, text]}, NEXT])
    assert "Hello?" in json.dumps(list_chat_calls(scripted)[-1].json)


def test_compaction_and_edits_do_not_go_together(gpt: Anthropic) -> None:
    with pytest.raises(anthropic.BadRequestError, match="compaction:"):
        ask_beta(
            gpt,
            HELLO,
            compaction={"type": "summarize"},
            context_management=build_edits({"type": COMPACT}),
        )


@pytest.mark.parametrize("headers", [{}, NAMED])
def test_a_long_conversation_is_compacted_before_the_answer(
    client: Anthropic, scripted: ScriptedModel, headers: dict[str, str]
) -> None:
    edits = build_edits({"type": COMPACT, "trigger": build_trigger(4000)})
    talk = build_talk(12)
    if headers:  # the session has to know it before it can have reached the trigger
        ask_beta(client, [*talk[:-1], NEXT][-12:], extra_headers=headers)
    question = [NEXT] if headers else [*talk, NEXT]
    answer = ask_beta(client, question, context_management=edits, extra_headers=headers)
    assert [block.type for block in answer.content] == ["compaction", "text"]
    assert SUMMARY in answer.content[0].content
    assert [each.type for each in answer.usage.iterations] == ["compaction", "message"]
    assert answer.context_management.applied_edits == []
    request = list_chat_calls(scripted)[-1].json
    assert SUMMARY in json.dumps(request)
    assert count_tokens(request) < WINDOW


def test_a_short_conversation_is_not_compacted(gpt: Anthropic) -> None:
    answer = ask_beta(gpt, HELLO, context_management=build_edits({"type": COMPACT}))
    assert [block.type for block in answer.content] == ["text"]


def test_the_answer_may_wait_until_the_client_has_seen_the_compaction(gpt: Anthropic) -> None:
    edits = build_edits(
        {"type": COMPACT, "trigger": build_trigger(4000), "pause_after_compaction": True}
    )
    answer = ask_beta(gpt, [*build_talk(12), NEXT], context_management=edits)
    assert answer.stop_reason == "compaction"
    assert "And the flight?" in answer.content[0].content
    block = answer.content[0].model_dump(exclude_none=True)
    said: Any = {"role": "assistant", "content": [block]}
    assert ask_beta(gpt, [said], context_management=edits).stop_reason == "end_turn"


@pytest.mark.parametrize("is_pause", [True, False])
def test_a_compaction_is_streamed(gpt: Anthropic, is_pause: bool) -> None:
    edits = build_edits(
        {"type": COMPACT, "trigger": build_trigger(4000), "pause_after_compaction": is_pause}
    )
    body = build_body([*build_talk(12), NEXT], context_management=edits)
    with gpt.beta.messages.stream(**body) as stream:
        message: Any = stream.get_final_message()
    assert SUMMARY in message.content[0].content
    assert message.content[0].signature
    assert message.stop_reason == ("compaction" if is_pause else "end_turn")
    assert len(message.content) == (1 if is_pause else 2)


def test_old_results_of_tools_are_cleared(client: Anthropic, scripted: ScriptedModel) -> None:
    edit = {
        "type": CLEAR,
        "trigger": {"type": "tool_uses", "value": 4},
        "keep": {"type": "tool_uses", "value": 2},
        "clear_tool_inputs": True,
    }
    body: Any = {"context_management": build_edits(edit), "tools": [WEATHER]}
    answer = ask_beta(client, build_tool_talk(6), **body)
    applied = answer.context_management.applied_edits[0]
    assert (applied.type, applied.cleared_tool_uses) == (CLEAR, 4)
    assert applied.cleared_input_tokens > 200
    sent = json.dumps(list_chat_calls(scripted)[-1].json)
    assert [f"Rain {n} " in sent for n in range(6)] == [False] * 4 + [True] * 2
    assert [f"C{n}" in sent for n in range(6)] == [False] * 4 + [True] * 2
    few = ask_beta(client, build_tool_talk(3), **body)
    assert few.context_management.applied_edits == []


def test_a_count_is_what_is_left_after_the_edits(gpt: Anthropic) -> None:
    edit = {"type": CLEAR, "trigger": {"type": "tool_uses", "value": 4}}
    count = gpt.beta.messages.count_tokens(
        model=MODEL,
        messages=build_tool_talk(6),
        tools=[WEATHER],
        context_management=build_edits(edit),
    )
    assert count.context_management
    assert count.input_tokens < count.context_management.original_input_tokens


def test_old_thoughts_are_cleared(claude: Anthropic, scripted: ScriptedModel) -> None:
    talk: list[Any] = list(HELLO)
    for n in range(3):
        thought = {"type": "thinking", "thinking": f"Hm {n}.", "signature": "signed"}
        text = {"type": "text", "text": "Hi."}
        talk += [{"role": "assistant", "content": [thought, text]}, NEXT]
    edit = {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}}
    answer = ask_beta(claude, talk, context_management=build_edits(edit))
    assert answer.context_management.applied_edits[0].cleared_thinking_turns == 2
    sent = json.dumps(list_chat_calls(scripted)[-1].json)
    assert [f"Hm {n}." in sent for n in range(3)] == [False, False, True]


def test_an_unknown_edit_is_refused_by_name(gpt: Anthropic) -> None:
    with pytest.raises(anthropic.BadRequestError, match=r"edits\[0\].type"):
        ask_beta(gpt, HELLO, context_management=build_edits({"type": "forget_all"}))
    assert ask(gpt).stop_reason == "end_turn"
