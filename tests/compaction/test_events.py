"""The events of a run: each start has an end, and the card finds everything that it shows."""

from typing import Any

import pytest

from chatcore.models import Message, Session
from compaction.models import CompactionPolicy, CompactionRun
from compaction.runs import engine
from models_registry.models import AiModel
from tests.support.compaction_sessions import (
    fill_session,
    list_event_data,
    list_event_names,
    list_summary_calls,
    say,
    summarize_or_chat,
)
from tests.support.context_usage import load_usage
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)

OUTPUT = "lorem ipsum " * 250  # 750 tokens


@pytest.fixture(autouse=True)
def _summaries(scripted: ScriptedModel) -> None:
    scripted.default = summarize_or_chat()


def with_tools(session: Session, rounds: int = 12) -> Session:
    """Fill the session with questions, each answered by a tool."""
    rows: list[Message] = []
    for seq in range(1, 4 * rounds, 4):
        called = [{"id": f"c{seq}", "name": "look_up", "arguments": "{}"}]
        rows.append(Message(session=session, seq=seq, role="user", content="Look it up."))
        rows.append(Message(session=session, seq=seq + 1, role="assistant", tool_calls=called))
        rows.append(
            Message(
                session=session,
                seq=seq + 2,
                role="tool",
                tool_call_id=f"c{seq}",
                tool_name="look_up",
                content=OUTPUT,
            )
        )
        rows.append(Message(session=session, seq=seq + 3, role="assistant", content="Here it is."))
    Message.objects.bulk_create(rows)
    Session.objects.filter(pk=session.pk).update(last_seq=4 * rounds, message_count=4 * rounds)
    session.refresh_from_db()
    return session


def pruning(session: Session, **groups: Any) -> Session:
    """Put the session under a policy that prunes and calls no model."""
    knobs = {
        "stages": ["prune_tool_outputs"],
        "prune": {"protect_tokens": 1_000, "minimum_savings": 100},
        **groups,
    }
    CompactionPolicy.objects.create(name="pruning", overrides=knobs)
    Session.objects.filter(pk=session.pk).update(policy="pruning")
    return session


def test_a_run_that_calls_no_model_tells_of_its_start_and_its_end_together(
    session: Session, scripted: ScriptedModel
) -> None:
    run = engine.compact_now(with_tools(pruning(session)).pk, trigger="manual")
    assert (run.status, run.provider_calls, run.stages_used) == (
        "applied",
        0,
        ["prune_tool_outputs"],
    )
    assert list_event_names(session, "compaction") == ["compaction.started", "compaction.applied"]
    [started] = list_event_data(session, "compaction.started")
    [applied] = list_event_data(session, "compaction.applied")
    changed = len(run.targets)
    assert (started["targets"], started["messages_count"], started["force"]) == (
        changed,
        changed,
        True,
    )
    assert (
        applied["targets_count"],
        applied["stages_used"],
        applied["cost"],
        applied["reason"],
    ) == (
        changed,
        ["prune_tool_outputs"],
        None,
        "",
    )
    assert not list_summary_calls(scripted)


def test_a_run_with_nothing_to_do_tells_of_no_start(session: Session) -> None:
    engine.compact_now(pruning(session).pk, trigger="manual")
    assert list_event_names(session, "compaction") == ["compaction.skipped"]


def test_the_card_shows_what_the_call_cost(
    session: Session, model: AiModel, scripted: ScriptedModel
) -> None:
    AiModel.objects.filter(pk=model.pk).update(input_price=3, output_price=15)
    scripted.script(Reply(text="They spoke of a trip.", usage=(5000, 100)))
    fill_session(session)
    run = engine.compact_now(session.pk, trigger="manual")
    [applied] = list_event_data(session, "compaction.applied")
    assert applied["cost"] == pytest.approx(0.0165)
    assert {target["method"] for target in run.targets} == {"summarized"}
    assert applied["targets_count"] == applied["messages_compacted"] == 10


def test_after_a_run_with_edits_and_without_any_usage_the_next_response_starts_no_other(
    session: Session, scripted: ScriptedModel
) -> None:
    """Messages are counted in the form in which they would be sent, not as they are stored."""
    phases = {"phases": ["after_response"]}
    with_tools(pruning(session, trigger=phases, target={"otherwise": "fits"}))
    scripted.default = summarize_or_chat(chat=Reply(text="Here you are.", usage=False))
    before = load_usage(session.pk)["estimated_input_tokens"]
    say(session)
    engine.execute_run(CompactionRun.objects.get().pk)
    run = CompactionRun.objects.get()
    assert run.status == "applied", run.reason
    assert load_usage(session.pk)["estimated_input_tokens"] < before - 3_000
    assert abs(load_usage(session.pk)["estimated_input_tokens"] - (run.tokens_after or 0)) < 100
    for _ in range(2):
        say(session)
    assert CompactionRun.objects.count() == 1


def test_a_policy_that_takes_no_count_does_not_compact_again_either(
    session: Session, scripted: ScriptedModel
) -> None:
    with_tools(
        pruning(
            session,
            trigger={"phases": ["after_response"]},
            estimate={"calibration": "none", "chars_per_token": 3.5},
        )
    )
    say(session)
    engine.execute_run(CompactionRun.objects.get().pk)
    say(session)
    assert [run.status for run in CompactionRun.objects.all()] == ["applied"]
