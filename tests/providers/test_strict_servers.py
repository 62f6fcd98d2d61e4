"""Any history, sent to servers that refuse what the real ones refuse."""

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from chatcore.providers.base import ChatMessage, Image, Request, ToolCall
from chatcore.providers.normal_form import STOPPED_ANSWER
from tests.support.strict_servers import FAMILIES, LOOK, Family, build_body, find_refusals

TEXTS = st.sampled_from(["", " \n", "Hi.", "Go on.", "\ud83d", "x" * 300])
IDS = st.sampled_from(["", "call_1", "functions.look:0", "D681PevKs", "toolu_" + "0" * 400, "🦜"])
NAMES = st.sampled_from(["look", "no such tool", "näme" * 30])
ARGUMENTS = st.sampled_from(
    ["", "{}", '{"at": "it"}', "{broken", "[1]", "null", r'{"a": "\ud83d"}']
)
PICTURE = Image(media_type="image/png", data=b"png")


def provider_data(model: str) -> dict[str, Any]:
    """What a model of both protocols would want back."""
    return {
        "openai": {
            "model": model,
            "reasoning": "Hm.",
            "extras": {"call_1": {"google": {"thought_signature": "signed"}}},
        },
        "anthropic": {
            "model": model,
            "thinking": [{"type": "thinking", "thinking": "Hm.", "signature": "signed"}],
        },
    }


@st.composite
def messages(draw: st.DrawFn) -> ChatMessage:
    """A message of any kind, as a faulty program or an import may have stored it."""
    role = draw(st.sampled_from(["user", "assistant", "tool", "tool"]))
    calls: list[ToolCall] = []
    if role == "assistant":
        fields = st.builds(ToolCall, id=IDS, name=NAMES, arguments=ARGUMENTS)
        calls = draw(st.lists(fields, max_size=3))
    return ChatMessage(
        role=role,  # type: ignore[arg-type]
        content=draw(TEXTS),
        tool_calls=tuple(calls),
        tool_call_id=draw(IDS) if role == "tool" else "",
        tool_name=draw(st.sampled_from(["", "look"])) if role == "tool" else "",
        is_error=draw(st.booleans()),
        images=(PICTURE,) if role != "assistant" and draw(st.integers(0, 4)) == 0 else (),
        aside=role == "user" and draw(st.booleans()),
        provider_data=draw(
            st.sampled_from([{}, *(provider_data(family.model) for family in FAMILIES)])
        ),
    )


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    history=st.lists(messages(), min_size=1, max_size=12),
    system=TEXTS,
    preface=TEXTS,
    question=st.booleans(),
)
def test_every_family_takes_any_history(
    history: list[ChatMessage], system: str, preface: str, question: bool
) -> None:
    last = [ChatMessage(role="user", content="And now?")] if question else []
    said = [message for message in [*history, *last] if message.role != "tool"]
    assume(any(message.content.strip() or message.tool_calls for message in said))
    request = Request(
        model="test-model",
        system=system,
        preface=preface,
        messages=[*history, *last],
        tools=[LOOK],
    )
    assert find_refusals(request) == []


@settings(max_examples=20, deadline=None)
@given(history=st.lists(messages(), min_size=1, max_size=12))
def test_what_follows_changes_nothing_of_what_stands_before(history: list[ChatMessage]) -> None:
    """A provider's cache holds the beginning of a request, as long as it stays the same."""
    question = ChatMessage(role="user", content="And now?")
    turn = [*history, question, ChatMessage(role="assistant", content="This."), question]
    for family in FAMILIES:
        tools = [LOOK] if family.knows_tools else []
        earlier, later = (
            build_body(family, Request(model="", messages=each, tools=tools))["messages"]
            for each in (turn[:-2], turn)
        )
        assert later[: len(earlier)] == earlier


@pytest.mark.parametrize("family", FAMILIES, ids=[family.name for family in FAMILIES])
def test_a_loop_of_tools_that_broke_off_is_told_to_the_model(family: Family) -> None:
    call = ToolCall(id="call_1", name="look", arguments="{}")
    request = Request(
        model="",
        messages=[
            ChatMessage(role="user", content="Look."),
            ChatMessage(role="assistant", tool_calls=(call,)),
            ChatMessage(role="tool", content="A cat.", tool_call_id="call_1"),
            ChatMessage(role="user", content="And now?"),
        ],
        tools=[LOOK] if family.knows_tools else [],
    )
    body = build_body(family, request)
    assert family.find_refusals(body) == []
    assert "A cat." in str(body)
    if family.knows_tools:
        assert STOPPED_ANSWER in str(body)


def test_each_rule_refuses_something() -> None:
    """A rule that refuses nothing would prove nothing."""
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    bad_call = {"id": "", "more": 1, "function": {"name": "ö", "arguments": "["}}
    answer = {"role": "assistant", "content": "x", "reasoning_content": "x", "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "call_1", "content": ""}
    empty_result = {"type": "tool_result", "tool_use_id": "ö"}
    question = {"role": "user", "content": "x"}
    broken_answer = {"role": "assistant", "tool_calls": [bad_call, bad_call], "more": 1}
    bad_messages: list[list[dict[str, Any]]] = [
        [],
        [broken_answer, {"role": "system", "content": ""}],
        [{"role": "assistant", "content": ""}, answer],
        [result, question, question],
        [{"role": "assistant", "content": []}],
        [{"role": "user", "content": [{"type": "text", "text": " "}, empty_result]}],
        [{"role": "assistant", "content": [{"type": "tool_use", "id": "ö"}]}],
    ]
    bodies: list[dict[str, Any]] = [{"messages": each} for each in bad_messages]
    bodies.append({"messages": [question], "tools": [], "tool_choice": "auto"})
    for family in FAMILIES:
        for rule in family.rules:
            own_bodies = bodies[4:7] if family.protocol == "anthropic" else bodies
            assert any(list(rule(body)) for body in own_bodies), (family.name, rule.__name__)
