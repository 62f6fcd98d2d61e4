"""Answers that are no summary, over HTTP: the run fails with a reason, and nothing changes."""

import json
import re
from typing import Any

import pytest

from chatcore.models import ContextEdit, ContextRevision, Message, Session
from chatcore.transfer import importer
from compaction.models import CompactionRun
from compaction.runs import engine
from compaction.summaries import prompt
from compaction.summaries.templates import SUMMARY_TEMPLATES
from compaction.systems.lota import store as state
from compaction.systems.lota.models import WorkingState
from models_registry.models import AiModel
from tests.support.compaction_sessions import (
    SUMMARY,
    fill_session,
    list_summary_calls,
    summarize_or_chat,
    use_anthropic,
)
from tests.support.scripted_model import ScriptedModel, make_overflow, make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.slow_params import mark_other_rows_slow, mark_others_slow

pytestmark = pytest.mark.django_db(transaction=True)

QUICK = {"summary": {"retries": 0}}
HEADINGS = "TASK:\nPROGRESS:\n1.\n2.\nREMAINING:\n- ...\nDATA:\n- none\nDECISIONS: n/a"
LOOP = "The user asked about the trip to Lisbon again, and the assistant answered. "
OTHER_WORDS = (
    "They compare the trains of Saturday morning with those of Sunday, because the museum closes at"
    " noon and the hotel near the river keeps luggage only until four o'clock in the afternoon."
)
DIGITS = " ".join(map(str, range(10_000)))


def the_instruction(request: dict[str, Any]) -> Reply:
    return Reply(text=request["messages"][-1]["content"].rpartition("</transcript>")[2].strip())


def its_headings_as_explained(request: dict[str, Any]) -> Reply:
    """Return the lines of an instruction with other punctuation, as small models repeat them."""
    lines = re.findall(
        r"^(?:\d+\. )?([A-Z][\w ]+) \((.*)\)$", the_instruction(request).text, re.MULTILINE
    )
    return Reply(
        text="\n\n".join(f"{heading}: {meaning.capitalize()[:-1]}" for heading, meaning in lines)
    )


def the_transcript(request: dict[str, Any]) -> Reply:
    lines = request["messages"][-1]["content"].splitlines()
    return Reply(text="\n".join(line for line in lines if line.startswith("00"))[:6000])


# A shorter one that is cut off gets more room: its model may have thought.
LONG = "Alice plans a trip and then goes on with " + ", ".join(map(str, range(1_000, 3_000)))
NONSENSE: dict[str, tuple[Any, str]] = {
    "nothing": (Reply(text=""), "empty"),
    "white space": (Reply(text=" \n\t "), "empty"),
    "only thoughts": (Reply(text="<think>Let me see what they said.</think>"), "empty"),
    "thoughts without end": (Reply(text="<think>Let me see what they said"), "empty"),
    "only reasoning": (Reply(reasoning="Let me see what they said."), "empty"),
    "cut off": (Reply(text=LONG, finish="length"), "cut off"),
    "cut by its window": (Reply(text=LONG, finish="model_length"), "cut off"),
    "broken off": (Reply(text=SUMMARY, finish="network_error"), "broke the answer off"),
    "an end that nobody knows": (Reply(text=SUMMARY, finish="qwertz"), "nobody knows"),
    "refused in words": (Reply(text="I'm sorry, but I can't help with that."), "refused"),
    "refused by the provider": (Reply(text="Alice plans", finish="refusal"), "refused"),
    "an apology": (
        Reply(text="As an AI language model, I do not have memories of conversations."),
        "refused",
    ),
    "a tool call": (
        Reply(tool_calls=[make_tool_call("fetch_url", {"url": "http://x"})]),
        "called a tool",
    ),
    "no changes": (Reply(text="(no changes)"), "does not speak"),
    "an apology in German": (Reply(text="Das kann ich leider nicht."), "does not speak"),
    "a call in marks": (
        Reply(text='<tool_call>{"name": "recall", "arguments": {"query": "x"}}</tool_call>'),
        "called a tool",
    ),
    "as long as its source": (
        Reply(text="Some words that differ from one another: " + DIGITS),
        "not smaller",
    ),
    "a loop of sentences": (Reply(text=LOOP * 40), "repeats itself"),
    "a loop of words": (Reply(text="trip " * 60), "repeats itself"),
    "a loop of lines": (Reply(text="- The hotel in Lisbon is booked.\n" * 6), "repeats itself"),
    "the next turn": (
        Reply(text="assistant: Sure, I can book that flight for you!"),
        "continued the conversation",
    ),
    "a dialogue": (
        Reply(text="They said:\nUser: hello\nAssistant: hi there"),
        "continued the conversation",
    ),
    "a question back": (
        Reply(text="Please provide the conversation you would like me to summarize."),
        "asked back",
    ),
    "an offer": (Reply(text="How can I help you today?"), "asked back"),
    "an OK": (Reply(text="Understood."), "headings and placeholders"),
    "an announcement": (Reply(text="Here is the summary:"), "headings and placeholders"),
    "headings only": (Reply(text=HEADINGS), "headings and placeholders"),
    "markdown headings only": (
        Reply(text="# Summary\n\n## Key facts\n\n**Open threads:**\n"),
        "headings and placeholders",
    ),
    "a placeholder": (Reply(text="[Insert your summary here]"), "headings and placeholders"),
    "lorem ipsum": (
        Reply(text="Lorem ipsum dolor sit amet, consectetur adipiscing elit."),
        "headings and placeholders",
    ),
    "its instruction": (the_instruction, "repeated its instruction"),
    "its system text": (Reply(text=prompt.SYSTEM_PROMPT), "repeated its instruction"),
    "a web page": (
        Reply(text="<!DOCTYPE html><html><body>502 Bad Gateway</body></html>"),
        "web page",
    ),
    "an error as JSON": (
        Reply(text='{"error": {"code": 500, "message": "overloaded"}}'),
        "data instead of words",
    ),
    "numbers as JSON": (Reply(text='{"tokens": [1, 2, 3], "score": 0.7}'), "data instead of words"),
    "an empty JSON envelope": (Reply(text='{"summary": ""}'), "only reasoned"),
    "an empty fence": (Reply(text="```\n\n```"), "hardly any words|only reasoned|headings"),
    "dots": (Reply(text="........ !!!! ???? ----"), "headings and placeholders"),
    "unreadable bytes": (
        Reply(text="\ufffd\ufffd\ufffd \ufffd\ufffd a b \ufffd\ufffd\ufffd\ufffd"),
        "hardly any words",
    ),
    "base64": (Reply(text="QWxpY2UgcGxhbnMgYSB0cmlw" * 20), "data, not words"),
    "control tokens": (Reply(text="<|im_end|><|endoftext|>"), "only reasoned"),
    "its transcript": (the_transcript, "copied the conversation|repeats itself"),
    "a body that is no JSON": (
        Reply(body=b"<html>gateway</html>", headers={"Content-Type": "text/html"}),
        ".",
    ),
    "a connection cut in the middle": (
        Reply(text="Alice plans a trip.", chunks=["Alice ", "plans"], cut_after=1),
        ".",
    ),
    "a stream without an end": (Reply(text="Alice plans a trip.", finish=None), "."),
    "a server error": (Reply(status=500, text="out of order"), "out of order"),
    "a wrong key": (Reply(status=401, text="no such key"), "."),
    "too long for it": (make_overflow(tokens=9000, window=8192), "."),
}


def everything(session: Session) -> dict[str, Any]:
    """Return everything that a failed run must not change."""
    ignored = {"last_event_seq"}
    row = Session.objects.filter(pk=session.pk).values().get()
    return {
        "session": {name: value for name, value in row.items() if name not in ignored},
        "messages": list(Message.objects.filter(session=session).order_by("seq").values_list()),
        "revisions": list(
            ContextRevision.objects.filter(session=session).order_by("version").values_list()
        ),
        "edits": list(ContextEdit.objects.filter(session=session).order_by("pk").values_list()),
        "state": list(WorkingState.objects.filter(session_id=session.pk).values_list()),
    }


@pytest.fixture
def summarized(session: Session, scripted: ScriptedModel) -> Session:
    """Return a session with a summary, a state, and enough new messages for another summary."""
    fill_session(session, messages=6)
    scripted.script(Reply(text=SUMMARY))
    engine.compact_now(session.pk, trigger="manual")
    state.change_structured_state(
        session.pk, lambda _: state.parse_structured_state({"state": {"tasks": ["Book a flight"]}})
    )
    fill_session(session, messages=6)
    return session


@pytest.mark.parametrize(
    ("reply", "reason"), mark_other_rows_slow(NONSENSE.values(), first=6), ids=NONSENSE.keys()
)
def test_it_is_a_failed_run_that_changes_nothing(
    summarized: Session, scripted: ScriptedModel, reply: Any, reason: str
) -> None:
    before = everything(summarized)
    scripted.script(reply)
    run = engine.compact_now(summarized.pk, trigger="manual", overrides=QUICK)
    assert run.status == "failed", run.summary_after
    assert run.provider_calls == 1
    assert re.search(reason, run.reason), run.reason
    assert everything(summarized) == before


@pytest.mark.parametrize(
    "template", [name for name in SUMMARY_TEMPLATES if SUMMARY_TEMPLATES[name].headings]
)
def test_headings_with_what_they_are_for_are_no_summary(
    summarized: Session, scripted: ScriptedModel, template: str
) -> None:
    before = everything(summarized)
    scripted.script(its_headings_as_explained)
    run = engine.compact_now(
        summarized.pk, trigger="manual", overrides={"summary": {"retries": 0, "template": template}}
    )
    assert run.status == "failed", run.summary_after
    assert "The model repeated its instruction instead of following it." in run.reason
    assert everything(summarized) == before


def test_what_the_user_took_back_is_no_summary_when_it_is_repeated(
    summarized: Session, scripted: ScriptedModel
) -> None:
    messages = Message.objects.filter(session=summarized, role="user").order_by("-seq")
    messages.filter(pk=messages[0].pk).update(content="No, I meant the flight to Porto.")

    def repeat(request: dict[str, Any]) -> Reply:
        opening = prompt.TAKEN_BACK_INSTRUCTION
        taken_back = the_instruction(request).text.partition(opening)[2]
        assert "flight to Porto" in taken_back
        return Reply(text=f"{opening}{taken_back}\n- [message 2] {SUMMARY} {OTHER_WORDS}")

    scripted.script(repeat)
    run = engine.compact_now(summarized.pk, trigger="manual", overrides=QUICK)
    assert (run.status, "repeated its instruction" in run.reason) == ("failed", True), run.reason


WRAPPED = {
    "a fence": f"```\n{SUMMARY}\n```",
    "a fence with a language": f"```markdown\n{SUMMARY}\n```",
    "JSON": json.dumps({"summary": SUMMARY}),
    "JSON in a fence": "```json\n" + json.dumps({"summary": SUMMARY}) + "\n```",
    "JSON of one text": json.dumps(SUMMARY),
    "a tag": f"<summary>\n{SUMMARY}\n</summary>",
    "an announcement": f"Sure! Here is the summary of the conversation:\n\n{SUMMARY}",
    "thoughts": f"<think>They talk of Lisbon.</think>\n{SUMMARY}",
    "control tokens": f"{SUMMARY}<|im_end|>",
    "Harmony without its marks": f"analysisThey talk of Lisbon.assistantfinal{SUMMARY}",
    "the end of Harmony": f"{SUMMARY}<|return|>",
    "our own fence": f"<transcript>\n{SUMMARY}\n</transcript>",
}


@pytest.mark.parametrize("text", mark_others_slow(WRAPPED.values(), first=3), ids=WRAPPED.keys())
def test_a_summary_is_taken_out_of_its_wrapping(
    summarized: Session, scripted: ScriptedModel, text: str
) -> None:
    scripted.script(Reply(text=text))
    run = engine.compact_now(summarized.pk, trigger="manual", overrides=QUICK)
    assert (run.status, run.summary_after) == ("applied", SUMMARY), run.reason


def test_sections_as_json_become_sections(summarized: Session, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text=json.dumps({"TASK": "Plan a trip", "DATA": ["Hotel Lis", "3 May"]})))
    run = engine.compact_now(summarized.pk, trigger="manual", overrides=QUICK)
    assert run.summary_after == "TASK:\nPlan a trip\nDATA:\n- Hotel Lis\n- 3 May"


# Extremes, with a clear outcome each


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
@pytest.mark.parametrize(("window", "outcome"), [(512, "applied"), (256, "too small")])
def test_a_tiny_window(
    session: Session,
    model: AiModel,
    scripted: ScriptedModel,
    protocol: str,
    window: int,
    outcome: str,
) -> None:
    if protocol == "anthropic":
        use_anthropic(session, scripted)
    AiModel.objects.filter(pk=model.pk).update(context_window_size=window)
    fill_session(session, messages=4, tokens=150)
    before = everything(session)
    scripted.default = summarize_or_chat(summary=Reply(text="Lisbon in May."))
    run = engine.compact_now(session.pk, trigger="manual")
    if outcome == "applied":
        assert (run.status, run.summary_after) == ("applied", "Lisbon in May."), run.reason
        assert all(len(str(request.json)) / 4 < window for request in list_summary_calls(scripted))
    else:
        assert run.status in ("failed", "fell_back")
        assert run.provider_calls == 0
        assert outcome in run.reason
        assert everything(session) == before


@pytest.mark.slow
def test_a_message_of_five_megabytes(
    session: Session, model: AiModel, scripted: ScriptedModel
) -> None:
    AiModel.objects.filter(pk=model.pk).update(context_window_size=1_000_000)
    history = [
        ("user", "lisbon trip " * 430_000),
        ("assistant", "A long list."),
        ("user", "Thanks."),
    ]
    rows = [
        Message(session=session, seq=seq, role=role, content=content)
        for seq, (role, content) in enumerate(history, start=1)
    ]
    Message.objects.bulk_create(rows)
    Session.objects.filter(pk=session.pk).update(last_seq=3, message_count=3)
    scripted.default = summarize_or_chat()
    run = engine.compact_now(session.pk, trigger="manual", up_to_seq=2)
    assert (run.status, run.summary_after) == ("applied", SUMMARY)
    assert run.provider_calls == len(list_summary_calls(scripted)) <= 4


def test_four_hundred_parallel_tool_calls(
    session: Session, model: AiModel, scripted: ScriptedModel
) -> None:
    AiModel.objects.filter(pk=model.pk).update(context_window_size=32_000)
    calls = [
        {"id": f"c{number}", "name": "read_mail", "arguments": {"number": number}}
        for number in range(400)
    ]
    results = [
        {
            "role": "tool",
            "tool_call_id": f"c{number}",
            "content": f"Mail {number:03d}: " + "offer " * 20,
        }
        for number in range(400)
    ]
    history: list[dict[str, Any]] = [
        {"role": "user", "content": "Read my mail."},
        {"role": "assistant", "tool_calls": calls},
        *results,
    ]
    importer.import_messages(
        session,
        [
            *history,
            {"role": "assistant", "content": "Read."},
            {"role": "user", "content": "And now?"},
        ],
    )
    scripted.default = summarize_or_chat()
    run = engine.compact_now(session.pk, trigger="manual")
    assert (run.status, run.messages_compacted, run.boundary_after) == ("applied", 402, 403)
    sent_text = "".join(
        request.json["messages"][-1]["content"] for request in list_summary_calls(scripted)
    )
    assert all(sent_text.count(f"Mail {number:03d}:") == 1 for number in range(400))
    assert sent_text.count("[assistant calls read_mail]") == 400
    assert CompactionRun.objects.count() == 1
