"""Compaction by the standard, over our engine: the endpoint, the threshold, the trigger."""

import json
from typing import Any

import openai
import pytest
from django.contrib.auth.models import User
from openai import OpenAI

from chatcore.models import Session
from chatcore.sessions.deletion import delete_session
from compaction.models import CompactionRun
from tests.conftest import Live
from tests.support.compaction_sessions import (
    SUMMARY,
    list_chat_calls,
    read_system_text,
    run_queued_compactions,
    summarize_or_chat,
)
from tests.support.open_responses import (
    MODEL,
    check_response,
    check_stream,
    find_violations,
    read_events,
)
from tests.support.openai_client import (
    WINDOW,
    client,
    count_tokens,
    create_client,
    limit_window,
    list_sizes,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

__all__ = ["client"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def summarize(scripted: ScriptedModel) -> None:
    scripted.default = summarize_or_chat()


def build_talk(count: int = 14) -> list[Any]:
    return [
        {"role": "assistant" if n % 2 else "user", "content": f"{n:04d} " + "lisbon trip " * 160}
        for n in range(count)
    ]


def compact(client: OpenAI, **body: Any) -> dict[str, Any]:
    raw = client.responses.with_raw_response.compact(model=MODEL, **body)
    resource: dict[str, Any] = raw.http_response.json()
    assert find_violations("CompactResource", resource) == []
    return resource


def get_output_types(resource: Any) -> list[str]:
    return [item["type"] for item in resource["output"]]


def test_a_conversation_is_compacted_into_one_sealed_item(client: OpenAI, api: Any) -> None:
    resource = compact(client, input=build_talk())
    item = resource["output"][-1]
    assert item["type"] == "compaction"
    assert SUMMARY not in json.dumps(resource)
    run = api.get(resource["metadata"]["compaction"]).json()
    assert (run["status"], SUMMARY in run["summary_after"]) == ("applied", True)
    assert resource["usage"]["output_tokens"] > 0


def test_a_new_chain_goes_on_from_the_compacted_window(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    window = compact(client, input=build_talk())["output"]
    question: Any = {"role": "user", "content": "And the flight?"}
    answer = client.responses.create(model=MODEL, input=[*window, question])
    assert answer.output_text
    request = list_chat_calls(scripted)[-1]
    assert SUMMARY in read_system_text(request)
    assert count_tokens(request.json) < WINDOW
    # The whole talk is still there, in the same session.
    assert Session.objects.get().message_count == 16


def test_the_window_goes_on_without_storing(client: OpenAI, scripted: ScriptedModel) -> None:
    window = compact(client, input=build_talk())["output"]
    question: Any = {"role": "user", "content": "And the flight?"}
    client.responses.create(model=MODEL, input=[*window, question], store=False)
    assert SUMMARY in read_system_text(list_chat_calls(scripted)[-1])
    assert Session.objects.get().message_count == 14


def test_the_summary_outlives_its_session(client: OpenAI, scripted: ScriptedModel) -> None:
    window = compact(client, input=build_talk())["output"]
    delete_session(Session.objects.get().pk)
    question: Any = {"role": "user", "content": "And the flight?"}
    client.responses.create(model=MODEL, input=[*window, question])
    assert SUMMARY in read_system_text(list_chat_calls(scripted)[-1])


def test_an_item_is_of_no_use_to_others(client: OpenAI, live: Live) -> None:
    item: Any = compact(client, input=build_talk())["output"][-1]
    other_client = create_client(live.url, User.objects.create_user("bob"))
    forged = item | {"encrypted_content": item["encrypted_content"][:-8] + "AAAAAAA="}
    for stranger, stolen in ((other_client, item), (client, forged)):
        with pytest.raises(openai.BadRequestError, match="compaction item"):
            stranger.responses.create(
                model=MODEL, input=[stolen, {"role": "user", "content": "Tell me."}]
            )


def test_a_short_conversation_is_a_window_too(client: OpenAI, scripted: ScriptedModel) -> None:
    talk: Any = [{"role": "user", "content": "Remember: slate."}]
    window = compact(client, input=talk)["output"]
    question: Any = {"role": "user", "content": "Which word?"}
    client.responses.create(model=MODEL, input=[*window, question])
    sent = list_chat_calls(scripted)[-1].json["messages"]
    assert [message["content"] for message in sent] == ["Remember: slate.\n\nWhich word?"]


def test_a_chain_is_compacted_by_its_previous_response(client: OpenAI) -> None:
    first = client.responses.create(model=MODEL, input=[*build_talk(), build_talk(1)[0]])
    resource = compact(client, previous_response_id=first.id)
    assert resource["output"][-1]["type"] == "compaction"
    assert CompactionRun.objects.get().trigger == "manual"


def test_a_threshold_compacts_before_the_answer(client: OpenAI) -> None:
    first = client.responses.create(model=MODEL, input=[*build_talk(), build_talk(1)[0]])
    management: Any = [{"type": "compaction", "compact_threshold": 2000}]
    events = read_events(
        client,
        input="And the flight?",
        previous_response_id=first.id,
        context_management=management,
    )
    check_stream(events)
    resource = events[-1]["response"]
    check_response(resource)
    assert "response.compaction.compacting" in [event["type"] for event in events]
    assert get_output_types(resource) == ["compaction", "message"]
    assert resource["metadata"]["compaction"].startswith("/api/v1/compactions/")
    stored = client.responses.with_raw_response.retrieve(resource["id"]).http_response.json()
    assert stored["output"] == resource["output"]


def test_a_threshold_that_is_not_reached_changes_nothing(client: OpenAI) -> None:
    first = client.responses.create(model=MODEL, input="Hi")
    management: Any = [{"type": "compaction", "compact_threshold": 2000}]
    second = client.responses.create(
        model=MODEL, input="And?", previous_response_id=first.id, context_management=management
    )
    assert [item.type for item in second.output] == ["message"]


def test_a_trigger_compacts_and_answers_nothing(client: OpenAI, scripted: ScriptedModel) -> None:
    items: Any = [*build_talk(), {"type": "compaction_trigger"}]
    raw = client.responses.with_raw_response.create(model=MODEL, input=items)
    resource: Any = raw.http_response.json()
    check_response(resource)
    assert get_output_types(resource) == ["compaction"]
    assert not list_chat_calls(scripted)
    answer = client.responses.create(
        model=MODEL, input="And the flight?", previous_response_id=resource["id"]
    )
    assert answer.output_text


def test_nothing_may_follow_a_trigger(client: OpenAI) -> None:
    items: Any = [{"type": "compaction_trigger"}, {"role": "user", "content": "Hi"}]
    with pytest.raises(openai.BadRequestError, match="trigger"):
        client.responses.create(model=MODEL, input=items)


def test_a_missing_model_is_named(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="model"):
        client.post("/responses/compact", cast_to=object, body={"input": "Hi"})


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.parametrize("is_whole_history", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_chain_far_past_the_window_never_fails(
    client: OpenAI, scripted: ScriptedModel, is_whole_history: bool
) -> None:
    limit_window(scripted, lambda request: summarize_or_chat()(request))
    previous_id = None
    history: list[Any] = []
    for number in range(40):
        question: Any = {"role": "user", "content": f"{number} " + "lisbon trip " * 120}
        history.append(question)
        response: Any = client.responses.create(
            model=MODEL,
            input=history if is_whole_history else [question],
            previous_response_id=None if is_whole_history else previous_id,
        )
        previous_id = response.id
        history += response.output
        run_queued_compactions()
    assert max(list_sizes(scripted)) <= WINDOW
    assert Session.objects.get().message_count == 80
    assert CompactionRun.objects.filter(status="applied").exists()


def test_a_summary_that_fails_leaves_the_window_as_it_is(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.default = Reply(status=401, text="wrong key")
    window = compact(client, input=build_talk())["output"]
    scripted.default = summarize_or_chat()
    answer = client.responses.create(model=MODEL, input=[*window, build_talk(1)[0]])
    assert answer.output_text


def test_a_known_history_is_compacted_where_it_is(client: OpenAI) -> None:
    history = [*build_talk(), build_talk(1)[0]]
    response = client.responses.create(model=MODEL, input=history)
    compact(client, input=[*history, {"role": "assistant", "content": response.output_text}])
    assert Session.objects.get().compacted_summary == SUMMARY
