"""Rows that are stored without the ORM's compiler are those that the ORM stores."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ObjectDoesNotExist
from django.db import IntegrityError, models, transaction
from django.utils import timezone

from chatcore.models import Message, Session, Turn
from chatcore.statements import insert_row, update_row
from models_registry.models import AiModel

pytestmark = pytest.mark.django_db


def get_values(row: models.Model, *other_than: str) -> dict[str, Any]:
    values = type(row)._default_manager.filter(pk=row.pk).values().get()
    return {name: value for name, value in values.items() if name not in other_than}


def build_message(session: Session, seq: int, **fields: Any) -> Message:
    return Message(session=session, seq=seq, role=Message.Role.USER, **fields)


def build_full_message(session: Session, seq: int, moment: Any) -> Message:
    return build_message(
        session,
        seq,
        content="50 % of 漢字 and 'quotes'",
        tool_calls=[{"id": "a", "name": "look", "arguments": '{"at": "ü"}'}],
        status=Message.Status.INTERRUPTED,
        pinned=True,
        is_error=True,
        token_count_input=2**31 - 1,
        branch=uuid.UUID(int=7),
        provider_data={"signature": ["x", None, 1.5, True]},
        created_at=moment,
    )


def test_a_message_with_defaults_is_stored_as_the_orm_stores_it(session: Session) -> None:
    moment = timezone.now()
    by_hand = build_message(session, 1, content="one", created_at=moment)
    insert_row(by_hand)
    by_orm = build_message(session, 2, content="one", created_at=moment)
    by_orm.save()
    # The save hook counts tokens; whoever stores a message by hand calls it first.
    ignored = ("id", "seq", "token_estimate")
    assert get_values(by_hand, *ignored) == get_values(by_orm, *ignored)


def test_a_message_with_everything_is_stored_as_the_orm_stores_it(session: Session) -> None:
    moment = timezone.now() - timedelta(days=400)
    by_hand = build_full_message(session, 1, moment)
    by_hand.prepare_to_store()
    insert_row(by_hand)
    by_orm = build_full_message(session, 2, moment)
    by_orm.save()
    assert get_values(by_hand, "id", "seq") == get_values(by_orm, "id", "seq")
    assert by_hand == Message.objects.get(session=session, seq=1)


def test_a_turn_keeps_the_key_that_it_has(session: Session, model: AiModel) -> None:
    moment = timezone.now()
    fields: dict[str, Any] = {
        "session": session,
        "lease_until": moment,
        "started_at": moment,
        "status": Turn.Status.COMPLETED,
        "tools": [{"name": "look"}],
        "error": None,
        "model": model,
    }
    by_hand, by_orm = Turn(**fields), Turn(**fields)
    insert_row(by_hand)
    by_orm.save(force_insert=True)
    assert get_values(by_hand, "id") == get_values(by_orm, "id")


def test_a_stored_row_can_be_changed_and_saved(session: Session) -> None:
    message = build_message(session, 1, content="one")
    insert_row(message)
    message.pinned = True
    message.save()
    assert Message.objects.get(pk=message.pk).pinned


def test_fields_are_updated_as_the_orm_updates_them(session: Session) -> None:
    by_hand, by_orm = build_message(session, 1), build_message(session, 2)
    for message in (by_hand, by_orm):
        message.save()
        message.content = "50 % of 漢字 and 'quotes'"
        message.tool_calls = [{"id": "a", "name": "look", "arguments": "{}"}]
        message.branch = uuid.UUID(int=7)
        message.replaces_id = by_hand.pk
        message.reasoning = "is not stored"
    names = ("content", "tool_calls", "branch", "replaces_id")
    update_row(by_hand, *names)
    by_orm.save(update_fields=[*names[:-1], "replaces"])
    ignored = ("id", "seq", "created_at", "token_estimate")  # the save hook counts tokens
    assert get_values(by_hand, *ignored) == get_values(by_orm, *ignored)
    assert get_values(by_hand)["reasoning"] == ""


def test_a_row_that_is_deleted_is_not_updated(session: Session) -> None:
    message = build_message(session, 1)
    message.save()
    Message.objects.all().delete()
    with pytest.raises(ObjectDoesNotExist):
        update_row(message, "content")
    assert not Message.objects.exists()


def test_a_number_that_is_taken_is_refused_as_by_the_orm(session: Session) -> None:
    insert_row(build_message(session, 1))
    with pytest.raises(IntegrityError), transaction.atomic():
        insert_row(build_message(session, 1))
