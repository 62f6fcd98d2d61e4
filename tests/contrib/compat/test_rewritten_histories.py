"""Programs that name no conversation and ask for a summary in unknown words."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from chatcore.models import Message, Session
from tests.contrib.compat.test_histories import (
    FILLER,
    PATHS,
    Post,
    load_texts,
    path,
    post,
    write,
    write_round,
)
from tests.support.openai_client import client, create_key, list_completions
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

__all__ = ["client", "path", "post"]

pytestmark = pytest.mark.django_db(transaction=True)
over_all_apis = pytest.mark.parametrize("path", [*PATHS, "/v1/responses"], indirect=True)
SUMMARY = f"Ziel: der Leser von Daten. Stand: alles ist gelesen.\n{(FILLER * 12).strip()}"
ASK = "Fasse zusammen, was bisher geschah, damit ein Neuer hier weitermachen kann."
TALK = [
    "Fix it: q1",
    "This is answer 1, of some length.",
    "q1b",
    "An answer between the two.",
    "q2",
    "Answer 2, of the same length.",
]
TAIL = [{"role": "assistant", "content": TALK[-1]}, {"role": "user", "content": "q3"}]
FIRST = {"role": "user", "content": TALK[0]}
ANSWER = {"role": "assistant", "content": SUMMARY}
# What a program sends in place of its older messages.
HEADS: dict[str, list[Any]] = {
    "as the user": [f"Bisher:\n{SUMMARY}"],
    "as an answer": [ANSWER],
    "with a question": ["Was geschah?", ANSWER],
    "with an answer to it": [f"Bisher:\n{SUMMARY}", "Verstanden.", "Mach weiter."],
    "behind the first question": [FIRST, {"role": "user", "content": f"Bisher:\n{SUMMARY}"}],
    "as an answer to the first question": [FIRST, ANSWER],
}
# How it has the summary written: behind its history, or of a quote, or by another server.
KINDS = ("behind the history", "elsewhere")


def begin_talk(post: Post, scripted: ScriptedModel, texts: list[str]) -> None:
    for end in range(1, len(texts), 2):
        scripted.script(Reply(text=texts[end]))
        post(*texts[:end])


def begin_talks(post: Post, scripted: ScriptedModel) -> Session:
    """Store the conversation TALK and another one; return the session of TALK."""
    begin_talk(post, scripted, TALK)
    begin_talk(post, scripted, ["Fix it: other", "Other answer.", "o2", "The next other answer."])
    return Session.objects.get(title="Fix it: q1")


def ask_for_summary(post: Post, scripted: ScriptedModel, kind: str) -> None:
    if kind == "behind the history":
        scripted.script(Reply(text=SUMMARY))
        post(*TALK, ASK)


def check_card(session: Session, user: Any) -> None:
    rest = APIClient()
    rest.force_authenticate(user)
    [run] = rest.get(f"/api/v1/sessions/{session.pk}/compactions").json()["results"]
    assert (run["trigger"], run["status"]) == ("by_client", "applied")
    assert rest.post(f"/api/v1/sessions/{session.pk}/context/undo").status_code == 200


# Responses joins two answers in a row into one, so the summary cannot be recognized there.
ROWS = [
    (path, head)
    for path in (*PATHS, "/v1/responses")
    for head, messages in HEADS.items()
    if path in PATHS or messages[-1] != ANSWER
]
with_all_heads = pytest.mark.parametrize(("path", "head"), ROWS, indirect=["path"])


@with_all_heads
@pytest.mark.parametrize("kind", KINDS)
def test_what_follows_a_summary_in_any_words_goes_on_in_its_conversation(
    post: Post, scripted: ScriptedModel, user: Any, head: str, kind: str
) -> None:
    session = begin_talks(post, scripted)
    ask_for_summary(post, scripted, kind)
    history = [*HEADS[head], *TAIL]
    scripted.script(Reply(text="Answer 3."), Reply(text="Answer 4."))
    post(*history)
    post(*history, *write("", "Answer 3.")[1:], {"role": "user", "content": "q4"})
    assert load_texts(session) == [*TALK, "q3", "Answer 3.", "q4", "Answer 4."]
    # What the program asked for the summary with is a version, as it is in a named session.
    superseded = Message.objects.exclude(branch=None).order_by("seq")
    asked = [ASK, SUMMARY] if kind == "behind the history" else []
    assert list(superseded.values_list("content", flat=True)) == asked
    sent = str(list_completions(scripted)[-1].json["messages"])
    assert "Ziel: der Leser" in sent
    assert TALK[1] not in sent
    check_card(session, user)


@with_all_heads
def test_a_summary_in_any_words_in_the_middle_of_a_task(
    post: Post, scripted: ScriptedModel, path: str, head: str
) -> None:
    if path == "/v1/messages":
        tools: list[Any] = [{"name": "look", "input_schema": {"type": "object"}}]
    else:
        tools = [{"type": "function", "function": {"name": "look"}}]
    history: list[Any] = [TALK[0]]
    for number in range(1, 5):
        scripted.script(Reply(tool_calls=[make_tool_call("look", {"a": 1}, id=f"c{number}")]))
        post(*history, tools=tools)
        history += write_round(path, f"c{number}", {"a": 1})
    session = Session.objects.get()
    scripted.script(Reply(text="Seen all."))
    post(*HEADS[head], *history[-2:], tools=tools)
    assert Session.objects.count() == 1
    assert load_texts(session) == [TALK[0], *["", "seen"] * 4, "Seen all."]
    assert "Ziel: der Leser" in str(list_completions(scripted)[-1].json["messages"])


@over_all_apis
def test_a_summary_without_a_message_of_the_conversation_behind_it(
    post: Post, scripted: ScriptedModel
) -> None:
    session = begin_talks(post, scripted)
    ask_for_summary(post, scripted, "behind the history")
    scripted.script(Reply(text="Answer 3."))
    post(f"Bisher:\n{SUMMARY}", "Verstanden, ich mache weiter.", "q3")
    assert load_texts(session)[-2:] == ["q3", "Answer 3."]


@over_all_apis
def test_who_pastes_an_answer_into_another_conversation_begins_another_one(
    post: Post, scripted: ScriptedModel
) -> None:
    session = begin_talks(post, scripted)
    ask_for_summary(post, scripted, "behind the history")
    scripted.script(*(Reply(text=f"On {number}.") for number in range(4)))
    pasted = f"Do as it says here:\n{SUMMARY}"
    post(pasted)
    post(pasted, "On 0.", "p2")
    post(pasted, "On 0.", "p2, changed")
    other = f"{pasted}\nAnd quickly."
    post(other)
    post(*write(other), {"role": "user", "content": "its answer was stopped"})
    assert load_texts(session) == [*TALK, ASK, SUMMARY]


@pytest.mark.parametrize(
    "history",
    [[*TALK[:2], "other"], ["q0", *TALK[1:], "q3"], [*TALK[:3], SUMMARY, *TALK[4:], "q3"]],
)
def test_an_edit_is_no_summary(post: Post, scripted: ScriptedModel, history: list[str]) -> None:
    session = begin_talks(post, scripted)
    post(*history)
    assert load_texts(session) == TALK


@over_all_apis
def test_a_history_of_another_token_leads_nowhere(
    post: Post, scripted: ScriptedModel, user: Any
) -> None:
    session = begin_talks(post, scripted)
    post(*HEADS["as the user"], *TAIL, token=create_key(user))
    assert load_texts(session) == TALK


@over_all_apis
def test_of_equal_conversations_none_is_chosen(post: Post, scripted: ScriptedModel) -> None:
    for first in ("Fix it: q1", "Fix it: o1"):
        begin_talk(post, scripted, [first, *TALK[1:]])
    post(*HEADS["as the user"], *TAIL)
    oldest_sessions = Session.objects.order_by("created_at")[:2]
    assert all("q3" not in load_texts(each) for each in oldest_sessions)
