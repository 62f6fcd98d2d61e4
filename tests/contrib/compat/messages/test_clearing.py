"""The edits of `/v1/messages` that leave out old results of tools and old thoughts, in a session.

They act on what is sent, in every round, and never on what is stored.
"""

import json
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic
from django.contrib.auth.models import User

from chatcore.models import Message, Session
from compaction.models import CompactionRun
from models_registry.models import AiModel
from tests.support.anthropic_client import HELLO, WEATHER, build_body, claude, client, gpt
from tests.support.compaction_sessions import (
    SUMMARY,
    fill_session,
    list_chat_calls,
    summarize_or_chat,
)
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

__all__ = ["claude", "client", "gpt"]

pytestmark = pytest.mark.django_db(transaction=True)

CLEAR_TOOLS, CLEAR_THINKING = "clear_tool_uses_20250919", "clear_thinking_20251015"
KEEP_ONE: Any = {
    "edits": [
        {
            "type": CLEAR_TOOLS,
            "trigger": {"type": "tool_uses", "value": 1},
            "keep": {"type": "tool_uses", "value": 1},
        }
    ]
}
NEXT: Any = {"role": "user", "content": "And the flight?"}


def ask_trip(client: Anthropic, messages: Any, **other: Any) -> Any:
    """Return the response of a session, with its headers."""
    body = build_body(messages, extra_headers={"X-Session-Id": "trip"}, **other)
    return client.beta.messages.with_raw_response.create(**body)


def build_result(number: int, id: str = "same") -> dict[str, Any]:
    result = {"type": "tool_result", "tool_use_id": id, "content": f"Rain {number} " * 40}
    return {"role": "user", "content": [result]}


def build_call(id: str = "same") -> Reply:
    """Return a call of the weather; some models use one id in all rounds."""
    return Reply(tool_calls=[make_tool_call("weather", {"city": "Oslo"}, id=id)])


def list_sent_results(scripted: ScriptedModel, count: int) -> list[bool]:
    """Return which of the first results stand in the newest request."""
    sent = json.dumps(list_chat_calls(scripted)[-1].json)
    return [f"Rain {n} " in sent for n in range(count)]


def list_stored_results() -> list[str]:
    return list(
        Message.objects.filter(role="tool").order_by("seq").values_list("content", flat=True)
    )


def test_each_round_of_a_client_sends_the_newest_results_only(
    client: Anthropic, scripted: ScriptedModel
) -> None:
    scripted.script(build_call(), build_call(), build_call(), Reply(text="Rain."))
    edited: Any = {"tools": [WEATHER], "context_management": KEEP_ONE}
    raw = ask_trip(client, HELLO, **edited)
    assert raw.parse().context_management.applied_edits == []
    assert "x-ignored-fields" not in raw.headers
    ask_trip(client, [build_result(0)], **edited)
    assert list_sent_results(scripted, 1) == [True]
    answer = ask_trip(client, [build_result(1)], **edited).parse()
    assert list_sent_results(scripted, 2) == [False, True]
    applied = answer.context_management.applied_edits[0]
    assert (applied.type, applied.cleared_tool_uses) == (CLEAR_TOOLS, 1)
    assert applied.cleared_input_tokens > 50

    body = build_body([build_result(2)], extra_headers={"X-Session-Id": "trip"}, **edited)
    with client.beta.messages.stream(**body) as stream:
        events = list(stream)
    assert list_sent_results(scripted, 3) == [False, False, True]
    delta: Any = next(event for event in events if event.type == "message_delta")
    assert delta.context_management.applied_edits[0].cleared_tool_uses == 2
    assert [f"Rain {n} " in text for n, text in enumerate(list_stored_results())] == [True] * 3

    raw = ask_trip(client, [NEXT], tools=[WEATHER])
    assert list_sent_results(scripted, 3) == [True] * 3
    assert raw.parse().context_management is None


def test_a_client_may_ask_for_no_more_edits_with_its_results(
    gpt: Anthropic, scripted: ScriptedModel
) -> None:
    scripted.script(build_call("a"), build_call("b"), Reply(text="Rain."))
    ask_trip(gpt, HELLO, tools=[WEATHER], context_management=KEEP_ONE)
    ask_trip(gpt, [build_result(0, "a")], tools=[WEATHER], context_management=KEEP_ONE)
    ask_trip(gpt, [build_result(1, "b")], tools=[WEATHER])
    assert list_sent_results(scripted, 2) == [True, True]


def test_each_round_of_built_in_tools_is_edited(
    client: Anthropic, scripted: ScriptedModel, user: User, model: AiModel
) -> None:
    Session.objects.create(owner=user, model=model, external_id="trip", tools=["calculate"])
    calls = [make_tool_call("calculate", {"expression": f"{n}**200"}, id=f"c{n}") for n in (3, 4)]
    scripted.script(*(Reply(tool_calls=[call]) for call in calls), Reply(text="Done."))
    answer = ask_trip(client, HELLO, context_management=KEEP_ONE).parse()
    assert answer.content[0].text == "Done."
    assert answer.context_management.applied_edits[0].cleared_tool_uses == 1
    sent = json.dumps(list_chat_calls(scripted)[-1].json)
    assert (str(3**200) in sent, str(4**200) in sent) == (False, True)
    assert str(3**200) in list_stored_results()[0]


def test_a_request_that_is_built_again_after_a_compaction_is_edited_again(
    gpt: Anthropic, scripted: ScriptedModel, user: User, model: AiModel
) -> None:
    scripted.default = summarize_or_chat()
    session = Session.objects.create(owner=user, model=model, external_id="trip", tools=[])
    fill_session(session, messages=18)
    scripted.script(build_call("a"), build_call("b"))
    edited: Any = {"tools": [WEATHER], "context_management": KEEP_ONE}
    CompactionRun.objects.all().delete()
    Session.objects.update(auto_compact=False)
    ask_trip(gpt, [NEXT], **edited)
    ask_trip(gpt, [build_result(0, "a")], **edited)
    Session.objects.update(auto_compact=True)
    answer = ask_trip(gpt, [build_result(1, "b")], **edited).parse()
    assert CompactionRun.objects.get().status == "applied"
    assert SUMMARY[:40] in json.dumps(list_chat_calls(scripted)[-1].json)
    assert list_sent_results(scripted, 2) == [False, True]
    assert answer.context_management.applied_edits[0].cleared_tool_uses == 1


def test_a_request_that_fits_after_its_edits_is_not_compacted(
    gpt: Anthropic, scripted: ScriptedModel
) -> None:
    scripted.script(build_call("a"), build_call("b"))
    edited: Any = {"tools": [WEATHER], "context_management": KEEP_ONE}
    ask_trip(gpt, HELLO, **edited)
    large: Any = build_result(0, "a")
    large["content"][0]["content"] = "Rain 0 " + "storm " * 4000
    ask_trip(gpt, [large], **edited)
    more: Any = build_result(1, "b")
    more["content"][0]["content"] = "Rain 1 " + "storm " * 3000
    ask_trip(gpt, [more], **edited)
    assert list_sent_results(scripted, 2) == [False, True]
    assert len(list_chat_calls(scripted)[-1].json["messages"][-1]["content"]) > 17_000
    # The provider's count of the smaller request says nothing about the next one, which is whole.
    answers = Message.objects.filter(role="assistant").order_by("seq")
    assert list(answers.values_list("context_version", flat=True)) == [0, 0, None]


def test_old_thoughts_of_a_session_are_left_out(claude: Anthropic, scripted: ScriptedModel) -> None:
    replies = [Reply(text="Hi.", reasoning=f"Hm {n}.") for n in range(3)]
    scripted.script(*replies, Reply(text="Done."))
    edit: Any = {"type": CLEAR_THINKING, "keep": {"type": "thinking_turns", "value": 1}}
    for _ in range(4):
        raw = ask_trip(claude, [NEXT], context_management={"edits": [edit]})
    assert raw.parse().context_management.applied_edits[0].cleared_thinking_turns == 2
    sent = json.dumps(list_chat_calls(scripted)[-1].json)
    assert [f"Hm {n}." in sent for n in range(3)] == [False, False, True]
    assert Message.objects.filter(provider_data__anthropic__isnull=False).count() == 3


@pytest.mark.parametrize(
    ("edits", "field"),
    [
        ([{"type": CLEAR_TOOLS, "trigger": {"type": "pages", "value": 1}}], "[0].trigger.type"),
        ([{"type": CLEAR_TOOLS, "keep": {"type": "tool_uses", "value": -1}}], "[0].keep.value"),
        ([{"type": CLEAR_TOOLS, "exclude_tools": ["a b"]}], "[0].exclude_tools[0]"),
        ([{"type": CLEAR_TOOLS, "kep": 1}], "[0].kep"),
        ([{"type": CLEAR_TOOLS}, {"type": CLEAR_TOOLS}], "[1].type"),
        (
            [{"type": CLEAR_THINKING, "keep": {"type": "thinking_turns", "value": 0}}],
            "[0].keep.value",
        ),
    ],
)
def test_a_wrong_edit_is_refused_by_its_field(gpt: Anthropic, edits: Any, field: str) -> None:
    with pytest.raises(anthropic.BadRequestError) as refusal:
        ask_trip(gpt, HELLO, context_management={"edits": edits})
    assert f"context_management.edits{field}" in str(refusal.value)
    assert not Session.objects.exists()
