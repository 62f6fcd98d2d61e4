"""Queries that are compiled once return what the ORM returns, for all arguments after the first."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from knox.models import AuthToken

from chatcore.base.databases.compiled_queries import CompiledQuery
from chatcore.models import Message, Session
from models_registry.models import AiModel

pytestmark = pytest.mark.django_db


def list_values(row: Any) -> dict[str, object]:
    return {field.name: getattr(row, field.attname) for field in row._meta.concrete_fields}


def test_a_locked_session_is_the_one_that_the_orm_loads(user: User, model: AiModel) -> None:
    params = {"temperature": 0.5}
    with_model = Session.objects.create(owner=user, model=model, params=params, tools=["time"])
    without_model = Session.objects.create(owner=user, title="Café")
    for row in (with_model, without_model, with_model):
        loaded = Session.objects.select_related("model__provider").get(pk=row.pk)
        with transaction.atomic():
            locked = Session.objects.lock(row.pk)
        with CaptureQueriesContext(connection) as queries:
            assert list_values(locked) == list_values(loaded)
            if locked.model and loaded.model:
                assert list_values(locked.model) == list_values(loaded.model)
                assert list_values(locked.model.provider) == list_values(loaded.model.provider)
        assert not queries.captured_queries


def test_a_session_that_is_away_cannot_be_locked(user: User) -> None:
    deleted = Session.objects.create(owner=user, discard_at=timezone.now())
    for pk in (deleted.pk, uuid4()):
        with transaction.atomic(), pytest.raises(Session.DoesNotExist):
            Session.objects.lock(pk)


def test_tuples_and_texts_are_those_of_the_orm_too(user: User, session: Session) -> None:
    def query_tokens(digest: str) -> QuerySet[AuthToken, AuthToken]:
        return AuthToken.objects.select_related("user").filter(digest=digest)

    def query_messages(session_id: UUID, seq: int) -> QuerySet[Message, tuple[object, ...]]:
        rows = Message.objects.filter(session=session_id, seq__gte=seq).order_by("seq")
        return rows.values_list("session_id", "created_at", "tool_calls", "is_error")

    tokens, messages = CompiledQuery(query_tokens), CompiledQuery(query_messages)
    for place in range(3):
        token, _ = AuthToken.objects.create(user)
        Message.objects.create(session=session, seq=place, role="user", content="Yes")
        (found,) = tokens.fetch(token.digest)
        assert (found, found.user, found.expiry) == (token, user, token.expiry)
        assert messages.fetch(session.pk, 0) == list(query_messages(session.pk, 0))
        assert messages.fetch(session.pk, place) == list(query_messages(session.pk, place))
    assert tokens.fetch("another") == []
