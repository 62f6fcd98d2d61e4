"""FEAT-011, Auto Compact & Tool Result Truncation: each criterion and rule, in both protocols."""

from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection

from chatcore.base.truncation import TOOL_RESULT_MAX_CHARS
from chatcore.models import Session
from compaction.core import knobs
from compaction.core.presets import ONECLAW
from compaction.models import CompactionRun
from compaction.runs import engine
from models_registry.models import AiModel
from tests.support.compaction_sessions import (
    LARGE_USAGE,
    NOTICE,
    SUMMARY,
    compact_long_session,
    fill_session,
    list_chat_calls,
    list_event_data,
    list_event_names,
    list_summary_calls,
    read_message_texts,
    read_stored_messages,
    read_system_text,
    run_queued_compactions,
    say,
    summarize_or_chat,
)
from tests.support.context_usage import load_usage
from tests.support.oneclaw_sessions import BROKEN, session
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

__all__ = ["session"]  # a fixture

pytestmark = pytest.mark.django_db(transaction=True)


# Acceptance criteria


def test_criterion_preseeded_models_have_their_context_windows() -> None:
    call_command("sync_models", verbosity=0)
    windows = dict(AiModel.objects.values_list("name", "context_window_size"))
    expected_windows = {
        "claude-sonnet-4-20250514": 200_000,
        "claude-haiku-3-5-20241022": 200_000,
        "claude-opus-4-20250514": 200_000,
        "gpt-4o": 128_000,
        "gpt-4o-mini": 128_000,
        "gpt-4-turbo": 128_000,
        "gemini-2.0-flash": 1_048_576,
        "gemini-2.5-pro-preview-05-06": 1_048_576,
    }
    assert {name: windows.get(name) for name in expected_windows} == expected_windows
    assert AiModel._meta.get_field("context_window_size").null


def test_criterion_over_85_percent_of_the_window_auto_compact_triggers(
    session: Session, scripted: ScriptedModel
) -> None:
    assert compact_long_session(session, scripted).status == "applied"


def test_criterion_the_summary_is_written_by_the_current_model(
    session: Session, scripted: ScriptedModel
) -> None:
    run = compact_long_session(session, scripted)
    [request] = list_summary_calls(scripted)
    assert request.json["model"] == "test-model"
    assert run.model == "scripted/test-model"


def test_criterion_the_summary_is_stored_on_the_session(
    session: Session, scripted: ScriptedModel
) -> None:
    compact_long_session(session, scripted)
    assert session.compacted_summary == SUMMARY


def test_criterion_original_messages_are_never_modified_or_deleted(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session)
    before = read_stored_messages(session)
    scripted.script(Reply(text="Noted.", usage=LARGE_USAGE))
    say(session)
    run_queued_compactions()
    assert read_stored_messages(session)[:14] == before
    assert session.messages.count() == 16


def test_criterion_the_next_request_holds_the_summary_and_the_recent_messages_only(
    session: Session, scripted: ScriptedModel
) -> None:
    run = compact_long_session(session, scripted)
    say(session, "And the hotel?")
    request = list_chat_calls(scripted)[-1]
    assert SUMMARY in read_system_text(request)
    live = session.messages.filter(seq__gte=run.boundary_after).exclude(seq=18).order_by("seq")
    assert read_message_texts(request) == list(live.values_list("content", flat=True))
    assert "0001 lisbon" not in str(request.json)


def test_criterion_several_compactions_merge_into_one_cumulative_summary(
    session: Session, scripted: ScriptedModel
) -> None:
    compact_long_session(session, scripted)
    fill_session(session, messages=8)
    scripted.script(Reply(text="Noted.", usage=LARGE_USAGE))
    say(session)
    scripted.default = summarize_or_chat(
        summary=Reply(text="Lisbon in May, hotel booked, flight from Porto.")
    )
    run_queued_compactions()
    session.refresh_from_db()
    assert SUMMARY in str(list_summary_calls(scripted)[1].json)
    assert session.compacted_summary == "Lisbon in May, hotel booked, flight from Porto."
    say(session)
    assert SUMMARY not in str(list_chat_calls(scripted)[-1].json)


def test_criterion_an_indicator_can_be_shown_during_the_summary_call_only(
    session: Session, scripted: ScriptedModel
) -> None:
    seen: list[bool] = []

    def check_usage(_: dict[str, Any]) -> Reply:
        seen.append(load_usage(session.pk)["compacting"])
        connection.close()
        return Reply(text=SUMMARY)

    fill_session(session)
    scripted.script(Reply(text="Noted.", usage=LARGE_USAGE), check_usage)
    say(session)
    assert load_usage(session.pk)["compacting"] is False
    run_queued_compactions()
    assert seen == [True]
    assert load_usage(session.pk)["compacting"] is False
    assert list_event_names(session, "compaction") == ["compaction.started", "compaction.applied"]


def test_criterion_a_failed_summary_call_is_retried_once_silently(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session)
    scripted.script(Reply(text="Noted.", usage=LARGE_USAGE), BROKEN)
    say(session)
    run_queued_compactions()
    assert CompactionRun.objects.get().status == "applied"
    assert len(list_summary_calls(scripted)) == 2
    assert "compaction.failed" not in list_event_names(session)


def test_criterion_after_two_failures_the_oldest_are_dropped_and_the_user_is_told(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=15)
    scripted.default = summarize_or_chat(summary=BROKEN)
    say(session)
    run_queued_compactions()
    assert len(list_summary_calls(scripted)) == 2
    assert CompactionRun.objects.get().status == "fell_back"
    assert [data["notice"] for data in list_event_data(session, "context.trimmed")] == [NOTICE]
    turn = say(session, "Go on.")
    assert turn.status == "completed"
    contents = read_message_texts(list_chat_calls(scripted)[-1])
    assert contents[-1] == "Go on."
    assert not contents[0].startswith("0001")
    assert sum(len(text) // 4 for text in contents) <= 6963
    assert session.messages.count() == 19


def test_criterion_long_tool_results_are_cut_before_storage_and_marked(
    session: Session, scripted: ScriptedModel
) -> None:
    message = session.messages.create(seq=1, role="tool", tool_call_id="c", content="x" * 30_001)
    message.refresh_from_db()
    assert message.content.endswith(
        "\n\n[... content truncated, showing first 30000 characters of 30001 total ...]"
    )
    assert len(message.content) == 30_076


def test_criterion_threshold_protection_and_limit_are_constants() -> None:
    assert ONECLAW.trigger.threshold == knobs.COMPACT_THRESHOLD_RATIO == 0.85
    assert ONECLAW.protect.ratio == knobs.PROTECTED_WINDOW_RATIO == 0.25
    assert ONECLAW.estimate.chars_per_token == 4
    assert TOOL_RESULT_MAX_CHARS == 30_000


def test_criterion_optional_by_hand_with_a_token_display(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session)
    assert engine.compact_now(session.pk, trigger="manual").status == "applied"
    usage = load_usage(session.pk)
    assert usage["context_window"] == 8192
    assert usage["usage_ratio"] is not None
    assert 0 < usage["usage_ratio"] < 0.5


# Compact rules


def test_rule_1_it_triggers_after_all_tool_rounds_and_never_between(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=4)
    tool = make_tool_call("calculate", {"expression": "6*7"})
    scripted.script(
        Reply(tool_calls=[tool], finish="tool_calls", usage=LARGE_USAGE),
        Reply(text="It is 42.", usage=LARGE_USAGE),
    )
    say(session, "What is 6 times 7?")
    assert not list_summary_calls(scripted)
    run = CompactionRun.objects.get()
    assert run.created_at >= session.messages.latest("seq").created_at


def test_rule_2_the_threshold_follows_the_current_model(
    session: Session, model: AiModel, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Noted.", usage=LARGE_USAGE))
    larger = AiModel.objects.create(
        provider=model.provider, name="larger", context_window_size=128_000
    )
    Session.objects.filter(pk=session.pk).update(model=larger)
    say(session)
    assert not CompactionRun.objects.exists()
    assert load_usage(session.pk)["threshold_tokens"] == 108_800


def test_rule_3_an_unknown_window_does_nothing(
    session: Session, model: AiModel, scripted: ScriptedModel
) -> None:
    AiModel.objects.filter(pk=model.pk).update(context_window_size=None)
    fill_session(session, messages=30)
    say(session)
    assert not CompactionRun.objects.exists()
    assert engine.compact_now(session.pk, trigger="manual").status == "skipped"
    assert not list_summary_calls(scripted)


def test_rule_4_the_newest_25_percent_stay_as_they_are(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session)
    run = engine.compact_now(session.pk, trigger="manual")
    tail = session.messages.filter(seq__gte=run.boundary_after)
    assert sum(message.token_estimate for message in tail) <= 2048
    assert tail.count() == 4


def test_rule_5_the_summary_call_uses_the_same_provider_and_key(
    session: Session, scripted: ScriptedModel
) -> None:
    compact_long_session(session, scripted)
    chat, summary = list_chat_calls(scripted)[0], list_summary_calls(scripted)[0]
    assert chat.path == summary.path
    for header in ("authorization", "x-api-key"):
        assert chat.headers.get(header) == summary.headers.get(header)


def test_rule_6_the_prompt_is_fixed_and_asks_for_a_concise_factual_summary(
    session: Session, scripted: ScriptedModel
) -> None:
    compact_long_session(session, scripted)
    assert "concisely and factually" in read_system_text(list_summary_calls(scripted)[0])


def test_rule_7_under_the_threshold_a_trigger_is_a_no_op(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=4)
    assert engine.compact_now(session.pk, trigger="after_response").status == "skipped"
    session.refresh_from_db()
    assert session.context_version == 0
    assert not scripted.requests


# Token counting rules


def test_counting_1_what_the_provider_reported_is_used(
    session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Noted.", usage=(4321, 79)))
    say(session)
    usage = load_usage(session.pk)
    assert (usage["estimated_input_tokens"], usage["source"]) == (4400, "provider")


def test_counting_2_without_counts_four_characters_are_a_token(session: Session) -> None:
    session.messages.create(seq=1, role="user", content="x" * 4003)
    usage = load_usage(session.pk)
    assert usage["breakdown"]["current_prompt"] == 1000
    assert usage["source"] == "estimated"


def test_counting_3_only_what_would_be_sent_counts(
    session: Session, scripted: ScriptedModel
) -> None:
    """Rows that a summary covers do not count again. Else every later response would compact."""
    compact_long_session(session, scripted)
    usage = load_usage(session.pk)
    assert usage["estimated_input_tokens"] < 3000
    say(session, "Thanks.")
    assert CompactionRun.objects.count() == 1
