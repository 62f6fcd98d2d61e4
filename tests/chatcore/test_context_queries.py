"""The context of a request, read by hand: the statement gives what the ORM's queries give."""

import json
import uuid
from collections.abc import Collection
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chatcore.context import builder, live_messages
from chatcore.contrib.group_rights.models import GroupRights
from chatcore.models import (
    Attachment,
    ContextEdit,
    ContextRevision,
    Message,
    Session,
    Turn,
    statements,
)
from compaction.memory.models import StandingRule

pytestmark = pytest.mark.django_db

CALLS = [{"id": "a", "name": "look", "arguments": '{"where": "50 %s"}'}]
COMPLETE_CONTEXT = {
    "context_version": 2,
    "compacted_summary": "They met – 漢字.",
    "compact_boundary_seq": 7,
}


def fill(session: Session) -> None:
    """Fourteen messages: pinned, superseded, failed, streaming and system ones among them."""
    roles = {4: "assistant", 5: "tool", 8: "assistant", 9: "tool", 13: "system"}
    Message.objects.bulk_create(
        Message(
            session=session,
            seq=seq,
            role=roles.get(seq, "user"),
            content=f"message {seq}",
            pinned=seq in (2, 3, 4, 9),
            branch=uuid.uuid4() if seq in (3, 11) else None,
            status={10: "failed", 12: "streaming"}.get(seq, "complete"),
            tool_calls=CALLS if seq in (4, 8) else [],
            tool_call_id="a" if seq in (5, 9) else "",
            tool_name="look" if seq in (5, 9) else "",
            is_error=seq == 9,
            provider_data={"signature": "x"} if seq == 8 else {},
        )
        for seq in range(1, 15)
    )


def attach(session: Session, **fields: Any) -> None:
    Attachment.objects.create(
        session=session, name="a", media_type="text/plain", size=1, data=b"", **fields
    )


def edit(session: Session, seq: int, **fields: Any) -> None:
    message = Message.objects.get(session=session, seq=seq)
    defaults = {"kind": "pruned", "replacement": f"short {seq}", "from_version": 1}
    ContextEdit.objects.create(session=session, message=message, **defaults | fields)


def load_context_row_by_orm(session: Session) -> dict[str, Any]:
    fields: dict[str, Any] = Session.objects.values(*COMPLETE_CONTEXT).get(pk=session.pk)
    revision = session.revisions.filter(version=fields["context_version"]).first()
    open_turn = session.turns.filter(status__in=Turn.OPEN_STATUSES).first()
    return fields | {
        "kept_seqs": revision.kept_seqs if revision else None,
        "background": revision.background if revision else None,
        "placement": revision.placement if revision else None,
        "has_files": session.attachments.filter(kind="file", message__isnull=False).exists(),
        "has_edits": session.context_edits.filter(until_version=None).exists(),
        "has_outputs": session.attachments.filter(kind="output").exists(),
        "has_tool_limits": GroupRights.objects.filter(limits_tools=True).exists(),
        "needs_pre_request": StandingRule.objects.filter(owner=session.owner).exists(),
        "recalled": open_turn.recalled if open_turn else None,
    }


def decode(row: statements.MessageRow) -> dict[str, Any]:
    """The values as the ORM gives them."""
    values = dict(zip(statements.MESSAGE_COLUMNS, row, strict=True))
    return values | {
        "tool_calls": json.loads(values["tool_calls"]),
        "provider_data": json.loads(values["provider_data"]),
        "is_error": bool(values["is_error"]),
        "pinned": bool(values["pinned"]),
    }


def test_a_new_session_has_the_row_that_the_orm_gives(session: Session) -> None:
    assert statements.load_context_row(session.pk) == load_context_row_by_orm(session)
    assert statements.load_context_row(uuid.uuid4()) is None


def test_a_session_with_a_revision_has_the_row_that_the_orm_gives(session: Session) -> None:
    fill(session)
    Session.objects.filter(pk=session.pk).update(**COMPLETE_CONTEXT)
    for version in (1, 2, 3):
        ContextRevision.objects.create(
            session=session,
            version=version,
            source="compaction",
            kept_seqs=[version, 5],
            background="TASKS: none",
            placement={"place": "first_user"},
        )
    row = statements.load_context_row(session.pk)
    assert row == load_context_row_by_orm(session)
    assert row == COMPLETE_CONTEXT | {
        "kept_seqs": [2, 5],
        "background": "TASKS: none",
        "placement": {"place": "first_user"},
        "has_files": False,
        "has_edits": False,
        "has_outputs": False,
        "has_tool_limits": False,
        "needs_pre_request": False,
        "recalled": None,
    }


def test_a_rule_of_the_owner_is_brought_up_to_date(session: Session) -> None:
    StandingRule.objects.create(owner=session.owner, kind="rule", text="Be brief.")
    row = statements.load_context_row(session.pk)
    assert row == load_context_row_by_orm(session)
    assert row is not None
    assert row["needs_pre_request"] is True


def test_only_an_open_turn_brings_something_back(session: Session) -> None:
    recalled = {"question": 9, "passages": {"1": {"text": "漢字"}}}
    for status in ("completed", "waiting"):
        Turn.objects.create(
            session=session, status=status, lease_until=timezone.now(), recalled=recalled
        )
        row = statements.load_context_row(session.pk)
        assert row == load_context_row_by_orm(session)
        assert row is not None
        assert row["recalled"] == (recalled if status == "waiting" else None)


def test_files_count_once_they_are_sent_and_edits_while_they_are_in_force(
    session: Session,
) -> None:
    fill(session)
    attach(session)
    assert statements.load_context_row(session.pk) == load_context_row_by_orm(session)
    attach(session, kind="output", message=session.messages.get(seq=9))
    edit(session, 8, until_version=2)
    GroupRights.objects.create(group=Group.objects.create(name="few"), limits_tools=True)
    row = statements.load_context_row(session.pk)
    assert row == load_context_row_by_orm(session)
    assert row is not None
    assert (row["has_files"], row["has_edits"]) == (False, False)
    assert (row["has_outputs"], row["has_tool_limits"]) == (True, True)
    attach(session, message=session.messages.get(seq=1))
    edit(session, 8)
    row = statements.load_context_row(session.pk)
    assert row == load_context_row_by_orm(session)
    assert row is not None
    assert (row["has_files"], row["has_edits"]) == (True, True)


def query_live_messages(
    session_id: UUID, boundary_seq: int | None, kept_seqs: Collection[int] = ()
) -> QuerySet[Message]:
    """Return the live messages by the ORM: from the boundary on, pinned and kept ones."""
    messages = Message.objects.filter(session=session_id).order_by()
    if boundary_seq:
        late_messages = messages.filter(seq__gte=boundary_seq).values("pk")
        early_queries = [messages.filter(pinned=True, seq__lt=boundary_seq).values("pk")]
        if kept_seqs:
            early_queries.append(messages.filter(seq__in=kept_seqs).values("pk"))
        messages = Message.objects.filter(pk__in=late_messages.union(*early_queries))
    return messages.filter(live_messages.SENDABLE).order_by("seq")


@pytest.mark.parametrize("boundary_seq", [None, 1, 7, 15])
@pytest.mark.parametrize("kept_seqs", [(), (1,), (1, 2, 3, 8)])
def test_the_live_messages_are_those_that_the_orm_gives(
    session: Session, boundary_seq: int | None, kept_seqs: Collection[int]
) -> None:
    fill(session)
    rows = statements.load_live_rows(session.pk, boundary_seq, kept_seqs)
    messages = query_live_messages(session.pk, boundary_seq, kept_seqs)
    assert [decode(row) for row in rows] == list(messages.values(*statements.MESSAGE_COLUMNS))
    assert rows


def explain(captured: CaptureQueriesContext) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {captured[0]['sql']}")
        return "\n".join(row[3] for row in cursor.fetchall())


sqlite_only = pytest.mark.skipif(
    connection.vendor != "sqlite",
    reason="PostgreSQL plans by the sizes of tables, and these are empty.",
)


@sqlite_only
def test_the_live_messages_are_found_by_their_indexes_alone(session: Session) -> None:
    with CaptureQueriesContext(connection) as captured:
        statements.load_live_rows(session.pk, 9_000, [1, 2])
    plan = explain(captured)
    assert "session_id=? AND seq>?" in plan
    assert "pinned_messages" in plan
    assert "session_id=? AND seq=?" in plan
    assert "SCAN chatcore_message" not in plan


@sqlite_only
def test_edits_of_earlier_messages_are_not_read(session: Session) -> None:
    with CaptureQueriesContext(connection) as captured:
        live_messages.load_edits(session, 9_000, [1, 2])
    plan = explain(captured)
    assert "SEARCH chatcore_message USING" in plan
    assert plan.count("(message_id=?)") == 2
    assert "edits_in_force" not in plan


@sqlite_only
def test_stored_outputs_are_not_read_to_find_a_file(session: Session) -> None:
    with CaptureQueriesContext(connection) as captured:
        statements.load_context_row(session.pk)
    plan = explain(captured)
    assert "files_of_a_session" in plan
    assert "edits_in_force" in plan


def test_a_request_of_a_hidden_session_says_that_there_is_none(session: Session) -> None:
    Session.objects.filter(pk=session.pk).update(discard_at=timezone.now())
    with pytest.raises(Session.DoesNotExist):
        builder.build_request(session)
