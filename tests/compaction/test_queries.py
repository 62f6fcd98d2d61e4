"""Statements written by hand: each gives what the ORM's query gives that it replaces."""

import uuid
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from chatcore.contrib.group_rights.models import GroupRights
from chatcore.models import (
    Attachment,
    ContextEdit,
    ContextRevision,
    Message,
    Project,
    Session,
    Turn,
    statements,
)
from compaction.models import CompactionRun, ModelRatio, SessionState
from compaction.sessions import calibration, queries
from models_registry.models import AiModel

pytestmark = pytest.mark.django_db

SESSION_COLUMNS = (
    "owner_id",
    "project_id",
    "overhead_since",
    "policy",
    "auto_compact",
    "compact_threshold",
    "params",
    "tools",
    "message_count",
    "last_seq",
    "context_version",
    "compacted_summary",
    "compact_boundary_seq",
)
MODEL_COLUMNS = {
    "model_name": "name",
    "provider_name": "provider__name",
    "family": "provider__family",
    "provider_options": "provider__options",
    "model_policy": "policy",
    "context_window_size": "context_window_size",
    "max_input_tokens": "max_input_tokens",
    "output_reserve": "output_reserve",
    "supports_tools": "supports_tools",
    "supports_images": "supports_images",
}
CLIENT_TOOLS = [{"name": "open_door", "description": "Opens a door.", "parameters": {}}]


REVISION_COLUMNS = {
    "revision_source": "source",
    "kept_seqs": "kept_seqs",
    "background": "background",
    "placement": "placement",
}
USAGE_COLUMNS = {
    "usage_seq": "seq",
    "usage_input": "token_count_input",
    "usage_output": "token_count_output",
    "usage_at": "created_at",
}


def load_session_row_by_orm(session: Session) -> dict[str, Any]:
    stored_session = Session.objects.get(pk=session.pk)
    open_turn = stored_session.turns.filter(status__in=Turn.OPEN_STATUSES).first()
    running_turn = stored_session.turns.filter(status="running").first()
    model_id = (running_turn.model_id if running_turn else None) or stored_session.model_id
    model_row = (
        AiModel.objects.filter(pk=model_id or 0).values(*MODEL_COLUMNS.values()).first() or {}
    )
    answering_model = AiModel.objects.filter(pk=model_id or 0).first()
    summary_model = answering_model.summary_model if answering_model else None
    revisions = stored_session.revisions.filter(version=stored_session.context_version)
    revision_row = revisions.values(*REVISION_COLUMNS.values()).first() or {}
    messages = stored_session.messages.exclude_superseded().filter(
        seq__gte=stored_session.compact_boundary_seq or 0,
        seq__gt=stored_session.last_seq - statements.NEWEST_SEQS,
    )
    answers = messages.filter(
        context_version=stored_session.context_version,
        model=f"{model_row.get('provider__name')}/{model_row.get('name')}",
        token_count_input__gt=0,
    )
    usage_row = answers.order_by("-seq").values(*USAGE_COLUMNS.values()).first() or {}
    prompt = messages.filter(role="user").order_by("-seq").first()
    return {
        **{name: getattr(stored_session, name) for name in SESSION_COLUMNS},
        **{name: model_row.get(column) for name, column in MODEL_COLUMNS.items()},
        "has_tool_limits": GroupRights.objects.filter(limits_tools=True).exists(),
        "summary_model_name": str(summary_model) if summary_model else None,
        "system_chars": len(stored_session.system_prompt),
        **{name: revision_row.get(column) for name, column in REVISION_COLUMNS.items()},
        **{name: usage_row.get(column) for name, column in USAGE_COLUMNS.items()},
        "newest_prompt_tokens": prompt.token_estimate if prompt else None,
        "has_attachments": stored_session.attachments.exists(),
        "has_outputs": stored_session.attachments.filter(kind="output").exists(),
        "turn_tools": open_turn.tools if open_turn else None,
        "recalled": open_turn.recalled if open_turn else None,
    }


def attach(session: Session, seq: int, media_type: str, **fields: Any) -> None:
    message = Message.objects.get(session=session, seq=seq)
    file_fields: dict[str, Any] = {"name": "a", "size": 1, "data": b"", "token_estimate": 100 + seq}
    Attachment.objects.create(
        session=session, message=message, media_type=media_type, **file_fields | fields
    )


def fill(session: Session) -> None:
    """Twelve messages: pinned, superseded, failed and streaming ones among them."""
    Message.objects.bulk_create(
        Message(
            session=session,
            seq=seq,
            role="user" if seq % 2 else "assistant",
            content=f"message {seq}",
            pinned=seq in (2, 3),
            branch=uuid.uuid4() if seq in (3, 11) else None,
            status={10: "failed", 12: "streaming"}.get(seq, "complete"),
            model="" if seq % 2 else "scripted/small",
            context_version=1 if seq > 7 else 0,
            token_count_input=seq * 10,
            token_count_output=None if seq == 8 else seq,
        )
        for seq in range(1, 13)
    )


def test_a_new_session_has_the_row_that_the_orm_gives(session: Session) -> None:
    assert statements.load_measured_row(session.pk) == load_session_row_by_orm(session)


def test_a_session_with_everything_has_the_row_that_the_orm_gives(
    session: Session, model: AiModel
) -> None:
    fill(session)
    provider = model.provider
    writer = AiModel.objects.create(provider=provider, name="writer", supports_images=True)
    answering_model = AiModel.objects.create(
        provider=provider,
        name="answering",
        policy="lota",
        context_window_size=4_096,
        max_input_tokens=3_900,
        output_reserve=512,
        supports_tools=True,
        summary_model=writer,
    )
    Session.objects.filter(pk=session.pk).update(
        project=Project.objects.create(owner=session.owner, name="Tea"),
        overhead_since=timezone.now(),
        title="Ada's 50 %s",
        auto_compact=False,
        compact_threshold=0.5,
        params={"max_tokens": 9, "stop": ["%"]},
        tools=["fetch_url"],
        system_prompt="Sei kurz – 漢字.",
        compact_boundary_seq=7,
        compacted_summary="They met.",
        context_version=1,
        message_count=12,
        last_seq=12,
    )
    ContextRevision.objects.create(
        session=session,
        version=1,
        source="compaction",
        kept_seqs=[1, 5],
        background="TASKS: none",
        placement={"place": "first_user"},
    )
    for seq, media_type in (
        (1, "text/plain"),
        (2, "text/plain"),
        (3, "text/csv"),
        (7, "image/png"),
    ):
        attach(session, seq, media_type)
    for seq, media_type in ((8, "text/plain"), (9, "application/pdf"), (9, "image/webp")):
        attach(session, seq, media_type)
    attach(session, 8, "text/plain", kind="output")
    ContextEdit.objects.create(
        session=session,
        message=Message.objects.get(session=session, seq=8),
        kind="pruned",
        from_version=1,
    )
    Turn.objects.create(
        session=session,
        lease_until=timezone.now(),
        model=answering_model,
        tools=CLIENT_TOOLS,
        recalled={},
    )
    row = statements.load_measured_row(session.pk)
    assert row == load_session_row_by_orm(session)
    assert (row["has_attachments"], row["has_outputs"], row["kept_seqs"]) == (True, True, [1, 5])
    assert (row["model_name"], row["summary_model_name"]) == ("answering", "scripted/writer")
    assert (row["params"], row["turn_tools"]) == ({"max_tokens": 9, "stop": ["%"]}, CLIENT_TOOLS)
    assert row["auto_compact"] is False
    Turn.objects.update(status="waiting")
    assert statements.load_measured_row(session.pk) == load_session_row_by_orm(session)
    assert statements.load_measured_row(uuid.uuid4()) is None


@pytest.mark.parametrize(
    ("boundary_seq", "version", "model_name", "usage_seq", "prompt_seq"),
    [
        (None, 0, "small", 6, 9),
        (7, 1, "small", 12, 9),
        (5, 0, "small", 6, 9),
        (7, 1, "other", None, 9),
        (10, 1, "small", 12, None),
    ],
)
def test_the_last_usage_and_the_newest_prompt_are_those_of_the_context(
    session: Session,
    boundary_seq: int | None,
    version: int,
    model_name: str,
    usage_seq: int | None,
    prompt_seq: int | None,
) -> None:
    fill(session)
    Message.objects.filter(session=session, seq=9).update(token_estimate=99)
    AiModel.objects.update(name=model_name)
    Session.objects.filter(pk=session.pk).update(
        compact_boundary_seq=boundary_seq, context_version=version, last_seq=12
    )
    row = statements.load_measured_row(session.pk)
    assert row == load_session_row_by_orm(session)
    assert row["usage_seq"] == usage_seq
    assert row["newest_prompt_tokens"] == (99 if prompt_seq else None)


def test_the_last_usage_is_looked_for_among_the_newest_messages(session: Session) -> None:
    fill(session)
    AiModel.objects.update(name="small")
    Session.objects.filter(pk=session.pk).update(last_seq=8 + statements.NEWEST_SEQS)
    row = statements.load_measured_row(session.pk)
    assert row == load_session_row_by_orm(session)
    assert (row["usage_seq"], row["newest_prompt_tokens"]) == (None, 2)


def test_a_state_is_one_query_and_sees_what_was_written_meanwhile(
    session: Session, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        assert queries.load_session_state(session.pk).failures == 0
    SessionState.objects.create(session_id=session.pk, failures=2, not_before=timezone.now())
    assert queries.load_session_state(session.pk).is_waiting is False
    state = queries.load_session_state(session.pk)
    stored_fields = SessionState.objects.values().get()
    assert {name: getattr(state, name) for name in stored_fields} == stored_fields
    assert state.trimming is False
    state.failures += 1
    state.save()
    assert SessionState.objects.get().failures == 3
    SessionState.objects.all().delete()
    assert queries.load_session_state(session.pk).failures == 0


@pytest.mark.parametrize(
    ("status", "announced"), [("running", True), ("running", False), ("queued", True)]
)
def test_all_records_are_one_query(
    session: Session,
    status: str,
    announced: bool,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    CompactionRun.objects.create(
        session_id=session.pk,
        trigger="manual",
        policy="oneclaw",
        status=status,
        announced=announced,
    )
    SessionState.objects.create(session_id=session.pk, failures=2, not_before=timezone.now())
    ModelRatio.objects.create(
        model="scripted/small",
        ratio=1.25,
        window=4_000,
        samples=3,
        window_learned_at=timezone.now(),
    )
    with django_assert_num_queries(1):
        records = queries.load_records(session.pk, "scripted/small")
    runs = CompactionRun.objects.filter(session_id=session.pk, status="running", announced=True)
    assert records.is_summary_running == runs.exists()
    assert records.state == queries.load_session_state(session.pk)
    assert records.state.not_before == SessionState.objects.get().not_before
    known = calibration.load_calibration("scripted/small", None)
    assert known.window_learned_at
    assert calibration.build_calibration(records.ratio, None) == known


def test_records_of_which_none_are_stored_are_empty(session: Session) -> None:
    records = queries.load_records(session.pk, "scripted/small")
    assert (records.ratio, records.is_summary_running) == (None, False)
    assert (records.state.session_id, records.state.failures) == (session.pk, 0)
    assert records.state._state.adding
