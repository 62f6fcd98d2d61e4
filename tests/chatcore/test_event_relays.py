"""Events of other processes reach the readers of this one, by each way that there is."""

import asyncio
import json
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
import redis as redis_client
from django.db import connection
from django.utils import timezone

from chatcore.base import caches
from chatcore.events import listener
from chatcore.events import log as event_log
from chatcore.events.hub import HELD_EVENTS, EventHub
from chatcore.events.relays import base
from chatcore.events.relays.base import EventRelay
from chatcore.events.relays.redis import STREAM, RedisRelay
from chatcore.events.types import Event
from chatcore.models import Session
from tests.support.events import append_events
from tests.support.waiting import wait_until_async

pytestmark = pytest.mark.django_db(transaction=True)
REDIS = os.environ.get("CHATCORE_TEST_REDIS_URL", "redis://127.0.0.1:6379/15")
NO_REDIS = "redis://127.0.0.1:1/0"
TEXTS = ["one", "ünï ✓", "long " * 5_000]
OTHER_PROCESS = """
import json, sys, django
django.setup()
from uuid import UUID
from tests.support.events import append_events
session, texts = UUID(sys.argv[1]), json.loads(sys.stdin.read())
for text in texts:
    append_events(session, ("session.updated", {"fields": [text]}))
"""


def append_from_another_process(session: Session, **environment: str) -> None:
    settings_dict = connection.settings_dict
    if connection.vendor == "sqlite":
        url = f"sqlite:///{settings_dict['NAME']}"
    else:
        server = os.environ["CHATCORE_TEST_DATABASE_URL"].rpartition("/")[0]
        url = f"{server}/{settings_dict['NAME']}"
    subprocess.run(
        [sys.executable, "-c", OTHER_PROCESS, str(session.pk)],
        env={**os.environ, "CHATCORE_DATABASE_URL": url, **environment},
        input=json.dumps(TEXTS),
        check=True,
        text=True,
    )


async def read_texts(session_id: UUID, count: int) -> list[str]:
    texts: list[str] = []
    async for event in event_log.follow_events(session_id, 0):
        if event:
            texts += event.data["fields"]
        if len(texts) == count:
            break
    return texts


async def follow_another_process(
    session: Session, has_opened: threading.Event, **environment: str
) -> list[str]:
    reader = asyncio.create_task(read_texts(session.pk, len(TEXTS)))
    await wait_until_async(has_opened.is_set)  # what comes before is read besides
    await asyncio.to_thread(append_from_another_process, session, **environment)
    return await asyncio.wait_for(reader, 60)


@pytest.fixture(autouse=True)
def new_relay() -> Iterator[None]:
    """Choose the relay anew, by this test's settings."""
    listener.get_relay.cache_clear()
    yield
    listener.get_relay.cache_clear()


@pytest.fixture
def has_opened(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """An event that is set once the relay of this process listens, or has tried to."""
    has_opened, create_relay = threading.Event(), listener.create_relay

    def create_and_watch_relay() -> EventRelay:
        relay = create_relay()
        open_relay = relay.open

        def open_and_tell() -> None:
            try:
                open_relay()
            finally:
                has_opened.set()

        monkeypatch.setattr(relay, "open", open_and_tell)
        return relay

    monkeypatch.setattr(listener, "create_relay", create_and_watch_relay)
    thread = listener.event_listener._thread
    if thread:
        thread.join()  # it ends, as its readers have; and has opened a relay already
    return has_opened


@pytest.fixture
def redis_url(settings: Any) -> Iterator[str]:
    try:
        client = redis_client.Redis.from_url(REDIS, socket_connect_timeout=2)
        client.ping()
    except redis_client.RedisError:
        pytest.skip(f"NO REDIS ANSWERS at {REDIS}; set CHATCORE_TEST_REDIS_URL")
    settings.REDIS_URL = REDIS
    yield REDIS
    client.delete(STREAM)


async def test_the_relay_of_the_database_brings_them_in_order(
    session: Session, has_opened: threading.Event
) -> None:
    assert await follow_another_process(session, has_opened) == TEXTS


@pytest.mark.slow
async def test_a_connection_that_cannot_be_given_back_stops_no_relay(
    session: Session, has_opened: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise RuntimeError("The connection is in use.")

    monkeypatch.setattr(listener, "close_old_connections", fail)
    assert await follow_another_process(session, has_opened) == TEXTS


@pytest.mark.redis
async def test_a_redis_stream_brings_them_in_order(
    session: Session, has_opened: threading.Event, redis_url: str
) -> None:
    assert await follow_another_process(session, has_opened, CHATCORE_REDIS_URL=redis_url) == TEXTS


async def test_a_redis_that_is_away_makes_them_late_and_loses_none(
    session: Session, has_opened: threading.Event, settings: Any
) -> None:
    settings.REDIS_URL = NO_REDIS
    assert await follow_another_process(session, has_opened, CHATCORE_REDIS_URL=NO_REDIS) == TEXTS
    await asyncio.to_thread(append_events, session.pk, ("session.updated", {"fields": ["more"]}))
    assert (await read_texts(session.pk, 4))[-1] == "more"


@pytest.mark.redis
def test_what_redis_brings_needs_no_reading_of_the_database(
    session: Session, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub, relay = EventHub(), RedisRelay()
    relay.open()
    monkeypatch.setattr(base, "_PROCESS_TOKEN", secrets.token_hex(4))  # of another process
    listener.get_relay()
    append_events(session.pk, ("session.updated", {"fields": ["pushed"]}))
    monkeypatch.undo()

    async def receive() -> list[Event] | None:
        with hub.watch_session(session.pk) as subscription:
            await asyncio.to_thread(relay.receive, hub)
            await asyncio.wait_for(subscription.wake_event.wait(), 60)
            return subscription.get_events_after(0)

    (event,) = asyncio.run(receive()) or []
    assert event == event_log.read_events(session.pk, 0)[0]


@pytest.mark.redis
def test_text_of_conversations_leaves_redis_within_a_minute(
    session: Session, redis_url: str
) -> None:
    client = redis_client.Redis.from_url(redis_url, decode_responses=True)
    seconds, _ = client.time()
    old = [
        client.xadd(STREAM, {"packet": "[]"}, id=f"{(seconds - 31) * 1_000}-{n}") for n in (1, 2)
    ]
    recent = client.xadd(STREAM, {"packet": "[]"}, id=f"{(seconds - 15) * 1_000}-1")
    append_events(session.pk, ("session.updated", {"fields": ["new"]}))
    entries: Any = client.xrange(STREAM)
    ids = [entry_id for entry_id, _ in entries]
    assert not {*old} & {*ids}
    assert ids[0] == recent
    assert len(ids) == 2
    assert 0 < client.ttl(STREAM) <= 30


@pytest.mark.redis
def test_events_of_a_deleted_session_are_dropped_without_an_error(
    session: Session, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    deleted_id = session.pk
    Session.objects.filter(pk=deleted_id).delete()
    append_events(deleted_id, ("session.updated", {"fields": ["late"]}))
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
    assert not redis_client.Redis.from_url(redis_url).exists(STREAM)


@pytest.mark.redis
def test_a_connection_that_breaks_while_it_is_used_is_a_redis_that_is_away(
    session: Session, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    relay = listener.get_relay()
    assert isinstance(relay, RedisRelay)
    append_events(session.pk, ("session.updated", {"fields": ["one"]}))
    connection = relay._get_client().connection_pool.get_connection()
    connection._parser._buffer._buffer.close()  # as another thread does, which disconnects
    relay._get_client().connection_pool.release(connection)
    append_events(session.pk, ("session.updated", {"fields": ["two"]}))
    assert "Redis does not take events: I/O operation on closed file" in caplog.text
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
    assert (event_log.read_events(session.pk, 0)[-1]).data == {"fields": ["two"]}


@pytest.mark.redis
def test_the_log_says_once_that_redis_went_and_once_that_it_is_back(
    session: Session,
    redis_url: str,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(caches, "PAUSE_SECONDS", 0.0)
    settings.REDIS_URL = NO_REDIS
    for word in ("one", "two", "three"):
        append_events(session.pk, ("session.updated", {"fields": [word]}))
    settings.REDIS_URL = redis_url
    relay = listener.get_relay()
    assert isinstance(relay, RedisRelay)
    relay._client = None  # as one whose address leads to a server again
    for word in ("four", "five"):
        append_events(session.pk, ("session.updated", {"fields": [word]}))
    lines = [record.getMessage() for record in caplog.records if "events" in record.getMessage()]
    assert [line.partition(":")[0] for line in lines] == [
        "Redis does not take events",
        "Redis takes events again",
    ]


def build_events(session: Session, count: int) -> list[Event]:
    return [
        Event(session=session.pk, seq=seq, name="session.updated", data={}, at=timezone.now())
        for seq in range(1, count + 1)
    ]


async def test_a_reader_far_behind_is_sent_to_the_database(session: Session) -> None:
    hub, events = EventHub(), build_events(session, HELD_EVENTS + 5)
    with hub.watch_session(session.pk) as subscription:
        assert subscription.get_events_after(0) is None, "nobody has published anything"
        hub.publish([(session.pk, events)])
        assert subscription.get_events_after(4) is None
        assert subscription.get_events_after(5) == events[5:]
        assert subscription.get_events_after(events[-1].seq) == []


async def test_a_gap_between_published_events_is_read_from_the_database(session: Session) -> None:
    hub = EventHub()
    first, second, third, fourth = build_events(session, 4)
    with hub.watch_session(session.pk) as subscription:
        hub.publish([(session.pk, [first])])
        hub.publish([(session.pk, [third, fourth])])
        hub.publish([(session.pk, [second])])  # its writer was slower
        assert subscription.get_events_after(1) is None
        assert subscription.get_events_after(2) == [third, fourth]


def test_a_packet_never_grows_over_its_limit(session: Session) -> None:
    append_events(session.pk, *[("session.updated", {"fields": [text * 9]}) for text in TEXTS * 9])
    events = event_log.read_events(session.pk, 0)
    packets = list(base.encode_packets([(session.pk, events)], max_bytes=7_900))
    assert max(len(packet.encode()) for packet in packets) <= 7_900
    entries = [entry for packet in packets for entry in json.loads(packet)[1]]
    assert [entry[1] for entry in entries] == [event.seq for event in events]
