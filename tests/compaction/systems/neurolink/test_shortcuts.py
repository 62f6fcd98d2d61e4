"""The few calls for programs that embed Chatcore."""

import uuid

import pytest

from chatcore.context import builder
from chatcore.models import Message, Session
from compaction.core.knobs import PolicyError
from compaction.models import CompactionRun
from compaction.policies import UnknownPolicy
from compaction.systems.neurolink.shortcuts import (
    compact_session,
    get_context_stats,
    needs_compaction,
)
from models_registry.models import AiModel
from tests.support.compaction_sessions import (
    SUMMARY,
    THRESHOLD,
    WINDOW,
    fill_session,
    list_summary_calls,
    read_stored_messages,
    summarize_or_chat,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def long(session: Session, scripted: ScriptedModel) -> Session:
    """Over its threshold, by estimate; the summarizer is ready."""
    scripted.default = summarize_or_chat()
    fill_session(session, messages=14, tokens=520)
    return session


def test_the_stats_tell_how_full_the_context_is(long: Session) -> None:
    stats = get_context_stats(long.pk)
    assert stats is not None
    assert stats.available_input_tokens == WINDOW
    assert stats.estimated_input_tokens > THRESHOLD
    assert stats.usage_ratio == pytest.approx(stats.estimated_input_tokens / WINDOW)
    assert (stats.should_compact, stats.message_count) == (True, 14)
    assert needs_compaction(long.pk)
    assert get_context_stats(str(long.pk)) == stats


def test_of_a_session_that_is_not_there_or_empty_there_is_nothing_to_tell(session: Session) -> None:
    for unknown in (session.pk, uuid.uuid4()):
        assert get_context_stats(unknown) is None
        assert needs_compaction(unknown) is False
        assert compact_session(unknown) is None


def test_an_unknown_window_is_told_as_none(long: Session) -> None:
    AiModel.objects.filter(name="test-model").update(context_window_size=None)
    stats = get_context_stats(long.pk)
    assert stats is not None
    assert (stats.available_input_tokens, stats.usage_ratio, stats.should_compact) == (
        None,
        None,
        False,
    )
    result = compact_session(long.pk)
    assert result is not None
    assert (result.compacted, result.tokens_saved) == (False, 0)
    assert result.reason


def test_compacting_tells_what_it_did_and_what_is_sent_now(long: Session) -> None:
    before = read_stored_messages(long)
    result = compact_session(long.pk)
    assert result is not None
    assert (result.compacted, result.stages_used, result.summary) == (True, ("summarize",), SUMMARY)
    assert result.tokens_saved == result.tokens_before - result.tokens_after > 0
    assert [entry.seq for entry in result.messages] == [
        message.seq for message in builder.build_request(long).messages
    ]
    assert CompactionRun.objects.get(pk=result.run).trigger == "manual"
    assert not needs_compaction(long.pk)
    assert read_stored_messages(long) == before


def test_a_second_time_there_is_nothing_to_do_and_a_reason(long: Session) -> None:
    compact_session(long.pk)
    again = compact_session(long.pk)
    assert again is not None
    assert (again.compacted, again.stages_used) == (False, ())
    assert again.reason


def test_a_summary_that_fails_is_told_not_raised(long: Session, scripted: ScriptedModel) -> None:
    scripted.default = Reply(status=500, body=b"{}")
    result = compact_session(long.pk)
    assert result is not None
    assert (result.compacted, result.summary) == (False, None)
    assert result.reason


def test_a_stage_may_be_switched_off(long: Session, scripted: ScriptedModel) -> None:
    result = compact_session(long.pk, policy="neurolink", enable_summarize=False)
    assert result is not None
    assert result.stages_used == ("slide_window",)
    assert not list_summary_calls(scripted)


def test_a_stage_may_be_switched_on_that_the_policy_has_not(session: Session) -> None:
    calls = [{"id": "c1", "name": "list", "arguments": "{}"}]
    rows = [
        Message(session=session, seq=1, role="user", content="List it."),
        Message(session=session, seq=2, role="assistant", tool_calls=calls),
        Message(
            session=session,
            seq=3,
            role="tool",
            content="row " * 4_000,
            tool_call_id="c1",
            tool_name="list",
        ),
        *(
            Message(
                session=session,
                seq=seq,
                role="user" if seq % 2 == 0 else "assistant",
                content="And?",
            )
            for seq in range(4, 12)
        ),
    ]
    Message.objects.bulk_create(rows)
    Session.objects.filter(pk=session.pk).update(last_seq=11, message_count=11)
    result = compact_session(
        session.pk,
        enable_prune=True,
        enable_summarize=False,
        prune_protect_tokens=0,
        prune_minimum_savings=100,
        keep_recent_ratio=0.3,
    )
    assert result is not None
    assert result.stages_used == ("prune_tool_outputs",)
    assert (
        next(entry.content for entry in result.messages if entry.seq == 3)
        == "[Tool result cleared]"
    )
    assert (
        run_policy(result.run)["protect"] | {"kind": "count_ratio", "ratio": 0.3, "minimum": 4}
        == run_policy(result.run)["protect"]
    )


def run_policy(run: uuid.UUID) -> dict[str, dict[str, object]]:
    snapshot: dict[str, dict[str, object]] = CompactionRun.objects.values_list(
        "policy_snapshot", flat=True
    ).get(pk=run)
    return snapshot


def test_each_name_sets_the_knob_it_means(long: Session) -> None:
    result = compact_session(
        long.pk,
        prune_protect_tokens=1,
        prune_minimum_savings=2,
        prune_protected_tools=["skill", "memory"],
        truncation_fraction=0.25,
        summarization_model="scripted/test-model",
    )
    assert result is not None
    policy = run_policy(result.run)
    assert (
        policy["prune"]
        | {"protect_tokens": 1, "minimum_savings": 2, "protected_tools": ["skill", "memory"]}
        == policy["prune"]
    )
    assert (policy["slide"]["fraction"], policy["summary"]["model"]) == (
        0.25,
        "scripted/test-model",
    )


def test_what_cannot_be_is_refused_by_name(long: Session) -> None:
    with pytest.raises(TypeError, match="enable_magic"):
        compact_session(long.pk, enable_magic=True)  # type: ignore[call-arg]
    with pytest.raises(PolicyError, match=r"slide\.fraction"):
        compact_session(long.pk, truncation_fraction=7)
    with pytest.raises(PolicyError, match="stages"):
        compact_session(long.pk, enable_summarize=False)
    with pytest.raises(UnknownPolicy):
        compact_session(long.pk, policy="nonsense")
    assert not CompactionRun.objects.exists()
