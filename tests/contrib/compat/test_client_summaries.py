"""Programs that compact their conversation by themselves, and what is kept of it here."""

from typing import Any

import pytest
from anthropic import Anthropic
from django.contrib.auth.models import User
from openai import OpenAI
from rest_framework.test import APIClient

from chatcore.models import Message, Session
from compaction.models import CompactionRun
from models_registry.models import AiModel
from tests.support import anthropic_client
from tests.support.openai_client import WEATHER, list_completions
from tests.support.remembered_completions import (
    ask,
    build_history,
    client,
    load_messages,
    user_says,
    verify_session,
)
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

__all__ = ["client", "verify_session"]

pytestmark = pytest.mark.django_db(transaction=True)
SUMMARY = ["What did we do so far?", "A summary: the code word is heliotrope."]
LONG_SUMMARY = "This session goes on from an earlier one. " + "The code word is heliotrope. " * 20


@pytest.fixture(autouse=True)
def answer_each(scripted: ScriptedModel, model: AiModel) -> None:
    AiModel.objects.filter(pk=model.pk).update(context_window_size=65_536)
    scripted.default = lambda body: Reply(text=f"Answer to {body['messages'][-1]['content']}")


@pytest.fixture
def talk(client: OpenAI) -> list[str]:
    """Four exchanges of the session; the texts are the user's and the model's in turn."""
    texts: list[str] = []
    for number in range(4):
        texts.append(f"Question {number}")
        ask(client, build_history(*texts))
        texts.append(f"Answer to Question {number}")
    return texts


@pytest.fixture
def rest(user: User) -> APIClient:
    api_client = APIClient()
    api_client.force_authenticate(user)
    return api_client


def load_texts() -> list[str]:
    return [text for _, text in load_messages()]


def load_runs(rest: APIClient) -> list[dict[str, Any]]:
    session = Session.objects.get()
    runs: list[dict[str, Any]] = rest.get(f"/api/v1/sessions/{session.pk}/compactions").json()[
        "results"
    ]
    return runs


def get_last_request(scripted: ScriptedModel) -> str:
    return str(list_completions(scripted)[-1].json["messages"])


def test_what_was_stored_stays_and_the_summary_is_a_run(
    client: OpenAI, scripted: ScriptedModel, rest: APIClient, talk: list[str]
) -> None:
    ask(client, build_history(*SUMMARY, *talk[-2:], "And now?"))
    assert load_texts() == [*talk, "And now?", "Answer to And now?"]
    assert not Message.objects.exclude(branch=None).exists()
    [run] = load_runs(rest)
    assert (run["trigger"], run["status"]) == ("by_client", "applied")
    assert run["stages_used"] == ["client_summary"]
    assert run["messages_compacted"] == 6
    assert run["summary_after"] == "\n\n".join(SUMMARY)
    sent = get_last_request(scripted)
    assert "heliotrope" in sent
    assert "Question 2" not in sent
    assert talk[-1] in sent


def test_the_next_requests_of_the_program_go_on(
    client: OpenAI, rest: APIClient, talk: list[str]
) -> None:
    history = [*SUMMARY, *talk[-2:]]
    for number in range(3):
        history.append(f"Later {number}")
        ask(client, build_history(*history))
        history.append(f"Answer to Later {number}")
    assert load_texts() == [*talk, *history[4:]]
    assert len(load_runs(rest)) == 1


def test_it_can_be_undone_and_the_program_destroys_nothing_after_that(
    client: OpenAI, scripted: ScriptedModel, rest: APIClient, talk: list[str]
) -> None:
    history = [*SUMMARY, *talk[-2:], "And now?"]
    ask(client, build_history(*history))
    session = Session.objects.get()
    assert rest.post(f"/api/v1/sessions/{session.pk}/context/undo").status_code == 200
    assert [run["status"] for run in load_runs(rest)] == ["rewound"]
    ask(client, build_history(*history, "Answer to And now?", "And then?"))
    newer = ["And now?", "Answer to And now?", "And then?", "Answer to And then?"]
    assert load_texts() == [*talk, *newer]
    assert not Message.objects.exclude(branch=None).exists()
    assert [run["status"] for run in load_runs(rest)] == ["rewound"]
    session.refresh_from_db()
    assert session.compacted_summary is None
    assert "Question 0" in get_last_request(scripted)
    assert rest.post(f"/api/v1/sessions/{session.pk}/context/redo").status_code == 200
    assert [run["status"] for run in load_runs(rest)] == ["applied"]


def test_a_second_summary_of_the_program_follows_the_first(
    client: OpenAI, rest: APIClient, talk: list[str]
) -> None:
    history = [*SUMMARY, *talk[-2:]]
    for number in range(3):
        history.append(f"Later {number}")
        ask(client, build_history(*history))
        history.append(f"Answer to Later {number}")
    ask(client, build_history("What did we do?", "Another summary.", *history[-2:], "Go on."))
    assert load_texts() == [*talk, *history[4:], "Go on.", "Answer to Go on."]
    newest, oldest = load_runs(rest)
    assert newest["boundary_before"] == oldest["boundary_after"]
    assert newest["summary_after"] == "What did we do?\n\nAnother summary."


def test_a_summary_without_any_stored_message_behind_it(
    client: OpenAI, scripted: ScriptedModel, rest: APIClient, talk: list[str]
) -> None:
    history = [LONG_SUMMARY, "I go on.", "And now?"]
    ask(client, build_history(*history))
    ask(client, build_history(*history, "Answer to And now?", "And then?"))
    assert load_texts()[:8] == talk
    newer = ["And now?", "Answer to And now?", "And then?", "Answer to And then?"]
    assert load_texts()[8:] == newer
    [run] = load_runs(rest)
    assert run["messages_compacted"] == 8
    assert "Question 0" not in get_last_request(scripted)


def test_a_summary_before_the_whole_history(
    client: OpenAI, scripted: ScriptedModel, rest: APIClient, talk: list[str]
) -> None:
    history = [*user_says(LONG_SUMMARY), *build_history(*talk, "And now?")]
    ask(client, history)
    assert load_texts() == [*talk, "And now?", "Answer to And now?"]
    assert not Message.objects.exclude(branch=None).exists()
    [run] = load_runs(rest)
    assert run["messages_compacted"] == 0
    sent = get_last_request(scripted)
    assert "heliotrope" in sent
    assert "Question 0" in sent


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_summary_may_stand_behind_the_first_messages(
    client: OpenAI, scripted: ScriptedModel, rest: APIClient, talk: list[str], role: str
) -> None:
    """Some programs keep the task, and summarize what came after it."""
    head = [*user_says(talk[0]), {"role": role, "content": LONG_SUMMARY}]
    history = [*head, *build_history("", talk[-1], "And now?")[1:]]
    ask(client, history)
    answer = {"role": "assistant", "content": "Answer to And now?"}
    ask(client, [*history, answer, *user_says("And then?")])
    newer = ["And now?", "Answer to And now?", "And then?", "Answer to And then?"]
    assert load_texts() == [*talk, *newer]
    assert not Message.objects.exclude(branch=None).exists()
    [run] = load_runs(rest)
    assert (run["trigger"], run["status"]) == ("by_client", "applied")
    assert run["summary_after"] == f"{talk[0]}\n\n{LONG_SUMMARY}"
    assert "Question 2" not in get_last_request(scripted)


def test_a_summary_behind_the_task_in_the_middle_of_it(
    client: OpenAI, scripted: ScriptedModel, rest: APIClient
) -> None:
    history = user_says("Read them all.")
    for number in range(4):
        scripted.script(Reply(tool_calls=[make_tool_call("weather", id=f"call_{number}")]))
        answer = ask(client, history, tools=[WEATHER])
        history.append(answer.choices[0].message.model_dump(exclude_none=True))
        history.append({"role": "tool", "tool_call_id": f"call_{number}", "content": f"{number}."})
    scripted.script(Reply(text="All is read."))
    ask(client, [history[0], *user_says(LONG_SUMMARY), *history[-2:]], tools=[WEATHER])
    calls = [content for role, content in load_messages() if role == "tool"]
    assert calls == [f"{number}." for number in range(4)]
    assert load_texts()[-1] == "All is read."
    assert not Message.objects.exclude(branch=None).exists()
    assert len(load_runs(rest)) == 1


def test_the_exchange_that_asked_for_the_summary_may_be_stored(
    client: OpenAI, scripted: ScriptedModel, rest: APIClient, talk: list[str]
) -> None:
    scripted.script(Reply(text=SUMMARY[1]))
    ask(client, build_history(*talk, "Describe all that was done."))
    ask(client, build_history(*SUMMARY, *talk[-2:], "And now?"))
    assert load_texts() == [*talk, "And now?", "Answer to And now?"]
    assert len(load_runs(rest)) == 1


def test_a_tail_of_tool_calls_that_a_summary_cuts_a_turn_of(
    client: OpenAI, scripted: ScriptedModel, rest: APIClient
) -> None:
    history = user_says("Read them all.")
    for number in range(8):
        scripted.script(Reply(tool_calls=[make_tool_call("weather", id=f"call_{number}")]))
        answer = ask(client, history, tools=[WEATHER])
        history.append(answer.choices[0].message.model_dump(exclude_none=True))
        history.append({"role": "tool", "tool_call_id": f"call_{number}", "content": f"{number}."})
    # The program summarizes in the middle of its task, and brings the newest result with it.
    scripted.script(Reply(text="All is read."))
    shorter = [*build_history(*SUMMARY), *history[-4:]]
    ask(client, shorter, tools=[WEATHER])
    calls = [message for message in load_messages() if message[0] == "tool"]
    assert [content for _, content in calls] == [f"{number}." for number in range(8)]
    assert load_texts()[-1] == "All is read."
    [run] = load_runs(rest)
    assert run["messages_compacted"] == 13
    assert not Message.objects.exclude(branch=None).exists()
    ask(client, [*shorter, *build_history("", "All is read.")[1:], *user_says("Thanks.")])
    assert load_texts()[-3:-1] == ["All is read.", "Thanks."]
    assert len(load_runs(rest)) == 1


def test_words_that_were_said_before_are_new_behind_a_summary(
    client: OpenAI, rest: APIClient, talk: list[str]
) -> None:
    history = build_history(SUMMARY[1], talk[-1], "Question 1")
    ask(client, history)
    ask(client, [*history, *build_history("", "Answer to Question 1")[1:], *user_says("On.")])
    newer = ["Question 1", "Answer to Question 1", "On.", "Answer to On."]
    assert load_texts() == [*talk, *newer]
    assert len(load_runs(rest)) == 1


def test_a_second_summary_may_stand_before_the_first(
    client: OpenAI, rest: APIClient, talk: list[str]
) -> None:
    history = [*SUMMARY, *talk[-4:], "Later 0"]
    ask(client, build_history(*history))
    ask(client, build_history(*history, "Answer to Later 0", "Later 1"))
    newer = ["Later 0", "Answer to Later 0", "Later 1", "Answer to Later 1"]
    second = ["What did we do?", "Another summary.", *talk[-2:], *SUMMARY, *newer]
    ask(client, build_history(*second, "Go on."))
    assert load_texts() == [*talk, *newer, "Go on.", "Answer to Go on."]
    assert not Message.objects.exclude(branch=None).exists()
    ask(client, build_history(*second, "Go on.", "Answer to Go on.", "And on."))
    assert load_texts()[-2:] == ["And on.", "Answer to And on."]
    assert len(load_texts()) == 16
    assert [run["boundary_after"] for run in load_runs(rest)] == [7, 5]


def test_a_program_may_go_back_to_behind_its_summary(
    client: OpenAI, rest: APIClient, talk: list[str]
) -> None:
    history = [*SUMMARY, *talk[-2:]]
    for number in range(4):
        history.append(f"Later {number}")
        ask(client, build_history(*history))
        history.append(f"Answer to Later {number}")
    ask(client, build_history(*history[:4], "Another question"))
    assert load_texts() == [*talk, "Another question", "Answer to Another question"]
    assert len(load_runs(rest)) == 1


NO_SUMMARIES = {
    "the first message is edited, and the rest is sent with it": lambda talk: [
        "Another question",
        *talk[1:],
        "And now?",
    ],
    "the first exchange is edited": lambda talk: ["A", "B", *talk[2:], "And now?"],
    "the last question is edited": lambda talk: [*talk[:6], "Another question"],
    "the program goes back": lambda talk: [*talk[:2], "Another question"],
    "an exchange in the middle is deleted": lambda talk: [*talk[:2], *talk[4:], "And now?"],
    "an answer in the middle is edited": lambda talk: [
        *talk[:3],
        LONG_SUMMARY.strip(),
        *talk[4:],
        "And now?",
    ],
    "a short history from elsewhere": lambda talk: ["Who wrote it?", "Shakespeare.", "When?"],
    "a long history from elsewhere": lambda talk: [
        *(f"Other text {number} " * 40 for number in range(6)),
        "When?",
    ],
}


@pytest.mark.parametrize("case", NO_SUMMARIES)
def test_an_edit_is_no_summary(client: OpenAI, rest: APIClient, talk: list[str], case: str) -> None:
    history = NO_SUMMARIES[case](talk)
    ask(client, build_history(*history))
    assert load_texts()[:-1] == history
    assert load_runs(rest) == []


def test_a_client_that_says_edit_means_it(client: OpenAI, rest: APIClient, talk: list[str]) -> None:
    history = [*SUMMARY, *talk[-2:], "And now?"]
    headers = {"X-Session-On-Divergence": "edit"}
    ask(client, build_history(*history), extra_headers=headers)
    assert load_texts()[:-1] == history
    assert load_runs(rest) == []


def test_an_edit_behind_a_summary_changes_only_what_is_behind_it(
    client: OpenAI, rest: APIClient, talk: list[str]
) -> None:
    history = [*SUMMARY, *talk[-2:], "And now?"]
    ask(client, build_history(*history))
    ask(client, build_history(*history[:-1], "Or then?"))
    assert load_texts() == [*talk, "Or then?", "Answer to Or then?"]
    ask(client, build_history(*SUMMARY, talk[-2]))
    assert load_texts()[:6] == talk[:6]
    assert len(load_runs(rest)) == 1


def test_a_program_may_go_back_to_before_its_summary(
    client: OpenAI, scripted: ScriptedModel, talk: list[str]
) -> None:
    ask(client, build_history(*SUMMARY, *talk[-2:], "And now?"))
    ask(client, build_history(*talk[:4], "Another question"))
    assert load_texts() == [*talk[:4], "Another question", "Answer to Another question"]
    assert "heliotrope" not in get_last_request(scripted)


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
def test_a_summary_over_messages(
    request: pytest.FixtureRequest, live: Any, user: User, scripted: ScriptedModel, protocol: str
) -> None:
    if protocol == "anthropic":
        anthropic_client.speak_anthropic(scripted)
    scripted.default = Reply(text="Noted.")
    headers = {"X-Session-Id": "trip"}
    sdk: Anthropic = anthropic_client.create_client(live.url, user)
    texts: list[str] = []
    for number in range(4):
        texts.append(f"Question {number}")
        anthropic_client.ask(sdk, build_history(*texts), extra_headers=headers)
        texts.append("Noted.")
    history = [*SUMMARY, "Question 3", "Noted.", "And now?"]
    anthropic_client.ask(sdk, build_history(*history), extra_headers=headers)
    assert load_texts() == [*texts, "And now?", "Noted."]
    sent = str(anthropic_client.get_last_call(scripted))
    assert "heliotrope" in sent
    assert "Question 2" not in sent
    assert CompactionRun.objects.get().trigger == "by_client"


def test_a_program_says_the_same_again_and_again_behind_its_summary(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    """Cline does: "This run is not complete until …"."""
    scripted.default = Reply(text="Noted.")
    texts = ["Question", "Noted.", *["Go on.", "Noted."] * 4]
    for end in range(1, len(texts), 2):
        ask(client, build_history(*texts[:end]))
    history = [*SUMMARY, "Go on.", "Noted."]
    for _ in range(4):
        history.append("Go on.")
        ask(client, build_history(*history))
        history.append("Noted.")
        texts += ["Go on.", "Noted."]
        assert load_texts() == texts
    assert not Message.objects.exclude(branch=None).exists()


def test_a_program_says_the_same_again_and_again_at_the_end_of_its_history(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    """It sends its newest messages alone."""
    scripted.default = Reply(text="Noted.")
    texts = ["Question", "Noted."]
    ask(client, build_history("Question"))
    for _ in range(6):
        texts += ["Go on.", "Noted."]
        ask(client, build_history(*texts[:-1][-5:]))
    assert load_texts() == texts
    assert not Message.objects.exclude(branch=None).exists()
