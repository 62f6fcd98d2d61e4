"""Runs: installed and recorded all or nothing, whatever changes meanwhile."""

from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, connections

from chatcore.context import builder, revisions
from chatcore.models import Session
from compaction import policies
from compaction.models import CompactionRun
from compaction.runs import engine
from compaction.sessions import session_context
from models_registry.models import AiModel
from tests.support.compaction_sessions import (
    SUMMARY,
    fill_session,
    list_event_data,
    list_event_names,
    list_summary_calls,
    read_stored_messages,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_stores_summary_boundary_and_revision_and_touches_no_message(
    full: Session, scripted: ScriptedModel
) -> None:
    before, updated_at = read_stored_messages(full), full.updated_at
    run = engine.compact_now(full.pk, trigger="manual")
    full.refresh_from_db()
    assert (run.status, run.summary_after, run.stages_used) == ("applied", SUMMARY, ["summarize"])
    assert full.compacted_summary == SUMMARY
    assert full.compact_boundary_seq == run.boundary_after == 11
    assert full.compact_boundary_timestamp == full.messages.get(seq=11).created_at
    assert full.context_version == run.version_after == 1
    assert full.revisions.get().run == str(run.pk)
    assert read_stored_messages(full) == before
    assert full.updated_at == updated_at


def test_it_records_what_it_took(full: Session, model: AiModel, scripted: ScriptedModel) -> None:
    AiModel.objects.filter(pk=model.pk).update(input_price=3, output_price=15)
    scripted.script(Reply(text=SUMMARY, usage=(5000, 100)))
    run = engine.compact_now(full.pk, trigger="manual")
    assert (run.provider_calls, run.input_tokens, run.output_tokens, run.model) == (
        1,
        5000,
        100,
        "scripted/test-model",
    )
    assert float(run.cost or 0) == pytest.approx(0.0165)
    assert run.messages_compacted == 10
    assert run.tokens_after is not None
    assert run.tokens_before is not None
    assert run.tokens_after < run.tokens_before
    assert run.policy_snapshot["trigger"]["threshold"] == 0.85
    assert run.duration_ms is not None


def test_it_tells_of_the_start_and_of_the_end(full: Session) -> None:
    run = engine.compact_now(full.pk, trigger="manual")
    assert list_event_names(full, "compaction") == ["compaction.started", "compaction.applied"]
    assert list_event_data(full, "compaction.started") == [
        {
            "run": str(run.pk),
            "messages_count": 10,
            "force": True,
            "targets": 10,
            "expected_seconds": None,
        }
    ]
    [applied] = list_event_data(full, "compaction.applied")
    assert applied["tokens_saved"] == run.tokens_saved
    assert applied["messages_compacted"] == 10
    assert applied["model"] == "scripted/test-model"


def test_under_the_threshold_an_automatic_run_does_nothing(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=4)
    run = engine.compact_now(session.pk, trigger="after_response")
    assert (run.status, run.reason) == ("skipped", "The context is within its threshold.")
    assert not list_summary_calls(scripted)
    assert list_event_names(session, "compaction") == ["compaction.skipped"]


def test_a_run_asked_for_by_hand_says_when_there_is_too_little(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=2, tokens=50)
    run = engine.compact_now(session.pk, trigger="manual")
    assert run.status == "skipped"
    assert "too little to compact" in run.reason


def test_a_context_that_changed_meanwhile_is_loaded_anew(
    full: Session, scripted: ScriptedModel
) -> None:
    def meddle(_: dict[str, Any]) -> Reply:
        revisions.install_revision(
            full.pk, base_version=0, summary="Edited by hand.", boundary_seq=3, source="edit"
        )
        connection.close()
        return Reply(text="A summary of what is no longer so.")

    scripted.script(meddle)
    run = engine.compact_now(full.pk, trigger="manual")
    full.refresh_from_db()
    assert run.status == "applied"
    assert run.summary_before == "Edited by hand."
    assert full.compacted_summary == SUMMARY
    assert run.provider_calls == 2
    assert "Edited by hand." in str(list_summary_calls(scripted)[1].json)


def test_a_context_that_keeps_changing_is_left_alone_and_the_cost_is_kept(
    full: Session, scripted: ScriptedModel
) -> None:
    def meddle(_: dict[str, Any]) -> Reply:
        version = Session.objects.values_list("context_version", flat=True).get(pk=full.pk)
        revisions.install_revision(
            full.pk,
            base_version=version,
            summary=f"Edit {version}.",
            boundary_seq=3 + version,
            source="edit",
        )
        connection.close()
        return Reply(text="A summary of what is no longer so.", usage=(100, 10))

    scripted.script(*[meddle] * 4)
    assert engine.compact_now(full.pk, trigger="manual").status == "queued", "until later"
    run = engine.compact_now(full.pk, trigger="manual")
    full.refresh_from_db()
    assert run.status == "skipped"
    assert full.compacted_summary == "Edit 3."
    assert (run.provider_calls, run.input_tokens) == (4, 400)
    assert list_event_names(full, "compaction") == ["compaction.started", "compaction.skipped"]


def test_a_message_that_arrives_during_a_run_survives_and_is_live(
    full: Session, scripted: ScriptedModel
) -> None:
    def arrive(_: dict[str, Any]) -> Reply:
        full.messages.create(seq=15, role="user", content="One more thing.")
        connection.close()
        return Reply(text=SUMMARY)

    scripted.script(arrive)
    assert engine.compact_now(full.pk, trigger="manual").status == "applied"
    full.refresh_from_db()
    assert builder.build_request(full).messages[-1].content == "One more thing."


def test_no_transaction_is_open_while_the_model_is_called(
    full: Session, scripted: ScriptedModel
) -> None:
    """Another connection can write to the session while the summary is written."""

    def write(_: dict[str, Any]) -> Reply:
        Session.objects.filter(pk=full.pk).update(title="written meanwhile")
        connection.close()
        return Reply(text=SUMMARY)

    scripted.script(write)
    assert engine.compact_now(full.pk, trigger="manual").status == "applied"
    full.refresh_from_db()
    assert full.title == "written meanwhile"


@pytest.mark.usefixtures("give_back_at_once")
def test_no_connection_is_held_while_the_model_is_called(
    full: Session, scripted: ScriptedModel
) -> None:
    """Otherwise twenty slow summaries would exhaust a pool of twenty connections."""
    mine, held = connections["default"], []

    def look(_: dict[str, Any]) -> Reply:
        held.append(mine.connection is not None)
        return Reply(text=SUMMARY)

    scripted.script(look)
    assert engine.compact_now(full.pk, trigger="manual").status == "applied"
    assert held == [False]


def test_automatic_compaction_that_is_switched_off_meanwhile_is_off(
    full: Session, scripted: ScriptedModel
) -> None:
    def switch_off(_: dict[str, Any]) -> Reply:
        Session.objects.filter(pk=full.pk).update(auto_compact=False)
        connection.close()
        return Reply(text=SUMMARY)

    scripted.script(switch_off)
    run = engine.execute_run(engine.request_run(full.pk, trigger="after_response").pk)
    full.refresh_from_db()
    assert run is not None
    assert (run.status, run.reason) == ("skipped", "Automatic compaction is off for this session.")
    assert full.compacted_summary is None
    assert list_event_names(full, "compaction") == ["compaction.started", "compaction.skipped"]


def test_a_dry_run_calls_no_model_and_stores_nothing(
    full: Session, scripted: ScriptedModel
) -> None:
    run = engine.preview_run(full.pk)
    assert (run.status, run.messages_compacted, run.boundary_after) == ("applied", 10, 11)
    assert not scripted.requests
    assert not CompactionRun.objects.exists()
    full.refresh_from_db()
    assert full.context_version == 0


def test_it_compacts_no_further_than_it_was_asked_to(full: Session) -> None:
    assert engine.compact_now(full.pk, trigger="manual", up_to_seq=4).boundary_after == 5


def test_a_run_needs_a_session_and_a_policy_that_exist(full: Session) -> None:
    with pytest.raises(session_context.NoSuchSession):
        engine.request_run(uuid4(), trigger="manual")
    with pytest.raises(policies.UnknownPolicy):
        engine.request_run(full.pk, trigger="manual", policy="nonsense")


def test_a_run_whose_session_was_deleted_is_not_there_to_be_had(full: Session) -> None:
    run = engine.request_run(full.pk, trigger="manual")
    full.delete()
    assert engine.execute_run(run.pk) is None


def test_whatever_goes_wrong_the_run_says_so(
    full: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("compaction.sessions.request_size.measure_transcript", broken)
    run = engine.compact_now(full.pk, trigger="manual")
    assert (run.status, run.error) == ("failed", "ZeroDivisionError: a bug")
