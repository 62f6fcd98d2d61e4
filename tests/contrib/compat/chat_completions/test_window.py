"""Chat completions whose history is larger than the model's window."""

import itertools
from typing import Any

import openai
import pytest
from openai import OpenAI

from compaction.models import ModelRatio
from models_registry.models import AiModel
from tests.support.openai_client import (
    HELLO,
    MODEL,
    WEATHER,
    WINDOW,
    client,
    count_tokens,
    limit_window,
    list_completions,
    list_sizes,
)
from tests.support.scripted_model import ScriptedModel, make_overflow
from tests.support.scripted_wire import Reply

__all__ = ["client"]

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_history_past_the_window_is_sent_without_its_oldest_messages(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    limit_window(scripted, lambda request: Reply(text="Noted."))
    history: Any = [{"role": "system", "content": "Be brief."}]
    for number in range(60):
        history += [
            {"role": "user", "content": f"{number} " + "lisbon " * 100},
            {"role": "assistant", "content": "Noted."},
        ]
    history += [{"role": "user", "content": "And now?"}]
    assert count_tokens({"messages": history}) > WINDOW
    answer = client.chat.completions.with_raw_response.create(model=MODEL, messages=history)
    sent = list_completions(scripted)[-1].json["messages"]
    assert (sent[0], sent[-1]) == (history[0], history[-1])
    assert sent[1:] == history[-len(sent) + 1 :]
    assert answer.headers["x-context-compacted"] == "true"
    assert count_tokens({"messages": sent}) - 300 <= int(answer.headers["x-context-tokens"]) <= 6963
    assert len(list_completions(scripted)) == 1


def test_a_history_past_the_window_is_sent_whole_where_nothing_is_optimized_by_itself(
    client: OpenAI, scripted: ScriptedModel, settings: Any
) -> None:
    settings.COMPACTION = settings.COMPACTION | {"AUTOMATIC": False}
    history: Any = [
        {"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} " + "lisbon " * 1000}
        for n in range(21)
    ]
    scripted.script(make_overflow(21_000, WINDOW))
    with pytest.raises(openai.BadRequestError) as refusal:
        client.chat.completions.create(model=MODEL, messages=history)
    assert refusal.value.code == "context_length_exceeded"
    assert [request.json["messages"] for request in list_completions(scripted)] == [history]


def test_a_history_within_the_window_is_sent_as_it_is(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    answer = client.chat.completions.with_raw_response.create(model=MODEL, messages=HELLO)
    assert answer.headers["x-context-compacted"] == "false"
    assert list_completions(scripted)[-1].json["messages"] == HELLO


def test_a_refused_request_is_sent_once_more_and_smaller(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    history: Any = [
        {"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} " + "里斯本" * 200}
        for n in range(21)
    ]
    scripted.script(make_overflow(9000, WINDOW))
    answer = client.chat.completions.with_raw_response.create(model=MODEL, messages=history)
    first, shortened = (request.json["messages"] for request in list_completions(scripted))
    assert first == history
    assert shortened == history[-len(shortened) :]
    assert len(shortened) < len(history)
    assert answer.headers["x-context-compacted"] == "true"


def test_a_refusal_that_names_the_models_input_limit_teaches_no_smaller_window(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    AiModel.objects.filter(name="test-model").update(
        context_window_size=40_000, max_input_tokens=WINDOW
    )
    history: Any = [
        {"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} " + "里斯本" * 200}
        for n in range(21)
    ]
    scripted.script(make_overflow(9000, WINDOW))
    client.chat.completions.create(model=MODEL, messages=history)
    first, shortened = (request.json["messages"] for request in list_completions(scripted))
    assert len(shortened) < len(first)
    assert not ModelRatio.objects.filter(window__isnull=False).exists()


def test_a_message_larger_than_the_window_is_told_as_openai_tells_it(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    with pytest.raises(openai.BadRequestError) as refusal:
        client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "lisbon " * 8000}]
        )
    assert (refusal.value.code, refusal.value.param) == ("context_length_exceeded", "messages")
    assert not list_completions(scripted)


def test_what_answers_teach_of_a_models_counting_is_believed(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    history: Any = [
        {"role": "user" if n % 2 == 0 else "assistant", "content": f"{n} " + "lisbon " * 300}
        for n in range(11)
    ]
    scripted.default = lambda request: Reply(text="Noted.", usage=(2 * count_tokens(request), 5))
    for _ in range(8):
        answer = client.chat.completions.with_raw_response.create(model=MODEL, messages=history)
    assert answer.headers["x-context-compacted"] == "true"
    assert list_sizes(scripted)[0] > list_sizes(scripted)[-1]


def resend_everything(client: OpenAI, scripted: ScriptedModel, *, turns: int, words: int) -> None:
    """Talk as an unmodified client does, which sends its whole history each time."""
    limit_window(scripted, lambda request: Reply(text="Noted: " + "yes " * words))
    history: Any = [{"role": "system", "content": "You plan trips."}]
    for number in range(turns):
        history.append({"role": "user", "content": f"{number}: " + "lisbon " * words})
        answer = client.chat.completions.create(model=MODEL, messages=history)
        history.append({"role": "assistant", "content": answer.choices[0].message.content})
    assert count_tokens({"messages": history}) > 2 * WINDOW
    assert max(list_sizes(scripted)) <= WINDOW
    assert len(list_sizes(scripted)) == turns


@pytest.mark.usefixtures("keep_nothing")
@pytest.mark.slow
def test_a_client_that_resends_its_whole_history_keeps_working(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    resend_everything(client, scripted, turns=40, words=200)


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.usefixtures("keep_nothing")
def test_the_prefix_of_a_client_that_resends_everything_changes_only_a_few_times(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    resend_everything(client, scripted, turns=60, words=120)
    prefixes = [str(request.json["messages"][:3]) for request in list_completions(scripted)]
    # The first two requests are shorter than that.
    changes = sum(before != after for before, after in itertools.pairwise(prefixes[2:]))
    assert 2 < changes <= 10


@pytest.mark.slow
@pytest.mark.usefixtures("keep_nothing")
def test_it_keeps_working_for_five_hundred_turns(
    client: OpenAI, scripted: ScriptedModel, settings: Any
) -> None:
    settings.CHATCORE = settings.CHATCORE | {"TURNS_PER_MINUTE": 100_000}
    resend_everything(client, scripted, turns=500, words=60)


def test_a_tools_result_larger_than_the_window_is_shortened(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    call = {
        "id": "a",
        "type": "function",
        "function": {"name": "get_weather", "arguments": "{}"},
    }
    messages: Any = [
        {"role": "user", "content": "Only look at Rome."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "Sunny. " * 30_000 + "The end."},
    ]
    answer = client.chat.completions.with_raw_response.create(
        model=MODEL, messages=messages, tools=[WEATHER]
    )
    assert answer.headers["x-context-compacted"] == "true"
    question, _, result = list_completions(scripted)[-1].json["messages"]
    assert question["content"] == "Only look at Rome."
    assert result["content"].startswith("Sunny.")
    assert result["content"].endswith("The end.")
    assert count_tokens(list_completions(scripted)[-1].json) <= WINDOW
