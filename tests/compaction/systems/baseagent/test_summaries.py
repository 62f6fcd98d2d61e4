"""BaseAgent's second pass (seed 003): a hand-off to another model, first in the next request."""

from typing import Any

import pytest

from chatcore.models import Session
from compaction.core.presets import PRESETS
from compaction.models import CompactionRun
from compaction.runs import engine
from compaction.systems.kit.settings import InjectKnobs, WritingKnobs
from tests.support.compaction_sessions import (
    fill_session,
    list_chat_calls,
    list_summary_calls,
    read_message_texts,
    read_stored_messages,
    read_system_text,
    say,
    summarize_or_chat,
)
from tests.support.preset_sessions import PROTOCOLS, set_policy
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)

BASEAGENT = PRESETS["baseagent"]
SUMMARY = (
    "PROGRESS:\n- The parser is done.\nREMAINING:\n- Its tests.\n"
    "FILES:\n- parser.py: made.\nERRORS:\n- A missing import, added."
)
DOWN = Reply(status=500, text="out of order")


@pytest.fixture
def task(session: Session, scripted: ScriptedModel) -> Session:
    scripted.default = summarize_or_chat(summary=Reply(text=SUMMARY))
    task = set_policy(session, "baseagent", scripted, "openai", context_window_size=64_000)
    fill_session(task, messages=20)
    return task


def compact(session: Session, **summary: Any) -> CompactionRun:
    return engine.compact_now(session.pk, trigger="manual", overrides={"summary": summary})


def test_the_constants() -> None:
    assert (
        BASEAGENT.get(WritingKnobs).template,
        BASEAGENT.summary.max_tokens,
        BASEAGENT.summary.retries,
    ) == ("handoff", 4_096, 0)
    assert (
        PRESETS["baseagent-long"].summary
        == PRESETS["baseagent-complex"].summary
        == BASEAGENT.summary
    )


def test_the_prompt_asks_for_what_the_next_model_needs(
    task: Session, scripted: ScriptedModel
) -> None:
    compact(task)
    [request] = list_summary_calls(scripted)
    prompt = read_message_texts(request)[-1].split("</transcript>")[1]
    assert "hands the work over to another language model" in prompt
    phrases = (
        "decisions taken",
        "limits, and what the user prefers",
        "clear next steps",
        "values, examples and references",
    )
    assert all(
        words in prompt
        for words in (
            *phrases,
            "which were changed, and how",
            "what went wrong, and how it was resolved",
        )
    )
    assert request.json.get("max_tokens", request.json.get("max_completion_tokens")) == 4_096


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_next_request_is_the_system_prompt_and_then_the_summary_from_the_user(
    session: Session, scripted: ScriptedModel, protocol: str
) -> None:
    scripted.default = summarize_or_chat(summary=Reply(text=SUMMARY))
    task = set_policy(session, "baseagent", scripted, protocol, context_window_size=64_000)
    fill_session(task, messages=20)
    before = read_stored_messages(task)
    assert compact(task).summary_after == SUMMARY
    say(task, "Go on with the tests.")
    request = list_chat_calls(scripted)[-1]
    assert read_system_text(request).strip() == task.system_prompt.strip()
    first = read_message_texts(request)[0]
    assert first.startswith(BASEAGENT.get(InjectKnobs).heading)
    assert SUMMARY in first
    assert request.json["messages"][1 if protocol == "openai" else 0]["role"] == "user"
    assert read_stored_messages(task)[:20] == before


def test_a_failed_summary_is_not_tried_again(task: Session, scripted: ScriptedModel) -> None:
    scripted.default = summarize_or_chat(summary=DOWN)
    run = compact(task)
    assert (run.status, run.provider_calls) == ("failed", 1)
