"""FEAT-011: its truncation rules, failures and edge cases, over the wire of both protocols."""

from typing import Any

import pytest
from django.db import connection

from chatcore.base.truncation import cut_tool_result
from chatcore.context import builder, revisions
from chatcore.models import Message, Session
from compaction.models import CompactionRun
from compaction.runs import engine
from models_registry.models import AiModel
from tests.support.compaction_sessions import (
    SUMMARY,
    compact_long_session,
    fill_session,
    list_chat_calls,
    list_summary_calls,
    run_queued_compactions,
    say,
    summarize_or_chat,
)
from tests.support.oneclaw_sessions import BROKEN, session
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

__all__ = ["session"]  # a fixture

pytestmark = pytest.mark.django_db(transaction=True)


# Truncation rules


@pytest.mark.parametrize("content", ["", "x" * 29_999, "x" * 30_000, "é漢🙂" * 10_000])
def test_truncation_leaves_what_is_within_the_limit(session: Session, content: str) -> None:
    message = session.messages.create(seq=1, role="tool", tool_call_id="c", content=content)
    message.refresh_from_db()
    assert message.content == content
    assert message.original_chars is None


def test_truncation_keeps_the_head_counts_characters_and_passes_bulk_inserts(
    session: Session,
) -> None:
    content = "漢" * 15_000 + "🙂" * 20_000
    Message.objects.bulk_create(
        [
            Message(
                session=session,
                seq=1,
                role="tool",
                tool_call_id="c",
                content=content,
                is_error=True,
            )
        ]
    )
    message = session.messages.get()
    assert message.content.startswith("漢" * 15_000 + "🙂" * 15_000 + "\n\n[... content truncated")
    assert message.original_chars == 35_000


def test_truncation_applies_to_results_of_tools_in_a_turn_and_the_model_sees_the_cut_one(
    session: Session, scripted: ScriptedModel
) -> None:
    session.messages.create(seq=1, role="user", content="Read it.")
    session.messages.create(
        seq=2, role="assistant", tool_calls=[{"id": "c1", "name": "fetch_url", "arguments": "{}"}]
    )
    session.messages.create(
        seq=3, role="tool", tool_call_id="c1", tool_name="fetch_url", content="y" * 40_000
    )
    Session.objects.filter(pk=session.pk).update(last_seq=3, auto_compact=False)
    say(session, "Well?")
    request_text = str(list_chat_calls(scripted)[-1].json)
    assert "showing first 30000 characters of 40000 total" in request_text
    assert "y" * 30_001 not in request_text


def test_a_result_of_a_megabyte_is_truncated_once_and_then_left_alone() -> None:
    short_text, original_chars = cut_tool_result("z" * 1_500_000)
    assert original_chars == 1_500_000
    assert short_text.startswith("z" * 30_000)
    assert short_text.endswith("showing first 30000 characters of 1500000 total ...]")
    assert cut_tool_result(short_text)[0] == short_text


# Failure handling, errors and edge cases


def test_a_failure_never_keeps_the_user_from_going_on(
    session: Session, scripted: ScriptedModel
) -> None:
    scripted.default = summarize_or_chat(summary=BROKEN)
    fill_session(session, messages=15)
    for _ in range(3):
        assert say(session).status == "completed"
        run_queued_compactions()


@pytest.mark.parametrize("answer", ["", "   \n", "<think>hm</think>"])
def test_an_empty_or_malformed_summary_is_a_failure(
    session: Session, scripted: ScriptedModel, answer: str
) -> None:
    fill_session(session, messages=15)
    scripted.default = summarize_or_chat(summary=Reply(text=answer))
    say(session)
    run_queued_compactions()
    assert CompactionRun.objects.get().status == "fell_back"
    session.refresh_from_db()
    assert session.compacted_summary is None


def test_a_session_without_messages_is_a_no_op(session: Session, scripted: ScriptedModel) -> None:
    run = engine.compact_now(session.pk, trigger="manual")
    assert (run.status, run.reason) == ("skipped", "There are no messages to compact.")
    assert not scripted.requests


def test_a_session_with_one_user_message_is_a_no_op(
    session: Session, scripted: ScriptedModel
) -> None:
    session.messages.create(seq=1, role="user", content="x" * 30_000)
    assert engine.compact_now(session.pk, trigger="manual").status == "skipped"
    assert not scripted.requests


def test_a_session_with_only_user_messages_is_compacted(
    session: Session, scripted: ScriptedModel
) -> None:
    Message.objects.bulk_create(
        Message(session=session, seq=seq, role="user", content="x" * 4000) for seq in range(1, 9)
    )
    assert engine.compact_now(session.pk, trigger="after_response").status == "applied"


def test_all_messages_within_the_protected_window_are_left_alone(
    session: Session, scripted: ScriptedModel
) -> None:
    """By hand a small talk is compacted once; what that leaves is protected again."""
    fill_session(session, messages=4)
    assert engine.compact_now(session.pk, trigger="after_response").status == "skipped"
    assert not scripted.requests
    assert engine.compact_now(session.pk, trigger="manual").status == "applied"
    run = engine.compact_now(session.pk, trigger="manual")
    assert run.status == "skipped"
    assert "protected" in run.reason


def test_a_newest_message_larger_than_the_protected_window_is_kept_and_the_rest_is_summarized(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=8)
    session.messages.create(seq=9, role="user", content="w" * 16_000)
    run = engine.compact_now(session.pk, trigger="manual")
    assert (run.status, run.boundary_after) == ("applied", 9)


def test_a_switch_to_a_smaller_window_compacts_before_sending(
    session: Session, model: AiModel, scripted: ScriptedModel
) -> None:
    large = AiModel.objects.create(
        provider=model.provider, name="large", context_window_size=200_000
    )
    Session.objects.filter(pk=session.pk).update(model=large)
    fill_session(session, messages=40)
    say(session)
    Session.objects.filter(pk=session.pk).update(model=model)
    assert say(session, "Still there?").status == "completed"
    assert CompactionRun.objects.get().trigger == "on_model_change"
    assert len(str(list_chat_calls(scripted)[-1].json)) // 4 < 6963


def test_a_second_trigger_while_one_is_in_progress_does_not_compact_twice(
    session: Session, scripted: ScriptedModel
) -> None:
    def request_another_run(_: dict[str, Any]) -> Reply:
        engine.request_run(session.pk, trigger="after_response")
        connection.close()
        return Reply(text=SUMMARY)

    fill_session(session)
    scripted.script(request_another_run)
    assert engine.compact_now(session.pk, trigger="after_response").status == "applied"
    assert CompactionRun.objects.count() == 1
    assert len(list_summary_calls(scripted)) == 1


def test_the_user_can_go_on_chatting_while_a_summary_is_written(
    session: Session, scripted: ScriptedModel
) -> None:
    turns_meanwhile = []

    def chat(_: dict[str, Any]) -> Reply:
        turns_meanwhile.append(say(session, "I am still typing."))
        connection.close()
        return Reply(text=SUMMARY)

    fill_session(session, messages=13)
    scripted.script(chat)
    run = engine.compact_now(session.pk, trigger="manual")
    assert run.status == "applied"
    assert [turn.status for turn in turns_meanwhile] == ["completed"]
    session.refresh_from_db()
    assert "I am still typing." in [
        message.content for message in builder.build_request(session).messages
    ]


def test_the_summary_can_be_cleared(session: Session, scripted: ScriptedModel) -> None:
    compact_long_session(session, scripted)
    revisions.reset_context(session.pk)
    session.refresh_from_db()
    assert session.compacted_summary is None
    assert len(builder.build_request(session).messages) == 16


def test_a_hundred_messages_are_compacted_by_one_run(
    session: Session, model: AiModel, scripted: ScriptedModel
) -> None:
    AiModel.objects.filter(pk=model.pk).update(context_window_size=64_000)
    fill_session(session, messages=120)
    assert engine.compact_now(session.pk, trigger="after_response").status == "applied"
