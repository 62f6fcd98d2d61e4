"""Pages of the event log: a reader holds so many bytes of it, however large the events are."""

import asyncio

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chatcore.events import log as event_log
from chatcore.models import Session
from tests.support.events import append_events, take_seqs

pytestmark = pytest.mark.django_db(transaction=True)


def append_texts(session: Session, *sizes: int) -> None:
    for size in sizes:
        append_events(session.pk, ("session.updated", {"fields": ["x" * size]}))


def test_a_page_ends_with_the_event_that_fills_it(session: Session) -> None:
    append_texts(session, *[400_000] * 5)
    assert [event.seq for event in event_log.read_events(session.pk, 0)] == [1, 2, 3]
    assert [event.seq for event in event_log.read_events(session.pk, 3)] == [4, 5]


def test_one_event_that_is_larger_is_a_page(session: Session) -> None:
    append_texts(session, 2_000_000, 10)
    assert [event.seq for event in event_log.read_events(session.pk, 0)] == [1]


def test_small_events_come_in_pages_of_five_hundred(session: Session) -> None:
    append_events(session.pk, *[("context.usage", {})] * 501)
    page = event_log.read_events(session.pk, 0)
    assert [event.seq for event in page] == list(range(1, 501))
    assert [event.seq for event in event_log.read_events(session.pk, 500)] == [501]


def test_a_reader_who_is_nearly_up_to_date_costs_one_query(session: Session) -> None:
    append_texts(session, 10, 10)
    with CaptureQueriesContext(connection) as queries:
        assert len(event_log.read_events(session.pk, 0)) == 2
    assert len(queries) == 1


async def test_a_reader_gets_all_pages(session: Session) -> None:
    await asyncio.to_thread(append_texts, session, *[400_000] * 8)
    reader = take_seqs(event_log.follow_events(session.pk, 0), 8)
    assert await asyncio.wait_for(reader, 60) == list(range(1, 9))
