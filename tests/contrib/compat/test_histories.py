"""Conversations that a client does not name are found by the whole history that it sends."""

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import httpx
import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone
from openai import NotFoundError, OpenAI
from rest_framework.test import APIClient

from chatcore.accounts.tokens import create_token
from chatcore.base.runner import turn_runner
from chatcore.contrib.compat.histories import delete_old_histories
from chatcore.contrib.compat.models import HistoryKey
from chatcore.contrib.compat.summary_notes import KEPT_DAYS
from chatcore.models import Message, Session
from chatcore.sessions import verification
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.http_client import http
from tests.support.openai_client import MODEL, client, create_key, list_completions
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

__all__ = ["client"]

pytestmark = pytest.mark.django_db(transaction=True)
PATHS = ("/v1/chat/completions", "/v1/messages")
# What follows a program's own summary goes on over responses too, which are stored from the first
# question on.
over_all_apis = pytest.mark.parametrize("path", [*PATHS, "/v1/responses"], indirect=True)
Post = Callable[..., httpx.Response]


@pytest.fixture(params=PATHS)
def path(request: Any) -> str:
    return str(request.param)


@pytest.fixture
def post(live: Live, user: User, model: AiModel, path: str) -> Iterator[Post]:
    """Return what sends a whole history of texts or messages, the user's first."""
    key = create_key(user)

    def send(*history: Any, token: str = key, status: int = 200, **members: Any) -> httpx.Response:
        body = {"model": MODEL, "max_tokens": 100, "messages": write(*history)} | members
        response = http.post(
            live.url + path,
            headers={"authorization": f"Bearer {token}"},
            json=write_response(body) if path == "/v1/responses" else body,
            timeout=60,
        )
        turn_runner.drain()
        assert response.status_code == status, response.text
        return response

    yield send
    for session in Session.objects.all():
        assert not verification.check_session(session.pk)


def write(*history: Any) -> list[Any]:
    roles = ("user", "assistant")
    return [
        {"role": roles[index % 2], "content": each} if isinstance(each, str | list) else each
        for index, each in enumerate(history)
    ]


def write_response(body: dict[str, Any]) -> dict[str, Any]:
    """Return a request for a chat completion as one for a response."""
    items: list[Any] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            output = {"call_id": message["tool_call_id"], "output": message["content"]}
            items.append({"type": "function_call_output"} | output)
            continue
        if message["content"]:
            items.append({"role": message["role"], "content": message["content"]})
        items += [
            {"type": "function_call", "call_id": call["id"]} | call["function"]
            for call in message.get("tool_calls", ())
        ]
    tools = [{"type": "function"} | tool["function"] for tool in body.get("tools", ())]
    return {"model": body["model"], "input": items, "tools": tools}


def load_texts(session: Session) -> list[str]:
    rows = session.messages.exclude_superseded().order_by("seq")
    return list(rows.values_list("content", flat=True))


def test_a_question_that_nobody_continues_is_not_stored(post: Post) -> None:
    post("q1")
    post("q1")
    assert not Session.objects.exists()


def test_a_conversation_is_stored_whole_from_its_second_message_on(
    post: Post, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="a1"), Reply(text="a2"), Reply(text="a3"))
    assert "x-session-id" not in post("q1").headers
    second = post("q1", "a1", "q2")
    session = Session.objects.get()
    assert (second.headers["x-session-id"], session.title) == (str(session.pk), "q1")
    post("q1", "a1", "q2", "a2", "q3")
    assert Session.objects.count() == 1
    assert load_texts(session) == ["q1", "a1", "q2", "a2", "q3", "a3"]
    assert not Message.objects.exclude(branch=None).exists()
    assert HistoryKey.objects.get().session_id == session.pk


def test_an_answer_that_is_not_of_this_server_begins_nothing(post: Post) -> None:
    """Examples in a prompt look like a conversation."""
    for question in ("q2", "q3", "q4"):
        post("example", "its answer", question)
    assert not Session.objects.exists()


def test_conversations_that_begin_alike_stay_apart(post: Post, scripted: ScriptedModel) -> None:
    scripted.default = Reply(text="a")
    post("Hi")
    post("Hi")
    post("Hi", "a", "one")
    post("Hi", "a", "two")
    post("Hi", "a", "one", "a", "more")
    post("Hi", "a", "two", "a", "more")
    texts = sorted(load_texts(session) for session in Session.objects.all())
    assert texts == [
        ["Hi", "a", "one", "a", "more", "a"],
        ["Hi", "a", "two", "a", "more", "a"],
    ]


def test_of_equal_conversations_the_one_with_the_same_answer_goes_on(
    post: Post, scripted: ScriptedModel
) -> None:
    scripted.default = Reply(text="a")
    post("q")
    post("q")
    scripted.script(Reply(text="left"), Reply(text="right"))
    post("q", "a", "q")
    post("q", "a", "q")
    post("q", "a", "q", "left", "and")
    post("q", "a", "q", "right", "and")
    for session in Session.objects.all():
        assert len(set(load_texts(session)) & {"left", "right"}) == 1
    assert Session.objects.count() == 2


def test_of_two_equal_requests_at_once_one_goes_on(post: Post, scripted: ScriptedModel) -> None:
    together = threading.Barrier(2, timeout=30)

    def answer(body: dict[str, Any]) -> Reply:
        together.wait()
        return Reply(text="a2")

    scripted.script(Reply(text="a1"), answer, answer)
    post("q1")
    with ThreadPoolExecutor(2) as pool:
        responses = list(pool.map(lambda _: post("q1", "a1", "q2"), range(2)))
    assert sum("x-session-id" in response.headers for response in responses) == 1
    assert load_texts(Session.objects.get()) == ["q1", "a1", "q2", "a2"]


def test_an_edit_of_an_earlier_message_begins_another_conversation(
    post: Post, scripted: ScriptedModel
) -> None:
    scripted.default = Reply(text="a")
    post("q1")
    post("q1", "a", "q2")
    post("q1", "a", "other")
    session = Session.objects.get()
    assert load_texts(session) == ["q1", "a", "q2", "a"]
    post("q1", "a", "other", "a", "on")
    assert sorted(len(load_texts(each)) for each in Session.objects.all()) == [4, 6]


def test_what_a_program_adds_and_takes_away_does_not_count(
    post: Post, scripted: ScriptedModel, path: str
) -> None:
    scripted.script(Reply(text="a1"), Reply(text="a2"), Reply(text="a3"))
    reminder = {"type": "text", "text": "<system-reminder>\nToday.\n</system-reminder>"}
    mark = {"cache_control": {"type": "ephemeral"}} if path == "/v1/messages" else {}

    def mark_text(text: str) -> dict[str, Any]:
        return {"type": "text", "text": text} | mark

    post([reminder, mark_text("q1")])
    post([{"type": "text", "text": "q1"}], "<think>So.</think>a1", [reminder, mark_text("q2")])
    post("q1", "a1", [{"type": "text", "text": "q2 "}], "a2", [mark_text("q3")])
    assert Session.objects.count() == 1


def test_blocks_of_any_program_around_the_words_do_not_count(
    post: Post, scripted: ScriptedModel
) -> None:
    scripted.script(*(Reply(text=f"a{number}") for number in range(1, 5)))
    note = "<context-note>\n12:0{}\n</context-note>"
    post(f"{note.format(1)}\nq1")
    post("q1", "a1", f"q2\n{note.format(2)}")
    post("q1", "a1", "q2", "a2", f"q3\n{note.format(3)}")
    post("q1", "a1", "q2", "a2", "q3", "a3", "q4")
    assert load_texts(Session.objects.get())[-1] == "a4"


def test_conversations_that_differ_only_in_their_blocks_stay_apart(
    post: Post, scripted: ScriptedModel
) -> None:
    scripted.script(*(Reply(text=text) for text in ("is A", "is B", "on A", "on B", "end A")))
    firsts = [f"<open_file>\n{name}\n</open_file>\nWhat is this?" for name in "AB"]
    for first in firsts:
        post(first)
    for name, first in zip("AB", firsts, strict=True):
        post(first, f"is {name}", "And?")
    post(firsts[0], "is A", "And?", "on A", "So?")
    texts = sorted(load_texts(session) for session in Session.objects.all())
    assert [each[1::2] for each in texts] == [["is A", "on A", "end A"], ["is B", "on B"]]


def test_rounds_of_tools_are_one_conversation(
    post: Post, scripted: ScriptedModel, path: str
) -> None:
    arguments = {"a": 1, "b": 2}
    scripted.script(
        Reply(tool_calls=[make_tool_call("look", arguments, id="c1")]),
        Reply(tool_calls=[make_tool_call("look", arguments, id="c2")]),
        Reply(text="Done."),
        Reply(text="Nothing new."),
    )
    history: list[Any] = ["Look."]
    if path == "/v1/messages":
        tools: list[Any] = [{"name": "look", "input_schema": {"type": "object"}}]
    else:
        tools = [{"type": "function", "function": {"name": "look"}}]
    post(*history, tools=tools)
    for call_id in ("c1", "c2"):
        history += write_round(path, call_id, {"b": 2, "a": 1})
        post(*history, tools=tools)
        assert Session.objects.get().title == "Look."
    post(*history, "Done.", "And now?", tools=tools)
    session = Session.objects.get()
    assert load_texts(session)[-3:] == ["Done.", "And now?", "Nothing new."]
    assert not Message.objects.exclude(branch=None).exists()


def write_round(path: str, call_id: str, arguments: dict[str, Any]) -> list[Any]:
    """Return a call and its result, as a client sends them back."""
    if path == "/v1/messages":
        call = {"type": "tool_use", "id": call_id, "name": "look", "input": arguments}
        result = {"type": "tool_result", "tool_use_id": call_id, "content": "seen"}
        return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    function = {"name": "look", "arguments": json.dumps(arguments)}
    calls = [{"id": call_id, "type": "function", "function": function}]
    return [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": call_id, "content": "seen"},
    ]


def test_each_token_has_its_own_conversations(
    post: Post, scripted: ScriptedModel, user: User
) -> None:
    scripted.default = Reply(text="a")
    post("q1")
    post("q1", "a", "q2")
    post("q1", "a", "q2", "a", "q3", token=create_key(user))
    assert load_texts(Session.objects.get()) == ["q1", "a", "q2", "a"]


def test_a_request_comes_again_after_its_answer_failed(post: Post, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="a1"), Reply(status=401, text="No."))
    post("q1")
    post("q1", "a1", "q2", status=502)
    scripted.script(Reply(text="a2"))
    post("q1", "a1", "q2")
    assert load_texts(Session.objects.get()) == ["q1", "a1", "q2", "a2"]


def test_a_request_that_begins_no_answer_leaves_the_conversation_where_it_was(
    post: Post, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted.default = Reply(text="a")
    post("q1")
    with monkeypatch.context() as patch:
        patch.setitem(settings.CHATCORE, "TURNS_PER_MINUTE", 1)
        post("q1", "a", "q2", status=429)
    assert not Session.objects.exists()
    post("q1", "a", "q2")
    assert Session.objects.count() == 1


def test_nothing_is_noted_where_the_token_says_no(post: Post, user: User) -> None:
    _, token = create_token(user, name="", expiry=None, keeps_conversations=False)
    post("q1", token=token)
    post("q1", "Hello from the scripted model.", "q2", token=token)
    assert not Session.objects.exists()
    assert not HistoryKey.objects.exists()


def test_what_nobody_continued_is_forgotten(post: Post, scripted: ScriptedModel) -> None:
    scripted.default = Reply(text="a")
    post("kept")
    post("kept", "a", "on")
    post("old")
    HistoryKey.objects.update(used_at=timezone.now() - timedelta(days=KEPT_DAYS, hours=1))
    post("new")
    assert delete_old_histories() == 1
    assert HistoryKey.objects.count() == 2
    assert list_completions(scripted)


FILLER = "The user lists files; all went well so far. "
LONG_SUMMARY = f"## Goal\nFix the parser of dates.\n## State\n{FILLER * 12}"
# How programs send back the summary that they asked for, and what they write around it.
HEADS: list[list[Any]] = [
    [f"The conversation before this point was compacted.\n<summary>\n{LONG_SUMMARY}\n</summary>"],
    [{"role": "assistant", "content": f"{LONG_SUMMARY}"}],
    ["What did we do so far?", {"role": "assistant", "content": LONG_SUMMARY}],
    [
        LONG_SUMMARY,
        {"role": "assistant", "content": "Got it. Thanks for the additional context!"},
        {"role": "user", "content": "Continue the prior task."},
    ],
    [f"Context summary:\n\n{LONG_SUMMARY}\n\n## Files\nRead: none"],
]
SUMMARY_SYSTEM = "You are a context summarization assistant. Read a conversation and summarize it."


def ask_for_summary(post: Post, path: str, scripted: ScriptedModel, kind: str) -> None:
    scripted.script(Reply(text=f"<think>Hm.</think>{LONG_SUMMARY}"))
    if kind == "whole":
        question = "Please provide a concise summary of our conversation so far, capturing the key"
        post("Fix it: q1", "a1", "q2", "a2", f"{question} context, decisions made")
        return
    if kind == "part":  # Gemini CLI, and Qwen Code until 0.15: of the older messages alone
        ask = "First, reason in your scratchpad. Then, generate the snapshot."
        messages: list[Any] = ["Fix it: q1", "a1", ask]
        if path == "/v1/messages":
            post(*messages, system=SUMMARY_SYSTEM)
        else:
            post({"role": "system", "content": SUMMARY_SYSTEM}, *write(*messages))
        return
    quote = "<conversation>\n[User]: Fix it: q1\n\n[Assistant]: a1\n\n[User]: q2\n</conversation>"
    if path == "/v1/messages":
        post(quote, system=SUMMARY_SYSTEM)
    else:
        post({"role": "system", "content": SUMMARY_SYSTEM}, {"role": "user", "content": quote})


@over_all_apis
@pytest.mark.parametrize("kind", ["whole", "part", "quoted"])
@pytest.mark.parametrize("head", HEADS)
def test_what_follows_a_programs_own_summary_goes_on_in_its_conversation(
    post: Post, scripted: ScriptedModel, user: User, path: str, head: list[Any], kind: str
) -> None:
    scripted.script(*(Reply(text=text) for text in ("a1", "a2", "b1", "b2")))
    post("Fix it: q1")
    post("Fix it: q1", "a1", "q2")
    post("Another thing.")
    post("Another thing.", "b1", "on")
    session = Session.objects.get(title__startswith="Fix")
    ask_for_summary(post, path, scripted, kind)
    tail = [{"role": "assistant", "content": "a2"}, {"role": "user", "content": "q3"}]
    scripted.script(Reply(text="a3"), Reply(text="a4"))
    post(*head, *tail)
    then = [{"role": "assistant", "content": "a3"}, {"role": "user", "content": "q4"}]
    post(*head, *tail, *then)
    assert Session.objects.count() == 2
    assert load_texts(session) == ["Fix it: q1", "a1", "q2", "a2", "q3", "a3", "q4", "a4"]
    assert not Message.objects.exclude(branch=None).exists()
    sent = str(list_completions(scripted)[-1].json["messages"])
    assert "parser of dates" in sent
    assert "Fix it: q1" not in sent
    rest = APIClient()
    rest.force_authenticate(user)
    [run] = rest.get(f"/api/v1/sessions/{session.pk}/compactions").json()["results"]
    assert (run["trigger"], run["status"]) == ("by_client", "applied")
    assert rest.post(f"/api/v1/sessions/{session.pk}/context/undo").status_code == 200


@over_all_apis
def test_a_summary_of_another_token_leads_nowhere(
    post: Post, scripted: ScriptedModel, user: User, path: str
) -> None:
    scripted.script(Reply(text="a1"), Reply(text="a2"))
    post("Fix it: q1")
    post("Fix it: q1", "a1", "q2")
    ask_for_summary(post, path, scripted, "whole")
    post(LONG_SUMMARY, "a2", "q3", token=create_key(user))
    session = Session.objects.get(title__startswith="Fix")
    assert load_texts(session) == ["Fix it: q1", "a1", "q2", "a2"]


@over_all_apis
@pytest.mark.parametrize("acknowledgement", ["", "Got it. Thanks!"])
def test_a_summary_in_the_middle_of_a_task_goes_on_with_its_calls(
    post: Post, scripted: ScriptedModel, path: str, acknowledgement: str
) -> None:
    """Qwen Code writes a word of its own into the answer with the newest calls."""
    scripted.script(
        Reply(tool_calls=[make_tool_call("look", {"a": 1}, id="c1")]),
        Reply(tool_calls=[make_tool_call("look", {"a": 2}, id="c2")]),
    )
    if path == "/v1/messages":
        tools: list[Any] = [{"name": "look", "input_schema": {"type": "object"}}]
    else:
        tools = [{"type": "function", "function": {"name": "look"}}]
    history: list[Any] = ["Look.", *write_round(path, "c1", {"a": 1})]
    post("Look.", tools=tools)
    post(*history, tools=tools)
    call, result = write_round(path, "c2", {"a": 2})
    question = (
        "You are the component that summarizes a conversation when its context window is about"
    )
    scripted.script(Reply(text=f"<analysis>\n{FILLER * 8}\n</analysis>\n{LONG_SUMMARY}"))
    ask = {"role": "user", "content": f"{question} to overflow."}
    post(*history, call, result, ask, tools=tools)
    if acknowledgement and path == "/v1/messages":
        call["content"].insert(0, {"type": "text", "text": acknowledgement})
    elif acknowledgement:
        call["content"] = acknowledgement
    scripted.script(Reply(text="Seen all."))
    post(f"{LONG_SUMMARY}\n\nResume the task.", call, result, tools=tools)
    session = Session.objects.get()
    assert load_texts(session) == ["Look.", "", "seen", "", "seen", "Seen all."]
    sent = list_completions(scripted)[-1].json["messages"]
    assert "parser of dates" in str(sent)
    assert [each["role"] for each in sent][-2:] == ["assistant", "tool"]
    assert session.turns.get().status == "completed"


class Run:
    """A program's run of a task with calls, which has its older messages summarized."""

    def __init__(self, post: Post, scripted: ScriptedModel, path: str, prefix: str) -> None:
        self.post, self.scripted, self.path, self.prefix = post, scripted, path, prefix
        self.history: list[Any] = ["Look."]
        if path == "/v1/messages":
            self.tools: list[Any] = [{"name": "look", "input_schema": {"type": "object"}}]
        else:
            self.tools = [{"type": "function", "function": {"name": "look"}}]
        self.count = 0
        self.go_on()

    def go_on(self) -> None:
        self.count += 1
        call_id, arguments = f"{self.prefix}{self.count}", {"a": self.count}
        call = make_tool_call("look", arguments, id=call_id)
        self.scripted.script(Reply(text=f"Step {self.count} it is.", tool_calls=[call]))
        self.post(*self.history, tools=self.tools)
        answer, result = write_round(self.path, call_id, arguments)
        if self.path == "/v1/messages":
            answer["content"].insert(0, {"type": "text", "text": f"Step {self.count} it is."})
        else:
            answer["content"] = f"Step {self.count} it is."
        self.history += [answer, result]

    def summarize(self, kind: str) -> None:
        """Ask for a summary of all but the newest round."""
        self.scripted.script(Reply(text=LONG_SUMMARY))
        quote = "\n\n".join(f"[Assistant]: Step {number} it is." for number in range(1, self.count))
        asked = [{"role": "user", "content": "Then, generate the snapshot."}]
        if kind == "part":
            asked = write("Look.") + self.history[1:-2] + asked
        else:
            asked[0]["content"] = f"<conversation>\n[User]: Look.\n\n{quote}\n</conversation>"
        if self.path == "/v1/messages":
            self.post(*asked, system=SUMMARY_SYSTEM)
        else:
            self.post({"role": "system", "content": SUMMARY_SYSTEM}, *asked)
        self.history = [f"{LONG_SUMMARY}\n\nGo on.", *self.history[-2:]]


def load_call_ids(session: Session) -> list[str]:
    answers = session.messages.exclude_superseded().filter(role="assistant").order_by("seq")
    return [call["id"] for answer in answers for call in answer.tool_calls]


@pytest.mark.slow
@over_all_apis
@pytest.mark.parametrize("kind", ["part", "quoted"])
@pytest.mark.parametrize("is_interleaved", [True, False])
def test_equal_summaries_lead_each_run_of_a_task_into_its_own_conversation(
    post: Post, scripted: ScriptedModel, path: str, kind: str, is_interleaved: bool
) -> None:
    if is_interleaved:
        runs = [Run(post, scripted, path, prefix) for prefix in ("left", "right")]
        steps = [(run, step) for step in ("on", "on", "sum", "on", "on") for run in runs]
    else:
        first = Run(post, scripted, path, "left")
        steps = [(first, step) for step in ("on", "on", "sum", "on", "on")]
    for run, step in steps:
        run.summarize(kind) if step == "sum" else run.go_on()
    if not is_interleaved:
        second = Run(post, scripted, path, "right")
        for step in ("on", "on", "sum", "on", "on"):
            second.summarize(kind) if step == "sum" else second.go_on()
    found_ids = sorted(load_call_ids(session) for session in Session.objects.all())
    assert found_ids == [
        [f"{prefix}{number}" for number in range(1, 6)] for prefix in ("left", "right")
    ]


@over_all_apis
@pytest.mark.parametrize("kind", ["part", "quoted"])
def test_of_runs_that_are_equal_in_all_the_one_used_last_goes_on(
    post: Post, scripted: ScriptedModel, path: str, kind: str
) -> None:
    for _ in range(2):
        run = Run(post, scripted, path, "c")
        for step in ("on", "on", "sum", "on", "on"):
            run.summarize(kind) if step == "sum" else run.go_on()
    found_ids = [load_call_ids(session) for session in Session.objects.all()]
    assert found_ids == [["c1", "c2", "c3", "c4", "c5"]] * 2


def test_a_summary_of_two_conversations_leads_into_none_where_nothing_tells_them_apart(
    post: Post, scripted: ScriptedModel, path: str
) -> None:
    scripted.script(*(Reply(text=text) for text in ("a1", "a1", "a2", "a2")))
    for history in (["Fix it: q1"], ["Fix it: q1", "a1", "q2"]):
        post(*history)
        post(*history)
    ask_for_summary(post, path, scripted, "quoted")
    post(LONG_SUMMARY, "a2", "q3")
    assert [len(load_texts(session)) for session in Session.objects.all()] == [4, 4]


def test_a_title_over_responses_stays_out_of_the_named_session(
    client: OpenAI, scripted: ScriptedModel
) -> None:
    headers = {"X-Session-Id": "trip"}
    client.responses.create(model=MODEL, input="Plan a trip.", extra_headers=headers)
    turn_runner.drain()
    system = "You are a title generator. Generate a brief title for this conversation."
    for input in ("Generate a title for this conversation:", "Plan a trip."):
        client.responses.create(
            model=MODEL, instructions=system, input=input, extra_headers=headers
        )
        turn_runner.drain()
    session = Session.objects.get()
    assert (session.message_count, session.system_prompt) == (2, "")
    title = client.responses.create(model=MODEL, instructions=system, input="Plan a trip.")
    turn_runner.drain()
    assert client.responses.retrieve(title.id).output_text


def test_a_summary_over_responses_is_stored_where_its_client_says_so(client: OpenAI) -> None:
    text = "Please provide a concise summary of our conversation so far, capturing the key context,"
    unstored = client.responses.create(model=MODEL, input=text)
    stored = client.responses.create(model=MODEL, input=text, store=True)
    turn_runner.drain()
    assert client.responses.retrieve(stored.id).output_text
    with pytest.raises(NotFoundError):
        client.responses.retrieve(unstored.id)


def test_an_answer_behind_a_summary_that_is_said_again_replaces_nothing(
    post: Post, scripted: ScriptedModel, path: str
) -> None:
    """Continue sends its summary alone, as an answer, and then what the model says to that."""
    texts = ["Fix it: q1", "Done.", "q2", "a2", "q3", "a3"]
    for end in (1, 3, 5):
        scripted.script(Reply(text=texts[end]))
        post(*texts[:end])
    question = "Please provide a concise summary of our conversation so far, capturing the key"
    scripted.script(Reply(text=LONG_SUMMARY), Reply(text="a4"))
    post(*texts, f"{question} context, decisions made")
    behind = [{"role": "assistant", "content": each} for each in (LONG_SUMMARY, "Done.")]
    post(*behind, {"role": "user", "content": "Go on."})
    session = Session.objects.get(title__startswith="Fix")
    assert load_texts(session)[:6] == texts
    assert load_texts(session)[-2:] == ["Go on.", "a4"]
    assert not Message.objects.exclude(branch=None).exists()


@pytest.mark.parametrize("path", ["/v1/chat/completions"], indirect=True)
def test_a_program_sends_its_summary_alone_in_the_middle_of_a_task(
    post: Post, scripted: ScriptedModel, path: str
) -> None:
    """Continue does, as an answer. The newest result is in its request for the summary alone."""
    tools = [{"type": "function", "function": {"name": "look"}}]
    steps = [
        Reply(text=f"Step {n}.", tool_calls=[make_tool_call("look", {"a": n}, id=f"c{n}")])
        for n in range(1, 6)
    ]
    scripted.script(*steps[:3], Reply(text=LONG_SUMMARY), *steps[3:], Reply(text="Seen all."))
    history: list[Any] = ["Look."]
    question = "Please provide a concise summary of our conversation so far, capturing the key"
    for number in range(1, 6):
        if number == 4:
            ask = {"role": "user", "content": f"{question} context, decisions made"}
            post(*history, ask, tools=tools)
            history = [{"role": "assistant", "content": LONG_SUMMARY}]
        post(*history, tools=tools)
        answer, result = write_round(path, f"c{number}", {"a": number})
        history += [answer | {"content": f"Step {number}."}, result]
    post(*history, tools=tools)
    session = Session.objects.get()
    assert load_call_ids(session) == ["c1", "c2", "c3", "c4", "c5"]
    assert load_texts(session)[-1] == "Seen all."
    assert not Message.objects.exclude(branch=None).exists()


def test_a_history_without_any_message_of_the_user_is_stored(
    post: Post, scripted: ScriptedModel, path: str
) -> None:
    scripted.script(
        Reply(tool_calls=[make_tool_call("look", {"a": 2}, id="c2")]), Reply(text="On.")
    )
    if path == "/v1/messages":
        tools: list[Any] = [{"name": "look", "input_schema": {"type": "object"}}]
    else:
        tools = [{"type": "function", "function": {"name": "look"}}]
    history = write_round(path, "c1", {"a": 1})
    post(*history, tools=tools)
    post(*history, *write_round(path, "c2", {"a": 2}), tools=tools)
    session = Session.objects.get()
    assert load_texts(session) == [
        "(Earlier messages are not shown.)",
        "",
        "seen",
        "",
        "seen",
        "On.",
    ]


def test_a_message_behind_a_question_whose_answer_was_stopped(
    post: Post, scripted: ScriptedModel
) -> None:
    """Cline keeps the question and drops what there was of the answer."""
    scripted.script(Reply(text="a1"), Reply(text="a2"), Reply(status=401, text="No."))
    post("q1")
    post("q1", "a1", "q2")
    post("q1", "a1", "q2", "a2", "long", status=502)
    scripted.script(Reply(text="a4"), Reply(text="a5"))
    history = write("q1", "a1", "q2", "a2", "long") + write("q4")
    post(*history)
    post(*history, {"role": "assistant", "content": "a4"}, {"role": "user", "content": "q5"})
    session = Session.objects.get()
    assert load_texts(session)[-5:] == ["long", "q4", "a4", "q5", "a5"]
    assert not Message.objects.exclude(branch=None).exists()
