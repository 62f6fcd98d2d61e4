"""Chat completions with a memory: known messages are recognized, and only new ones are stored."""

import base64
import contextlib
import threading
from typing import Any

import openai
import pytest
from django.contrib.auth.models import User
from django.db import connection
from openai import OpenAI
from rest_framework.test import APIClient

from chatcore.base.databases.short_transactions import ShortTransactions
from chatcore.base.runner import turn_runner
from chatcore.models import Message, Session
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.compaction_sessions import SUMMARY, is_summary_call, run_queued_compactions
from tests.support.openai_client import (
    MODEL,
    WINDOW,
    count_tokens,
    create_client,
    limit_window,
    list_completions,
    list_sizes,
)
from tests.support.remembered_completions import (
    ask,
    build_history,
    client,
    load_messages,
    user_says,
    verify_session,
)
from tests.support.sample_files import build_png
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

__all__ = ["client", "verify_session"]

pytestmark = pytest.mark.django_db(transaction=True)


def load_sent_texts(scripted: ScriptedModel) -> list[str]:
    """Return the texts of the last request to the model."""
    return [message["content"] for message in list_completions(scripted)[-1].json["messages"]]


def test_a_session_is_made_on_first_use_without_tools(
    client: OpenAI, user: User, model: AiModel, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Hello.", usage=(11, 2)))
    answer = ask(
        client, [{"role": "system", "content": "Be brief."}, *user_says("Hi")], temperature=0.5
    )
    session = Session.objects.get(owner=user, external_id="trip")
    assert (session.model, session.tools, session.system_prompt, session.params) == (
        model,
        [],
        "Be brief.",
        {"temperature": 0.5},
    )
    assert load_messages() == [("user", "Hi"), ("assistant", "Hello.")]
    assert (
        answer.choices[0].message.content,
        answer.usage.prompt_tokens,
        answer.usage.completion_tokens,
    ) == ("Hello.", 11, 2)
    assert "tools" not in list_completions(scripted)[-1].json


def test_a_long_history_is_stored_in_short_transactions_before_the_turn(
    client: OpenAI, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    depths = []
    open_transaction = ShortTransactions.open_transaction

    def note_depth(self: ShortTransactions, weight: int) -> contextlib.AbstractContextManager[None]:
        depths.append(len(connection.atomic_blocks))
        return open_transaction(self, weight)

    monkeypatch.setattr(ShortTransactions, "open_transaction", note_depth)
    AiModel.objects.update(context_window_size=1_000_000)
    scripted.script(Reply(text="Yes."))
    texts = [f"{number}: " + "Remember this. " * 1_000 for number in range(14)]
    ask(client, build_history(*texts, "Do you?"))
    assert load_messages() == [
        *(("assistant" if number % 2 else "user", text) for number, text in enumerate(texts)),
        ("user", "Do you?"),
        ("assistant", "Yes."),
    ]
    assert len(depths) > 2
    assert set(depths) == {0}
    scripted.script(Reply(text="Indeed."))
    ask(client, build_history(*texts, "Do you?", "Yes.", "Indeed?"))
    assert load_messages()[15:] == [
        ("assistant", "Yes."),
        ("user", "Indeed?"),
        ("assistant", "Indeed."),
    ]


def test_a_known_history_is_not_stored_again(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="Hello."), Reply(text="Fine."))
    ask(client, build_history("Hi"))
    ask(client, build_history("Hi", "Hello.", "How are you?"))
    assert load_messages() == [
        ("user", "Hi"),
        ("assistant", "Hello."),
        ("user", "How are you?"),
        ("assistant", "Fine."),
    ]
    assert load_sent_texts(scripted) == ["Hi", "Hello.", "How are you?"]


def test_a_client_may_send_only_what_is_new_or_the_end_of_what_is_known(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Hello."), Reply(text="Fine."), Reply(text="Bye."))
    ask(client, build_history("Hi"))
    ask(client, user_says("How are you?"))
    ask(client, [{"role": "assistant", "content": "Fine."}, *user_says("Good.")])
    assert load_sent_texts(scripted) == ["Hi", "Hello.", "How are you?", "Fine.", "Good."]
    assert len(load_messages()) == 6


def test_a_history_told_elsewhere_is_taken_in(client: OpenAI, scripted: ScriptedModel) -> None:
    ask(client, build_history("Hi", "Hello.", "How are you?"))
    assert [text for _, text in load_messages()][:3] == ["Hi", "Hello.", "How are you?"]
    ask(
        client,
        build_history(
            "Hi", "Hello.", "How are you?", "Hello from the scripted model.", "One", "1", "Two"
        ),
    )
    assert [text for _, text in load_messages()][4:] == [
        "One",
        "1",
        "Two",
        "Hello from the scripted model.",
    ]


def test_the_same_history_again_is_answered_anew(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="Hello."), Reply(text="Fine."), Reply(text="Very well."))
    ask(client, build_history("Hi"))
    ask(client, build_history("Hi", "Hello.", "How are you?"))
    assert (
        ask(client, build_history("Hi", "Hello.", "How are you?")).choices[0].message.content
        == "Very well."
    )
    assert load_messages()[2:] == [("user", "How are you?"), ("assistant", "Very well.")]
    assert Message.objects.exclude(branch=None).get().content == "Fine."


def test_a_question_whose_answer_failed_is_answered_when_it_comes_again(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(status=422, text="No."), Reply(text="Hello."))
    with pytest.raises(openai.BadRequestError):
        ask(client, build_history("Hi"))
    assert ask(client, build_history("Hi")).choices[0].message.content == "Hello."
    assert load_messages() == [("user", "Hi"), ("assistant", "Hello.")]


def test_an_answer_that_broke_off_may_be_left_out_of_the_history(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(
        Reply(text="Hello."), Reply(chunks=["One ", "two"], cut_after=1), Reply(text="Fine.")
    )
    ask(client, build_history("Hi"))
    with pytest.raises(openai.APIError):
        list(ask(client, build_history("Hi", "Hello.", "Count."), stream=True))
    ask(client, [*build_history("Hi", "Hello.", "Count."), *user_says("How are you?")])
    assert [text for _, text in load_messages()] == [
        "Hi",
        "Hello.",
        "Count.",
        "One ",
        "How are you?",
        "Fine.",
    ]


def test_a_history_that_ends_with_an_answer_asks_nothing(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refusal:
        ask(client, build_history("Hi", "Hello."))
    assert refusal.value.param == "messages"
    assert load_messages() == []


def test_the_body_may_name_the_session_by_its_own_id_too(
    live: Live, user: User, session: Session, scripted: ScriptedModel
) -> None:
    client = create_client(live.url, user)
    ask(client, build_history("Hi"), metadata={"session_id": str(session.pk)})
    assert Message.objects.filter(session=session).count() == 2


def test_anothers_session_is_not_reached_by_its_id(
    live: Live, session: Session, django_user_model: Any
) -> None:
    mallory = django_user_model.objects.create_user("mallory")
    ask(
        create_client(live.url, mallory),
        build_history("Hi"),
        metadata={"session_id": str(session.pk)},
    )
    assert not Message.objects.filter(session=session).exists()
    assert Session.objects.get(owner=mallory).external_id == str(session.pk)


def test_images_are_kept_and_recognized(client: OpenAI, scripted: ScriptedModel) -> None:
    AiModel.objects.update(supports_images=True)
    url = "data:image/png;base64," + base64.b64encode(build_png(8, 8)).decode()
    question: Any = [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is it?"},
                {"type": "image_url", "image_url": {"url": url}},
            ],
        }
    ]
    scripted.script(Reply(text="A cat."))
    ask(client, question)
    ask(client, [*question, {"role": "assistant", "content": "A cat."}, *user_says("Sure?")])
    assert (
        list_completions(scripted)[-1].json["messages"][0]["content"][1]["image_url"]["url"] == url
    )
    assert len(load_messages()) == 4


def test_a_stream_is_told_with_usage_and_reasoning(client: OpenAI, scripted: ScriptedModel) -> None:
    scripted.script(Reply(reasoning="Hm.", chunks=["Hel", "lo."], usage=(12, 3)))
    chunks = list(
        ask(client, build_history("Hi"), stream=True, stream_options={"include_usage": True})
    )
    assert chunks[0].choices[0].delta.role == "assistant"
    assert (
        "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        == "Hello."
    )
    assert (
        "".join(
            getattr(chunk.choices[0].delta, "reasoning_content", None) or ""
            for chunk in chunks
            if chunk.choices
        )
        == "Hm."
    )
    assert (chunks[-2].choices[0].finish_reason, chunks[-1].usage.prompt_tokens) == ("stop", 12)


def test_a_failure_before_the_first_word_is_the_responses_status_and_one_after_it_is_raised(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(status=422, text="No."))
    with pytest.raises(openai.BadRequestError):
        ask(client, build_history("Hi"), stream=True)
    scripted.script(Reply(chunks=["One ", "two"], cut_after=1))
    with pytest.raises(openai.APIError) as failed:
        list(ask(client, build_history("Hi"), stream=True))
    assert failed.value.code == "provider_unavailable"
    scripted.script(Reply(text="Hello."))
    assert ask(client, build_history("Hi")).choices[0].message.content == "Hello."


def test_while_a_turn_runs_another_waits(client: OpenAI, scripted: ScriptedModel) -> None:
    call_started, may_answer = threading.Event(), threading.Event()

    def answer_when_allowed(request: dict[str, Any]) -> Reply:
        call_started.set()
        may_answer.wait(60)
        return Reply(text="At last.")

    scripted.default = answer_when_allowed
    first = threading.Thread(target=ask, args=(client, build_history("Hi")))
    first.start()
    assert call_started.wait(60)
    with pytest.raises(openai.ConflictError) as refusal:
        ask(client, build_history("Hello?"))
    may_answer.set()
    first.join()
    turn_runner.drain()
    assert refusal.value.code == "turn_running"
    assert "x-should-retry" not in refusal.value.response.headers


def converse(client: OpenAI, scripted: ScriptedModel, *, turns: int, words: int) -> None:
    """Resend the whole history to a session in each turn, and let the worker run now and then."""

    def answer(request: dict[str, Any]) -> Reply:
        summing_up = "<transcript>" in str(request["messages"])
        return Reply(text=SUMMARY if summing_up else "Noted: " + "yes " * words)

    limit_window(scripted, answer)
    history: Any = [{"role": "system", "content": "You plan trips."}]
    compacted = []
    for number in range(turns):
        history += user_says(f"{number}: " + "lisbon " * words)
        raw_answer = client.chat.completions.with_raw_response.create(model=MODEL, messages=history)
        compacted.append(raw_answer.headers["x-context-compacted"])
        assert int(raw_answer.headers["x-context-tokens"]) <= WINDOW
        history.append(
            {"role": "assistant", "content": raw_answer.parse().choices[0].message.content}
        )
        run_queued_compactions()
    assert count_tokens({"messages": history}) > 2 * WINDOW
    assert max(list_sizes(scripted)) <= WINDOW
    assert (compacted[0], compacted[-1]) == ("false", "true")
    assert (
        len([request for request in list_completions(scripted) if not is_summary_call(request)])
        == turns
    )
    assert len(load_messages()) == 2 * turns


@pytest.mark.slow
def test_a_long_conversation_is_compacted_behind_the_api(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    converse(client, scripted, turns=40, words=200)


@pytest.mark.slow
def test_it_goes_on_for_five_hundred_turns(
    client: OpenAI, scripted: ScriptedModel, settings: Any
) -> None:
    settings.CHATCORE = settings.CHATCORE | {"TURNS_PER_MINUTE": 100_000}
    converse(client, scripted, turns=500, words=60)


def test_a_rule_of_all_chats_reaches_a_session_of_the_api(
    client: OpenAI, api: APIClient, scripted: ScriptedModel
) -> None:
    rule = "Never book a flight on a Sunday."
    assert api.post("/api/v1/rules", {"text": rule}).status_code == 201
    ask(client, user_says("Hi"))
    assert rule in str(load_sent_texts(scripted))
