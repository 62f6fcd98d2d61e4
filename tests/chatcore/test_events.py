"""The event log: its order, its tail and its wire format."""

import asyncio
import json
import threading
from datetime import timedelta

import pytest
from asgiref.sync import sync_to_async
from django.db import connection
from django.utils import timezone

from chatcore.events import log as event_log
from chatcore.events import sse
from chatcore.events.relays.polling import SqliteRelay
from chatcore.events.relays.postgres import PostgresRelay
from chatcore.models import Session, SessionEvent
from tests.support.events import append_events, take_seqs
from tests.support.waiting import PATIENCE_SECONDS, let_the_loop_turn, wait_until_async

pytestmark = pytest.mark.django_db(transaction=True)


def test_numbers_have_no_gap_and_no_double_under_concurrent_writers(session: Session) -> None:
    def write() -> None:
        for _ in range(20):
            append_events(session.pk, ("context.usage", {}))
        connection.close()

    writers = [threading.Thread(target=write) for _ in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert list(SessionEvent.objects.order_by("seq").values_list("seq", flat=True)) == list(
        range(1, 121)
    )


def test_rows_are_as_the_orm_stores_them(session: Session) -> None:
    payload = {"message": 7, "offset": 0, "text": 'Egrets – 漢字, "quoted" 100 %s\n', "none": None}
    append_events(session.pk, ("message.delta", payload), *[("turn.started", {})] * 120)
    [delta, start, *_] = rows = list(SessionEvent.objects.order_by("seq"))
    assert [row.seq for row in rows] == list(range(1, 122))
    assert (delta.message, start.message, delta.owner_id) == (7, None, session.owner_id)

    def read(seq: int) -> list[tuple[object, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT owner_id, session_id, name, message, data, at"
                " FROM chatcore_sessionevent WHERE seq = %s",
                [seq],
            )
            return cursor.fetchall()

    SessionEvent.objects.create(
        session=session, seq=900, name=delta.name, message=7, data=payload, at=delta.at
    )
    assert read(1) == read(900)


async def test_the_tail_gives_the_past_and_then_what_comes(session: Session) -> None:
    append = sync_to_async(append_events, thread_sensitive=False)
    await append(session.pk, ("turn.started", {}), ("turn.completed", {}))
    reader = asyncio.create_task(take_seqs(event_log.follow_events(session.pk, 1), 3))
    await wait_until_async(lambda: event_log.event_hub.is_watched(session.pk))
    await append(session.pk, ("turn.started", {}))
    await append(session.pk, ("turn.completed", {}))
    assert await asyncio.wait_for(reader, 60) == [2, 3, 4]


async def test_events_of_another_process_are_seen_too(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if the writer could not hand anything to this process.
    monkeypatch.setattr(event_log.event_hub, "publish", lambda _: None)
    reader = asyncio.create_task(take_seqs(event_log.follow_events(session.pk, 0), 1))
    await wait_until_async(lambda: event_log.event_hub.is_watched(session.pk))
    await sync_to_async(append_events, thread_sensitive=False)(session.pk, ("turn.started", {}))
    monkeypatch.undo()
    assert await asyncio.wait_for(reader, 60) == [1]


async def test_a_quiet_stream_beats_its_heart_and_ends_with_its_session(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_log, "HEARTBEAT_SECONDS", 0.1)
    for relay in (SqliteRelay, PostgresRelay):
        monkeypatch.setattr(relay, "check_seconds", 0.1)
    tail = event_log.follow_events(session.pk, 0)
    assert await anext(tail) is None
    await sync_to_async(Session.objects.filter(pk=session.pk).delete, thread_sensitive=False)()
    assert [event async for event in tail if event] == []


@pytest.mark.parametrize("loop_turns", range(6))
async def test_a_reader_that_is_cancelled_as_an_event_arrives_reads_no_further(
    session: Session, loop_turns: int
) -> None:
    await asyncio.to_thread(append_events, session.pk, ("turn.started", {}))
    has_read = asyncio.Event()

    async def read() -> None:
        async for _ in event_log.follow_events(session.pk, 0):
            has_read.set()

    with event_log.event_hub.watch_session(session.pk):
        event_log.event_hub.announce({session.pk: 1})
        reader = asyncio.create_task(read())
        await has_read.wait()  # all there is, so it waits for more
        event_log.event_hub.announce({session.pk: 2})
        await let_the_loop_turn(loop_turns)
        reader.cancel()
        await asyncio.wait([reader], timeout=PATIENCE_SECONDS)
        assert reader.cancelled()


def test_the_wire_format_is_one_block_an_event(session: Session) -> None:
    append_events(
        session.pk, ("message.delta", {"message": 7, "offset": 0, "text": "zwei\nZeilen ✓"})
    )
    (event,) = event_log.read_events(session.pk, 0)
    lines = sse.format_frame(event).decode().split("\n")
    assert lines[:2] == ["id: 1", "event: message.delta"]
    assert json.loads(lines[2].removeprefix("data: ")) == {
        "session": str(session.pk),
        "seq": 1,
        "at": event.at.isoformat(),
        "message": 7,
        "offset": 0,
        "text": "zwei\nZeilen ✓",
    }
    assert lines[3:] == ["", ""]


def test_what_is_stored_by_plain_statements_is_what_the_orm_reads(session: Session) -> None:
    data = {"message": 7, "offset": 2, "text": "ünï ✓", "list": [1, None, {"a": 0.5}]}
    log_end = append_events(session.pk, ("message.delta", data), ("context.usage", {}))
    rows = list(SessionEvent.objects.order_by("seq"))
    assert [(row.session_id, row.seq, row.name, row.message, row.data) for row in rows] == [
        (session.pk, 1, "message.delta", 7, data),
        (session.pk, 2, "context.usage", None, {}),
    ]
    assert timezone.now() - rows[0].at < timedelta(minutes=1)
    session.refresh_from_db()
    assert session.last_event_seq == log_end == 2


def test_events_of_a_session_that_is_gone_are_not_stored(session: Session) -> None:
    session_id = session.pk
    session.delete()
    assert append_events(session_id, ("context.usage", {})) == 0
    assert not SessionEvent.objects.exists()
