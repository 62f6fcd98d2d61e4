"""Statements written by hand: each gives what the ORM's query gives that it replaces."""

import uuid
from typing import Any

import pytest
from django.db.models import Q
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from chatcore.context import live_messages
from chatcore.models import Attachment, ContextEdit, ContextRevision, Message, Session, Turn
from compaction.backends.base import SessionFacts
from compaction.backends.chatcore import queries as chatcore_queries
from compaction.models import CompactionRun, ModelRatio, SessionState
from compaction.sizing import queries
from models_registry.models import AiModel

pytestmark = pytest.mark.django_db

SESSION_COLUMNS = (
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
    "model_policy": "policy",
    "context_window_size": "context_window_size",
    "output_reserve": "output_reserve",
    "supports_tools": "supports_tools",
    "supports_images": "supports_images",
    "summary_model_name": "summary_model__name",
    "summary_provider_name": "summary_model__provider__name",
}
CLIENT_TOOLS = [{"name": "open_door", "description": "Opens a door.", "parameters": {}}]


def build_facts(session: Session, **fields: Any) -> SessionFacts:
    defaults = {"model": "scripted/small", "family": "", "window": None, "output_reserve": None}
    return SessionFacts(session_id=session.pk, **defaults | fields)


def load_session_row_by_orm(session: Session) -> dict[str, Any]:
    stored_session = Session.objects.get(pk=session.pk)
    live = Q(message__pinned=True) | Q(message__seq__gte=stored_session.compact_boundary_seq or 0)
    attachments = stored_session.attachments.filter(live, kind="file", message__branch=None)
    edited_ids = ContextEdit.objects.filter(until_version=None).values("message")
    attachments = attachments.exclude(message__in=edited_ids)
    images = attachments.filter(media_type__startswith="image/")
    texts = attachments.exclude(media_type__startswith="image/")
    open_turn = stored_session.turns.filter(status__in=Turn.OPEN_STATUSES).first()
    running_turn = stored_session.turns.filter(status="running").first()
    model_id = (running_turn.model_id if running_turn else None) or stored_session.model_id
    model_row = (
        AiModel.objects.filter(pk=model_id or 0).values(*MODEL_COLUMNS.values()).first() or {}
    )
    return {
        **{name: getattr(stored_session, name) for name in SESSION_COLUMNS},
        **{name: model_row.get(column) for name, column in MODEL_COLUMNS.items()},
        "system_chars": len(stored_session.system_prompt),
        "attached_tokens": sum(file.token_estimate for file in texts) or None,
        "attached_images": images.count() or None,
        "has_outputs": stored_session.attachments.filter(kind="output").exists(),
        "turn_tools": open_turn.tools if open_turn else None,
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
    assert chatcore_queries.load_session_row(session.pk) == load_session_row_by_orm(session)


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
        output_reserve=512,
        supports_tools=True,
        summary_model=writer,
    )
    Session.objects.filter(pk=session.pk).update(
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
        session=session, lease_until=timezone.now(), model=answering_model, tools=CLIENT_TOOLS
    )
    row = chatcore_queries.load_session_row(session.pk)
    assert row == load_session_row_by_orm(session)
    assert (row["attached_tokens"], row["attached_images"]) == (102 + 109, 2)
    assert (row["model_name"], row["summary_model_name"]) == ("answering", "writer")
    assert (row["params"], row["turn_tools"]) == ({"max_tokens": 9, "stop": ["%"]}, CLIENT_TOOLS)
    assert row["auto_compact"] is False
    Turn.objects.update(status="waiting")
    assert chatcore_queries.load_session_row(session.pk) == load_session_row_by_orm(session)
    assert chatcore_queries.load_session_row(uuid.uuid4()) is None


def test_a_revision_is_found_by_its_version(session: Session) -> None:
    for version in (1, 2):
        ContextRevision.objects.create(
            session=session,
            version=version,
            source="compaction",
            kept_seqs=[version, 5],
            background="TASKS: none",
            placement={"place": "first_user"},
        )
    columns = ("source", "kept_seqs", "background", "placement")
    row = ContextRevision.objects.filter(session=session, version=2).values(*columns).get()
    assert chatcore_queries.load_revision_row(session.pk, 2) == row
    assert chatcore_queries.load_revision_row(session.pk, 3) is None


@pytest.mark.parametrize(
    ("boundary_seq", "version", "model_name"),
    [(None, 0, "scripted/small"), (7, 1, "scripted/small"), (5, 0, "scripted/small"), (7, 1, "b")],
)
def test_the_last_usage_is_that_of_the_newest_answer(
    session: Session, boundary_seq: int | None, version: int, model_name: str
) -> None:
    fill(session)
    answers = Message.objects.filter(
        session=session,
        seq__gte=boundary_seq or 0,
        context_version=version,
        model=model_name,
        token_count_input__gt=0,
    )
    columns = ("seq", "token_count_input", "token_count_output")
    row = answers.exclude_superseded().order_by("-seq").values(*columns).first()
    facts = build_facts(session, boundary_seq=boundary_seq, version=version, model=model_name)
    assert chatcore_queries.load_last_usage_row(facts) == row
    assert (row is None) == (model_name == "b")


@pytest.mark.parametrize(("boundary_seq", "newest"), [(None, 9), (7, 9), (10, None)])
def test_the_newest_prompt_is_that_of_the_user(
    session: Session, boundary_seq: int | None, newest: int | None
) -> None:
    fill(session)
    Message.objects.filter(session=session, seq=9).update(token_estimate=99)
    row = chatcore_queries.load_newest_prompt_row(build_facts(session, boundary_seq=boundary_seq))
    prompts = Message.objects.filter(session=session, seq__gte=boundary_seq or 0, role="user")
    assert row == prompts.exclude_superseded().order_by("-seq").values("token_estimate").first()
    assert row == ({"token_estimate": 99} if newest else None)


@pytest.mark.parametrize("kept_seqs", [(), (1,), (2, 3, 4)])
def test_messages_around_the_boundary_are_counted_once(
    session: Session, kept_seqs: tuple[int, ...]
) -> None:
    fill(session)
    facts = build_facts(session, boundary_seq=7, kept_seqs=kept_seqs)
    live = live_messages.query_live_messages(session.pk, 7, kept_seqs)
    assert chatcore_queries.count_messages_around_boundary(facts) == live.count()


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
def test_a_summary_runs_while_a_run_does_whose_start_was_announced(
    session: Session, status: str, announced: bool
) -> None:
    CompactionRun.objects.create(
        session_id=session.pk,
        trigger="manual",
        policy="oneclaw",
        status=status,
        announced=announced,
    )
    runs = CompactionRun.objects.filter(session_id=session.pk, status="running", announced=True)
    assert queries.is_summary_running(session.pk) == runs.exists()


def test_a_ratio_is_found_by_its_model() -> None:
    ModelRatio.objects.create(model="scripted/small", ratio=1.25, window=4_000, samples=3)
    columns = ("ratio", "window", "registered", "samples")
    row = ModelRatio.objects.filter(model="scripted/small").values(*columns).get()
    assert queries.load_ratio_row("scripted/small") == row
    assert queries.load_ratio_row("other/model") is None
