"""Queries whose text is written once: they give what the ORM gives, whatever the values, and remember none of them."""

import uuid

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from chatcore.models import ContextRevision, Message, Session
from compaction.models import SessionState, load_session_state
from compaction.sizing.prepared import PreparedQuery

pytestmark = pytest.mark.django_db

NAMES = (
    "id",
    "title",
    "params",
    "tools",
    "auto_compact",
    "compact_threshold",
    "compact_boundary_timestamp",
    "created_at",
)

sessions = PreparedQuery(lambda own: Session.objects.filter(pk=own).values(*NAMES), uuid.UUID)
messages = PreparedQuery(
    lambda own, first, words: (
        Message.objects.filter(session=own, seq__gte=first, content=words)
        .order_by("-seq")
        .values("seq", "tool_calls")
    ),
    uuid.UUID,
    int,
    str,
)


def test_a_row_is_the_one_that_the_query_gives(session: Session) -> None:
    assert (
        sessions.fetch_first(session.pk)
        == Session.objects.filter(pk=session.pk).values(*NAMES).get()
    )
    filled = {
        "params": {"max_tokens": 9},
        "tools": ["fetch_url"],
        "compact_threshold": 0.5,
        "compact_boundary_timestamp": timezone.now(),
    }
    Session.objects.filter(pk=session.pk).update(title="Ada's 50 %s", auto_compact=False, **filled)
    row = sessions.fetch_first(session.pk)
    assert row == Session.objects.filter(pk=session.pk).values(*NAMES).get()
    assert row is not None
    assert (row["id"], row["params"], row["auto_compact"]) == (session.pk, {"max_tokens": 9}, False)


def test_each_value_stands_where_it_was_asked_for_and_an_order_holds(session: Session) -> None:
    calls = [{"id": "a", "name": "n", "arguments": "{}"}]
    for seq, words in enumerate(("one", "two", "two", "'; --"), start=1):
        Message.objects.create(
            session=session, seq=seq, role="assistant", content=words, tool_calls=calls
        )
    asked = [
        messages.fetch_first(session.pk, first, words)
        for first, words in ((1, "one"), (1, "two"), (3, "two"), (4, "two"), (2, "'; --"))
    ]
    assert [row and row["seq"] for row in asked] == [1, 3, 3, None, 4]
    assert asked[0] is not None
    assert asked[0]["tool_calls"] == calls
    assert messages.fetch_first(uuid.uuid4(), 1, "one") is None
    assert messages.fetch_first(str(session.pk), 1, "one") == asked[0]


def test_it_is_one_query_and_sees_what_was_written_meanwhile(
    session: Session, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        assert load_session_state(session.pk).failures == 0
    SessionState.objects.create(session_id=session.pk, failures=2, not_before=timezone.now())
    assert load_session_state(session.pk).is_waiting is False
    state = load_session_state(session.pk)
    state.failures += 1
    state.save()
    assert SessionState.objects.get().failures == 3
    SessionState.objects.all().delete()
    assert load_session_state(session.pk).failures == 0


def test_a_value_that_the_text_depends_on_is_refused(session: Session) -> None:
    with pytest.raises(AssertionError):
        PreparedQuery(
            lambda version: ContextRevision.objects.filter(session=session), int
        ).fetch_first(1)
