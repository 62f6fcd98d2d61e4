"""A message is stored with its number and with the events that announce it, in one step."""

import uuid
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chatcore.base.runner import turn_runner
from chatcore.events import log as event_log
from chatcore.events.types import EventType, SessionUpdatedPayload
from chatcore.models import Session, SessionEvent, Turn
from chatcore.turns import control
from chatcore.turns.messages import (
    append_message,
    build_completed_event,
    build_created_event,
    store_message,
)

pytestmark = pytest.mark.django_db


def list_writes(captured: CaptureQueriesContext) -> list[str]:
    """The kinds of the statements that change rows."""
    kinds = [query["sql"].split()[0] for query in captured]
    return [kind for kind in kinds if kind in ("INSERT", "UPDATE", "DELETE")]


def count_reads(captured: CaptureQueriesContext) -> int:
    """Count the statements that read rows.

    PostgreSQL notifies other processes and tells the time in two more SELECTs.
    """
    statements = [query["sql"].strip() for query in captured]
    reads = [statement for statement in statements if statement.startswith("SELECT")]
    calls = ("pg_notify", "statement_timestamp")
    return sum(not any(call in statement for call in calls) for statement in reads)


def test_numbers_of_messages_and_events_have_no_gap(session: Session) -> None:
    payload = SessionUpdatedPayload(fields=["title"])
    event_log.append_events(session.pk, (EventType.SESSION_UPDATED, payload))
    first = store_message(session.pk, None, build_created_event, role="user", content="one")
    second = append_message(session.pk, None, role="user", content="two")
    third = store_message(
        session.pk, None, build_created_event, build_completed_event, role="user", content="three"
    )
    assert [first.message.seq, second.seq, third.message.seq] == [1, 2, 3]
    assert (first.last_event_seq, third.last_event_seq) == (2, 4)
    rows = SessionEvent.objects.filter(session=session).order_by("seq")
    assert list(rows.values_list("seq", "name")) == [
        (1, "session.updated"),
        (2, "message.created"),
        (3, "message.created"),
        (4, "message.completed"),
    ]
    assert [row.data["message"] for row in rows[1:]] == [first.message.pk, *[third.message.pk] * 2]
    session.refresh_from_db()
    assert (session.last_seq, session.message_count, session.last_event_seq) == (3, 3, 4)


def test_a_message_passes_through_the_save_hook(session: Session) -> None:
    message = append_message(session.pk, None, role="tool", content="x\x00" + "y" * 40_000)
    message.refresh_from_db()
    assert message.content.startswith("xyyy")
    assert message.content.endswith("total ...]")
    assert message.original_chars == 40_001
    assert message.token_estimate == len(message.content) // 4


def test_an_empty_text_has_no_tokens(session: Session) -> None:
    assert append_message(session.pk, None, role="tool", content="").token_estimate == 0
    assert append_message(session.pk, None, role="tool", content="0").token_estimate == 1


def test_only_a_user_moves_the_session_up(session: Session) -> None:
    append_message(session.pk, None, role="assistant", content="one")
    assert Session.objects.get(pk=session.pk).updated_at == session.updated_at
    moment = timezone.now() + timedelta(minutes=1)
    append_message(session.pk, None, role="user", content="two", used_at=moment)
    assert Session.objects.get(pk=session.pk).updated_at == moment


def test_nothing_is_stored_in_a_session_that_is_gone_or_hidden(session: Session) -> None:
    Session.objects.filter(pk=session.pk).update(discard_at=timezone.now())
    for pk in (uuid.uuid4(), session.pk):
        with pytest.raises(Session.DoesNotExist), transaction.atomic():
            append_message(pk, None, build_created_event, role="user", content="one")


def test_a_message_with_its_event_takes_three_statements(session: Session) -> None:
    with CaptureQueriesContext(connection) as captured:
        append_message(session.pk, None, build_created_event, role="user", content="one")
    assert list_writes(captured) == ["UPDATE", "INSERT", "INSERT"]


def test_a_turn_begins_with_few_statements_and_points_to_its_events(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn_runner, "launch", lambda *_: None)  # the answer is another matter
    Session.objects.filter(pk=session.pk).update(title="Greeting")
    with CaptureQueriesContext(connection) as captured:
        turn = control.start_turn(session, content="Hello!", idempotency_key="one")
    assert list_writes(captured) == ["UPDATE", "INSERT", "INSERT", "INSERT"]
    assert count_reads(captured) == 4  # the right to the model is one
    stored_turn = Turn.objects.get()
    assert (stored_turn.pk, stored_turn.question_id) == (turn.pk, turn.question_id)
    rows = SessionEvent.objects.filter(session=session).order_by("seq")
    names_and_turns = [(row.seq, row.name, row.data["turn"]) for row in rows]
    assert names_and_turns == [
        (stored_turn.first_event_seq, "turn.started", str(turn.pk)),
        (stored_turn.first_event_seq + 1, "message.created", str(turn.pk)),
    ]
