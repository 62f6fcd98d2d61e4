"""Histories that leave the stored one: edits, stops, and calls beside a conversation."""

from typing import Any

import openai
import pytest
from openai import OpenAI

from chatcore.models import Message, Session
from tests.support.remembered_completions import (
    ask,
    build_history,
    client,
    load_messages,
    user_says,
    verify_session,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

__all__ = ["client", "verify_session"]

pytestmark = pytest.mark.django_db(transaction=True)


def load_texts() -> list[str]:
    return [text for _, text in load_messages()]


def load_superseded_texts() -> set[str]:
    return set(Message.objects.exclude(branch=None).values_list("content", flat=True))


@pytest.fixture
def talk(client: OpenAI, scripted: ScriptedModel) -> list[str]:
    """Two exchanges of the session; the texts are the user's and the model's in turn."""
    texts = ["Where is Lisbon?", "In Portugal.", "And Oslo?", "In Norway."]
    scripted.script(Reply(text=texts[1]), Reply(text=texts[3]), Reply(text="The new answer."))
    ask(client, build_history(texts[0]))
    ask(client, build_history(*texts[:3]))
    return texts


def test_an_edited_question_is_another_version_of_it(client: OpenAI, talk: list[str]) -> None:
    ask(client, build_history(*talk[:2], "And Rome?"))
    assert load_texts() == [*talk[:2], "And Rome?", "The new answer."]
    assert load_superseded_texts() == {"And Oslo?", "In Norway."}
    replaced_message = Message.objects.get(content="And Rome?").replaces
    assert replaced_message
    assert replaced_message.content == "And Oslo?"


def test_a_deleted_exchange_is_superseded(client: OpenAI, talk: list[str]) -> None:
    ask(client, build_history(*talk, "And Rome?"))
    ask(client, build_history(*talk[:2], "And Rome?", "The new answer.", "Which is warmest?"))
    assert load_texts()[:5] == [*talk[:2], "And Rome?", "The new answer.", "Which is warmest?"]
    assert {"And Oslo?", "In Norway."} <= load_superseded_texts()


def test_an_edited_answer_is_taken_as_it_is(client: OpenAI, talk: list[str]) -> None:
    ask(client, build_history(*talk[:3], "In the north.", "And Rome?"))
    assert load_texts() == [*talk[:3], "In the north.", "And Rome?", "The new answer."]
    assert load_superseded_texts() == {"In Norway."}


@pytest.mark.parametrize("answer", ["In Norway", "  In Norway.\n", "<think>Hm.</think>In Norway."])
def test_an_answer_that_a_client_cut_or_stripped_lets_the_session_go_on(
    client: OpenAI, talk: list[str], answer: str
) -> None:
    ask(client, build_history(*talk[:3], answer, "And Rome?"))
    assert load_texts()[-2:] == ["And Rome?", "The new answer."]
    assert load_texts()[:3] == talk[:3]


def test_white_space_around_an_answer_makes_no_version(client: OpenAI, talk: list[str]) -> None:
    ask(client, build_history(*talk[:3], "In Norway.\n\n", "And Rome?"))
    assert load_superseded_texts() == set()


def test_an_earlier_question_is_answered_again(client: OpenAI, talk: list[str]) -> None:
    ask(client, build_history(*talk, "And Rome?"))
    ask(client, build_history(*talk[:3]))
    assert load_texts()[:3] == talk[:3]
    assert "In Norway." in load_superseded_texts()


def test_a_history_from_elsewhere_takes_the_place_of_the_stored_one(
    client: OpenAI, talk: list[str]
) -> None:
    ask(client, build_history("Who wrote Hamlet?", "Shakespeare.", "When?"))
    assert load_texts() == ["Who wrote Hamlet?", "Shakespeare.", "When?", "The new answer."]
    assert load_superseded_texts() == set(talk)


def test_a_client_may_have_the_new_words_appended_instead(client: OpenAI, talk: list[str]) -> None:
    history = build_history(*talk[:2], "And Rome?", "In Italy.", "Which is warmest?")
    ask(client, history, extra_headers={"X-Session-On-Divergence": "append"})
    assert load_texts() == [*talk, "Which is warmest?", "The new answer."]


def test_a_client_may_have_it_refused(client: OpenAI, talk: list[str]) -> None:
    with pytest.raises(openai.ConflictError) as refusal:
        ask(
            client.with_options(max_retries=2),
            build_history("Where is Lisbon?", "Something else.", "How are you?"),
            extra_headers={"X-Session-On-Divergence": "refuse"},
        )
    assert refusal.value.code == "history_diverged"
    assert refusal.value.response.headers["x-should-retry"] == "false"
    assert load_texts() == talk


def test_another_word_for_it_is_a_bad_request(client: OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refusal:
        ask(client, user_says("Hi"), extra_headers={"X-Session-On-Divergence": "merge"})
    assert refusal.value.param == "X-Session-On-Divergence"


def test_the_same_question_each_time_is_a_new_one_each_time(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    scripted.script(*(Reply(text=f"Fine, {number}.") for number in range(3)))
    for _ in range(3):
        ask(client, user_says("Status?"))
    assert load_texts() == ["Status?", "Fine, 0.", "Status?", "Fine, 1.", "Status?", "Fine, 2."]


AS_EDIT = {"X-Session-On-Divergence": "edit"}


def test_an_edit_of_the_first_message_is_an_edit_where_the_client_says_so(
    client: OpenAI, talk: list[str]
) -> None:
    ask(client, user_says("Where is Rome?"), extra_headers=AS_EDIT)
    assert load_texts() == ["Where is Rome?", "The new answer."]
    assert load_superseded_texts() == set(talk)
    replaced_message = Message.objects.get(content="Where is Rome?").replaces
    assert replaced_message
    assert replaced_message.content == talk[0]


def test_the_first_question_alone_is_answered_again_where_the_client_says_so(
    client: OpenAI, talk: list[str]
) -> None:
    ask(client, user_says(talk[0]), extra_headers=AS_EDIT)
    assert load_texts() == [talk[0], "The new answer."]


def test_a_new_question_alone_is_new_where_the_client_says_nothing(
    client: OpenAI, talk: list[str]
) -> None:
    ask(client, user_says("Where is Rome?"))
    assert load_texts() == [*talk, "Where is Rome?", "The new answer."]


@pytest.mark.parametrize("headers", [{}, AS_EDIT])
def test_an_early_message_of_a_long_session_can_be_edited(
    client: OpenAI, scripted: ScriptedModel, headers: dict[str, str]
) -> None:
    history = build_history(*(f"Text {number}." for number in range(201)))
    scripted.default = Reply(text="The new answer.")
    ask(client, history)
    ask(client, [*history[:2], *user_says("Another text.")], extra_headers=headers)
    assert load_texts() == ["Text 0.", "Text 1.", "Another text.", "The new answer."]
    if headers:
        ask(client, user_says("The first text."), extra_headers=headers)
        assert load_texts() == ["The first text.", "The new answer."]


TITLE_CALLS: list[list[dict[str, Any]]] = [
    user_says(
        "### Task:\nGenerate a concise, 3-5 word title with an emoji.\n### Chat History:\n"
        "<chat_history>\nUSER: Where is Lisbon?\n</chat_history>"
    ),
    user_says(
        "### Task:\nPredict 3-5 useful messages this user might naturally send next.\n"
        "### Chat History:\n<chat_history>\nUSER: Hi\n</chat_history>"
    ),
    [
        {"role": "system", "content": "You are a title generator. You output ONLY a thread title."},
        *user_says("Generate a title for this conversation:", "Where is Lisbon?"),
    ],
    [
        {
            "role": "system",
            "content": "You are an expert software engineer that generates concise, one-line Git"
            " commit messages based on the provided diffs.",
        },
        *user_says("diff --git a/x b/x"),
    ],
]


@pytest.mark.parametrize("messages", TITLE_CALLS)
def test_a_call_for_a_title_stays_out_of_the_session(
    client: OpenAI, talk: list[str], messages: list[dict[str, Any]]
) -> None:
    answer = client.chat.completions.with_raw_response.create(
        model="scripted/test-model",
        messages=messages,  # type: ignore[arg-type]
    )
    assert answer.parse().choices[0].message.content == "The new answer."
    assert "x-session-id" not in answer.headers
    assert load_texts() == talk
    assert Session.objects.get().system_prompt == ""


def test_a_person_may_ask_for_a_title_in_the_conversation(client: OpenAI, talk: list[str]) -> None:
    question = "Write a title for my article about this conversation."
    ask(client, user_says(question))
    assert load_texts() == [*talk, question, "The new answer."]


def test_a_question_with_documents_is_part_of_the_conversation(client: OpenAI) -> None:
    question = (
        "### Task:\nRespond to the user query using the provided context.\n"
        "<context>\nRome is in Italy.\n</context>\nWhere is Rome?"
    )
    ask(client, user_says(question))
    assert load_texts()[0] == question


def test_an_answer_names_its_session(client: OpenAI, talk: list[str]) -> None:
    answer = client.chat.completions.with_raw_response.create(
        model="scripted/test-model",
        messages=user_says("And Rome?"),
    )
    assert answer.headers["x-session-id"] == str(Session.objects.get().pk)
